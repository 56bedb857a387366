//! The operator's inspection command: asked before every write, and about nothing else.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use taskbus::core::bus::message::{Content, Revision, Sort};
use taskbus::core::command::{Command, Draft, Next, Patch, Planned};
use taskbus::core::name::Key;
use taskbus::core::refusal::{Inspection, Refusal};
use taskbus::core::text::Subject;
use taskbus::engine::{InspectionAt, Limits};
use tempfile::TempDir;

use crate::support::{Person, Place, list, on_every_store, race, refusal};

/// A command that writes down what it is asked, and says no to what has "secret" in it.
struct Hook {
    _directory: TempDir,
    log: PathBuf,
}

impl Hook {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { log: directory.path().join("asked"), _directory: directory }
    }

    fn person(&self, place: &Place, name: &str) -> Person {
        place.person_with(name, self.limits())
    }

    fn limits(&self) -> Limits {
        let script = r#"question=$(cat); printf '%s\n' "$question" >> "$0"
            case $question in *secret*) echo '{"allow": false, "reason": "no secrets here"}';; *) echo '{"allow": true}';; esac"#;
        let command = ["sh", "-c", script, self.log.to_str().unwrap()].map(str::to_owned).to_vec();
        Limits { inspection: Some(InspectionAt { command, timeout: Duration::from_secs(20) }), ..Limits::default() }
    }

    fn asked(&self) -> Vec<Value> {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn operations(&self) -> Vec<String> {
        self.asked().iter().map(|question| question["operation"].as_str().unwrap().to_owned()).collect()
    }
}

fn change(content: &str) -> Revision {
    let content = Content::new(content).unwrap();
    Revision { content, sort: Sort::default(), subject: None, metadata: None, tags: None }
}

fn draft(subject: &str) -> Draft {
    Draft::new(Subject::new(subject).unwrap())
}

fn said_no<T: std::fmt::Debug>(result: Result<T, taskbus::engine::Error>) {
    let refused = refusal(result);
    assert_eq!(refused, Refusal::Inspection(Inspection::Rejected { reason: "no secrets here".to_owned() }));
}

on_every_store! {
    fn every_write_is_inspected_under_the_name_of_its_tool(place) {
        let hook = Hook::new();
        let zed = hook.person(&place, "Zed");
        let id = place.remember(&zed, &place.draft("memory", "one"));
        let tags = Some(Vec::new());
        zed.engine.edit_memory(&zed.name, id, &Revision { subject: Some(None), tags, ..change("two") }, None).unwrap();
        zed.engine.delete_memory(&zed.name, id, None).unwrap();
        let task = zed.create("Mend the roof");
        zed.claim(&task).unwrap();
        zed.update(&task, Patch::release()).unwrap();
        let plan = Planned { key: None, draft: draft("planned"), parent: None, blocked_by: Vec::new(), done: false };
        zed.send(Command::Plan(vec![plan]), None).unwrap();
        zed.next(Next::default());
        zed.update(&task, Patch::delete()).unwrap();
        zed.send(Command::Restore(task.clone()), None).unwrap();
        zed.engine
            .execute_together(&zed.name, &list(), &mut |_| Ok(vec![Command::Create(Box::new(draft("together")))]), None)
            .unwrap();
        let expected = [
            "edit_memory", "delete_memory", "task_create", "task_update", "task_update", "task_plan", "task_next",
            "task_update", "task_update", "task_create",
        ];
        assert_eq!(hook.operations(), expected);
        let asked = hook.asked();
        assert!(asked.iter().all(|question| question["sender"] == "Zed"));
        let payload = json!({"id": id, "content": "two", "type": "", "subject": "", "tags": []});
        assert_eq!(asked[0]["payload"], payload);
        assert_eq!(asked[1]["payload"], json!({"id": id}));
        assert_eq!(asked[2]["payload"], json!({"subject": "Mend the roof", "channel": "tasks/work"}));
        assert_eq!(asked[3]["payload"], json!({"status": "in_progress", "owner": "Zed", "task_id": task}));
        assert_eq!(asked[8]["payload"], json!({"delete": false, "task_id": task}));
    }

    fn what_is_rejected_is_not_written_and_costs_nothing(place) {
        let hook = Hook::new();
        let zed = place.person_with("Zed", Limits { writes_per_second: 1, ..hook.limits() });
        let id = place.remember(&zed, &place.draft("memory", "one"));
        said_no(zed.engine.edit_memory(&zed.name, id, &change("a secret"), None));
        said_no(zed.send(Command::Create(Box::new(draft("a secret"))), None));
        said_no(zed.engine.execute_together(
            &zed.name,
            &list(),
            &mut |_| Ok(vec![Command::Create(Box::new(draft("a secret")))]),
            None,
        ));
        assert_eq!(zed.engine.memory(&zed.name, id).unwrap().content, "one");
        assert!(zed.search("secret").is_empty());
        zed.engine.edit_memory(&zed.name, id, &change("two"), None).unwrap();
    }

    fn nobody_is_asked_about_what_is_refused_or_repeated_or_only_read(place) {
        let hook = Hook::new();
        let zed = hook.person(&place, "Zed");
        let id = place.remember(&zed, &place.draft("memory", "one"));
        let key = Key::new("k").unwrap();
        let first = zed.engine.edit_memory(&zed.name, id, &change("two"), Some(&key)).unwrap();
        assert_eq!(hook.operations().len(), 1);
        assert_eq!(zed.engine.edit_memory(&zed.name, id, &change("two"), Some(&key)).unwrap(), first);
        refusal(zed.engine.edit_memory(&zed.name, 999, &change("two"), None));
        refusal(zed.engine.delete_memory(&zed.name, 999, None));
        zed.engine.memory(&zed.name, id).unwrap();
        zed.search("two");
        zed.engine.tick().unwrap();
        assert_eq!(hook.operations().len(), 1);
    }

    fn two_calls_with_one_key_that_race_are_inspected_once(place) {
        let hook = Hook::new();
        let zed = hook.person(&place, "Zed");
        let id = place.remember(&zed, &place.draft("memory", "one"));
        let key = Key::new("k").unwrap();
        let edit = || zed.engine.edit_memory(&zed.name, id, &change("two"), Some(&key)).unwrap();
        let (a, b) = race(edit, edit);
        assert_eq!((a, hook.operations().len()), (b, 1));
    }

    fn a_command_that_is_not_there_refuses_every_write_until_it_is(place) {
        let at = InspectionAt { command: vec!["/no/such/program".to_owned()], timeout: Duration::from_secs(1) };
        let zed = place.person_with("Zed", Limits { inspection: Some(at), ..Limits::default() });
        let refused = refusal(zed.send(Command::Create(Box::new(draft("x"))), None));
        assert_eq!((refused.code(), refused.retryable()), ("inspection_unavailable", true));
        assert!(refused.to_string().contains("/no/such/program"), "{refused}");
    }

    fn a_waiting_next_is_inspected_once(place) {
        let hook = Hook::new();
        let zed = hook.person(&place, "Zed");
        let amp = place.person("Amp");
        let request = zed.request(Command::Next(Box::default()), None);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| zed.engine.next_waiting(&request, Duration::from_secs(20), &|| false));
            place.until("it is asked", || hook.operations().len() == 1);
            amp.create("now");
            assert_eq!(crate::support::taken(waiting.join().unwrap().unwrap()).tasks.len(), 1);
        });
        assert_eq!(hook.operations(), ["task_next"]);
    }
}
