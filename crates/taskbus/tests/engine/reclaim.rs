//! Tasks of the dead: found abandoned and returned, by whoever looks, and only then.

use taskbus::core::command::{Command, Draft, LeaseAsk, Next, Patch};
use taskbus::core::name::ListName;
use taskbus::core::neighbourhood::ListRules;
use taskbus::core::refusal::{Conflict, Refusal};
use taskbus::core::text::Subject;
use taskbus::engine::{Limits, ListAsk, Request, Ticked};

use crate::support::{Fault, Watched, held_by, holder, list, on_every_store, refusal, taken};

on_every_store! {
    fn a_task_of_a_dead_owner_can_be_claimed(place) {
        let (sam, kim) = (place.person("Sam"), place.person("Kim"));
        let id = sam.create("orphan");
        sam.claim(&id).unwrap();
        place.clock.advance(29_999);
        kim.engine.heartbeat().unwrap();
        assert_eq!(holder(kim.claim(&id)), "Sam");
        place.clock.advance(1);
        let written = kim.claim(&id).unwrap();
        assert_eq!(held_by(&written.task), ("in_progress", Some("Kim")));
        assert_eq!(place.kinds(&id), ["", "", "reclaimed", ""]);
        let revisions = place.revisions(&id);
        assert_eq!(written.replaced, revisions[2].seq);
        assert_eq!(revisions[2].task.updated.by, Some(kim.name));
    }

    fn a_task_whose_lease_has_ended_can_be_claimed(place) {
        let (sam, kim) = (place.person("Sam"), place.person("Kim"));
        let id = sam.create("leased");
        sam.claim_for(&id, 5).unwrap();
        place.clock.advance(4_999);
        assert_eq!(holder(kim.claim(&id)), "Sam");
        place.clock.advance(1);
        kim.claim(&id).unwrap();
        let late = Patch { fence: Some(1), ..Patch::complete(None) };
        assert!(matches!(refusal(sam.update(&id, late)), Refusal::Conflict(Conflict::LeaseLost { .. })));
    }

    fn a_late_write_with_the_old_fence_fails_for_the_same_name_too(place) {
        let sam = place.person("Sam");
        let id = sam.create("twice");
        let fence = sam.claim_for(&id, 5).unwrap().task.fence;
        place.clock.advance(5_000);
        sam.claim(&id).unwrap();
        let late = Patch { fence: Some(fence), ..Patch::complete(None) };
        assert!(matches!(refusal(sam.update(&id, late)), Refusal::Conflict(Conflict::LeaseLost { .. })));
    }

    fn getting_a_task_returns_it_in_the_readers_name(place) {
        let (sam, kim) = (place.person("Sam"), place.person("Kim"));
        let id = sam.create("read");
        sam.claim(&id).unwrap();
        place.silence_all_but(&[&kim]);
        assert_eq!(held_by(&kim.get(&id).task), ("pending", None));
        assert_eq!(place.revisions(&id)[2].task.updated.by, Some(kim.name));
    }

    fn listing_returns_only_the_abandoned_among_many(place) {
        let (sam, kim, lee) = (place.person("Sam"), place.person("Kim"), place.person("Lee"));
        let (orphan, held, expired) = (sam.create("orphan"), sam.create("held"), sam.create("expired"));
        sam.claim(&orphan).unwrap();
        lee.claim(&held).unwrap();
        lee.claim_for(&expired, 10).unwrap();
        place.silence_all_but(&[&kim, &lee]);
        let rows = kim.page(&ListAsk::default()).tasks;
        let shown: Vec<_> = rows.iter().map(|row| (row.status.as_str(), row.owner.as_ref())).collect();
        assert_eq!(shown, [("pending", None), ("in_progress", Some(&lee.name)), ("pending", None)]);
        assert_eq!(place.kinds(&held).len(), 2);
        assert_eq!(place.revisions(&orphan)[2].task.updated.by, Some(kim.name));
    }

    fn a_reader_without_a_session_signs_nothing(place) {
        let sam = place.person("Sam");
        let id = sam.create("seen from outside");
        sam.claim(&id).unwrap();
        place.clock.advance(30_000);
        let outside = place.engine(Limits::default());
        assert_eq!(held_by(&outside.get(None, &id, false).unwrap().task), ("pending", None));
        assert_eq!(place.revisions(&id)[2].task.updated.by, None);
    }

    fn reads_write_nothing_when_nothing_is_abandoned(place) {
        let mut place = place;
        let watched = Watched::over(&mut place);
        let sam = place.person("Sam");
        let id = sam.create("calm");
        sam.claim(&id).unwrap();
        let seq = place.latest_seq();
        let writes = watched.writes_during(|| {
            sam.get(&id);
            sam.page(&ListAsk::default());
            sam.engine.tally(&list()).unwrap();
        });
        assert_eq!((writes, place.latest_seq()), (0, seq));
    }

    fn an_idle_tick_takes_no_write_lock_and_a_busy_one_a_single_one(place) {
        let mut place = place;
        let watched = Watched::over(&mut place);
        let (sam, kim) = (place.person("Sam"), place.person("Kim"));
        let (a, b) = (sam.create("a"), sam.create("b"));
        sam.claim(&a).unwrap();
        sam.claim(&b).unwrap();
        assert_eq!(watched.writes_during(|| assert_eq!(kim.engine.tick().unwrap(), Ticked::default())), 0);
        place.silence_all_but(&[&kim]);
        let ticked = Ticked { reclaimed: 2, receipts: 0 };
        assert_eq!(watched.writes_during(|| assert_eq!(kim.engine.tick().unwrap(), ticked)), 1);
        let revision = &place.revisions(&a)[2];
        assert_eq!((&revision.task.updated.by, revision.context.as_str()), (&None, ""));
        assert_eq!(kim.engine.tick().unwrap(), Ticked::default());
    }

    fn the_tick_minds_every_list(place) {
        let (sam, kim) = (place.person("Sam"), place.person("Kim"));
        let other = ListName::new("tasks/other").unwrap();
        sam.engine.create_list(&sam.name, &other, ListRules::default()).unwrap();
        let id = sam.create("here");
        sam.claim(&id).unwrap();
        for command in [Command::Create(Box::new(Draft::new(Subject::new("there").unwrap()))), Command::Next(Box::default())] {
            let there = Request { list: Some(other.clone()), ..sam.request(command, None) };
            sam.engine.execute(&there).unwrap();
        }
        place.silence_all_but(&[&kim]);
        assert_eq!(kim.engine.tick().unwrap().reclaimed, 2);
    }

    fn reclaiming_costs_the_finder_nothing(place) {
        let slow = Limits { writes_per_second: 1, ..Limits::default() };
        let (sam, kim) = (place.person("Sam"), place.person_with("Kim", slow));
        let id = sam.create("free of charge");
        sam.claim_for(&id, 1).unwrap();
        place.clock.advance(1_000);
        kim.create("the one write of this second");
        assert!(matches!(refusal(kim.claim(&id)), Refusal::RateLimited { .. }));
        assert_eq!(place.kinds(&id).len(), 2, "a refused claim takes its fix-up back");
        assert_eq!(kim.update(&id, Patch::release()).unwrap().replaced, 0);
        assert_eq!(place.kinds(&id), ["", "", "reclaimed"]);
    }

    fn anyone_may_release_or_delete_what_is_abandoned(place) {
        let (sam, kim) = (place.person("Sam"), place.person("Kim"));
        let (a, b) = (sam.create("a"), sam.create("b"));
        sam.claim(&a).unwrap();
        sam.claim(&b).unwrap();
        place.silence_all_but(&[&kim]);
        assert_eq!(held_by(&kim.update(&a, Patch::release()).unwrap().task), ("pending", None));
        assert_eq!(place.kinds(&a), ["", "", "reclaimed"]);
        assert!(kim.update(&b, Patch::delete()).unwrap().deleted);
    }

    fn a_live_owner_without_a_lease_is_never_abandoned(place) {
        let (sam, kim) = (place.person("Sam"), place.person("Kim"));
        let id = sam.create("long work");
        sam.claim(&id).unwrap();
        for _ in 0..100 {
            place.clock.advance(29_000);
            sam.engine.heartbeat().unwrap();
            kim.engine.heartbeat().unwrap();
        }
        assert_eq!(holder(kim.claim(&id)), "Sam");
        assert_eq!(kim.engine.tick().unwrap(), Ticked::default());
    }

    fn a_refused_change_takes_its_fix_up_back_and_a_no_op_keeps_it(place) {
        let (sam, kim) = (place.person("Sam"), place.person("Kim"));
        let id = sam.create("half done");
        sam.claim_for(&id, 1).unwrap();
        place.clock.advance(1_000);
        let wrong = Patch { if_revision: Some(77), ..Patch::release() };
        refusal(kim.update(&id, wrong));
        assert_eq!(place.kinds(&id), ["", ""]);
        assert_eq!(kim.update(&id, Patch::release()).unwrap().replaced, 0);
        assert_eq!(place.kinds(&id), ["", "", "reclaimed"]);
    }

    fn a_read_shows_what_is_there_when_the_fix_up_cannot_be_written(place) {
        let mut place = place;
        let watched = Watched::over(&mut place);
        let (sam, kim) = (place.person("Sam"), place.person("Kim"));
        let id = sam.create("stuck");
        sam.claim(&id).unwrap();
        place.silence_all_but(&[&kim]);
        watched.failing(Fault::Busy, || {
            assert_eq!(held_by(&kim.get(&id).task), ("in_progress", Some("Sam")));
            assert_eq!(kim.page(&ListAsk::default()).tasks[0].status.as_str(), "in_progress");
        });
        assert_eq!(held_by(&kim.get(&id).task), ("pending", None));
    }

    fn next_returns_what_is_abandoned_and_takes_it(place) {
        let (sam, kim) = (place.person("Sam"), place.person("Kim"));
        let id = sam.create("dropped");
        sam.claim(&id).unwrap();
        place.silence_all_but(&[&kim]);
        assert_eq!(kim.next(Next::default()).tasks[0].id, id);
        assert_eq!(place.kinds(&id), ["", "", "reclaimed", ""]);
    }

    fn a_task_reclaimed_too_often_is_parked_until_somebody_changes_it(place) {
        let sam = place.person("Sam");
        let poisoned = ListName::new("tasks/poisoned").unwrap();
        let rules = ListRules { max_reclaims: 2, ..ListRules::default() };
        sam.engine.create_list(&sam.name, &poisoned, rules).unwrap();
        let send = |command| {
            let mut request = sam.request(command, None);
            request.list = request.list.map(|_| poisoned.clone());
            sam.engine.execute(&request).unwrap()
        };
        let draft = Draft::new(Subject::new("poison").unwrap());
        send(Command::Create(Box::new(draft)));
        let lease = Some(LeaseAsk::Seconds(1));
        let next = Next { lease, ..Next::default() };
        let take = || taken(send(Command::Next(Box::new(next.clone()))));
        let mut taken = Vec::new();
        for _ in 0..3 {
            taken = take().tasks;
            assert_eq!(taken.len(), 1);
            place.clock.advance(1_000);
        }
        let idle = take().idle.unwrap();
        assert_eq!((idle.parked, format!("{:?}", idle.advice).as_str()), (1, "Stuck"));
        let got = sam.get(&taken[0].id);
        assert!(!got.ready && got.not_ready[0].contains("parked"), "{got:?}");
        sam.update(&taken[0].id, Patch { subject: Some(Subject::new("cured").unwrap()), ..Patch::default() }).unwrap();
        assert_eq!(take().tasks.len(), 1);
    }
}
