//! Reading: a task with what is derived, its history in words, and lists page by page.

use taskbus::core::change::Kind;
use taskbus::core::command::{Draft, Next, Patch};
use taskbus::core::glob::PathGlob;
use taskbus::core::id::TaskId;
use taskbus::core::name::{Label, ListName};
use taskbus::core::refusal::{Invalid, Refusal};
use taskbus::core::task::Status;
use taskbus::core::text::{Note, Subject};
use taskbus::engine::ListAsk;
use taskbus::store::View;

use crate::support::{Person, list, on_every_store, refusal};

fn draft(subject: &str) -> Draft {
    Draft::new(Subject::new(subject).unwrap())
}

fn touching(subject: &str, path: &str) -> Draft {
    Draft { paths: [PathGlob::new(path).unwrap()].into(), ..draft(subject) }
}

/// Every page of a view, a few rows at a time, joined; each says the same total.
fn all_pages(person: &Person, ask: &ListAsk, limit: usize) -> (Vec<TaskId>, u64) {
    let (mut ids, mut total, mut ask) = (Vec::new(), None, ListAsk { limit: Some(limit), ..ask.clone() });
    loop {
        let page = person.page(&ask);
        assert!(page.tasks.len() <= limit);
        assert_eq!(*total.get_or_insert(page.total), page.total);
        assert_eq!(page.truncated, page.next.is_some());
        assert!(!page.truncated || page.tasks.len() == limit, "a page with more behind it is full");
        ids.extend(page.tasks.into_iter().map(|row| row.id));
        match page.next {
            Some(next) => ask.cursor = Some(next),
            None => return (ids, total.unwrap_or(0)),
        }
    }
}

