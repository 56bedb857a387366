//! The binary `taskbus`: the command line, the MCP server, the HTTP server, the demo, the bench and the torture. Everything it knows about
//! tasks it learns from the engine of the `taskbus` library.

mod agent_name;
mod bench;
mod blocking;
mod cli;
mod client;
mod config;
mod demo;
mod files;
mod harness;
mod http;
mod log;
mod mcp;
mod mounted;
mod options;
mod plan;
mod project;
mod protocol;
mod repo_file;
mod repo_name;
mod setup;
mod store;
mod term;
mod torture;
mod wire;

fn main() -> std::process::ExitCode {
    cli::main(&options::Doors {
        mcp: mcp::start,
        serve: |globals, options| http::start(globals, options, mcp::mount),
        demo: demo::run,
        bench: bench::run,
        torture: torture::run,
        demo_worker: demo::work,
        torture_worker: torture::work,
    })
}
