//! `docs/tools.md`, written from the table. A test holds the file to it; `UPDATE_GOLDEN=1` writes it anew.
#![cfg(test)]

use std::fmt::Write as _;

use super::field::{Effect, Field, Kind, Tool};
use super::prompts::PROMPTS;
use super::table::Offer;
use crate::options::ToolSet;

const HEAD: &str = "\
# The MCP tools

Written from the tables in `crates/taskbus-cli/src/mcp/table` by the test `docs_are_as_written`; change a table, then
run `UPDATE_GOLDEN=1 cargo test -p taskbus-cli docs_are`.

`taskbus mcp --tools SET` offers a set: `core` (when nothing is said), `full` (all of the bus, `core` in it), `claude` or
`kin`; several with commas, or with the option repeated. Which tools there are is fixed when the process starts, and is the same for any database.

Spelling is read leniently: ids as `7`, `\"7\"`, `\"#7\"` or `7.0`, numbers and flags as text, one value or JSON text
for a list, and `null`, `\"null\"`, `\"undefined\"` or an empty text for a field left out. Unknown fields are refused.

A refusal is a result with `isError` and `{code, message, retryable}` and the facts behind it; the codes are
`validation`, `not_registered`, `not_found`, `conflict`, `polling`, `inspection_rejected`, `capacity_exhausted`, and
those that may pass later: `rate_limited`, `inspection_unavailable` and `internal`. An answer is at most 8 KiB, except a
single task, message or memory that is larger itself, and a batch that comes again. Text and structured content carry the same facts, because some clients
show only one of them.

";

const CORE: &str = "\
An agent on a shared list. Every tool but `register` takes `as`, the name that `register` returned. A call without it
acts under the only name that was registered through this connection, or else under a name made for it, which its answer
says. `channel` may be left out when the server was started with `--list` or inside a project.

A success is one JSON object, as text and as structured content (`task_list` shows its rows as a bare array in the
text; when there are more, its last element is `{truncated: true, total, next}`). On a store of one list (`file:`,
`claude:`) there are no channels, so there is no `register`, `create_channel`, `send` or `receive`, and any name given in
`as` is taken.

`register` answers `{as, resumed, pending, subscribed, memory_channels, lists, others}`, and what else the file of the
repository (`.local/taskbus.json`) came to: `ignored_channels`, `subscribe_failed`, `tag_subscriptions`, `repo_tags`,
`ignored_tags`. A message is `{seq, channel, sender, context, created_at, type?, subject?, content, reply_to?, metadata?,
memory_id?, revision?, tags?, matched_tags?}`. `receive` answers `{messages, batch?, redelivered?, ack_ignored?, gaps?,
expired?, notice?, instruction?}`: a batch comes again, and nothing else does, until a call names it in `ack`.
";

const FULL: &str = "\
All of the bus: the tools of `core`, and these. On a store of one list they are absent, and `taskbus status` says why.

`list_channels`, `discover` and `history` show their rows as a bare array in the text, as `task_list` does; the
structured content is `{channels, total, truncated, next?}`, `{sessions, …}` and `{messages, …}`. `search` answers `{hits,
next?, semantic_unavailable?}`; a hit is a message with its `score`. `get_memory` on the id of a task shows its document.
";

const CLAUDE: &str = "\
In place of Claude Code's own task tools, over any store. The list is the one that `CLAUDE_CODE_TASK_LIST_ID` names,
else `--list`, else the project's; it is made by the first `TaskCreate`. The agent acts under a name made for it. Ids
are texts. The aliases `id` and `task_id` for `taskId`, and `active_form` for `activeForm`, are understood.

| Tool | Structured content | Text |
|---|---|---|
| TaskCreate | `{task: {id, subject}}` | `Task #1 created successfully: SUBJECT` |
| TaskGet | `{task: {id, subject, description, status, blocks, blockedBy, openBlockers?, owner?, activeForm?, metadata?, parent?, result?}}`, or `{task: null}` | `Task #1: SUBJECT`, `Status: …`, a line for each of the others; `Task not found` |
| TaskUpdate | `{success, taskId, updatedFields, statusChange?: {from, to}, owner?, unblocked?, openChildren?, parentComplete?, warnings?}`; a refusal `{success: false, taskId, updatedFields: [], error, code, message, retryable}` and its facts | `Updated task #1 status, owner`, a line for each of the others |
| TaskList | `{tasks: [{id, subject, status, owner?, blockedBy}], truncated?, total?, leftOut?}`; `blockedBy` has the open ones | `#3 [pending] SUBJECT (owner: NAME) [blocked by #1, #2]`; `No tasks found` |

