//! Commands that a client runs at certain moments, as Claude Code, Codex and Gemini CLI keep them: below `hooks`, for
//! each event a list of groups, each with the commands that it runs.

use serde_json::{Value, json};

use super::edit::Refused;
use super::json::{self, Step};
use super::tree::Node;

const HOOKS: &str = "hooks";

/// A command for an event.
#[derive(Clone, Debug)]
pub(super) struct Hook {
    /// The client's name of the event.
    pub(super) event: &'static str,
    /// For which cases of it; none: all.
    pub(super) matcher: Option<&'static str>,
    /// What follows `taskbus hook`.
    pub(super) verb: &'static str,
    /// The whole command, for a shell.
    pub(super) command: String,
    /// How long it may take, in the client's unit.
    pub(super) timeout: u64,
}

impl Hook {
    fn group(&self) -> Value {
        let mut group = serde_json::Map::new();
        group.extend(self.matcher.map(|matcher| ("matcher".to_owned(), json!(matcher))));
        group.insert(HOOKS.to_owned(), json!([self.inner()]));
        Value::Object(group)
    }

    fn inner(&self) -> Value {
        json!({"type": "command", "command": self.command, "timeout": self.timeout})
    }

    /// Whether a command in a file is this one, wherever the program was when it was written.
    fn is_it(&self, node: &Node) -> bool {
        let command = node.member("command").map(Node::to_value);
        let command = command.as_ref().and_then(Value::as_str).unwrap_or_default();
        let program = command.strip_suffix(&format!(" hook {}", self.verb));
        program.is_some_and(|program| program.trim_end_matches(['"', '\'']).ends_with("taskbus"))
    }
}

/// Where a command stands: which group of the event, which command of the group, and whether it is the only one.
struct Place {
    group: usize,
    hook: usize,
    alone: bool,
}

/// The file with the hook.
pub(super) fn add(text: &str, hook: &Hook) -> Result<String, Refused> {
    let root = json::read(text)?;
    let Some(place) = places(&root, hook).pop() else {
        return json::push(text, &[HOOKS, hook.event], &hook.group());
    };
    let steps = steps_to(hook, &place);
    let (steps, wanted) = if place.alone { (&steps[..3], hook.group()) } else { (&steps[..], hook.inner()) };
    let is_there = json::find(&root, steps).is_some_and(|node| node.to_value() == wanted);
    if is_there { Ok(text.to_owned()) } else { json::replace(text, steps, &wanted) }
}

/// The file without the hook.
pub(super) fn remove(text: &str, hook: &Hook) -> Result<String, Refused> {
    let found = places(&json::read(text)?, hook);
    // From the last to the first, so that those that are left keep their places.
    found.iter().rev().try_fold(text.to_owned(), |text, place| {
        let steps = steps_to(hook, place);
        json::remove(&text, if place.alone { &steps[..3] } else { &steps })
    })
}

fn steps_to<'a>(hook: &'a Hook, place: &Place) -> [Step<'a>; 5] {
    [Step::Key(HOOKS), Step::Key(hook.event), Step::At(place.group), Step::Key(HOOKS), Step::At(place.hook)]
}

fn places(root: &Node, hook: &Hook) -> Vec<Place> {
    let groups = json::find(root, &[Step::Key(HOOKS), Step::Key(hook.event)]).map(Node::elements).unwrap_or_default();
    let mut found = Vec::new();
    for (group, node) in groups.iter().enumerate() {
        let inner = node.member(HOOKS).map(Node::elements).unwrap_or_default();
        let ours = inner.iter().enumerate().filter(|(_, node)| hook.is_it(node));
        found.extend(ours.map(|(at, _)| Place { group, hook: at, alone: inner.len() == 1 }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hook(command: &str) -> Hook {
        Hook { event: "Stop", matcher: None, verb: "stop", command: format!("{command} hook stop"), timeout: 10 }
    }

    fn stop_groups(text: &str) -> Value {
        json::read(text).unwrap().to_value()["hooks"]["Stop"].clone()
    }

    #[test]
    fn a_hook_is_added_beside_those_of_others_and_taken_away_alone() {
        let before = "{\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"hooks\": [\n          {\n            \"type\": \"command\",\n            \"command\": \"say done\"\n          }\n        ]\n      }\n    ]\n  }\n}\n";
        let text = add(before, &hook("/opt/taskbus")).unwrap();
        assert_eq!(stop_groups(&text).as_array().unwrap().len(), 2);
        assert_eq!(add(&text, &hook("/opt/taskbus")).unwrap(), text, "twice changes nothing");
        assert_eq!(remove(&text, &hook("/elsewhere/taskbus")).unwrap(), before);
    }

    #[test]
    fn a_hook_of_an_older_place_is_replaced() {
        let old = add("{}", &hook("'/old place/taskbus'")).unwrap();
        let new = add(&old, &hook("/opt/taskbus")).unwrap();
        assert_eq!(
            stop_groups(&new),
            json!([{"hooks": [{"type": "command", "command": "/opt/taskbus hook stop", "timeout": 10}]}])
        );
    }

    #[test]
    fn in_a_group_of_others_only_the_command_is_ours() {
        let mixed = r#"{"hooks": {"Stop": [{"matcher": "x", "hooks": [{"command": "say done"}, {"command": "taskbus hook stop"}]}]}}"#;
        let added = add(mixed, &hook("/opt/taskbus")).unwrap();
        assert_eq!(stop_groups(&added)[0]["hooks"][1]["command"], "/opt/taskbus hook stop");
        assert_eq!(stop_groups(&added)[0]["matcher"], "x");
        let left = remove(&added, &hook("taskbus")).unwrap();
        assert_eq!(stop_groups(&left), json!([{"matcher": "x", "hooks": [{"command": "say done"}]}]));
    }

    #[test]
    fn what_only_looks_alike_is_not_ours() {
        for command in
            ["not-a-bus hook stop", "taskbus hook stopped", "echo taskbus hook stop # no", "taskbus hook session-start"]
        {
            let text = format!("{{\"hooks\": {{\"Stop\": [{{\"hooks\": [{{\"command\": {command:?}}}]}}]}}}}");
            assert_eq!(remove(&text, &hook("taskbus")).unwrap(), text, "{command}");
        }
        assert!(add("{\"hooks\": {\"Stop\": \"x\"}}", &hook("taskbus")).is_err());
        assert!(add("{\"hooks\": []}", &hook("taskbus")).is_err());
    }
}
