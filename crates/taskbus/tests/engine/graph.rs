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
        let sam = place.person("Sam");
        let (a, b) = (sam.create("a"), sam.create("b"));
        let c = blocked(&sam, "c", &[&a, &b]);
        let start = refusal(sam.claim(&c));
        assert!(matches!(&start, Refusal::Conflict(Conflict::Blocked { blockers, .. }) if blockers.len() == 2));
        assert_eq!(sam.get(&c).task.open_blockers, [a.clone(), b.clone()]);
        assert_eq!(sam.complete(&a).unwrap().unblocked, []);
        assert_eq!(sam.update(&b, Patch::delete()).unwrap().unblocked, std::slice::from_ref(&c));
        let task = sam.claim(&c).unwrap().task;
        assert!(!task.blocked);
        sam.update(&a, Patch { status: Some(Status::Pending), ..Patch::default() }).unwrap();
        let task = sam.get(&c).task;
        assert_eq!((task.status, task.open_blockers), (Status::InProgress, vec![a]));
    }

    fn force_passes_neither_blockers_nor_children(place) {
        let sam = place.person("Sam");
        let a = sam.create("a");
        let b = blocked(&sam, "b", &[&a]);
        let leaf = child(&sam, "leaf", &a);
        let forced = |patch| Patch { force: true, ..patch };
        let start = refusal(sam.update(&b, forced(Patch::claim(sam.name.clone(), None))));
        assert!(matches!(start, Refusal::Conflict(Conflict::Blocked { .. })));
        let gone = refusal(sam.update(&a, forced(Patch::delete())));
        assert!(matches!(&gone, Refusal::Conflict(Conflict::Children { children, .. }) if *children == [leaf.clone()]));
        sam.update(&leaf, Patch { parent: Some(None), ..Patch::default() }).unwrap();
        sam.update(&a, Patch::delete()).unwrap();
    }

    fn of_two_links_that_close_a_cycle_at_the_same_moment_one_is_refused(place) {
        let (sam, kim) = (place.person("Sam"), place.person("Kim"));
        for round in 0..10 {
            let (a, b) = (sam.create(&format!("a{round}")), sam.create(&format!("b{round}")));
            let (x, y) = race(|| sam.update(&a, add_blocker(&b)), || kim.update(&b, add_blocker(&a)));
            let refused = if x.is_ok() { refusal(y) } else { refusal(x) };
            assert!(matches!(refused, Refusal::Invalid(Invalid::Cycle { .. })), "{refused}");
        }
    }

    fn a_list_reads_depth_first_and_keeps_its_order_through_inserts_moves_and_deletes(place) {
        let sam = place.person("Sam");
        let (a, c) = (sam.create("a"), sam.create("c"));
        let a1 = child(&sam, "a1", &a);
        sam.draft(Draft { parent: Some(a.clone()), place: Some(Spot::Before(a1)), ..draft("a0") });
        let b = sam.draft(Draft { place: Some(Spot::After(a.clone())), ..draft("b") });
        let shown = |depths: &[(&str, usize)]| depths.iter().map(|(s, d)| ((*s).to_owned(), *d)).collect::<Vec<_>>();
        assert_eq!(subjects(&sam), shown(&[("a", 0), ("a0", 1), ("a1", 1), ("b", 0), ("c", 0)]));
        sam.update(&c, Patch { place: Some(Spot::Before(a.clone())), ..Patch::default() }).unwrap();
        sam.update(&b, Patch::delete()).unwrap();
        sam.update(&a, Patch { parent: Some(Some(c)), ..Patch::default() }).unwrap();
        assert_eq!(subjects(&sam), shown(&[("c", 0), ("a", 1), ("a0", 2), ("a1", 2)]));
    }

    fn the_last_open_child_says_that_its_parent_can_be_closed(place) {
        let sam = place.person("Sam");
        let top = sam.create("top");
        let (x, y) = (child(&sam, "x", &top), child(&sam, "y", &top));
        assert!(!sam.complete(&x).unwrap().parent_complete);
        assert_eq!(sam.get(&top).open_children, std::slice::from_ref(&y));
        assert!(sam.complete(&y).unwrap().parent_complete);
        sam.update(&y, Patch { status: Some(Status::Pending), ..Patch::default() }).unwrap();
        assert_eq!(sam.complete(&top).unwrap().open_children, [y]);
    }

    fn a_deleted_task_comes_back_where_it_was(place) {
        let sam = place.person("Sam");
        let (a, b) = (sam.create("a"), sam.create("b"));
        let deleted = sam.update(&a, Patch::delete()).unwrap();
        assert!(deleted.deleted && deleted.task.subject.as_str() == "a");
        assert_eq!(Some(deleted.replaced), a.as_number());
        assert_eq!(sam.page(&ListAsk::default()).total, 1);
        assert!(refusal(sam.complete(&a)).code() == "not_found");
        assert!(matches!(sam.send(Command::Restore(a.clone()), None), Ok(Answer::Restored(_))));
        let order: Vec<TaskId> = sam.page(&ListAsk::default()).tasks.into_iter().map(|row| row.id).collect();
        assert_eq!(order, [a.clone(), b]);
        assert_eq!(place.kinds(&a), ["", "deleted", "restored"]);
    }

    fn a_plan_is_made_whole_or_not_at_all(place) {
        let sam = place.person("Sam");
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
            refusal(sam.send(Command::Plan(bad), None)),
            Refusal::Invalid(Invalid::PlanReference { .. })
        ));
        assert_eq!(place.latest_seq(), before);
        let good = vec![planned("b", Some("a")), planned("a", None)];
        let Answer::Planned(made) = sam.send(Command::Plan(good), None).unwrap() else { panic!("not planned") };
        assert_eq!(made.iter().map(|task| task.key.as_deref().unwrap()).collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(sam.get(&made[0].id).task.open_blockers, [made[1].id.clone()]);
    }

    fn next_hands_out_in_order_and_completes_on_the_way(place) {
        let (sam, kim) = (place.person("Sam"), place.person("Kim"));
        let a = sam.create("a");
        let b = blocked(&sam, "b", &[&a]);
        let taken = sam.next(Next::default());
        assert_eq!(taken.tasks[0].id, a);
        let idle = kim.next(Next::default()).idle.unwrap();
        assert_eq!((idle.blocked, idle.in_progress), (1, 1));
        assert_eq!(idle.holders[0].owner.as_ref(), Some(&sam.name));
        assert_eq!(format!("{:?}", idle.advice), "Wait");
        let fence = Some(taken.tasks[0].fence);
        let finish = taskbus::core::command::Finish { id: a, result: None, fence };
        let taken = sam.next(Next { complete: Some(finish), ..Next::default() });
        assert_eq!(taken.tasks[0].id, b);
        assert_eq!(taken.completed.unwrap().unblocked, std::slice::from_ref(&b));
        sam.complete(&b).unwrap();
        assert_eq!(format!("{:?}", sam.next(Next::default()).idle.unwrap().advice), "Done");
        let d = sam.create("d");
        sam.update(&d, add_blocker(&sam.create("e"))).unwrap();
        assert_eq!(sam.next(Next { count: 16, ..Next::default() }).tasks.len(), 1);
    }
}
