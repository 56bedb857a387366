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
        let zed = place.person("Zed");
        let id = zed.create("done already");
        zed.complete(&id).unwrap();
        assert_eq!(refusal(zed.claim(&id)).code(), "validation", "a strict list wants it reopened first");
        let both = [update(&id, to(Status::Pending)), update(&id, Patch::claim(zed.name.clone(), None))];
        let done = together(&zed, &both, None).unwrap();
        let [Answer::Written(first), Answer::Written(second)] = done.answers.as_slice() else { panic!("{done:?}") };
        assert_eq!(held_by(&first.task), ("pending", None));
        assert_eq!(held_by(&second.task), ("in_progress", Some("Zed")));
        assert_eq!((second.task.revision, place.revisions(&id).len()), (4, 4));
        assert!(done.overview.is_none());
    }

    fn what_to_do_depends_on_the_list_under_the_lock(place) {
        let zed = place.person("Zed");
        let (open, done) = (zed.create("open"), zed.create("done"));
        zed.complete(&done).unwrap();
        for id in [&open, &done] {
            let mut finish = |list: &dyn Neighbourhood| {
                let is_open = list.task(id)?.is_some_and(|task| task.is_open());
                Ok(if is_open { vec![update(id, Patch::complete(None))] } else { Vec::new() })
            };
            let answers = zed.engine.execute_together(&zed.name, &list(), &mut finish, None).unwrap().answers;
            assert_eq!(answers.len(), usize::from(*id == open));
        }
    }

    fn one_refusal_takes_everything_back(place) {
        let mut place = place;
        let watched = Watched::over(&mut place);
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let (a, b, held) = (zed.create("a"), zed.create("b"), zed.create("held"));
        amp.claim(&held).unwrap();
        let before = (place.latest_seq(), place.store.version().unwrap());
        let waits = Patch { add_blocked_by: vec![a.clone()], ..Patch::default() };
        let all = [update(&a, to(Status::Completed)), update(&b, waits.clone()), update(&held, waits.clone())];
        match refusal(together(&zed, &all, Some(10))) {
            Refusal::Conflict(Conflict::Held { id, .. }) => assert_eq!(id, held),
            other => panic!("{other:?}"),
        }
        for fault in [Fault::Late, Fault::Busy] {
            assert!(watched.failing(fault, || together(&zed, &all[..2], None)).is_err());
        }
        assert_eq!((place.latest_seq(), place.store.version().unwrap()), before);
        assert_eq!((zed.get(&a).task.status, zed.get(&b).task.blocked), (Status::Pending, false));
        assert_eq!(watched.writes_during(|| drop(together(&zed, &all[..2], None).unwrap())), 1);
    }

    fn they_count_as_one_write(place) {
        let zed = place.person_with("Zed", Limits { writes_per_second: 3, ..Limits::default() });
        let (a, b) = (zed.create("a"), zed.create("b"));
        let asked = Cell::new(0);
        let mut both = |_: &dyn Neighbourhood| {
            asked.set(asked.get() + 1);
            Ok([&a, &b].map(|id| update(id, Patch::complete(None))).to_vec())
        };
        zed.engine.execute_together(&zed.name, &list(), &mut both, None).unwrap();
        assert_eq!((asked.get(), zed.get(&b).task.status), (1, Status::Completed));
        assert_eq!(refusal(zed.update(&a, to(Status::Pending))).code(), "rate_limited", "that was the fourth");
    }

    fn a_stranger_and_a_list_that_is_not_there_are_refused(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let stranger = zed.engine.execute_together(&amp.name, &list(), &mut |_: &dyn Neighbourhood| Ok(vec![]), None);
        assert_eq!(refusal(stranger).code(), "not_registered");
        let nowhere = taskbus::core::name::ListName::new("tasks/nowhere").unwrap();
        let made = zed.engine.execute_together(&zed.name, &nowhere, &mut |_: &dyn Neighbourhood| Ok(vec![]), Some(1));
        assert_eq!(refusal(made).code(), "not_found");
        assert_eq!(refusal(zed.engine.overview(None, &nowhere, 1)).code(), "not_found");
    }

    fn a_list_is_shown_from_its_front(place) {
        let zed = place.person("Zed");
        let [done, blocked, held, gone, lost] = ["done", "blocked", "held", "gone", "lost"].map(|name| zed.create(name));
        zed.complete(&done).unwrap();
        zed.claim(&held).unwrap();
        zed.update(&blocked, Patch { add_blocked_by: vec![held.clone(), done.clone()], ..Patch::default() }).unwrap();
        zed.update(&gone, Patch::delete()).unwrap();
        let shown = together(&zed, &[update(&lost, Patch::delete())], Some(10)).unwrap().overview.unwrap();
        assert_eq!(ids(&shown), [&held, &blocked, &done]);
        assert_eq!(shown.deleted.iter().map(|task| &task.id).collect::<Vec<_>>(), [&lost, &gone]);
        assert_eq!((shown.tally.total(), shown.deleted_total), (3, 2));
        let (first, second) = (&shown.tasks[0], &shown.tasks[1]);
        assert_eq!((&first.blocks, &second.open_blockers), (&vec![blocked.clone()], &vec![held.clone()]));
        assert_eq!(second.blocked_by, [held.clone(), done.clone()]);
        for limit in 0..6 {
            let cut = zed.engine.overview(Some(&zed.name), &list(), limit).unwrap();
            assert_eq!((cut.tasks.len(), cut.deleted.len()), (limit.min(3), limit.saturating_sub(3).min(2)));
            assert_eq!((cut.tally.total(), cut.deleted_total), (3, 2), "how many there are is always told");
        }
    }

    fn a_look_gives_back_what_a_dead_holder_left(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let id = zed.create("left behind");
        amp.claim(&id).unwrap();
        place.silence_all_but(&[&zed]);
        let shown = zed.engine.overview(Some(&zed.name), &list(), 5).unwrap();
        assert_eq!((held_by(&shown.tasks[0]), place.kinds(&id)), (("pending", None), vec!["", "", "reclaimed"]));
    }
}
