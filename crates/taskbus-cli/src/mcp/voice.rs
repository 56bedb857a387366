//! How each set says no. The rules speak of the tools and fields of `core`; here their words are turned into those of
//! the set that was called, and a refusal gets its form.

use serde_json::Value;

use super::desk::Reply;
use crate::options::ToolSet;
use crate::wire::error::Failure;

/// Words of the rules, and what they are called in the tools of Claude Code.
const CLAUDE: [(&str, &str); 9] = [
    ("take another with task_next", "take another one (TaskList)"),
    ("task_list", "TaskList"),
    ("set owner in the same call, or use task_claim", "set owner in the same call"),
    ("name an identity that register returned", "name an agent that has worked on this store"),
    ("call register first and use the name it returns", "call again"),
    ("call register again and use the name it returns", "call again"),
    ("delete may not be combined", "status deleted may not be combined"),
    ("add_blocked_by", "addBlockedBy"),
    ("active_form", "activeForm"),
];

/// The same in Kin's tool.
const KIN: [(&str, &str); 8] = [
    ("take another with task_next", "take another one"),
    ("task_list shows those that are", "action list shows those that are"),
    ("task_list", "action list"),
    ("call register first and use the name it returns", "call again"),
    ("call register again and use the name it returns", "call again"),
    ("delete may not be combined", "status deleted may not be combined"),
    ("add_blocked_by", "blockedBy"),
    ("blocked_by", "blockedBy"),
];

/// A failure in the words of a set.
pub(super) fn spoken(set: ToolSet, failure: Failure) -> Failure {
    let words: &[(&str, &str)] = match set {
        ToolSet::Core | ToolSet::Full => return failure,
        ToolSet::Claude => &CLAUDE,
        ToolSet::Kin => &KIN,
    };
    let message = words.iter().fold(failure.message, |message, (rule, own)| message.replace(rule, own));
    let mut facts = failure.facts;
    if let Some(Value::String(field)) = facts.get_mut("field")
        && let Some((_, own)) = words.iter().find(|(rule, _)| rule == field)
    {
        *field = (*own).to_owned();
    }
    Failure { message, facts, ..failure }
}

/// A failure as the answer to a call: JSON, or words where the set speaks in words.
pub(super) fn refusal(set: ToolSet, failure: Failure) -> Reply {
    let facts = spoken(set, failure).to_object();
    let text = match set {
        ToolSet::Core | ToolSet::Full | ToolSet::Kin => None,
        ToolSet::Claude => facts["message"].as_str().map(str::to_owned),
    };
    Reply { facts, text, is_error: true }
}
