//! The leniency table (docs/rules.md 9): what a field accepts, and what the error says.

use super::*;
use serde_json::json;

const FIELDS: &[Field] = &[
    Field::new("subject", Kind::Text, "one line").required(),
    Field::new("owner", Kind::Clearable, ""),
    Field::new("status", Kind::Word(&["pending", "completed"]), ""),
    Field::new("force", Kind::Flag, ""),
    Field::new("count", Kind::Integer { min: 1, max: 16 }, ""),
    Field::new("task_id", Kind::Id, ""),
    Field::new("parent", Kind::IdOrNone, ""),
    Field::new("leased_until", Kind::Millis, ""),
    Field::new("blocked_by", Kind::Ids, ""),
    Field::new("labels", Kind::Words, ""),
    Field::new("paths", Kind::Texts, ""),
    Field::new("metadata", Kind::Metadata, ""),
    Field::new("refs", Kind::References, ""),
    Field::new("tasks", Kind::Items(&[Field::new("key", Kind::Reference, "").required()]), ""),
];

fn given(mut arguments: Value) -> Result<Args, Failure> {
    if let Some(map) = arguments.as_object_mut() {
        map.entry("subject").or_insert_with(|| json!("s"));
    }
    read(FIELDS, arguments.as_object().unwrap().clone())
}

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "reads better at the calls")]
fn same(name: &str, spellings: &[Value], expected: Option<Arg>) {
    for spelling in spellings {
        let args = given(json!({name: spelling})).unwrap_or_else(|failure| panic!("{spelling}: {failure:?}"));
        assert_eq!(args.0.get(name), expected.as_ref(), "{name}: {spelling}");
    }
}

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "reads better at the calls")]
fn refused(arguments: Value, message: &str) {
    let failure = given(arguments.clone()).unwrap_err();
    assert_eq!((failure.code, failure.message.as_str()), ("validation", message), "{arguments}");
}

fn seven() -> TaskId {
    TaskId::Number(7)
}

#[test]
fn one_meaning_has_many_spellings() {
    same("task_id", &[json!(7), json!("7"), json!("#7"), json!("007"), json!(7.0)], Some(Arg::Id(Some(seven()))));
    same("parent", &[json!(0), json!("0")], Some(Arg::Id(None)));
    same("count", &[json!(16), json!("16"), json!(16.0)], Some(Arg::Integer(16)));
    same("force", &[json!(true), json!("true"), json!("True")], Some(Arg::Flag(true)));
    same(
        "blocked_by",
        &[json!([7]), json!(7), json!("7"), json!("[7]"), json!("[\"#7\"]"), json!(["7"])],
        Some(Arg::Ids(vec![seven()])),
    );
    same(
        "labels",
        &[json!(["a", "b"]), json!("a,b"), json!("[\"a\", \"b\"]")],
        Some(Arg::Texts(vec!["a".into(), "b".into()])),
    );
    same("paths", &[json!("src/{a,b}.rs"), json!(["src/{a,b}.rs"])], Some(Arg::Texts(vec!["src/{a,b}.rs".into()])));
    same("metadata", &[json!({"k": "v"}), json!("{\"k\":\"v\"}")], Some(Arg::Pairs(vec![("k".into(), "v".into())])));
    same("leased_until", &[json!(0), json!("0")], Some(Arg::Time(None)));
    same("status", &[json!("pending"), json!(" pending ")], Some(Arg::Word("pending")));
    same(
        "refs",
        &[json!(["a", 7]), json!("[\"a\",7]"), json!(["a", "7"])],
        Some(Arg::Texts(vec!["a".into(), "7".into()])),
    );
}

#[test]
fn nothing_is_nothing() {
    let nothings = [json!(null), json!("null"), json!("undefined"), json!(["null"]), json!([null])];
    for field in FIELDS.iter().filter(|field| !field.required) {
        same(field.name, &nothings, None);
    }
    for name in ["status", "force", "count", "task_id", "parent", "leased_until", "blocked_by", "labels", "metadata"] {
        same(name, &[json!(""), json!("  ")], None);
    }
}

#[test]
fn an_empty_text_clears_where_that_has_a_meaning() {
    same("owner", &[json!("")], Some(Arg::Text(String::new())));
    same("labels", &[json!([])], Some(Arg::Texts(Vec::new())));
}

#[test]
fn large_ids_survive() {
    same(
        "task_id",
        &[json!(9_007_199_254_740_993_u64), json!("9007199254740993")],
        Some(Arg::Id(Some(TaskId::Number(9_007_199_254_740_993)))),
    );
}

#[test]
fn what_is_required_must_be_there() {
    for subject in [json!(null), json!(""), json!("null"), json!(["null"])] {
        refused(json!({"subject": subject}), "subject is required (one line); send it and call again");
    }
}

#[test]
fn unknown_fields_are_named_with_the_nearest() {
    refused(json!({"titel": "x"}), "there is no field \"titel\"; did you mean \"subject\"?");
    refused(json!({"dependsOn": [1]}), "there is no field \"dependsOn\"; did you mean \"blocked_by\"?");
    let failure = given(json!({"zzz": 1})).unwrap_err();
    assert!(failure.message.starts_with("there is no field \"zzz\"; the fields are subject, owner, "), "{failure:?}");
    assert!(given(json!({"wait_for_previous": true})).is_ok());
}

#[test]
fn wrong_kinds_say_what_was_expected() {
    refused(json!({"subject": 5}), "subject must be text, not 5");
    refused(json!({"task_id": true}), "task_id must be a task id such as 7, not true");
    refused(json!({"task_id": 0}), "task_id must be the id of a task, not 0");
    refused(json!({"count": "many"}), "count must be a whole number, not \"many\"");
    refused(json!({"count": 17}), "count is 17; it must be from 1 to 16");
    refused(json!({"status": "done"}), "status must be one of pending, completed, not \"done\"");
    refused(json!({"blocked_by": [7, "x y"]}), "blocked_by[1] must be a task id such as 7, not \"x y\"");
    refused(json!({"blocked_by": {"a": 1}}), "blocked_by[0] must be a task id such as 7, not {\"a\":1}");
    refused(json!({"metadata": {"k": 5}}), "metadata.k must be text (an empty one removes the key)");
    refused(json!({"metadata": [1]}), "metadata must be an object, not [1]");
    refused(json!({"tasks": [{"key": "a"}, {}]}), "tasks[1]: key is required; send it and call again");
    refused(json!({"tasks": ["a"]}), "tasks[0] must be an object, not \"a\"");
}

#[test]
fn long_values_are_cut_in_errors() {
    let failure = given(json!({"count": "9".repeat(100_000)})).unwrap_err();
    assert!(failure.message.len() < 200, "{}", failure.message.len());
    let name = "x".repeat(100_000);
    let failure = given(json!({name: 1})).unwrap_err();
    assert!(failure.message.len() < 500, "{}", failure.message.len());
}
