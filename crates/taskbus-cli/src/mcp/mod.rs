//! The MCP server over standard input and output.
mod args;
mod field;
mod gate;
mod near;
mod schema;
mod table;
