//! The set `core`: an agent on a shared list.

use taskbus_core::limits;

use crate::mcp::calls::{channels, messages, next, people, plan, read, write};
use crate::mcp::field::{Effect, Field, Kind, Tool};

/// The tools, in the order in which they are published.
pub(super) const TOOLS: [&Tool; 12] = [
    &REGISTER,
    &CREATE_CHANNEL,
    &TASK_CREATE,
    &TASK_PLAN,
    &TASK_NEXT,
    &TASK_CLAIM,
    &TASK_RELEASE,
    &TASK_UPDATE,
    &TASK_GET,
    &TASK_LIST,
    &SEND,
    &RECEIVE,
];

/// Those that need sessions, and channels beside one list.
pub(super) const OF_A_BUS: [&Tool; 4] = [&REGISTER, &CREATE_CHANNEL, &SEND, &RECEIVE];

/// The most tasks that one `task_next` hands out, as the table wants it.
const COUNT_MAX: i64 = limits::NEXT_COUNT_MAX as i64;
/// Of one page.
const ROWS_MAX: i64 = limits::PAGE_ROWS_MAX as i64;
/// Of one wait.
const WAIT_MAX: i64 = limits::WAIT_SECONDS_MAX as i64;
/// Of one lease.
const LEASE_MAX: i64 = limits::LEASE_SECONDS_MAX as i64;

const STATUSES: &[&str] = &["pending", "in_progress", "completed"];

pub(super) const AS: Field = Field::new("as", Kind::Text, "your name");
const CHANNEL: Field = Field::new("channel", Kind::Text, "the list, tasks/NAME");
const TASK_ID: Field = Field::new("task_id", Kind::Id, "").required();
pub(super) const KEY: Field = Field::new("idempotency_key", Kind::Text, "");
const SUBJECT: Field = Field::new("subject", Kind::Text, "");
const LEASED_UNTIL: Field = Field::new("leased_until", Kind::Millis, "Unix ms");
const LEASE_SECONDS: Field = Field::new("lease_seconds", Kind::Integer { min: 1, max: LEASE_MAX }, "");
const FENCE: Field = Field::new("fence", Kind::Integer { min: 0, max: i64::MAX }, "");
const LABELS: Field = Field::new("labels", Kind::Words, "");
const PATHS: Field = Field::new("paths", Kind::Texts, "globs of files it touches");
const NOT_BEFORE: Field = Field::new("not_before", Kind::Date, "RFC 3339");
pub(super) const TYPE: Field = Field::new("type", Kind::Text, "");
/// More than there may be are cut down, so only the smallest is stated.
pub(super) const COUNT: Field = Field::new("count", Kind::Integer { min: 0, max: i64::MAX }, "");
pub(super) const METADATA: Field = Field::new("metadata", Kind::Metadata, "");
const ACTIVE_FORM: Field = Field::new("active_form", Kind::Text, "");
const NOTE: Field = Field::new("note", Kind::Text, "remark for the history");
const RESULT: Field = Field::new("result", Kind::Text, "what was done, evidence");

const REGISTER: Tool = Tool {
    name: "register",
    title: "Register",
    description: "Take a name before working with others. Returns `as`: pass it in every later call (a taken name \
        gets a number), plus the task lists and who else is here.",
    effect: Effect::WriteOnce,
    always_load: true,
    fields: &[
        Field::new("name", Kind::Text, "short, no /").required(),
        Field::new("parent", Kind::Text, "name of the agent you work for"),
        Field::new("context", Kind::Text, "what you work on"),
        Field::new("resume", Kind::Flag, "false: hear nothing from before"),
    ],
    run: people::register,
};

const CREATE_CHANNEL: Tool = Tool {
    name: "create_channel",
    title: "Create channel",
    description: "Make a task list (tasks/NAME), or a channel for messages (general/NAME) or memories (memory/NAME); \
        any other name needs kind. Fine if it exists already.",
    effect: Effect::WriteOnce,
    always_load: false,
    fields: &[
        Field::new("name", Kind::Text, "tasks/NAME").required(),
        Field::new("kind", Kind::Word(channels::KINDS), ""),
        Field::new(
            "max_reclaims",
            Kind::Integer { min: 0, max: u32::MAX as i64 },
            "park a task abandoned more often; 0 never",
        ),
        AS,
    ],
    run: channels::create,
};

const TASK_CREATE: Tool = Tool {
    name: "task_create",
    title: "Create task",
    description: "Add one task to a list (several at once: task_plan). Returns the task with its id. Goes last among \
        its siblings unless before or after names one.",
    effect: Effect::Write,
    always_load: false,
    fields: &[
        CHANNEL,
        SUBJECT.required(),
        Field::new("description", Kind::Text, ""),
        ACTIVE_FORM,
        Field::new("parent", Kind::IdOrNone, ""),
        Field::new("before", Kind::IdOrNone, "sibling"),
        Field::new("after", Kind::IdOrNone, "sibling"),
        Field::new("blocked_by", Kind::Ids, "tasks to complete first"),
        NOT_BEFORE,
        LABELS.doc("only workers with all of these get it"),
        PATHS,
        METADATA,
        KEY,
        AS,
    ],
    run: write::create,
};

