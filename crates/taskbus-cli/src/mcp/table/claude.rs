//! The set `claude`: the names, inputs and answers of Claude Code's own task tools.

use crate::mcp::calls::claude;
use crate::mcp::field::{Effect, Field, Kind, Tool};

/// The tools, in the order in which they are published.
pub(super) const TOOLS: [&Tool; 4] = [&CREATE, &GET, &UPDATE, &LIST];

const TASK_ID: Field = Field::new("taskId", Kind::IdText, "").required().or(&["id", "task_id"]);
const ACTIVE_FORM: Field =
    Field::new("activeForm", Kind::Text, "shown while it is worked on, such as Running tests").or(&["active_form"]);

const CREATE: Tool = Tool {
    name: "TaskCreate",
    title: "Create task",
    description: "Add a task to the list of this project, which outlives the session and which other agents may share. \
        It starts pending, without an owner. Returns its id. Set what it waits for with TaskUpdate {addBlockedBy}.",
    effect: Effect::Write,
    always_load: true,
    fields: &[
        Field::new("subject", Kind::Text, "one line, what to do").required(),
        Field::new("description", Kind::Clearable, "what is needed to do it").required(),
        ACTIVE_FORM,
        Field::new("metadata", Kind::Data, ""),
    ],
    run: claude::create,
};

const GET: Tool = Tool {
    name: "TaskGet",
    title: "Read task",
    description: "One task whole: description, status, owner, what it waits for (blockedBy) and what waits for it \
        (blocks), metadata. Read it before you start on it. Unknown: Task not found.",
    effect: Effect::Read,
    always_load: true,
    fields: &[TASK_ID],
    run: claude::get,
};

const UPDATE: Tool = Tool {
    name: "TaskUpdate",
    title: "Update task",
    description: "Change a task; fields left out stay. status in_progress starts it and makes you its owner: do that \
        before you work on it. completed finishes it, pending gives it back or reopens it, deleted (alone) removes it. \
        Returns what changed and which tasks became free. Refused when another agent holds it (named) or when it is \
        blocked (by which); then take another.",
    effect: Effect::Remove,
    always_load: true,
    fields: &[
        TASK_ID,
        Field::new("status", Kind::Word(&["pending", "in_progress", "completed", "deleted"]), ""),
        Field::new("subject", Kind::Text, ""),
        Field::new("description", Kind::Clearable, ""),
        Field { kind: Kind::Clearable, ..ACTIVE_FORM.doc("") },
        Field::new("owner", Kind::Clearable, "an agent's name; empty clears"),
        Field::new("addBlocks", Kind::IdTexts, "tasks that wait for this one"),
        Field::new("addBlockedBy", Kind::IdTexts, "tasks to complete before this one"),
        Field::new("metadata", Kind::Data, "merged; null removes a key"),
    ],
    run: claude::update,
};

const LIST: Tool = Tool {
    name: "TaskList",
    title: "List tasks",
    description: "All tasks in short, by id: subject, status, owner, open blockers (blockedBy). Completed tasks stay. \
        If not all fit, those in progress and pending come first, and the answer says how many are left out.",
    effect: Effect::Read,
    always_load: true,
    fields: &[],
    run: claude::list,
};

/// What a session is told.
pub(super) const TOLD: &str = "\
TaskCreate, TaskGet, TaskUpdate and TaskList work on a task list that outlives this session and that other agents may \
share.

Set a task in_progress before you start on it: that takes it for you, and is refused when another agent holds it or \
when it waits for others. Set it completed when it is done, or pending if you give it up. A refusal says who or what \
stands in the way: take another task then. Others change the list at any time, so look at TaskList again before you \
decide. Completed tasks stay until somebody deletes them.";

/// The same, beside the tools of `core`.
pub(super) const TOLD_BESIDE: &str = "\
TaskCreate, TaskGet, TaskUpdate and TaskList are the tools of Claude Code over one such list; TaskUpdate {status: \
\"in_progress\"} claims.";
