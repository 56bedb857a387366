//! Where a command runs: repositories, worktrees, directories that are no project, odd paths, a bare environment.

use std::path::Path;

use serde_json::{Value, json};

use crate::common::{Place, git, run};

/// The list that a command in this directory would use.
fn list_in(place: &Place, dir: &Path) -> Value {
    let ran = run(place.bare(&["--json", "status"]).current_dir(dir).env("TASKBUS_STORE", place.store()));
    ran.value()["channel"].clone()
}

#[test]
fn all_worktrees_of_a_repository_share_one_list() {
    let place = Place::new();
    let main = place.path("widget");
    git(&place.path("work"), &["init", "-q", main.to_str().unwrap()]);
    git(&main, &["commit", "-q", "--allow-empty", "-m", "first"]);
    git(&main, &["worktree", "add", "-q", "-b", "fix", place.path("elsewhere").to_str().unwrap()]);
    std::fs::create_dir(main.join("src")).unwrap();
    for dir in [&main, &main.join("src"), &place.path("elsewhere")] {
        assert_eq!(list_in(&place, dir), "tasks/widget", "{}", dir.display());
    }
    let mut add = place.bare(&["add", "one"]);
    let ran = run(add.current_dir(&main).env("TASKBUS_STORE", place.store()));
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "the project's own list is made without a word");
    let ran =
        run(place.bare(&["--json", "list"]).current_dir(place.path("elsewhere")).env("TASKBUS_STORE", place.store()));
    assert_eq!(ran.value()["total"], 1);
    git(&main, &["checkout", "-q", "-b", "other"]);
    git(&main, &["clean", "-fdxq"]);
    let ran = run(place.bare(&["--json", "list"]).current_dir(&main).env("TASKBUS_STORE", place.store()));
    assert_eq!(ran.value()["total"], 1, "the list does not live in the repository");
}

#[test]
fn bare_repositories_submodules_and_nested_ones() {
    let place = Place::new();
    let (bare, outer) = (place.path("store.git"), place.path("outer"));
    git(&place.path("work"), &["init", "-q", "--bare", bare.to_str().unwrap()]);
    assert_eq!(list_in(&place, &bare), "tasks/store");
    git(&place.path("work"), &["init", "-q", outer.to_str().unwrap()]);
    git(&outer, &["init", "-q", "inner"]);
    assert_eq!(list_in(&place, &outer.join("inner")), "tasks/inner");
    let part = place.path("part");
    git(&place.path("work"), &["init", "-q", part.to_str().unwrap()]);
    git(&part, &["commit", "-q", "--allow-empty", "-m", "first"]);
    git(&outer, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", part.to_str().unwrap(), "lib"]);
    assert_eq!(list_in(&place, &outer.join("lib")), "tasks/lib");
    assert_eq!(list_in(&place, &outer), "tasks/outer");
}

#[test]
fn places_that_are_no_project_say_so() {
    let place = Place::new();
    let fails = |dir: &Path| {
        let mut command = place.bare(&["add", "x"]);
        let ran = run(command.current_dir(dir).env("TASKBUS_STORE", place.store()));
        assert_eq!(ran.code, 2, "{}: {ran:?}", dir.display());
        assert!(ran.err.contains("--list NAME"), "{ran:?}");
        ran.err
    };
    assert!(fails(Path::new("/")).contains("/ is no project"));
    git(&place.path("home"), &["init", "-q"]);
    assert!(fails(&place.path("home")).contains("is no project"));
    assert!(fails(&place.path("work")).contains("in no Git repository"));
    assert!(!Path::new("/.local").exists() && !place.path("home/.local").exists(), "nothing was left there");
}

#[test]
fn a_deleted_directory_is_no_crash() {
    let place = Place::new();
    let gone = place.path("gone");
    std::fs::create_dir(&gone).unwrap();
    let script = format!("cd '{}' && rmdir . ../gone 2>/dev/null || rmdir ../gone; exec \"$0\" \"$@\"", gone.display());
    let in_gone = |args: &[&str]| {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &script]).arg(crate::common::program()).args(args).env_clear();
        command.env("HOME", place.path("home")).env("PATH", std::env::var_os("PATH").unwrap());
        run(command.env("TASKBUS_STORE", place.store()))
    };
    let ran = in_gone(&["list"]);
    assert!(ran.code == 2 && ran.err.contains("current directory"), "{ran:?}");
    assert_eq!(in_gone(&["add", "x", "--list", "demo"]).code, 0);
    assert_eq!(in_gone(&["status"]).code, 0);
}

