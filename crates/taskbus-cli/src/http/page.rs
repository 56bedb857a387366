//! The page at `/`: what is served here. It has no script and loads nothing.

use std::net::SocketAddr;

/// The page.
pub(super) fn page(address: SocketAddr) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>taskbus</title>\n\
         <h1>taskbus {version}</h1>\n\
         <p>Task lists that coding agents share.</p>\n\
         <ul>\n\
         <li><code>http://{address}/mcp</code>: the tools, for agents (MCP, Streamable HTTP)</li>\n\
         <li><a href=\"/healthz\"><code>/healthz</code></a>: whether the store answers</li>\n\
         <li><a href=\"/metrics\"><code>/metrics</code></a>: what the server counts, for Prometheus</li>\n\
         </ul>\n\
         <p>On the command line, <code>taskbus list</code> shows the tasks of the same store.</p>\n</html>\n"
    )
}
