//! The binary `taskbus`: the command line, the MCP server, the demo and the bench. Everything it knows about
//! tasks it learns from the engine of the `taskbus` library.

mod cli;
mod mcp;
mod project;
mod start;
mod store;
mod wire;

fn main() -> std::process::ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    if args.first().is_some_and(|first| first == "mcp") { start::mcp(args) } else { cli::main() }
}
