//! Taking, holding, handing on and finishing tasks.

use taskbus::core::command::{LeaseAsk, Patch};
use taskbus::core::name::Identity;
use taskbus::core::refusal::{Conflict, Invalid, Missing, Refusal};
use taskbus::core::task::Status;
use taskbus::core::text::Subject;
use taskbus::engine::Limits;

use crate::support::{held_by, holder, on_every_store, race, refusal};

on_every_store! {
    fn a_claim_sets_owner_and_status(place) {
        let zed = place.person("Zed");
        let id = zed.create("Port the limiter tests");
        let written = zed.claim(&id).unwrap();
        assert_eq!(held_by(&written.task), ("in_progress", Some("Zed")));
        assert_eq!((written.task.revision, written.task.fence), (2, 1));
        assert_eq!(Some(written.replaced), id.as_number());
    }

    fn racing_claims_have_one_winner_and_the_loser_learns_who(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        for round in 0..20 {
            let id = zed.create(&format!("race {round}"));
            let (a, b) = race(|| zed.claim(&id), || amp.claim(&id));
            let (loser, winner) = if a.is_ok() { (b, "Zed") } else { (a, "Amp") };
            assert_eq!(holder(loser), winner);
            assert_eq!(held_by(&zed.get(&id).task), ("in_progress", Some(winner)));
        }
    }

    fn only_the_owner_changes_what_is_in_progress(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let id = zed.create("guarded");
        zed.claim(&id).unwrap();
        let renamed = Patch { subject: Some(Subject::new("mine now").unwrap()), ..Patch::default() };
        let finished = Patch { status: Some(Status::Completed), ..Patch::default() };
        for patch in [renamed.clone(), finished.clone(), Patch::delete(), Patch::release()] {
            assert_eq!(holder(amp.update(&id, patch)), "Zed");
        }
        zed.update(&id, renamed).unwrap();
        zed.update(&id, finished).unwrap();
    }

    fn a_claim_and_the_raw_update_that_means_the_same_are_refused_alike(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let id = zed.create("same words");
        zed.claim(&id).unwrap();
        let raw = Patch { owner: Some(Some(amp.name.clone())), status: Some(Status::InProgress), ..Patch::default() };
        assert_eq!(refusal(amp.claim(&id)).to_string(), refusal(amp.update(&id, raw)).to_string());
    }

    fn force_passes_the_guard_and_is_recorded_only_when_it_did(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let id = zed.create("forced");
        let fence = zed.claim(&id).unwrap().task.fence;
        let own = Patch { force: true, subject: Some(Subject::new("by its owner").unwrap()), ..Patch::default() };
        zed.update(&id, own).unwrap();
        amp.update(&id, Patch { force: true, ..Patch::release() }).unwrap();
        assert_eq!(place.kinds(&id), ["", "", "", "forced"]);
        let late = Patch { fence: Some(fence), ..Patch::complete(None) };
        assert!(matches!(refusal(zed.update(&id, late)), Refusal::Conflict(Conflict::LeaseLost { .. })));
    }

    fn a_release_clears_owner_and_lease(place) {
        let zed = place.person("Zed");
        let id = zed.create("released");
        assert_eq!(zed.claim_for(&id, 60).unwrap().task.leased_until, Some(place.now().plus_millis(60_000)));
        let task = zed.update(&id, Patch::release()).unwrap().task;
        assert_eq!((held_by(&task), task.leased_until), (("pending", None), None));
    }

    fn every_status_goes_where_it_may(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let to = |status| Patch { status: Some(status), ..Patch::default() };
        let id = zed.create("to and fro");
        assert!(matches!(
            refusal(zed.update(&id, to(Status::InProgress))),
            Refusal::Invalid(Invalid::OwnerMissing { .. })
        ));
        let assigned = Patch { owner: Some(Some(amp.name.clone())), ..Patch::default() };
        assert_eq!(held_by(&zed.update(&id, assigned).unwrap().task), ("pending", Some("Amp")));
        assert!(matches!(refusal(zed.claim(&id)), Refusal::Conflict(Conflict::Assigned { .. })));
        assert_eq!(held_by(&amp.update(&id, to(Status::InProgress)).unwrap().task), ("in_progress", Some("Amp")));
        assert_eq!(held_by(&amp.complete(&id).unwrap().task), ("completed", Some("Amp")));
        let again = refusal(amp.update(&id, to(Status::InProgress)));
        assert!(matches!(again, Refusal::Invalid(Invalid::ReopenFirst { .. })));
        assert_eq!(held_by(&zed.update(&id, to(Status::Pending)).unwrap().task), ("pending", None));
        assert_eq!(held_by(&zed.complete(&id).unwrap().task), ("completed", Some("Zed")));
    }

    fn an_owner_who_never_registered_is_not_found_and_nothing_is_written(place) {
        let zed = place.person("Zed");
        let id = zed.create("for a ghost");
        let ghost = Identity::new("Ghost").unwrap();
        let patch = Patch { owner: Some(Some(ghost)), ..Patch::default() };
        assert!(matches!(refusal(zed.update(&id, patch)), Refusal::NotFound(Missing::Owner { .. })));
        assert_eq!(place.kinds(&id).len(), 1);
    }

    fn a_lease_lies_in_the_future_and_ends_with_the_work(place) {
        let zed = place.person("Zed");
        let id = zed.create("leased");
        let lease = |ask| Patch::claim(zed.name.clone(), Some(ask));
        let past = zed.update(&id, lease(LeaseAsk::Until(place.now())));
        assert!(matches!(refusal(past), Refusal::Invalid(Invalid::LeaseInPast { .. })));
        let later = place.now().plus_millis(90_000);
        assert_eq!(zed.update(&id, lease(LeaseAsk::Until(later))).unwrap().task.leased_until, Some(later));
        assert_eq!(zed.update(&id, lease(LeaseAsk::Clear)).unwrap().task.leased_until, None);
        zed.claim_for(&id, 60).unwrap();
        assert_eq!(zed.complete(&id).unwrap().task.leased_until, None);
    }

    fn the_owner_hands_its_task_on_and_its_fence_ends(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let id = zed.create("handed on");
        let fence = zed.claim_for(&id, 60).unwrap().task.fence;
        let patch = Patch { owner: Some(Some(amp.name.clone())), ..Patch::default() };
        let task = zed.update(&id, patch).unwrap().task;
        assert_eq!((held_by(&task), task.leased_until), (("in_progress", Some("Amp")), None));
        assert!(task.fence > fence);
        assert_eq!(holder(zed.complete(&id)), "Amp");
        amp.complete(&id).unwrap();
    }

    fn what_changes_nothing_writes_nothing_and_says_so(place) {
        let zed = place.person("Zed");
        let id = zed.create("still");
        zed.complete(&id).unwrap();
        let before = place.latest_seq();
        let again = zed.complete(&id).unwrap();
        assert_eq!((again.replaced, again.task.revision), (0, 2));
        assert_eq!(again.warnings.len(), 1);
        assert_eq!(place.latest_seq(), before);
    }

    fn a_change_to_another_revision_is_refused(place) {
        let zed = place.person("Zed");
        let id = zed.create("versioned");
        let at = |revision, subject| Patch {
            if_revision: Some(revision),
            subject: Some(Subject::new(subject).unwrap()),
            ..Patch::default()
        };
        zed.update(&id, at(1, "second")).unwrap();
        let late = refusal(zed.update(&id, at(1, "third")));
        assert!(matches!(late, Refusal::Conflict(Conflict::Revision { sent: 1, current: 2, .. })));
    }

    fn the_speed_limit_is_per_identity_and_counts_only_what_is_written(place) {
        let slow = Limits { writes_per_second: 2, ..Limits::default() };
        let (zed, amp) = (place.person_with("Zed", slow.clone()), place.person_with("Amp", slow));
        let id = zed.create("one");
        zed.claim(&id).unwrap();
        let limited = refusal(zed.complete(&id));
        assert!(matches!(&limited, Refusal::RateLimited { wait_ms: 500, .. }), "{limited}");
        assert!(limited.retryable() && place.kinds(&id).len() == 2);
        zed.claim(&id).unwrap();
        amp.create("two");
        place.clock.advance(500);
        zed.complete(&id).unwrap();
    }
}
