//! Values: what is given comes back, and what cannot be kept is refused by name.

use serde_json::{Value, json};
use taskbus_core::command::{Draft, Patch};
use taskbus_core::glob::PathGlob;
use taskbus_core::name::Label;
use taskbus_core::refusal::{Invalid, Refusal};
use taskbus_core::task::Status;
use taskbus_core::text::{Body, Subject as Line};

use super::{Crew, StorePlace, Verdict, draft};
use crate::engine::Error;

pub(super) fn a_task_is_answered_as_it_was_given(place: &dyn StorePlace) -> Verdict {
    let crew = Crew::at(place);
    let zed = crew.person("zed");
    let parent = zed.add("parent");
    let made = zed.create(Draft {
        description: Some(Body::new("The long form,\nin \u{1F980} lines").expect("valid")),
        active_form: Some(Line::new("Doing it").expect("valid")),
        parent: Some(parent.clone()),
        blocked_by: vec![parent.clone()],
        labels: [Label::new("rust").expect("valid")].into(),
        paths: [PathGlob::new("src/**").expect("valid")].into(),
        metadata: [("k".to_owned(), json!({"b": 1, "a": [null, 0.5, 9_007_199_254_740_993_u64]}))].into(),
        ..draft("e\u{301} \"quoted\"")
    });
    assert_eq!((made.status, made.revision, made.fence, made.blocked), (Status::Pending, 1, 0, true));
    assert_eq!((made.parent.as_ref(), made.blocked_by.as_slice()), (Some(&parent), std::slice::from_ref(&parent)));
    assert_eq!(zed.task(&made.id), made, "what is read is what was answered");
    let other = crew.person_on(&place.open(), "amp");
    assert_eq!(other.task(&made.id), made, "and the same for everybody");
    Verdict::Held
}

pub(super) fn metadata_that_is_too_deep_is_refused_with_its_path(place: &dyn StorePlace) -> Verdict {
    let zed = Crew::at(place).person("zed");
    let id = zed.add("task");
    let nested = |levels: usize| (0..levels).fold(json!("x"), |inner, _| json!([inner]));
    for (value, path) in [(nested(16), "k.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0"), (json!({"a": ["b\0"]}), "k.a.0")] {
        let metadata = [("k".to_owned(), Some(value))].into();
        let refused = zed.update(&id, Patch { metadata, ..Patch::default() });
        let Err(Error::Refused(Refusal::Invalid(Invalid::Metadata { path: said, .. }))) = refused else {
            panic!("metadata that cannot be kept is refused: {refused:?}")
        };
        assert_eq!(said, path);
    }
    let metadata = [("k".to_owned(), Some(nested(15)))].into();
    zed.update(&id, Patch { metadata, ..Patch::default() }).expect("what is not too deep is kept");
    assert_eq!(zed.task(&id).metadata["k"], nested(15));
    Verdict::Held
}

pub(super) fn metadata_is_merged_key_by_key(place: &dyn StorePlace) -> Verdict {
    let zed = Crew::at(place).person("zed");
    let metadata: [(String, Value); 2] = [("a".to_owned(), json!(1)), ("b".to_owned(), json!({"x": 1}))];
    let id = zed.create(Draft { metadata: metadata.into(), ..draft("task") }).id;
    let change = [("a".to_owned(), None), ("b".to_owned(), Some(json!({"y": 2}))), ("c".to_owned(), Some(json!(3)))];
    zed.update(&id, Patch { metadata: change.into(), ..Patch::default() }).expect("metadata can be changed");
    assert_eq!(Value::Object(zed.task(&id).metadata), json!({"b": {"y": 2}, "c": 3}));
    Verdict::Held
}

pub(super) fn history_says_what_changed(place: &dyn StorePlace) -> Verdict {
    let zed = Crew::at(place).person("zed");
    let id = zed.add("before");
    let subject = Some(Line::new("after").expect("valid"));
    zed.update(&id, Patch { subject, ..Patch::default() }).expect("a subject can be changed");
    zed.complete(&id).expect("a task can be completed");
    let history = zed.get(&id).expect("the task is there").history.expect("a history was asked for");
    let revisions: Vec<u64> = history.iter().map(|entry| entry.revision).collect();
    assert_eq!(revisions, [3, 2, 1], "one revision for each change, newest first");
    assert!(history.is_sorted_by(|newer, older| newer.seq > older.seq));
    assert!(history[1].changes.iter().any(|change| change.contains("before -> after")), "{:?}", history[1].changes);
    Verdict::Held
}
