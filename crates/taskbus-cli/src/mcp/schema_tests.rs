//! The rules of `tools/list` on the table itself; `tests/mcp_schema.rs` holds the same against a real process.

use super::*;
use crate::mcp::table::{CORE, INSTRUCTIONS};

/// A token is counted as four bytes. `send` and `receive` are still to come within 3,000.
const TOKENS_MAX: usize = 2_400;

#[test]
fn the_definitions_are_small() {
    let tools: Vec<Value> = CORE.iter().map(|tool| definition(tool)).collect();
    for tool in &tools {
        println!("{:>6} bytes  {}", tool.to_string().len(), tool["name"]);
    }
    let bytes = Value::Array(tools).to_string().len();
    println!("{bytes:>6} bytes in all = {} tokens", bytes / 4);
    assert!(bytes / 4 <= TOKENS_MAX, "{bytes} bytes");
}

#[test]
fn words_are_few() {
    for tool in CORE {
        assert!(tool.description.len() <= 600, "{} {}", tool.name, tool.description.len());
        assert!(!tool.description.contains("  "), "{}", tool.description);
        assert!(tool.name.len() <= 25 && tool.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
    }
    println!("{} bytes of instructions", INSTRUCTIONS.len());
    assert!(INSTRUCTIONS.len() <= 2048, "{}", INSTRUCTIONS.len());
}

#[test]
fn names_are_unique() {
    for tool in CORE {
        let mut names: Vec<&str> = tool.fields.iter().map(|field| field.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), tool.fields.len(), "{}", tool.name);
    }
}