#[test]
fn the_project_can_be_named_by_the_environment() {
    let place = Place::new();
    std::fs::create_dir(place.path("named project")).unwrap();
    let status = |dir: &str| {
        let mut command = place.bare(&["--json", "status"]);
        run(command.env("CLAUDE_PROJECT_DIR", place.path(dir)).env("TASKBUS_STORE", place.store())).value()
    };
    assert_eq!(status("named project")["channel"], "tasks/named project");
    assert!(status("nowhere")["no_channel"].as_str().unwrap().contains("CLAUDE_PROJECT_DIR"));
    assert!(status("home")["no_channel"].as_str().unwrap().contains("is no project"));
}

#[test]
fn a_named_list_is_made_after_saying_so() {
    let place = Place::new();
    let ran = place.run(&["add", "one"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, "taskbus: making the list tasks/demo\n"));
    assert_eq!(place.run(&["add", "two"]).err, "");
    assert_eq!(place.run(&["add", "three", "--list", "tasks/new", "--create"]).err, "");
    assert_eq!(place.ok(&["lists"])["total"], 2);
}

#[test]
fn odd_paths_are_used_as_they_are() {
    let place = Place::new();
    let dir = place.path("a b#c?d%20 é'\".");
    std::fs::create_dir(&dir).unwrap();
    let store = format!("sqlite:{}", dir.join("x.db").display());
    assert_eq!(place.json(&["--store", &store, "add", "one"]).0, 0);
    assert!(dir.join("x.db").is_file());
    let relative = run(place.command(&["--store", "sqlite:rel ative.db", "add", "one"]).current_dir(&dir));
    assert_eq!(relative.code, 0, "{relative:?}");
    assert!(dir.join("rel ative.db").is_file());
}

#[test]
fn a_bare_environment_is_enough() {
    let place = Place::new();
    let ran = run(&mut place.bare(&["--json", "add", "one", "--list", "demo"]));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(place.path("home/.local/share/taskbus/taskbus.db").is_file());
    let mut nothing = std::process::Command::new(crate::common::program());
    let ran = run(nothing
        .args(["--json", "list", "--list", "no-such-list"])
        .env_clear()
        .env("XDG_DATA_HOME", place.path("data")));
    assert_eq!(ran.code, 1, "{ran:?}");
}

#[test]
fn times_are_utc_wherever_one_is() {
    for zone in ["America/Los_Angeles", "Asia/Kolkata", "Europe/Berlin", "Nonsense/Zone"] {
        let place = Place::new();
        let mut command = place.command(&["--json", "add", "later", "--not-before", "2h"]);
        let task = run(command.env("TZ", zone)).value()["task"].clone();
        let wait_ms = task["not_before"].as_i64().unwrap() - task["created_at"].as_i64().unwrap();
        assert!((7_195_000..=7_205_000).contains(&wait_ms), "{zone}: {wait_ms}");
        assert_eq!(task["created_at"], task["updated_at"], "{zone}");
        let shown = run(place.command(&["show", "1"]).env("TZ", zone)).out;
        assert!(shown.contains("Z (in 1h59m)") || shown.contains("Z (in 2h)"), "{zone}: {shown}");
        let why = run(place.command(&["--json", "why", "1"]).env("TZ", zone)).value();
        assert_eq!((&why["ready"], why["reasons"].as_array().unwrap().len()), (&json!(false), 1));
    }
}
