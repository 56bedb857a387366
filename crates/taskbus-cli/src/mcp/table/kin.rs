//! The set `kin`: Kin's one tool, `tasks`.

use crate::mcp::calls::kin;
use crate::mcp::field::{Effect, Field, Kind, Tool};

/// The tools, in the order in which they are published.
pub(super) const TOOLS: [&Tool; 1] = [&TASKS];

const TASKS: Tool = Tool {
    name: "tasks",
    title: "Task graph",
    description: "The task graph of this session, kept across turns. action add {content, blockedBy?, active_form?} \
        mints the id; update {id, …} changes what is given (blockedBy replaces); complete {id}; remove {id} keeps the \
        row as deleted; list {status_filter?}; blocked: what cannot start yet. Returns the task and the snapshot after \
        the change. blocks is derived from blockedBy; an edge that closes a cycle is refused.",
    effect: Effect::Remove,
    always_load: true,
    fields: &[
        Field::new("action", Kind::Word(kin::ACTIONS), "").required(),
        Field::new("id", Kind::IdText, ""),
        Field::new("content", Kind::Text, "what to do"),
        Field::new("status", Kind::Word(kin::STATUSES), ""),
        Field::new("blockedBy", Kind::IdTexts, "tasks to complete first"),
        Field::new("active_form", Kind::Clearable, "shown while it is worked on"),
        Field::new("status_filter", Kind::Word(kin::STATUSES), ""),
    ],
    run: kin::tasks,
};

/// What a session is told.
pub(super) const TOLD: &str = "\
The tool tasks keeps a graph of work across turns and sessions. Add what is to be done, with blockedBy for what must \
come first; keep the ids that come back. Set a task in_progress when you start on it and complete it when it is done; \
what waited for it is then free. The snapshot in each answer is how the graph stands.";

/// The same, beside the tools of `core`.
pub(super) const TOLD_BESIDE: &str = "\
tasks is Kin's tool over one such list.";
