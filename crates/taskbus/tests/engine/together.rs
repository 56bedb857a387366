//! Several commands as one, and a list at a glance.

use std::cell::Cell;

use taskbus::answer::Answer;
use taskbus::core::command::{Command, Patch};
use taskbus::core::id::TaskId;
use taskbus::core::neighbourhood::Neighbourhood;
use taskbus::core::refusal::{Conflict, Refusal};
use taskbus::core::task::Status;
use taskbus::engine::{Error, Limits, Overview, Together};

use crate::support::{Fault, Person, Watched, held_by, list, on_every_store, refusal};

fn update(id: &TaskId, patch: Patch) -> Command {
    Command::Update(id.clone(), Box::new(patch))
}

fn to(status: Status) -> Patch {
    Patch { status: Some(status), ..Patch::default() }
}

fn together(who: &Person, commands: &[Command], show: Option<usize>) -> Result<Together, Error> {
    who.engine.execute_together(&who.name, &list(), &mut |_: &dyn Neighbourhood| Ok(commands.to_vec()), show)
}

fn ids(overview: &Overview) -> Vec<&TaskId> {
    overview.tasks.iter().map(|task| &task.id).collect()
}

on_every_store! {
    fn commands_see_what_those_before_them_did(place) {
        let sam = place.person("Sam");
        let id = sam.create("done already");
        sam.complete(&id).unwrap();
        assert_eq!(refusal(sam.claim(&id)).code(), "validation", "a strict list wants it reopened first");
        let both = [update(&id, to(Status::Pending)), update(&id, Patch::claim(sam.name.clone(), None))];
        let done = together(&sam, &both, None).unwrap();
        let [Answer::Written(first), Answer::Written(second)] = done.answers.as_slice() else { panic!("{done:?}") };
        assert_eq!(held_by(&first.task), ("pending", None));
        assert_eq!(held_by(&second.task), ("in_progress", Some("Sam")));
        assert_eq!((second.task.revision, place.revisions(&id).len()), (4, 4));
        assert!(done.overview.is_none());
    }

    fn what_to_do_depends_on_the_list_under_the_lock(place) {
        let sam = place.person("Sam");
        let (open, done) = (sam.create("open"), sam.create("done"));
        sam.complete(&done).unwrap();
        for id in [&open, &done] {
            let mut finish = |list: &dyn Neighbourhood| {
                let is_open = list.task(id)?.is_some_and(|task| task.is_open());
                Ok(if is_open { vec![update(id, Patch::complete(None))] } else { Vec::new() })
            };
            let answers = sam.engine.execute_together(&sam.name, &list(), &mut finish, None).unwrap().answers;
            assert_eq!(answers.len(), usize::from(*id == open));
        }
    }

    fn one_refusal_takes_everything_back(place) {
        let mut place = place;
        let watched = Watched::over(&mut place);
        let (sam, kim) = (place.person("Sam"), place.person("Kim"));
        let (a, b, held) = (sam.create("a"), sam.create("b"), sam.create("held"));
        kim.claim(&held).unwrap();
        let before = (place.latest_seq(), place.store.version().unwrap());
        let waits = Patch { add_blocked_by: vec![a.clone()], ..Patch::default() };
        let all = [update(&a, to(Status::Completed)), update(&b, waits.clone()), update(&held, waits.clone())];
        match refusal(together(&sam, &all, Some(10))) {
            Refusal::Conflict(Conflict::Held { id, .. }) => assert_eq!(id, held),
            other => panic!("{other:?}"),
        }
        for fault in [Fault::Late, Fault::Busy] {
            assert!(watched.failing(fault, || together(&sam, &all[..2], None)).is_err());
        }
        assert_eq!((place.latest_seq(), place.store.version().unwrap()), before);
        assert_eq!((sam.get(&a).task.status, sam.get(&b).task.blocked), (Status::Pending, false));
        assert_eq!(watched.writes_during(|| drop(together(&sam, &all[..2], None).unwrap())), 1);
    }

    fn they_count_as_one_write(place) {
        let sam = place.person_with("Sam", Limits { writes_per_second: 3, ..Limits::default() });
        let (a, b) = (sam.create("a"), sam.create("b"));
        let asked = Cell::new(0);
        let mut both = |_: &dyn Neighbourhood| {
            asked.set(asked.get() + 1);
            Ok([&a, &b].map(|id| update(id, Patch::complete(None))).to_vec())
        };
        sam.engine.execute_together(&sam.name, &list(), &mut both, None).unwrap();
        assert_eq!((asked.get(), sam.get(&b).task.status), (1, Status::Completed));
        assert_eq!(refusal(sam.update(&a, to(Status::Pending))).code(), "rate_limited", "that was the fourth");
    }

    fn a_stranger_and_a_list_that_is_not_there_are_refused(place) {
        let (sam, kim) = (place.person("Sam"), place.person("Kim"));
        let stranger = sam.engine.execute_together(&kim.name, &list(), &mut |_: &dyn Neighbourhood| Ok(vec![]), None);
        assert_eq!(refusal(stranger).code(), "not_registered");
        let nowhere = taskbus::core::name::ListName::new("tasks/nowhere").unwrap();
        let made = sam.engine.execute_together(&sam.name, &nowhere, &mut |_: &dyn Neighbourhood| Ok(vec![]), Some(1));
        assert_eq!(refusal(made).code(), "not_found");
        assert_eq!(refusal(sam.engine.overview(None, &nowhere, 1)).code(), "not_found");
    }

    fn a_list_is_shown_from_its_front(place) {
        let sam = place.person("Sam");
        let [done, blocked, held, gone, lost] = ["done", "blocked", "held", "gone", "lost"].map(|name| sam.create(name));
        sam.complete(&done).unwrap();
        sam.claim(&held).unwrap();
        sam.update(&blocked, Patch { add_blocked_by: vec![held.clone(), done.clone()], ..Patch::default() }).unwrap();
        sam.update(&gone, Patch::delete()).unwrap();
        let shown = together(&sam, &[update(&lost, Patch::delete())], Some(10)).unwrap().overview.unwrap();
        assert_eq!(ids(&shown), [&held, &blocked, &done]);
        assert_eq!(shown.deleted.iter().map(|task| &task.id).collect::<Vec<_>>(), [&lost, &gone]);
        assert_eq!((shown.tally.total(), shown.deleted_total), (3, 2));
        let (first, second) = (&shown.tasks[0], &shown.tasks[1]);
        assert_eq!((&first.blocks, &second.open_blockers), (&vec![blocked.clone()], &vec![held.clone()]));
        assert_eq!(second.blocked_by, [held.clone(), done.clone()]);
        for limit in 0..6 {
            let cut = sam.engine.overview(Some(&sam.name), &list(), limit).unwrap();
            assert_eq!((cut.tasks.len(), cut.deleted.len()), (limit.min(3), limit.saturating_sub(3).min(2)));
            assert_eq!((cut.tally.total(), cut.deleted_total), (3, 2), "how many there are is always told");
        }
    }

    fn a_look_gives_back_what_a_dead_holder_left(place) {
        let (sam, kim) = (place.person("Sam"), place.person("Kim"));
        let id = sam.create("left behind");
        kim.claim(&id).unwrap();
        place.silence_all_but(&[&sam]);
        let shown = sam.engine.overview(Some(&sam.name), &list(), 5).unwrap();
        assert_eq!((held_by(&shown.tasks[0]), place.kinds(&id)), (("pending", None), vec!["", "", "reclaimed"]));
    }
}
