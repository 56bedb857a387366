//! Arguments as people and scripts really write them, and wrong ones.

use serde_json::json;

use crate::common::{Place, os, run};

#[test]
fn wrong_usage_is_exit_code_two() {
    let place = Place::new();
    place.ok(&["add", "one"]);
    let wrong: &[&[&str]] = &[
        &[],
        &["nonsense"],
        &["add"],
        &["add", "--lable=x"],
        &["add", "-x"],
        &["add", "a", "b"],
        &["add", "a", "--blocked-by", "0"],
        &["add", "a", "--before", "1", "--after", "1"],
        &["add", "a", "--not-before", "tomorrow"],
        &["add", "a", "--not-before", "2026-12-01T08:00:00"],
        &["add", "a", "--meta", "novalue"],
        &["add", "--file", "/nowhere/at/all"],
        &["add", "a", "--file", "b"],
        &["claim"],
        &["claim", "1", "2"],
        &["claim", "-1"],
        &["claim", "1.5"],
        &["claim", "9223372036854775808"],
        &["claim", "a b"],
        &["claim", "\u{1b}[2J"],
        &["claim", ""],
        &["claim", "1", "--lease", "60"],
        &["claim", "1", "--lease", "0s"],
        &["claim", "1", "--lease", "8d"],
        &["claim", "1", "--lease", "-5m"],
        &["claim", "1", "--fence", "x"],
        &["update", "1", "--status", "deleted"],
        &["update", "1", "--parent", "x y"],
        &["next", "--result", "r"],
        &["next", "--count", "-1"],
        &["next", "--wait", "soon"],
        &["list", "--limit", "many"],
        &["list", "--all", "--limit", "3"],
        &["wait", "--for", "0s"],
        &["plan"],
        &["plan", "/nowhere/at/all.txt"],
        &["completions", "tcsh-but-wrong"],
        &["list", "--store", "postgres://x"],
        &["list", "--store", "sqlite:"],
        &["list", "--store", "tasks.db"],
        &["list", "--list", "a/b"],
        &["demo", "--workers", "0"],
        &["demo", "--kill", "4"],
        &["demo", "--store", "memory:"],
        &["mcp", "--tools", "nonsense"],
    ];
    for args in wrong {
        let ran = place.run(args);
        assert!(ran.code == 2 && ran.out.is_empty() && ran.err.starts_with("taskbus: "), "{args:?}: {ran:?}");
        assert!(!ran.err.contains('\u{1b}'), "{args:?}: {ran:?}");
        let (code, value) = place.json(args);
        assert_eq!((code, &value["error"]["code"]), (2, &json!("usage")), "{args:?}: {value}");
        assert!(value["error"]["message"].as_str().unwrap().len() > 5, "{args:?}: {value}");
    }
    assert_eq!(place.ok(&["list"])["total"], 1, "nothing was written");
}

#[test]
fn refused_values_are_exit_code_one_and_name_the_field() {
    let place = Place::new();
    place.ok(&["add", "one"]);
    let (long, many) = ("x".repeat(257), (1..=65).map(|id| id.to_string()).collect::<Vec<_>>().join(","));
    let refused: &[(&[&str], &str)] = &[
        (&["add", ""], "subject"),
        (&["add", "   "], "subject"),
        (&["add", "a\nb"], "subject"),
        (&["add", "a\u{1b}[2Jb"], "subject"),
        (&["add", "\u{200b}\u{2800}"], "subject"),
        (&["add", &long], "subject"),
        (&["add", "a", "--label", "Not Valid"], "label"),
        (&["add", "a", "--label", "a,b,c,d,e,f,g,h,i,j,k"], "labels"),
        (&["add", "a", "--blocked-by", "7"], "blocked_by"),
        (&["add", "a", "--blocked-by", &many], "blocked_by"),
        (&["add", "a", "--parent", "7"], "parent"),
        (&["update", "1", "--add-blocked-by", "1"], "add_blocked_by"),
        (&["update", "1", "--parent", "1"], "parent"),
        (&["done", "1", "--result", ""], "result"),
        (&["done", "1", "--note", " "], "note"),
        (&["next", "--count", "17"], "count"),
        (&["next", "--count", "0"], "count"),
        (&["claim", "1", "--key", ""], "key"),
        (&["add", "a", "--as", "bad\nname"], "name"),
    ];
    for (args, field) in refused {
        let refusal = place.refused(args);
        assert_eq!((&refusal["code"], &refusal["field"]), (&json!("validation"), &json!(field)), "{args:?}: {refusal}");
        let ran = place.run(args);
        assert!(ran.code == 1 && ran.out.is_empty() && ran.err.starts_with("taskbus: "), "{args:?}: {ran:?}");
    }
    assert_eq!(place.ok(&["list"])["total"], 1, "nothing was written");
}

