//! Values: what is put in comes out, and nobody holds a part of the store.

use std::collections::BTreeSet;

use serde_json::json;
use taskbus_core::glob::PathGlob;
use taskbus_core::name::{Identity, Label};
use taskbus_core::task::{Stamp, State, Task};
use taskbus_core::text::{Body, Note, Subject as Line};
use taskbus_core::time::Timestamp;

use super::{RowPlace, RowStore, Verdict, get, put, said, set, snapshot, task, within};

/// What is kept is the same by every way to read it, also in a store opened again if it is on disk.
#[track_caller]
fn check_kept(place: &dyn RowPlace, store: &dyn RowStore, expected: &Task) {
    let listed = |store: &dyn RowStore| snapshot(store).live.into_iter().find(|task| task.id == expected.id);
    let reopened = place.open();
    for kept in [get(store, &expected.id), listed(store), listed(&*reopened)] {
        assert_eq!(said(&kept.expect("the row is there")), said(expected));
    }
}

pub(super) fn what_is_set_is_got(place: &dyn RowPlace) -> Verdict {
    let store = place.open();
    let first = put(&*store, "first");
    let mut whole = put(&*store, "whole");
    whole.description = Some(Body::new("The long form,\nin two lines").expect("valid"));
    whole.active_form = Some(Line::new("Doing the whole").expect("valid"));
    whole.state = State::InProgress { owner: Identity::new("amp").ok(), lease: None };
    whole.blocked_by = vec![first.id.clone()];
    whole.metadata.insert("k".to_owned(), json!("v"));
    set(&*store, &whole);
    check_kept(place, &*store, &whole);
    check_kept(place, &*store, &first);
    whole.state = State::Completed { by: Identity::new("amp").ok(), at: Timestamp::from_millis(1_796_054_400_500) };
    set(&*store, &whole);
    check_kept(place, &*store, &whole);
    Verdict::Held
}

pub(super) fn every_field_is_kept(place: &dyn RowPlace) -> Verdict {
    let store = place.open();
    let first = put(&*store, "first");
    let mut full = put(&*store, "full");
    full.description = Some(Body::new("long").expect("valid"));
    full.active_form = Some(Line::new("Filling it").expect("valid"));
    full.state = State::InProgress {
        owner: Identity::new("amp/two").ok(),
        lease: Some(Timestamp::from_millis(1_796_054_460_000)),
    };
    full.parent = Some(first.id.clone());
    full.rank = taskbus_core::rank::Rank::nth(77);
    full.blocked_by = vec![first.id.clone()];
    full.not_before = Some(Timestamp::from_millis(1_796_054_400_001));
    full.labels = BTreeSet::from([Label::new("env:prod").expect("valid"), Label::new("rust").expect("valid")]);
    full.paths = BTreeSet::from([PathGlob::new("src/**/*.rs").expect("valid")]);
    full.metadata = json!({"a": {"b": [1, 2.5]}}).as_object().cloned().unwrap_or_default();
    full.result = Some(Note::new("half of it").expect("valid"));
    full.created = Stamp { at: Timestamp::from_millis(1_796_000_000_000), by: Identity::new("jan").ok() };
    (full.fence, full.reclaims, full.parked) = (7, 3, true);
    set(&*store, &full);
    let kept = get(&*place.open(), &full.id).expect("the row is there");
    // The last stamp and the revision may be counted by the store.
    assert_eq!(Task { updated: full.updated.clone(), revision: full.revision, ..kept }, full);
    Verdict::Held
}

pub(super) fn text_is_kept_to_the_byte(place: &dyn RowPlace) -> Verdict {
    let store = place.open();
    let subjects =
        ["e\u{301} is not \u{e9}", "\u{1F980}\u{200D}\u{1F9F0}", "\"quoted\" \\ and / back", " spaces around "];
    let bodies = ["tab\there\r\n\u{1b}[2J\u{7f}", "\u{2028}\u{FEFF}\u{202E}", " ", &"x\u{E9}".repeat(20_000)];
    for (subject, body) in subjects.into_iter().zip(bodies) {
        let mut text = put(&*store, subject);
        text.description = Some(Body::new(body).expect("valid"));
        set(&*store, &text);
        check_kept(place, &*store, &text);
    }
    Verdict::Held
}

pub(super) fn metadata_is_kept_as_it_is(place: &dyn RowPlace) -> Verdict {
    let store = place.open();
    let mut deep = json!("bottom");
    for _ in 0..14 {
        deep = json!({"in": deep});
    }
    let mut odd = put(&*store, "odd data");
    let values = json!({
        "z": 1, "a": 2, "null": null, "yes": true, "list": [], "object": {}, "text": "", "é\u{1F980} \"key\"": "x",
        "large": 9_007_199_254_740_993_u64, "small": -9_223_372_036_854_775_808_i64, "fraction": 0.1, "tiny": 5e-324,
        "deep": deep,
    });
    odd.metadata = values.as_object().cloned().unwrap_or_default();
    set(&*store, &odd);
    check_kept(place, &*store, &odd);
    let kept = get(&*store, &odd.id).expect("the row is there");
    let keys = |task: &Task| task.metadata.keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&kept), keys(&odd), "the order of keys");
    Verdict::Held
}

pub(super) fn setting_again_replaces_the_whole_row(place: &dyn RowPlace) -> Verdict {
    let store = place.open();
    let first = put(&*store, "first");
    let mut row = put(&*store, "long");
    row.description = Some(Body::new("to go away").expect("valid"));
    row.active_form = Some(Line::new("Going").expect("valid"));
    row.blocked_by = vec![first.id];
    row.metadata.insert("gone".to_owned(), json!({"x": [1]}));
    set(&*store, &row);
    let bare = Task { revision: 3, ..task(row.id, "short") };
    set(&*store, &bare);
    check_kept(place, &*store, &bare);
    Verdict::Held
}

pub(super) fn a_task_that_was_handed_out_is_a_copy(place: &dyn RowPlace) -> Verdict {
    let store = place.open();
    let row = put(&*store, "as it was");
    let listed = snapshot(&*store);
    let (mut got, inside) = within(&*store, |rows| {
        let (got, inside) = (rows.get(&row.id)?.expect("the row is there"), rows.list()?);
        rows.set(&Task { revision: 2, ..task(row.id.clone(), "as it is") })?;
        Ok((got, inside))
    });
    for handed in [&got, &listed.live[0], &inside.live[0]] {
        assert_eq!(handed.subject.as_str(), "as it was", "a task that was handed out changed");
    }
    got.metadata.insert("mine".to_owned(), json!(1));
    let kept = get(&*store, &row.id).expect("the row is there");
    assert_eq!((kept.subject.as_str(), kept.metadata.len()), ("as it is", 0));
    Verdict::Held
}

pub(super) fn a_task_that_was_taken_in_is_a_copy(place: &dyn RowPlace) -> Verdict {
    let store = place.open();
    let mut row = put(&*store, "as it was");
    within(&*store, |rows| {
        row.metadata.insert("first".to_owned(), json!(1));
        rows.set(&row)?;
        row.metadata.insert("second".to_owned(), json!(2));
        row.subject = Line::new("as I have it now").expect("valid");
        Ok(())
    });
    let kept = get(&*store, &row.id).expect("the row is there");
    assert_eq!((kept.subject.as_str(), kept.metadata.len()), ("as it was", 1));
    Verdict::Held
}