`in_progress` makes the caller the owner, unless `owner` is given; where owners are kept, a task that another agent holds
is refused. A completed task that is set `in_progress` is reopened and claimed in one step. `addBlocks` on A for B is
`addBlockedBy` on B for A. Whatever one call changes happens together, or not at all. What a list allows is its own
policy (docs/rules.md 8): a blocked start is refused on a shared list, and only warned of in a task directory.
";

const KIN: &str = "\
Kin's one tool, over any store. The list is `--list`, else the project's; it is made by the first `add`.

Changes answer `{action, task, warnings?, snapshot: {tasks}}`, `list` answers `{action, tasks, snapshot: {tasks}}`,
`blocked` answers `{action, tasks}`; the text is the same JSON. A row is `{id, content, status, owner?, blockedBy?,
blocks?, active_form?, completed_at?}`, without what is empty; `owner` only where the list keeps owners. If not all rows
fit, those in progress and pending come first, long contents are cut, and `truncated` and `total` stand beside `tasks`.

What the list allows is its own policy (docs/rules.md 8): on a sidecar any status at any time, on a shared list
the rules of that list. `update` with a status brings a removed task back.
";

const RESOURCES: &str = "\
## Resources

Each list is a resource `taskbus://list/NAME` (the name without `tasks/`, percent-encoded), each task one,
`taskbus://task/ID`; both are JSON, as `task_list` and `task_get` answer it. A client that subscribes (`resources/subscribe`,
or `subscriptions/listen` in the newer era) hears of every change, whichever process makes it, as soon as it is
committed; of a task also when its blockers change. At most 64 are watched by one client. What is not there yet may be
watched. That the list of resources has changed is not announced.

";

const PROMPTS_HEAD: &str = "\
## Prompts

With the tools of `core` there are prompts: texts that a person sends by one command of the client. Nothing is required.

| Prompt | Asks the agent to | Takes |
|---|---|---|
";

fn document() -> String {
    let mut text = HEAD.to_owned();
    for (set, about) in ToolSet::ALL.into_iter().zip([CORE, FULL, CLAUDE, KIN]) {
        set_of(&mut text, set, about).expect("BUG: a String can be written to");
    }
    text.push_str(RESOURCES);
    text.push_str(PROMPTS_HEAD);
    for prompt in &PROMPTS {
        let takes: Vec<String> =
            prompt.arguments.iter().map(|it| format!("`{}`: {}", it.name, it.description)).collect();
        text.push_str(&format!("| `{}` | {} | {} |\n", prompt.name, prompt.description, takes.join("; ")));
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

fn set_of(text: &mut String, set: ToolSet, about: &str) -> std::fmt::Result {
    let offer = Offer::of(&[set], false);
    writeln!(text, "## The set `{}`\n\n{about}", format!("{set:?}").to_lowercase())?;
    let own = offer.tools.iter().filter(|offered| offered.set == set);
    own.map(|offered| offered.tool).try_for_each(|tool| section(text, tool))?;
    if set == ToolSet::Full {
        return Ok(());
    }
    writeln!(text, "### What a session is told\n\n```text\n{}\n```\n", offer.instructions)
}

fn section(text: &mut String, tool: &Tool) -> std::fmt::Result {
    writeln!(text, "### {}\n\n{}\n\n{}\n", tool.name, tool.description, effect(tool))?;
    if tool.fields.is_empty() {
        return writeln!(text, "Takes nothing.\n");
    }
    writeln!(text, "| Field | Holds | |\n|---|---|---|")?;
    tool.fields.iter().try_for_each(|field| row(text, "", field))?;
    writeln!(text)
}

fn effect(tool: &Tool) -> &'static str {
    match tool.effect {
        Effect::Read => "Reads.",
        Effect::Write if tool.fields.iter().any(|field| field.name == "idempotency_key") => {
            "Writes; the same call again does it again, unless it has an `idempotency_key`."
        }
        Effect::Write => "Writes; the same call again does it again.",
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
        Kind::Id | Kind::IdText => "task id".to_owned(),
        Kind::IdOrNone => "task id, `0` for none".to_owned(),
        Kind::Seq => "number of a message".to_owned(),
        Kind::Millis | Kind::Date => "time: Unix ms or RFC 3339, `0` clears".to_owned(),
        Kind::Ids | Kind::IdTexts => "list of task ids".to_owned(),
        Kind::Words | Kind::Texts => "list of texts".to_owned(),
        Kind::Reference => "key of the plan, or task id".to_owned(),
        Kind::References => "list of keys of the plan, or task ids".to_owned(),
        Kind::Metadata => "object with text values".to_owned(),
        Kind::Data => "object with any values".to_owned(),
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
