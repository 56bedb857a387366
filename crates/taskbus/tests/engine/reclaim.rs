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
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let id = zed.create("orphan");
        zed.claim(&id).unwrap();
        place.clock.advance(29_999);
        amp.engine.heartbeat().unwrap();
        assert_eq!(holder(amp.claim(&id)), "Zed");
        place.clock.advance(1);
        let written = amp.claim(&id).unwrap();
        assert_eq!(held_by(&written.task), ("in_progress", Some("Amp")));
        assert_eq!(place.kinds(&id), ["", "", "reclaimed", ""]);
        let revisions = place.revisions(&id);
        assert_eq!(written.replaced, revisions[2].seq);
        assert_eq!(revisions[2].task.updated.by, Some(amp.name));
    }

    fn a_task_whose_lease_has_ended_can_be_claimed(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let id = zed.create("leased");
        zed.claim_for(&id, 5).unwrap();
        place.clock.advance(4_999);
        assert_eq!(holder(amp.claim(&id)), "Zed");
        place.clock.advance(1);
        amp.claim(&id).unwrap();
        let late = Patch { fence: Some(1), ..Patch::complete(None) };
        assert!(matches!(refusal(zed.update(&id, late)), Refusal::Conflict(Conflict::LeaseLost { .. })));
    }

    fn a_late_write_with_the_old_fence_fails_for_the_same_name_too(place) {
        let zed = place.person("Zed");
        let id = zed.create("twice");
        let fence = zed.claim_for(&id, 5).unwrap().task.fence;
        place.clock.advance(5_000);
        zed.claim(&id).unwrap();
        let late = Patch { fence: Some(fence), ..Patch::complete(None) };
        assert!(matches!(refusal(zed.update(&id, late)), Refusal::Conflict(Conflict::LeaseLost { .. })));
    }

    fn getting_a_task_returns_it_in_the_readers_name(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let id = zed.create("read");
        zed.claim(&id).unwrap();
        place.silence_all_but(&[&amp]);
        assert_eq!(held_by(&amp.get(&id).task), ("pending", None));
        assert_eq!(place.revisions(&id)[2].task.updated.by, Some(amp.name));
    }

    fn listing_returns_only_the_abandoned_among_many(place) {
        let (zed, amp, jan) = (place.person("Zed"), place.person("Amp"), place.person("Jan"));
        let (orphan, held, expired) = (zed.create("orphan"), zed.create("held"), zed.create("expired"));
        zed.claim(&orphan).unwrap();
        jan.claim(&held).unwrap();
        jan.claim_for(&expired, 10).unwrap();
        place.silence_all_but(&[&amp, &jan]);
        let rows = amp.page(&ListAsk::default()).tasks;
        let shown: Vec<_> = rows.iter().map(|row| (row.status.as_str(), row.owner.as_ref())).collect();
        assert_eq!(shown, [("pending", None), ("in_progress", Some(&jan.name)), ("pending", None)]);
        assert_eq!(place.kinds(&held).len(), 2);
        assert_eq!(place.revisions(&orphan)[2].task.updated.by, Some(amp.name));
    }

    fn a_reader_without_a_session_signs_nothing(place) {
        let zed = place.person("Zed");
        let id = zed.create("seen from outside");
        zed.claim(&id).unwrap();
        place.clock.advance(30_000);
        let outside = place.engine(Limits::default());
        assert_eq!(held_by(&outside.get(None, &id, false).unwrap().task), ("pending", None));
        assert_eq!(place.revisions(&id)[2].task.updated.by, None);
    }

    fn reads_write_nothing_when_nothing_is_abandoned(place) {
        let mut place = place;
        let watched = Watched::over(&mut place);
        let zed = place.person("Zed");
        let id = zed.create("calm");
        zed.claim(&id).unwrap();
        let seq = place.latest_seq();
        let writes = watched.writes_during(|| {
            zed.get(&id);
            zed.page(&ListAsk::default());
            zed.engine.tally(&list()).unwrap();
        });
        assert_eq!((writes, place.latest_seq()), (0, seq));
    }

    fn an_idle_tick_takes_no_write_lock_and_a_busy_one_a_single_one(place) {
        let mut place = place;
        let watched = Watched::over(&mut place);
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let (a, b) = (zed.create("a"), zed.create("b"));
        zed.claim(&a).unwrap();
        zed.claim(&b).unwrap();
        assert_eq!(watched.writes_during(|| assert_eq!(amp.engine.tick().unwrap(), Ticked::default())), 0);
        place.silence_all_but(&[&amp]);
        let ticked = Ticked { reclaimed: 2, ..Ticked::default() };
        assert_eq!(watched.writes_during(|| assert_eq!(amp.engine.tick().unwrap(), ticked)), 1);
        let revision = &place.revisions(&a)[2];
        assert_eq!((&revision.task.updated.by, revision.context.as_str()), (&None, ""));
        assert_eq!(amp.engine.tick().unwrap(), Ticked::default());
    }

    fn the_tick_minds_every_list(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let other = ListName::new("tasks/other").unwrap();
        zed.engine.create_list(&zed.name, &other, ListRules::default()).unwrap();
        let id = zed.create("here");
        zed.claim(&id).unwrap();
        for command in [Command::Create(Box::new(Draft::new(Subject::new("there").unwrap()))), Command::Next(Box::default())] {
            let there = Request { list: Some(other.clone()), ..zed.request(command, None) };
            zed.engine.execute(&there).unwrap();
        }
        place.silence_all_but(&[&amp]);
        assert_eq!(amp.engine.tick().unwrap().reclaimed, 2);
    }

    fn reclaiming_costs_the_finder_nothing(place) {
        let slow = Limits { writes_per_second: 1, ..Limits::default() };
        let (zed, amp) = (place.person("Zed"), place.person_with("Amp", slow));
        let id = zed.create("free of charge");
        zed.claim_for(&id, 1).unwrap();
        place.clock.advance(1_000);
        amp.create("the one write of this second");
        assert!(matches!(refusal(amp.claim(&id)), Refusal::RateLimited { .. }));
        assert_eq!(place.kinds(&id).len(), 2, "a refused claim takes its fix-up back");
        assert_eq!(amp.update(&id, Patch::release()).unwrap().replaced, 0);
        assert_eq!(place.kinds(&id), ["", "", "reclaimed"]);
    }

    fn anyone_may_release_or_delete_what_is_abandoned(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let (a, b) = (zed.create("a"), zed.create("b"));
        zed.claim(&a).unwrap();
        zed.claim(&b).unwrap();
        place.silence_all_but(&[&amp]);
        assert_eq!(held_by(&amp.update(&a, Patch::release()).unwrap().task), ("pending", None));
        assert_eq!(place.kinds(&a), ["", "", "reclaimed"]);
        assert!(amp.update(&b, Patch::delete()).unwrap().deleted);
    }

    fn a_live_owner_without_a_lease_is_never_abandoned(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let id = zed.create("long work");
        zed.claim(&id).unwrap();
        for _ in 0..100 {
            place.clock.advance(29_000);
            zed.engine.heartbeat().unwrap();
            amp.engine.heartbeat().unwrap();
        }
        assert_eq!(holder(amp.claim(&id)), "Zed");
        assert_eq!(amp.engine.tick().unwrap(), Ticked::default());
    }

    fn a_refused_change_takes_its_fix_up_back_and_a_no_op_keeps_it(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let id = zed.create("half done");
        zed.claim_for(&id, 1).unwrap();
        place.clock.advance(1_000);
        let wrong = Patch { if_revision: Some(77), ..Patch::release() };
        refusal(amp.update(&id, wrong));
        assert_eq!(place.kinds(&id), ["", ""]);
        assert_eq!(amp.update(&id, Patch::release()).unwrap().replaced, 0);
        assert_eq!(place.kinds(&id), ["", "", "reclaimed"]);
    }

    fn a_read_shows_what_is_there_when_the_fix_up_cannot_be_written(place) {
        let mut place = place;
        let watched = Watched::over(&mut place);
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let id = zed.create("stuck");
        zed.claim(&id).unwrap();
        place.silence_all_but(&[&amp]);
        watched.failing(Fault::Busy, || {
            assert_eq!(held_by(&amp.get(&id).task), ("in_progress", Some("Zed")));
            assert_eq!(amp.page(&ListAsk::default()).tasks[0].status.as_str(), "in_progress");
        });
        assert_eq!(held_by(&amp.get(&id).task), ("pending", None));
    }

    fn next_returns_what_is_abandoned_and_takes_it(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let id = zed.create("dropped");
        zed.claim(&id).unwrap();
        place.silence_all_but(&[&amp]);
        assert_eq!(amp.next(Next::default()).tasks[0].id, id);
        assert_eq!(place.kinds(&id), ["", "", "reclaimed", ""]);
    }

    fn a_task_reclaimed_too_often_is_parked_until_somebody_changes_it(place) {
        let zed = place.person("Zed");
        let poisoned = ListName::new("tasks/poisoned").unwrap();
        let rules = ListRules { max_reclaims: 2, ..ListRules::default() };
        zed.engine.create_list(&zed.name, &poisoned, rules).unwrap();
        let send = |command| {
            let mut request = zed.request(command, None);
            request.list = request.list.map(|_| poisoned.clone());
            zed.engine.execute(&request).unwrap()
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
        let got = zed.get(&taken[0].id);
        assert!(!got.ready && got.not_ready[0].contains("parked"), "{got:?}");
        zed.update(&taken[0].id, Patch { subject: Some(Subject::new("cured").unwrap()), ..Patch::default() }).unwrap();
        assert_eq!(take().tasks.len(), 1);
    }
}
