//! Plans from files: all of it or nothing, once.

use serde_json::{Value, json};

use crate::common::Place;

const PLAN: &str = "\
# Plan

- [ ] Write the store @rust (id: store)
  Text below is the description.
  - [x] Choose the engine (id: engine)
  - [ ] Number the migrations (after: engine)
- [ ] Ship it (after: store)
";

fn tasks(place: &Place) -> Vec<Value> {
    place.ok(&["list", "--all"])["tasks"].as_array().unwrap().clone()
}

#[test]
fn a_checklist_becomes_tasks() {
    let place = Place::new();
    let file = place.write("checklist.txt", PLAN);
    let planned = place.ok(&["plan", &file, "--create"]);
    assert_eq!((&planned["total"], &planned["tasks"][0]), (&json!(4), &json!({"key": "store", "id": 1})));
    let rows = tasks(&place);
    let shape: Vec<_> = rows
        .iter()
        .map(|row| (row["subject"].as_str().unwrap(), row["depth"].as_u64().unwrap(), row["status"].as_str().unwrap()))
        .collect();
    assert_eq!(
        shape,
        [
            ("Write the store", 0, "pending"),
            ("Choose the engine", 1, "completed"),
            ("Number the migrations", 1, "pending"),
            ("Ship it", 0, "pending"),
        ]
    );
    assert_eq!((&rows[2]["open_blockers"], &rows[3]["open_blockers"]), (&json!([]), &json!([1])));
    assert_eq!(place.ok(&["show", "1"])["task"]["description"], "Text below is the description.");
    assert_eq!(place.ok(&["show", "2"])["task"]["owner"], "zed");
    assert_eq!(place.ok(&["doctor"])["ok"], true);
}

#[test]
fn the_same_file_again_changes_nothing() {
    let place = Place::new();
    let first = place.run_with_input(&["--json", "plan", "-", "--create"], PLAN.as_bytes()).value();
    let again = place.run_with_input(&["--json", "plan", "-"], PLAN.as_bytes()).value();
    assert_eq!(first, again);
    assert_eq!(tasks(&place).len(), 4);
    place.run_with_input(&["plan", "-", "--key", "other"], PLAN.as_bytes());
    assert_eq!(tasks(&place).len(), 8);
    place.run_with_input(&["plan", "-", "--list", "other", "--create"], PLAN.as_bytes());
    assert_eq!(place.ok(&["lists"])["total"], 2);
}

#[test]
fn line_ends_and_marks_do_not_matter() {
    let place = Place::new();
    let windows = format!("\u{feff}{}", PLAN.replace('\n', "\r\n"));
    let ran = place.run_with_input(&["--json", "plan", "-", "--create"], windows.trim_end().as_bytes());
    assert_eq!((ran.code, &ran.value()["total"]), (0, &json!(4)));
    assert_eq!(place.ok(&["show", "1"])["task"]["description"], "Text below is the description.");
}

#[test]
fn json_is_a_plan_too() {
    let place = Place::new();
    let plan = json!([
        {"key": "a", "subject": "first", "labels": ["x"], "metadata": {"n": 1}, "done": true},
        {"subject": "second", "parent": "a", "blocked_by": "a", "paths": ["src/**"]},
    ]);
    let ran = place.run_with_input(&["--json", "plan", "-", "--create"], plan.to_string().as_bytes());
    assert_eq!(ran.value()["total"], 2, "{ran:?}");
    let rows = tasks(&place);
    assert_eq!((&rows[0]["status"], &rows[1]["depth"]), (&json!("completed"), &json!(1)));
}

#[test]
fn a_mistake_names_its_line_and_imports_nothing() {
    let place = Place::new();
    place.ok(&["add", "there before"]);
    for (text, line) in [
        ("- [ ] a\n- [?] b\n", 2),
        ("- [ ] a\n\n- [ ] b (after: c)\n", 3),
        ("- [ ] a (id: x)\n- [ ] b (id: x)\n", 2),
        ("just prose\n", 1),
        ("", 1),
        ("- [ ] a\n- [ ] \u{1b}[2J\n", 2),
        ("[\n{\"subject\": \"a\"},\n{\"titel\": \"b\"}]", 3),
        ("[\n{\"subject\": \"a\"},\n{\"subject\": \"b\"", 3),
    ] {
        let ran = place.run_with_input(&["--json", "plan", "-"], text.as_bytes());
        let error = ran.value()["error"].clone();
        assert_eq!(
            (ran.code, &error["code"], &error["line"]),
            (1, &json!("validation"), &json!(line)),
            "{text:?}: {error}"
        );
        assert!(error["message"].as_str().unwrap().contains("nothing was imported"), "{error}");
        let words = place.run_with_input(&["plan", "-"], text.as_bytes()).err;
        assert!(
            words.starts_with(&format!("taskbus: standard input, line {line}: ")) && !words.contains('\u{1b}'),
            "{words}"
        );
    }
    assert_eq!(tasks(&place).len(), 1);
}

#[test]
fn what_the_rules_refuse_imports_nothing() {
    let place = Place::new();
    place.ok(&["add", "there before"]);
    let refused = |text: &str| {
        let ran = place.run_with_input(&["--json", "plan", "-"], text.as_bytes());
        assert_eq!(ran.code, 1, "{ran:?}");
        ran.value()["error"].clone()
    };
    let cycle = refused("- [ ] a (id: a) (after: b)\n- [ ] b (id: b) (after: a)\n");
    assert_eq!(cycle["cycle"], json!(["a", "b", "a"]));
    assert_eq!(refused("- [ ] a (after: 99)\n")["reference"], "99");
    let many: String = (0..1001).map(|number| format!("- [ ] task {number}\n")).collect();
    let limit = refused(&many);
    assert_eq!((&limit["max"], &limit["field"]), (&json!(1000), &json!("tasks")));
    assert!(limit["message"].as_str().unwrap().contains("1000"), "{limit}");
    assert_eq!(tasks(&place).len(), 1);
}

#[test]
fn a_plan_may_wait_for_what_is_there() {
    let place = Place::new();
    place.ok(&["add", "there before"]);
    let ran = place.run_with_input(&["--json", "plan", "-"], b"- [ ] a (after: #1)\n- [ ] b (after: 1)\n");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(tasks(&place).iter().filter(|row| row["open_blockers"] == json!([1])).count(), 2);
}

#[test]
fn a_list_is_made_only_when_told() {
    let place = Place::new();
    let file = place.write("checklist.txt", PLAN);
    let refusal = place.refused(&["plan", &file]);
    assert_eq!(refusal["code"], "not_found");
    assert!(refusal["message"].as_str().unwrap().contains("--create"), "{refusal}");
    assert_eq!(place.ok(&["lists"])["lists"], json!([]));
}

#[test]
fn the_plan_in_examples_is_one() {
    let place = Place::new();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/taskbus-plan.md");
    let planned = place.ok(&["plan", file, "--create"]);
    assert!(planned["total"].as_u64().unwrap() > 50);
}