const TASK_PLAN: Tool = Tool {
    name: "task_plan",
    title: "Create plan",
    description: "Add a whole graph of tasks in order, all or nothing, at most 1000. parent and blocked_by name keys \
        of this plan or existing ids. Returns the ids by key. Refused with the path when a link closes a cycle.",
    effect: Effect::Write,
    always_load: false,
    fields: &[CHANNEL, Field::new("tasks", Kind::Items(PLANNED), "").required(), KEY, AS],
    run: plan::plan,
};

const PLANNED: &[Field] = &[
    Field::new("key", Kind::Reference, ""),
    SUBJECT.required(),
    Field::new("description", Kind::Text, ""),
    ACTIVE_FORM,
    Field::new("parent", Kind::Reference, ""),
    Field::new("blocked_by", Kind::References, ""),
    NOT_BEFORE,
    LABELS,
    PATHS,
    METADATA,
];

const TASK_NEXT: Tool = Tool {
    name: "task_next",
    title: "Take next task",
    description: "Take the first ready task: claims it for you and returns it whole, with its fence. complete finishes \
        your current task in the same step. Nothing ready: idle says why and what to do (wait, done, stuck).",
    effect: Effect::Write,
    always_load: true,
    fields: &[
        CHANNEL,
        Field::new("complete", Kind::Id, "task you have finished"),
        RESULT,
        FENCE.doc("of the finished task"),
        Field::new("labels", Kind::Words, "what you can do"),
        Field::new("parent", Kind::IdOrNone, "only below this task"),
        Field::new("count", Kind::Integer { min: 1, max: COUNT_MAX }, "tasks to do in parallel"),
        LEASE_SECONDS,
        LEASED_UNTIL,
        Field::new("wait_seconds", Kind::Integer { min: 0, max: WAIT_MAX }, "wait for one"),
        KEY,
        AS,
    ],
    run: next::next,
};

const TASK_CLAIM: Tool = Tool {
    name: "task_claim",
    title: "Claim task",
    description: "Claim one task by id and start it. Returns {task, replaced}; keep task.fence. Refused (conflict) when \
        somebody holds it (names them) or blockers are open (lists them). Without a lease you hold it while your \
        session lives; take a lease only if you will renew it.",
    effect: Effect::WriteOnce,
    always_load: false,
    fields: &[
        TASK_ID,
        LEASE_SECONDS,
        LEASED_UNTIL,
        Field::new("if_revision", Kind::Integer { min: 1, max: i64::MAX }, ""),
        KEY,
        AS,
    ],
    run: write::claim,
};

const TASK_RELEASE: Tool = Tool {
    name: "task_release",
    title: "Release task",
    description: "Give a task back unfinished, so that others can take it. Returns {task, replaced}.",
    effect: Effect::WriteOnce,
    always_load: false,
    fields: &[TASK_ID, NOTE, FENCE, KEY, AS],
    run: write::release,
};

const TASK_UPDATE: Tool = Tool {
    name: "task_update",
    title: "Update task",
    description: "Change a task; fields left out stay. status completed finishes it (say result); pending reopens. \
        owner \"\" clears, parent 0 moves to the root, a metadata value \"\" removes the key. Returns {task, replaced, \
        unblocked}. Refused (conflict) when another holds it, or with lease_lost when your fence is old: then stop.",
    effect: Effect::Remove,
    always_load: true,
    fields: &[
        TASK_ID,
        Field::new("status", Kind::Word(STATUSES), ""),
        RESULT,
        NOTE,
        FENCE.doc("from your claim"),
        Field::new("owner", Kind::Clearable, ""),
        SUBJECT,
        Field::new("description", Kind::Clearable, ""),
        Field::new("active_form", Kind::Clearable, ""),
        Field::new("parent", Kind::IdOrNone, ""),
        Field::new("before", Kind::IdOrNone, "sibling"),
        Field::new("after", Kind::IdOrNone, "sibling"),
        Field::new("add_blocked_by", Kind::Ids, ""),
        Field::new("remove_blocked_by", Kind::Ids, ""),
        LEASE_SECONDS.doc("renews"),
        LEASED_UNTIL.doc("Unix ms, 0 clears"),
        NOT_BEFORE,
        LABELS,
        PATHS,
        METADATA,
        Field::new("if_revision", Kind::Integer { min: 1, max: i64::MAX }, "if still at it"),
        Field::new("delete", Kind::Flag, "alone; false restores"),
        Field::new("force", Kind::Flag, "override, on record"),
        KEY,
        AS,
    ],
    run: write::update,
};

