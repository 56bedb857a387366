//! Blockers, parents, order, plans and deletion, as they show through the engine.

use taskbus::answer::Answer;
use taskbus::core::command::{Command, Draft, Next, Patch, Place as Spot, Planned};
use taskbus::core::id::TaskId;
use taskbus::core::refusal::{Conflict, Invalid, Refusal};
use taskbus::core::task::Status;
use taskbus::core::text::Subject;
use taskbus::engine::ListAsk;

use crate::support::{Person, on_every_store, race, refusal};

fn draft(subject: &str) -> Draft {
    Draft::new(Subject::new(subject).unwrap())
}

fn child(person: &Person, subject: &str, parent: &TaskId) -> TaskId {
    person.draft(Draft { parent: Some(parent.clone()), ..draft(subject) })
}

fn blocked(person: &Person, subject: &str, blockers: &[&TaskId]) -> TaskId {
    person.draft(Draft { blocked_by: blockers.iter().map(|id| (*id).clone()).collect(), ..draft(subject) })
}

fn subjects(person: &Person) -> Vec<(String, usize)> {
    let rows = person.page(&ListAsk::default()).tasks;
    rows.into_iter().map(|row| (row.subject.to_string(), row.depth)).collect()
}

fn add_blocker(id: &TaskId) -> Patch {
    Patch { add_blocked_by: vec![id.clone()], ..Patch::default() }
}