#[test]
fn subjects_that_look_like_options() {
    let place = Place::new();
    let subject = |args: &[&str]| place.ok(args)["task"]["subject"].clone();
    assert_eq!(subject(&["add", "- [ ] do it"]), "- [ ] do it");
    assert_eq!(subject(&["add", "-3"]), "-3");
    assert_eq!(subject(&["add", "--", "--lable=x"]), "--lable=x");
    assert_eq!(subject(&["add", "--", "--help"]), "--help");
    assert_eq!(subject(&["add", "--", "--"]), "--");
    assert_eq!(subject(&["add", "--subject=--help"]), "--help");
    assert_eq!(subject(&["add", "plain", "--label", "a"]), "plain");
    let ran = place.run(&["add", "--lable=x"]);
    assert!(ran.err.contains("taskbus add -- \"--lable=x\""), "{ran:?}");
    assert!(place.run(&["add", "--help"]).out.contains("Add a task"));
}

#[test]
fn options_behind_dashes_are_text() {
    let place = Place::new();
    let ran = place.run(&["add", "--", "--json"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "added #1 --json\n"));
}

#[test]
fn every_spelling_of_an_id_is_the_same_task() {
    let place = Place::new();
    place.ok(&["add", "one"]);
    for id in ["1", "#1", "001", "1.0", " 1 ", "#01"] {
        assert_eq!(place.ok(&["show", id])["task"]["id"], 1, "{id:?}");
    }
    assert_eq!(place.refused(&["show", "9007199254740993"])["task_id"], 9_007_199_254_740_993_u64);
}

#[test]
fn long_text_comes_from_a_file_or_standard_input() {
    let place = Place::new();
    let shell = "costs $(rm -rf) `date` $1 \"quoted\" 'too' \\n !!";
    let added =
        place.run_with_input(&["--json", "add", "-"], format!("{shell}\n\nFirst line\n\tsecond\n").as_bytes()).value();
    assert_eq!(
        (&added["task"]["subject"], &added["task"]["description"]),
        (&json!(shell), &json!("First line\n\tsecond"))
    );
    let file = place.write("task.txt", "from a file\r\nwith more\r\n");
    let added = place.ok(&["add", "--file", &file]);
    assert_eq!(
        (&added["task"]["subject"], &added["task"]["description"]),
        (&json!("from a file"), &json!("with more"))
    );
    let added = place.run_with_input(&["--json", "add", "x", "--description", "-"], b"long\n").value();
    assert_eq!(added["task"]["description"], "long");
    let updated = place.ok(&["update", "3", "--file", &file]);
    assert_eq!(updated["task"]["description"], "from a file\r\nwith more");
    let done = place.run_with_input(&["--json", "done", "3", "--result", "-"], shell.as_bytes()).value();
    assert_eq!(done["task"]["result"], shell);
    let twice = place.run_with_input(&["done", "1", "--result", "-", "--note", "-"], b"x");
    assert_eq!(twice.code, 2, "{twice:?}");
    let binary = place.run_with_input(&["add", "-"], b"ab\xff\xfe");
    assert!(binary.code == 2 && binary.err.contains("UTF-8"), "{binary:?}");
}

#[test]
fn arguments_that_are_no_text_are_wrong_usage() {
    use std::os::unix::ffi::OsStrExt as _;
    let place = Place::new();
    let mut command = place.command(&["add"]);
    command.arg(std::ffi::OsStr::from_bytes(b"ab\xff"));
    let ran = run(&mut command);
    assert_eq!(ran.code, 2, "{ran:?}");
}

#[test]
fn empty_variables_are_none() {
    let place = Place::new();
    place.ok(&["add", "one"]);
    let mut command = place.command(&["--json", "status"]);
    command.env("TASKBUS_AS", "").env("USER", "poe").env("TASKBUS_STORE", "").env("XDG_DATA_HOME", "");
    let status = run(&mut command).value();
    assert_eq!(status["as"], "poe");
    assert!(status["store"].as_str().unwrap().ends_with("/home/.local/share/taskbus/taskbus.db"), "{status}");
    let mut command = place.command(&["--json", "list"]);
    command.env("TASKBUS_LIST", "");
    assert_eq!(run(&mut command).code, 2, "no list and no project");
    assert_eq!(os("x"), "x");
}

#[test]
fn flags_win_over_variables() {
    let place = Place::new();
    let added = place.ok(&["add", "one", "--list", "other", "--as", "amp", "--create"]);
    assert_eq!((&added["task"]["channel"], &added["task"]["created_by"]), (&json!("tasks/other"), &json!("amp")));
    let child = place.ok(&["add", "two", "--as", "amp/helper"]);
    assert_eq!(child["task"]["created_by"], "amp/helper");
}
