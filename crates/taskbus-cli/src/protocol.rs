//! What an agent is told of itself and of how to work on the bus: by `taskbus identity`, by `taskbus init`, by the hooks.
//! How to work is told by the skill; here it is only put behind who the agent is.

use taskbus_core::name::Identity;

/// The text that tells an agent how to use taskbus.
pub(crate) const SKILL: &str = include_str!("../../../skills/using-taskbus/SKILL.md");

/// Who the agents of a repository are.
pub(crate) fn register(name: &Identity) -> String {
    format!(
        "In this repository you are {name} on taskbus, the bus that the agents on this machine share. Before you use \
         another of its tools, call its tool register {{\"name\": \"{name}\"}}, and pass the name that it returns as \
         `as` in every call. If another agent has the name already you get another one, such as {name}2."
    )
}

/// The skill without its head.
pub(crate) fn how_to_work() -> &'static str {
    let behind_head = SKILL.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n"));
    behind_head.map_or(SKILL, |(_, body)| body.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_skill_has_a_head_that_clients_take() {
        let head = SKILL.strip_prefix("---\nname: using-taskbus\ndescription: ").unwrap();
        let (description, _) = head.split_once("\n---\n").unwrap();
        assert!(!description.contains('\n') && description.chars().count() <= 1024, "{description}");
        assert!(how_to_work().starts_with("# Using taskbus"));
        for words in [
            "claim before you work",
            "release the rest",
            "Lease only what you renew",
            "A list or a message?",
            "subscribe to the list",
        ] {
            assert!(how_to_work().to_lowercase().contains(&words.to_lowercase()), "the skill says nothing of: {words}");
        }
    }

    #[test]
    fn an_agent_is_told_its_name() {
        let text = register(&Identity::new("Zed").unwrap());
        assert!(text.contains("register {\"name\": \"Zed\"}") && text.contains("Zed2"), "{text}");
    }
}