on_every_store! {
    fn a_blocked_task_cannot_start_until_its_blockers_are_done_or_gone(place) {
        let zed = place.person("Zed");
        let (a, b) = (zed.create("a"), zed.create("b"));
        let c = blocked(&zed, "c", &[&a, &b]);
        let start = refusal(zed.claim(&c));
        assert!(matches!(&start, Refusal::Conflict(Conflict::Blocked { blockers, .. }) if blockers.len() == 2));
        assert_eq!(zed.get(&c).task.open_blockers, [a.clone(), b.clone()]);
        assert_eq!(zed.complete(&a).unwrap().unblocked, []);
        assert_eq!(zed.update(&b, Patch::delete()).unwrap().unblocked, std::slice::from_ref(&c));
        let task = zed.claim(&c).unwrap().task;
        assert!(!task.blocked);
        zed.update(&a, Patch { status: Some(Status::Pending), ..Patch::default() }).unwrap();
        let task = zed.get(&c).task;
        assert_eq!((task.status, task.open_blockers), (Status::InProgress, vec![a]));
    }

    fn force_passes_neither_blockers_nor_children(place) {
        let zed = place.person("Zed");
        let a = zed.create("a");
        let b = blocked(&zed, "b", &[&a]);
        let leaf = child(&zed, "leaf", &a);
        let forced = |patch| Patch { force: true, ..patch };
        let start = refusal(zed.update(&b, forced(Patch::claim(zed.name.clone(), None))));
        assert!(matches!(start, Refusal::Conflict(Conflict::Blocked { .. })));
        let gone = refusal(zed.update(&a, forced(Patch::delete())));
        assert!(matches!(&gone, Refusal::Conflict(Conflict::Children { children, .. }) if *children == [leaf.clone()]));
        zed.update(&leaf, Patch { parent: Some(None), ..Patch::default() }).unwrap();
        zed.update(&a, Patch::delete()).unwrap();
    }

    fn of_two_links_that_close_a_cycle_at_the_same_moment_one_is_refused(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        for round in 0..10 {
            let (a, b) = (zed.create(&format!("a{round}")), zed.create(&format!("b{round}")));
            let (x, y) = race(|| zed.update(&a, add_blocker(&b)), || amp.update(&b, add_blocker(&a)));
            let refused = if x.is_ok() { refusal(y) } else { refusal(x) };
            assert!(matches!(refused, Refusal::Invalid(Invalid::Cycle { .. })), "{refused}");
        }
    }

    fn a_list_reads_depth_first_and_keeps_its_order_through_inserts_moves_and_deletes(place) {
        let zed = place.person("Zed");
        let (a, c) = (zed.create("a"), zed.create("c"));
        let a1 = child(&zed, "a1", &a);
        zed.draft(Draft { parent: Some(a.clone()), place: Some(Spot::Before(a1)), ..draft("a0") });
        let b = zed.draft(Draft { place: Some(Spot::After(a.clone())), ..draft("b") });
        let shown = |depths: &[(&str, usize)]| depths.iter().map(|(s, d)| ((*s).to_owned(), *d)).collect::<Vec<_>>();
        assert_eq!(subjects(&zed), shown(&[("a", 0), ("a0", 1), ("a1", 1), ("b", 0), ("c", 0)]));
        zed.update(&c, Patch { place: Some(Spot::Before(a.clone())), ..Patch::default() }).unwrap();
        zed.update(&b, Patch::delete()).unwrap();
        zed.update(&a, Patch { parent: Some(Some(c)), ..Patch::default() }).unwrap();
        assert_eq!(subjects(&zed), shown(&[("c", 0), ("a", 1), ("a0", 2), ("a1", 2)]));
    }

    fn the_last_open_child_says_that_its_parent_can_be_closed(place) {
        let zed = place.person("Zed");
        let top = zed.create("top");
        let (x, y) = (child(&zed, "x", &top), child(&zed, "y", &top));
        assert!(!zed.complete(&x).unwrap().parent_complete);
        assert_eq!(zed.get(&top).open_children, std::slice::from_ref(&y));
        assert!(zed.complete(&y).unwrap().parent_complete);
        zed.update(&y, Patch { status: Some(Status::Pending), ..Patch::default() }).unwrap();
        assert_eq!(zed.complete(&top).unwrap().open_children, [y]);
    }

    fn a_deleted_task_comes_back_where_it_was(place) {
        let zed = place.person("Zed");
        let (a, b) = (zed.create("a"), zed.create("b"));
        let deleted = zed.update(&a, Patch::delete()).unwrap();
        assert!(deleted.deleted && deleted.task.subject.as_str() == "a");
        assert_eq!(Some(deleted.replaced), a.as_number());
        assert_eq!(zed.page(&ListAsk::default()).total, 1);
        assert!(refusal(zed.complete(&a)).code() == "not_found");
        assert!(matches!(zed.send(Command::Restore(a.clone()), None), Ok(Answer::Restored(_))));
        let order: Vec<TaskId> = zed.page(&ListAsk::default()).tasks.into_iter().map(|row| row.id).collect();
        assert_eq!(order, [a.clone(), b]);
        assert_eq!(place.kinds(&a), ["", "deleted", "restored"]);
    }

    fn a_plan_is_made_whole_or_not_at_all(place) {
        let zed = place.person("Zed");
        let planned = |key: &str, blocker: Option<&str>| Planned {
            key: Some(key.to_owned()),
            blocked_by: blocker.into_iter().map(str::to_owned).collect(),
            draft: draft(key),
            parent: None,
            done: false,
        };
        let before = place.latest_seq();
        let bad = vec![planned("a", None), planned("b", Some("nowhere"))];
        assert!(matches!(
            refusal(zed.send(Command::Plan(bad), None)),
            Refusal::Invalid(Invalid::PlanReference { .. })
        ));
        assert_eq!(place.latest_seq(), before);
        let good = vec![planned("b", Some("a")), planned("a", None)];
        let Answer::Planned(made) = zed.send(Command::Plan(good), None).unwrap() else { panic!("not planned") };
        assert_eq!(made.iter().map(|task| task.key.as_deref().unwrap()).collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(zed.get(&made[0].id).task.open_blockers, [made[1].id.clone()]);
    }

    fn next_hands_out_in_order_and_completes_on_the_way(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let a = zed.create("a");
        let b = blocked(&zed, "b", &[&a]);
        let taken = zed.next(Next::default());
        assert_eq!(taken.tasks[0].id, a);
        let idle = amp.next(Next::default()).idle.unwrap();
        assert_eq!((idle.blocked, idle.in_progress), (1, 1));
        assert_eq!(idle.holders[0].owner.as_ref(), Some(&zed.name));
        assert_eq!(format!("{:?}", idle.advice), "Wait");
        let fence = Some(taken.tasks[0].fence);
        let finish = taskbus::core::command::Finish { id: a, result: None, fence };
        let taken = zed.next(Next { complete: Some(finish), ..Next::default() });
        assert_eq!(taken.tasks[0].id, b);
        assert_eq!(taken.completed.unwrap().unblocked, std::slice::from_ref(&b));
        zed.complete(&b).unwrap();
        assert_eq!(format!("{:?}", zed.next(Next::default()).idle.unwrap().advice), "Done");
        let d = zed.create("d");
        zed.update(&d, add_blocker(&zed.create("e"))).unwrap();
        assert_eq!(zed.next(Next { count: 16, ..Next::default() }).tasks.len(), 1);
    }
}