on_every_store! {
    fn a_new_task_reads_back_whole(place) {
        let zed = place.person("Zed");
        let got = zed.get(&zed.create("Port the limiter tests"));
        assert_eq!((got.task.status, got.task.owner.clone(), got.task.revision), (Status::Pending, None, 1));
        assert_eq!((&got.task.created_by, &got.task.updated_by), (&Some(zed.name.clone()), &Some(zed.name.clone())));
        assert_eq!((got.task.channel.as_str(), got.task.created_at), ("tasks/work", place.now()));
        assert!(got.ready && got.not_ready.is_empty() && !got.task.blocked && !got.task.rank.is_empty());
    }

    fn what_is_not_there_is_not_found(place) {
        let zed = place.person("Zed");
        let nowhere = ListName::new("tasks/nowhere").unwrap();
        assert_eq!(refusal(zed.engine.get(Some(&zed.name), &TaskId::Number(4711), false)).code(), "not_found");
        assert_eq!(refusal(zed.engine.list(Some(&zed.name), &nowhere, &ListAsk::default())).code(), "not_found");
        assert_eq!(refusal(zed.engine.tally(&nowhere)).code(), "not_found");
        let mut lost = zed.request(taskbus::core::command::Command::Next(Box::default()), None);
        lost.list = Some(nowhere);
        assert_eq!(refusal(zed.engine.execute(&lost)).code(), "not_found");
        let below = ListAsk { below: Some(TaskId::Number(4711)), ..ListAsk::default() };
        assert_eq!(refusal(zed.engine.list(None, &list(), &below)).code(), "not_found");
        assert_eq!(refusal(zed.complete(&TaskId::Number(4711))).code(), "not_found");
    }

    fn a_task_says_in_words_why_it_is_not_ready(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let held = zed.draft(touching("held", "src/*.rs"));
        zed.claim_for(&held, 60).unwrap();
        let until = place.now().plus_millis(60_000);
        assert_eq!(amp.get(&held).not_ready, [format!("in progress by Zed until {until}")]);
        let blocker = zed.create("blocker");
        let id = zed.draft(Draft {
            blocked_by: vec![blocker.clone()],
            not_before: Some(until),
            ..touching("waits", "src/main.rs")
        });
        let expected = [
            format!("blocked by {blocker}"),
            format!("deferred until {until}"),
            format!("its paths are in use by task {held}"),
        ];
        assert_eq!(amp.get(&id).not_ready, expected);
        zed.complete(&held).unwrap();
        zed.complete(&blocker).unwrap();
        assert_eq!(amp.get(&held).not_ready, ["completed by Zed"]);
        assert!(amp.get(&held).task.blocks.is_empty() && amp.get(&blocker).task.blocks == [id.clone()]);
        place.clock.advance(60_000);
        zed.engine.heartbeat().unwrap();
        assert!(amp.get(&id).ready);
    }

    fn a_history_tells_what_changed_by_whom_and_why(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let blocker = zed.create("blocker");
        let id = zed.create("storied");
        let labels = [Label::new("rust").unwrap()].into();
        let edit = Patch {
            subject: Some(Subject::new("Storied").unwrap()),
            labels: Some(labels),
            add_blocked_by: vec![blocker.clone()],
            metadata: [("k".to_owned(), Some("v".into()))].into(),
            note: Some(Note::new("as agreed").unwrap()),
            ..Patch::default()
        };
        zed.update(&id, edit).unwrap();
        zed.update(&id, Patch { remove_blocked_by: vec![blocker.clone()], ..Patch::default() }).unwrap();
        zed.claim(&id).unwrap();
        place.silence_all_but(&[&amp]);
        amp.complete(&id).unwrap();
        let history = amp.get(&id).history.unwrap();
        let told: Vec<_> = history.iter().rev().map(|entry| (entry.kind, entry.changes.join("; "))).collect();
        let edited = format!("subject: storied -> Storied; blocked_by: +{blocker}; labels: +rust; metadata: +k");
        let expected = [
            (Kind::Created, String::new()),
            (Kind::Changed, edited),
            (Kind::Changed, format!("blocked_by: -{blocker}")),
            (Kind::Changed, "status: pending -> in_progress; owner: none -> Zed".to_owned()),
            (Kind::Reclaimed, "status: in_progress -> pending; owner: Zed -> none".to_owned()),
            (Kind::Changed, "status: pending -> completed; owner: none -> Amp".to_owned()),
        ];
        assert_eq!(told, expected);
        assert_eq!(history[4].note.as_ref().map(Note::as_str), Some("as agreed"));
        assert_eq!((history[0].by.as_ref(), history[0].revision), (Some(&amp.name), 6));
        assert!(history.is_sorted_by(|newer, older| newer.seq > older.seq));
        assert!(zed.engine.get(None, &id, false).unwrap().history.is_none());
    }

    fn pages_join_to_the_whole_list_and_totals_are_true(place) {
        let zed = place.person("Zed");
        let mut parents = Vec::new();
        for n in 0..7 {
            let parent = zed.create(&format!("top {n}"));
            let child = Draft { parent: Some(parent.clone()), ..draft("child") };
            parents.push((parent, zed.draft(child.clone()), zed.draft(child)));
        }
        let all: Vec<TaskId> = parents.iter().flat_map(|(a, b, c)| [a.clone(), b.clone(), c.clone()]).collect();
        for limit in [1, 2, 20, 21, 200] {
            assert_eq!(all_pages(&zed, &ListAsk::default(), limit), (all.clone(), 21));
        }
        let below = ListAsk { below: Some(parents[3].0.clone()), ..ListAsk::default() };
        assert_eq!(all_pages(&zed, &below, 1), (vec![parents[3].1.clone(), parents[3].2.clone()], 2));
        let rows = zed.page(&below).tasks;
        assert_eq!((rows[0].depth, rows[0].parent.as_ref()), (1, Some(&parents[3].0)));
    }

    fn filters_select_rows_and_keep_order(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let label = Label::new("rust").unwrap();
        let (a, b, c) = (zed.create("a"), zed.draft(Draft { labels: [label.clone()].into(), ..draft("b") }), zed.create("c"));
        let d = zed.draft(Draft { blocked_by: vec![c.clone()], ..draft("d") });
        amp.claim(&a).unwrap();
        zed.complete(&b).unwrap();
        let ask = ListAsk::default();
        let with = |ask: ListAsk| all_pages(&zed, &ask, 1);
        assert_eq!(with(ListAsk { status: Some(Status::Pending), ..ask.clone() }), (vec![c.clone(), d.clone()], 2));
        assert_eq!(with(ListAsk { owner: Some(amp.name.clone()), ..ask.clone() }), (vec![a], 1));
        assert_eq!(with(ListAsk { label: Some(label), ..ask.clone() }), (vec![b], 1));
        assert_eq!(with(ListAsk { view: View::Ready, ..ask.clone() }), (vec![c], 1));
        assert_eq!(with(ListAsk { view: View::Blocked, ..ask }), (vec![d], 1));
    }

    fn the_ready_view_leaves_out_what_touches_files_in_use(place) {
        let zed = place.person("Zed");
        let top = zed.create("top");
        let busy = zed.draft(touching("busy", "src/**"));
        let mut free = Vec::new();
        for n in 0..5 {
            let inside = touching("waits", &format!("src/{n}.rs"));
            zed.draft(Draft { parent: (n % 2 == 0).then(|| top.clone()), ..inside });
            free.push(zed.draft(touching("free", &format!("docs/{n}.md"))));
        }
        let ready = ListAsk { view: View::Ready, ..ListAsk::default() };
        assert_eq!(all_pages(&zed, &ready, 3).1, 12);
        zed.claim(&busy).unwrap();
        for limit in [1, 2, 3, 6, 7] {
            let (ids, total) = all_pages(&zed, &ready, limit);
            assert_eq!((ids.len(), total), (6, 6));
            assert_eq!(ids[1..], free[..]);
        }
        let label = Label::new("rust").unwrap();
        let labelled = Draft { labels: [label.clone()].into(), ..touching("labelled", "src/a.rs") };
        zed.draft(labelled.clone());
        let paths = [PathGlob::new("elsewhere").unwrap()].into();
        let apart = zed.draft(Draft { paths, ..labelled });
        assert_eq!(all_pages(&zed, &ListAsk { label: Some(label), ..ready.clone() }, 2), (vec![apart], 1));
        let below = ListAsk { below: Some(top.clone()), ..ready };
        assert_eq!(all_pages(&zed, &below, 2), (vec![], 0));
        assert_eq!(zed.next(Next { parent: Some(top), ..Next::default() }).tasks, []);
    }

    fn bad_cursors_and_limits_are_refused(place) {
        let zed = place.person("Zed");
        let ask = |cursor: Option<&str>, limit| ListAsk { cursor: cursor.map(str::to_owned), limit, ..ListAsk::default() };
        for bad in [ask(Some("zz"), None), ask(Some(""), None)] {
            let refused = refusal(zed.engine.list(None, &list(), &bad));
            assert!(matches!(refused, Refusal::Invalid(Invalid::Cursor)));
        }
        for limit in [0, 201] {
            let refused = refusal(zed.engine.list(None, &list(), &ask(None, Some(limit))));
            assert!(matches!(refused, Refusal::Invalid(Invalid::OutOfRange { field: "limit", .. })));
        }
        zed.page(&ask(None, Some(200)));
    }
}
