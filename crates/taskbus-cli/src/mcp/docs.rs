//! `docs/tools.md`, written from the table. A test holds the file to it; `UPDATE_GOLDEN=1` writes it anew.
#![cfg(test)]

use std::fmt::Write as _;

use super::field::{Effect, Field, Kind, Tool};
use super::table::{CORE, INSTRUCTIONS};

const HEAD: &str = "\
# The MCP tools

Written from the table in `crates/taskbus-cli/src/mcp/table.rs` by the test `docs_are_as_written`; change the table,
then run `UPDATE_GOLDEN=1 cargo test -p taskbus-cli docs_are`.

Every tool but `register` takes `as`, the name that `register` returned. A call without it acts under the only name
that was registered through this connection, or else under a name made for it, which its answer says. `channel` may be
left out when the server was started with `--list` or inside a project.

A success is one JSON object, as text and as structured content (`task_list` shows its rows as a bare array in the
text). A refusal is a result with `isError` and `{code, message, retryable}` and the facts behind it; the codes are
`validation`, `not_registered`, `not_found`, `conflict`, `rate_limited` and `internal`. An answer is at most 8 KiB,
except a single task that is larger itself.

Spelling is read leniently: ids as `7`, `\"7\"`, `\"#7\"` or `7.0`, numbers and flags as text, one value or JSON text
for a list, and `null`, `\"null\"`, `\"undefined\"` or an empty text for a field left out. Unknown fields are refused.

";

fn document() -> String {
    let mut text = HEAD.to_owned();
    for tool in CORE {
        section(&mut text, tool).expect("BUG: a String can be written to");
    }
    write!(text, "## What a session is told\n\n```text\n{INSTRUCTIONS}\n```\n")
        .expect("BUG: a String can be written to");
    text
}

fn section(text: &mut String, tool: &Tool) -> std::fmt::Result {
    writeln!(text, "## {}\n\n{}\n\n{}\n", tool.name, tool.description, effect(tool))?;
    writeln!(text, "| Field | Holds | |\n|---|---|---|")?;
    tool.fields.iter().try_for_each(|field| row(text, "", field))?;
    writeln!(text)
}

fn effect(tool: &Tool) -> &'static str {
    match tool.effect {
        Effect::Read => "Reads.",
        Effect::Write => "Writes; the same call again does it again, unless it has an `idempotency_key`.",
        Effect::WriteOnce => "Writes; the same call again changes nothing more.",
        Effect::Remove => "Writes, and may remove.",
    }
}

fn row(text: &mut String, of: &str, field: &Field) -> std::fmt::Result {
    let required = if field.required { ", required" } else { "" };
    writeln!(text, "| `{of}{}` | {}{required} | {} |", field.name, words(field.kind), field.doc)?;
    match field.kind {
        Kind::Items(fields) => {
            let of = format!("{}[].", field.name);
            fields.iter().try_for_each(|field| row(text, &of, field))
        }
        _ => Ok(()),
    }
}

/// The kind in words.
fn words(kind: Kind) -> String {
    match kind {
        Kind::Text => "text".to_owned(),
        Kind::Clearable => "text, `\"\"` clears".to_owned(),
        Kind::Word(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        Kind::Flag => "true or false".to_owned(),
        Kind::Integer { min, max: i64::MAX } => format!("whole number from {min}"),
        Kind::Integer { min, max } => format!("whole number, {min} to {max}"),
        Kind::Id => "task id".to_owned(),
        Kind::IdOrNone => "task id, `0` for none".to_owned(),
        Kind::Millis | Kind::Date => "time: Unix ms or RFC 3339, `0` clears".to_owned(),
        Kind::Ids => "list of task ids".to_owned(),
        Kind::Words | Kind::Texts => "list of texts".to_owned(),
        Kind::Reference => "key of the plan, or task id".to_owned(),
        Kind::References => "list of keys of the plan, or task ids".to_owned(),
        Kind::Metadata => "object with text values".to_owned(),
        Kind::Items(_) => "list of objects".to_owned(),
    }
}

#[test]
fn docs_are_as_written() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tools.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, document()).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), document(), "see the head of docs/tools.md");
}
