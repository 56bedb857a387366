//! Names for agents that have not said one: made from what is known of them. The server and the hooks make the same
//! name of the same agent, which is how they find each other without asking.

/// The part of a session's or an agent's id that goes into a name.
const TAIL_CHARS: usize = 8;
/// The part of a client's name that does.
const CLIENT_CHARS: usize = 40;
/// The part of a subagent's type that does.
const KIND_CHARS: usize = 40;

/// The name of an agent that runs in a client, by the id of its session or thread, else by this process.
pub(crate) fn of_client(client: &str, id: Option<&str>) -> String {
    let client = or(plain(client, CLIENT_CHARS), "agent");
    match id.map(tail).filter(|tail| !tail.is_empty()) {
        Some(tail) => format!("{client}-{tail}"),
        None => format!("{client}-{}", std::process::id()),
    }
}

/// The name of a subagent among those of its parent.
pub(crate) fn of_subagent(kind: &str, id: &str) -> String {
    format!("{}-{}", or(plain(kind, KIND_CHARS), "subagent"), or(tail(id), "1"))
}

/// The end of an id: the beginning of some kinds of id is a time, and the same for many.
fn tail(id: &str) -> String {
    let plain = plain(id, id.len());
    plain[plain.len().saturating_sub(TAIL_CHARS)..].trim_matches('-').to_owned()
}

/// Only letters, digits and `-`, which stand in every name.
fn plain(text: &str, chars_max: usize) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let text: String = text.chars().map(kept).take(chars_max).collect();
    text.trim_matches('-').to_owned()
}

fn or(text: String, other: &str) -> String {
    if text.is_empty() { other.to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_of_plain_characters() {
        assert_eq!(of_client("Claude Code", Some("0a1b2c3d-9999")), "claude-code-c3d-9999");
        assert_eq!(of_client("\u{1b}/", None), format!("agent-{}", std::process::id()));
        assert_eq!(of_subagent("General Purpose", "agent_a1b2c3d4"), "general-purpose-a1b2c3d4");
        assert_eq!(of_subagent("/", "é"), "subagent-1");
        assert_eq!(of_subagent(&"x".repeat(100), "12345678901").len(), 49);
    }
}
