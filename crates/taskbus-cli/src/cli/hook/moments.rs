//! What is said at each moment. Never what agents wrote to each other: an agent reads that by its own call, where it
//! knows that it comes from others.

use serde_json::{Value, json};
use taskbus::engine::Engine;
use taskbus_core::name::Identity;

use super::input::Input;
use super::who;
use crate::agent_name;
use crate::options::Globals;
use crate::project::{self, Surroundings};
use crate::protocol;
use crate::term::failure::Failure;

/// What Claude Code calls itself when it speaks to a server.
pub(super) const CLAUDE: &str = "claude-code";
/// Between the server's name and the tool's.
const OURS: &str = "taskbus__";

/// Who the agent is here, in a repository that has said so, and how its list stands.
pub(super) fn session_start(globals: &Globals) -> Result<Option<Value>, Failure> {
    let Some(file) = who::repository()? else { return Ok(None) };
    let mut text = protocol::register(&file.identity()?);
    if let Some(engine) = who::engine(globals)? {
        text.extend(standing(globals, &engine).map(|line| format!(" {line}")));
    }
    text.push_str(" How agents work together there is told by the skill using-taskbus.");
    Ok(Some(context("SessionStart", &text)))
}

/// How the list of this project stands; none when there is none.
fn standing(globals: &Globals, engine: &Engine) -> Option<String> {
    let list = project::choose(&Surroundings::from_env(globals.list.clone())).ok()?.name;
    let tally = engine.tally(&list).ok()?;
    let (ready, waiting) = (tally.ready, tally.pending() - tally.ready);
    Some(format!("On {list}: {ready} tasks ready, {} in progress, {waiting} that wait.", tally.in_progress))
}

/// Under which name a subagent acts, if its parent is at work on the bus.
pub(super) fn subagent_start(globals: &Globals, input: &Input) -> Result<Option<Value>, Failure> {
    let Some(engine) = who::engine(globals)? else { return Ok(None) };
    let (Some(parent), Some(name)) = (who::at_work(&engine)?, own_name(input)) else { return Ok(None) };
    let text = format!(
        "Only if you were asked to use taskbus, the bus that agents share: your calls of its tools are made as \
         {parent}/{name}. If one is refused as not_registered, call register {{\"name\": \"{name}\", \"parent\": \
         \"{parent}\"}} first. Do not start taskbus wait; your parent does the waiting."
    );
    Ok(Some(context("SubagentStart", &text)))
}

/// A call of a subagent gets its name, so that it is not taken for its parent: they share one connection.
pub(super) fn pre_tool_use(globals: &Globals, input: &Input) -> Result<Option<Value>, Failure> {
    let Some((_, tool)) = input.text("tool_name").and_then(|name| name.rsplit_once(OURS)) else { return Ok(None) };
    let Some(name) = own_name(input).filter(|_| takes_a_name(tool)) else { return Ok(None) };
    let mut arguments = input.object("tool_input").cloned().unwrap_or_default();
    if arguments.get("as").is_some_and(|given| !matches!(given, Value::Null) && given != "") {
        return Ok(None);
    }
    let Some(parent) = parent(globals, input)? else { return Ok(None) };
    arguments.insert("as".to_owned(), json!(format!("{parent}/{name}")));
    let output = json!({"hookEventName": "PreToolUse", "updatedInput": arguments});
    Ok(Some(json!({"hookSpecificOutput": output})))
}

/// The name of the subagent that the client speaks of; none when it speaks of the agent itself.
fn own_name(input: &Input) -> Option<String> {
    let id = input.text("agent_id")?;
    Some(agent_name::of_subagent(input.text("agent_type").unwrap_or_default(), id))
}

/// The agent above: the one that lives here, else the name that its server will make for it.
pub(super) fn parent(globals: &Globals, input: &Input) -> Result<Option<Identity>, Failure> {
    let alive = who::engine(globals)?.map(|engine| who::at_work(&engine)).transpose()?.flatten();
    let made = || Identity::new(agent_name::of_client(CLAUDE, Some(input.text("session_id")?))).ok();
    Ok(alive.or_else(made))
}

/// `register` makes a name, and the tools that stand in for those of other programs know no names.
fn takes_a_name(tool: &str) -> bool {
    !matches!(tool, "register" | "tasks") && !tool.starts_with(|c: char| c.is_ascii_uppercase())
}

fn context(event: &str, text: &str) -> Value {
    json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})
}