const TASK_GET: Tool = Tool {
    name: "task_get",
    title: "Read task",
    description: "One task whole, with blockers, children and why it is not ready; its changes and notes with history.",
    effect: Effect::Read,
    always_load: false,
    fields: &[TASK_ID, Field::new("history", Kind::Flag, ""), AS],
    run: read::get,
};

const TASK_LIST: Tool = Tool {
    name: "task_list",
    title: "List tasks",
    description: "Summaries in tree order, with depth and open blockers. More than fit: total and next; pass next as \
        cursor.",
    effect: Effect::Read,
    always_load: true,
    fields: &[
        CHANNEL,
        Field::new("view", Kind::Word(&["tree", "ready", "blocked"]), ""),
        Field::new("status", Kind::Word(STATUSES), ""),
        Field::new("owner", Kind::Text, ""),
        Field::new("label", Kind::Text, ""),
        Field::new("parent", Kind::IdOrNone, "only below this task"),
        Field::new("cursor", Kind::Text, ""),
        Field::new("limit", Kind::Integer { min: 1, max: ROWS_MAX }, ""),
        AS,
    ],
    run: read::list,
};

const SEND: Tool = Tool {
    name: "send",
    title: "Send message",
    description: "Send a message to a channel (general), or to one agent (dm/NAME), who gets it later if away. On a \
        memory channel it is kept as a memory, found by search. Returns {seq, memory_id}. Not for task lists.",
    effect: Effect::Write,
    always_load: false,
    fields: &[
        Field::new("channel", Kind::Text, "").required(),
        Field::new("content", Kind::Text, "").required(),
        Field::new("subject", Kind::Text, "one line; say it always"),
        TYPE,
        Field::new("reply_to", Kind::Seq, "seq"),
        Field::new("tags", Kind::Words, ""),
        METADATA,
        KEY,
        AS,
    ],
    run: messages::send,
};

const RECEIVE: Tool = Tool {
    name: "receive",
    title: "Receive messages",
    description: "New messages to you and on channels that you hear, in order. Returns messages and batch: pass batch \
        as ack in the next call, else they come again. wait_seconds (at most 50) waits for one; do not poll.",
    effect: Effect::Write,
    always_load: false,
    fields: &[
        Field::new("ack", Kind::Text, "last batch"),
        COUNT,
        Field::new("wait_seconds", Kind::Integer { min: 0, max: i64::MAX }, ""),
        Field::new("channels", Kind::Texts, "only these"),
        Field::new("include_own", Kind::Flag, ""),
        AS,
    ],
    run: messages::receive,
};

/// What a session is told.
pub(super) const TOLD: &str = "\
taskbus keeps task lists that several agents share. A list is named tasks/NAME.

Working: register once and pass the returned `as` in every call. Take work with task_next (or task_claim for a \
certain task) before you start on it; never work on a task that you do not hold. Finish with task_next {complete, \
result, fence}, which also takes the next one, or with task_update {status: \"completed\", result, fence}. If you \
stop before it is done, task_release it with a note. When task_next has no task, idle.advice says whether to wait \
(call again with wait_seconds), or that all is done, or that it is stuck.

Holding: your hold lasts while this session lives. Ask for lease_seconds only if you will renew it with task_update \
before it ends; when it ends, others may take the task. Keep task.fence and send it with later changes: a conflict \
with reason lease_lost means that the task has gone to somebody else, so stop working on it.

Planning: task_plan makes a whole graph at once, task_create one task. blocked_by means that those must be completed \
first; a blocked task cannot start. Make a list with create_channel {name: \"tasks/NAME\", kind: \"memory\"}.

Reading: task_list is short and paged, task_get shows one task whole. Other agents change lists at any time, so read \
again before you decide. A refusal says what stands in the way (owner, until when, blockers) and the next step; only \
retryable ones pass by repeating the same call.

Talking: receive when you begin and before you end, and pass its batch as ack. send reaches everybody on general, one \
agent on dm/NAME; give each message a subject. Do not poll: `taskbus wait` in the \
background ends when a message comes.";

/// The same where the store is one list without sessions.
pub(super) const TOLD_OF_ONE_LIST: &str = "\
taskbus keeps one task list here, in a file that another program reads too. Leave channel out.

Working: pass a name of your own as `as` in every call. Take work with task_next (or task_claim for a certain task) \
before you start on it. Finish with task_next {complete, result}, which also takes the next one, or with task_update \
{status: \"completed\", result}. If you stop before it is done, task_release it. When task_next has no task, \
idle.advice says whether to wait (call again with wait_seconds), or that all is done, or that it is stuck.

Planning: task_plan makes a whole graph at once, task_create one task. blocked_by means that those should be \
completed first; starting a blocked task only gives a warning here.

Reading: task_list is short and paged, task_get shows one task whole. The other program changes the list at any time, \
so read again before you decide.";
