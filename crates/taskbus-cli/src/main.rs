//! The binary `taskbus`: the command line, the MCP server, the demo and the bench. Everything it knows about
//! tasks it learns from the engine of the `taskbus` library.

mod cli;
mod mcp;
mod project;
mod store;
mod wire;

fn main() -> std::process::ExitCode {
    cli::main()
}
