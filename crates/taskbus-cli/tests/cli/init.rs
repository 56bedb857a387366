//! `init` and `identity`, from outside.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;
use taskbus::engine::{Engine, Limits};
use taskbus::store::sqlite::{SqliteOptions, SqliteStore};

use crate::common::{Place, Ran, git, run};

struct Repo {
    place: Place,
    root: PathBuf,
}

impl Repo {
    fn new(name: &str) -> Self {
        let place = Place::new();
        let root = place.path(name);
        git(&place.path("work"), &["init", "-q", root.to_str().unwrap()]);
        Self { place, root }
    }

    fn run(&self, args: &[&str]) -> Ran {
        run(self.place.bare(args).current_dir(&self.root))
    }

    fn text(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.root.join(name)).ok()
    }
}

#[test]
fn a_repository_is_made_known_once() {
    let repo = Repo::new("widget");
    let ran = repo.run(&["init"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    for words in
        ["taskbus.json: created", ".gitignore: created", "no client on this machine", "register {\"name\": \"widget\"}"]
    {
        assert!(ran.out.contains(words), "{words}: {ran:?}");
    }
    let file = repo.text(".local/taskbus.json").unwrap();
    let value: serde_json::Value = serde_json::from_str(&file).unwrap();
    assert_eq!(
        value,
        json!({"identity": "widget", "channels": ["general", "memory", "general/widget", "memory/widget"]})
    );
    assert_eq!(repo.text(".gitignore").unwrap(), ".local/\n");
    let again = repo.run(&["--json", "init"]).value();
    assert_eq!(
        (&again["files"][0]["action"], &again["files"][1]["action"]),
        (&json!("unchanged"), &json!("unchanged"))
    );
    assert_eq!(repo.text(".local/taskbus.json").unwrap(), file);
}

#[test]
fn the_channels_of_the_project_can_be_written_to_at_once() {
    let repo = Repo::new("widget");
    assert!(!repo.run(&["init"]).out.contains("channels are made when"));
    let file = repo.place.path("home/.local/share/taskbus/taskbus.db");
    let engine = Engine::new(Arc::new(SqliteStore::lazy(file, SqliteOptions::default())), Limits::default());
    let channels: Vec<String> = engine.channels_all().unwrap().iter().map(|row| row.name.to_string()).collect();
    for name in ["general/widget", "memory/widget"] {
        assert!(channels.iter().any(|channel| channel == name), "{channels:?}");
    }
}

#[test]
fn a_store_that_cannot_be_had_keeps_no_repository_from_being_made_known() {
    let repo = Repo::new("widget");
    let ran = run(repo.place.bare(&["init"]).current_dir(&repo.root).env("TASKBUS_STORE", "sqlite:/dev/null/x.db"));
    assert!(ran.code == 0 && ran.out.contains("its channels are made when the first agent registers"), "{ran:?}");
    assert!(repo.text(".local/taskbus.json").is_some());
}

#[test]
fn a_dry_run_writes_nothing() {
    let repo = Repo::new("widget");
    let ran = repo.run(&["init", "--dry-run"]);
    assert!(ran.out.contains("would be created") && ran.out.contains("\"general/widget\""), "{ran:?}");
    assert!(!repo.root.join(".local").exists() && !repo.root.join(".gitignore").exists());
    std::fs::create_dir(repo.place.path("home/.cursor")).unwrap();
    let ran = repo.run(&["init", "--global", "--dry-run"]);
    assert!(ran.out.contains("mcp.json: would be created"), "{ran:?}");
    assert_eq!(std::fs::read_dir(repo.place.path("home/.cursor")).unwrap().count(), 0);
}

#[test]
fn what_is_ignored_already_stays() {
    for (line, ignore) in
        [("x\n.local", "x\n.local"), ("/.local/*\n", "/.local/*\n"), ("x", "x\n.local/\n"), ("", ".local/\n")]
    {
        let repo = Repo::new("widget");
        std::fs::write(repo.root.join(".gitignore"), line).unwrap();
        repo.run(&["init"]);
        assert_eq!(repo.text(".gitignore").unwrap(), ignore, "{line:?}");
    }
    let repo = Repo::new("widget");
    std::fs::write(repo.root.join(".git/info/exclude"), ".local\n").unwrap();
    repo.run(&["init"]);
    assert_eq!(repo.text(".gitignore"), None, "Git ignores it already");
}

#[test]
fn a_file_that_is_there_keeps_its_identity_and_loses_its_task_lists() {
    let repo = Repo::new("widget");
    std::fs::create_dir(repo.root.join(".local")).unwrap();
    let before = "{\"identity\": \"Zed\", \"later\": 1, \"channels\": [\"general\", \"tasks/widget\"]}";
    std::fs::write(repo.root.join(".local/taskbus.json"), before).unwrap();
    let ran = repo.run(&["init"]);
    assert!(ran.out.contains("tasks/widget is a task list") && ran.out.contains("you are Zed"), "{ran:?}");
    let value: serde_json::Value = serde_json::from_str(&repo.text(".local/taskbus.json").unwrap()).unwrap();
    assert_eq!(value, json!({"identity": "Zed", "later": 1, "channels": ["general", "general/Zed", "memory/Zed"]}));
}

#[test]
fn clients_are_set_up_by_init_too() {
    let repo = Repo::new("widget");
    assert_eq!(repo.run(&["init", "--global"]).code, 2, "there is no client here");
    std::fs::create_dir(repo.place.path("home/.claude")).unwrap();
    std::fs::create_dir(repo.place.path("home/.codex")).unwrap();
    let report = repo.run(&["--json", "init", "--global"]).value();
    let clients: Vec<_> = report["clients"].as_array().unwrap().iter().map(|client| client["client"].clone()).collect();
    assert_eq!(clients, ["claude-code", "codex"]);
    assert!(!repo.root.join(".local").exists(), "the repository is another matter");
    assert!(!repo.run(&["init"]).out.contains("no client on this machine"));
}

#[test]
fn a_place_that_is_no_repository_is_refused() {
    let place = Place::new();
    for (args, words) in [(["init"], "in no Git repository"), (["identity"], "taskbus init makes one")] {
        let ran = run(&mut place.bare(&args));
        assert!(ran.code == 2 && ran.err.contains(words), "{ran:?}");
    }
    let repo = Repo::new("bad\u{1}name");
    let ran = repo.run(&["init"]);
    assert!(ran.code == 2 && ran.err.contains("cannot be the name of agents"), "{ran:?}");
    assert!(!repo.root.join(".local").exists());
}

#[test]
fn an_agent_is_told_who_it_is_and_how_to_work() {
    let repo = Repo::new("widget");
    repo.run(&["init"]);
    std::fs::create_dir(repo.root.join("src")).unwrap();
    let ran = run(repo.place.bare(&["identity"]).current_dir(repo.root.join("src")));
    assert_eq!(ran.code, 0, "{ran:?}");
    for words in
        ["you are widget", "register {\"name\": \"widget\"}", "Claim before you work", "Lease only what you renew"]
    {
        assert!(ran.out.contains(words), "{words}: {ran:?}");
    }
    assert_eq!(repo.run(&["--json", "identity"]).value()["identity"], "widget");
}
