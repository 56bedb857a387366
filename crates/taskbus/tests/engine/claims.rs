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
        let sam = place.person("Sam");
        let id = sam.create("Port the limiter tests");
        let written = sam.claim(&id).unwrap();
        assert_eq!(held_by(&written.task), ("in_progress", Some("Sam")));
        assert_eq!((written.task.revision, written.task.fence), (2, 1));
        assert_eq!(Some(written.replaced), id.as_number());
    }

    fn racing_claims_have_one_winner_and_the_loser_learns_who(place) {
        let (sam, kim) = (place.person("Sam"), place.person("Kim"));
        for round in 0..20 {
            let id = sam.create(&format!("race {round}"));
            let (a, b) = race(|| sam.claim(&id), || kim.claim(&id));
            let (loser, winner) = if a.is_ok() { (b, "Sam") } else { (a, "Kim") };
            assert_eq!(holder(loser), winner);
            assert_eq!(held_by(&sam.get(&id).task), ("in_progress", Some(winner)));
        }
    }

    fn only_the_owner_changes_what_is_in_progress(place) {
        let (sam, kim) = (place.person("Sam"), place.person("Kim"));
        let id = sam.create("guarded");
        sam.claim(&id).unwrap();
        let renamed = Patch { subject: Some(Subject::new("mine now").unwrap()), ..Patch::default() };
        let finished = Patch { status: Some(Status::Completed), ..Patch::default() };
        for patch in [renamed.clone(), finished.clone(), Patch::delete(), Patch::release()] {
            assert_eq!(holder(kim.update(&id, patch)), "Sam");
        }
        sam.update(&id, renamed).unwrap();
        sam.update(&id, finished).unwrap();
    }

    fn a_claim_and_the_raw_update_that_means_the_same_are_refused_alike(place) {
        let (sam, kim) = (place.person("Sam"), place.person("Kim"));
        let id = sam.create("same words");
        sam.claim(&id).unwrap();
        let raw = Patch { owner: Some(Some(kim.name.clone())), status: Some(Status::InProgress), ..Patch::default() };
        assert_eq!(refusal(kim.claim(&id)).to_string(), refusal(kim.update(&id, raw)).to_string());
    }

    fn force_passes_the_guard_and_is_recorded_only_when_it_did(place) {
        let (sam, kim) = (place.person("Sam"), place.person("Kim"));
        let id = sam.create("forced");
        let fence = sam.claim(&id).unwrap().task.fence;
        let own = Patch { force: true, subject: Some(Subject::new("by its owner").unwrap()), ..Patch::default() };
        sam.update(&id, own).unwrap();
        kim.update(&id, Patch { force: true, ..Patch::release() }).unwrap();
        assert_eq!(place.kinds(&id), ["", "", "", "forced"]);
        let late = Patch { fence: Some(fence), ..Patch::complete(None) };
        assert!(matches!(refusal(sam.update(&id, late)), Refusal::Conflict(Conflict::LeaseLost { .. })));
    }

    fn a_release_clears_owner_and_lease(place) {
        let sam = place.person("Sam");
        let id = sam.create("released");
        assert_eq!(sam.claim_for(&id, 60).unwrap().task.leased_until, Some(place.now().plus_millis(60_000)));
        let task = sam.update(&id, Patch::release()).unwrap().task;
        assert_eq!((held_by(&task), task.leased_until), (("pending", None), None));
    }

    fn every_status_goes_where_it_may(place) {
        let (sam, kim) = (place.person("Sam"), place.person("Kim"));
        let to = |status| Patch { status: Some(status), ..Patch::default() };
        let id = sam.create("to and fro");
        assert!(matches!(
            refusal(sam.update(&id, to(Status::InProgress))),
            Refusal::Invalid(Invalid::OwnerMissing { .. })
        ));
        let assigned = Patch { owner: Some(Some(kim.name.clone())), ..Patch::default() };
        assert_eq!(held_by(&sam.update(&id, assigned).unwrap().task), ("pending", Some("Kim")));
        assert!(matches!(refusal(sam.claim(&id)), Refusal::Conflict(Conflict::Assigned { .. })));
        assert_eq!(held_by(&kim.update(&id, to(Status::InProgress)).unwrap().task), ("in_progress", Some("Kim")));
        assert_eq!(held_by(&kim.complete(&id).unwrap().task), ("completed", Some("Kim")));
        let again = refusal(kim.update(&id, to(Status::InProgress)));
        assert!(matches!(again, Refusal::Invalid(Invalid::ReopenFirst { .. })));
        assert_eq!(held_by(&sam.update(&id, to(Status::Pending)).unwrap().task), ("pending", None));
        assert_eq!(held_by(&sam.complete(&id).unwrap().task), ("completed", Some("Sam")));
    }

    fn an_owner_who_never_registered_is_not_found_and_nothing_is_written(place) {
        let sam = place.person("Sam");
        let id = sam.create("for a ghost");
        let ghost = Identity::new("Ghost").unwrap();
        let patch = Patch { owner: Some(Some(ghost)), ..Patch::default() };
        assert!(matches!(refusal(sam.update(&id, patch)), Refusal::NotFound(Missing::Owner { .. })));
        assert_eq!(place.kinds(&id).len(), 1);
    }

    fn a_lease_lies_in_the_future_and_ends_with_the_work(place) {
        let sam = place.person("Sam");
        let id = sam.create("leased");
        let lease = |ask| Patch::claim(sam.name.clone(), Some(ask));
        let past = sam.update(&id, lease(LeaseAsk::Until(place.now())));
        assert!(matches!(refusal(past), Refusal::Invalid(Invalid::LeaseInPast { .. })));
        let later = place.now().plus_millis(90_000);
        assert_eq!(sam.update(&id, lease(LeaseAsk::Until(later))).unwrap().task.leased_until, Some(later));
        assert_eq!(sam.update(&id, lease(LeaseAsk::Clear)).unwrap().task.leased_until, None);
        sam.claim_for(&id, 60).unwrap();
        assert_eq!(sam.complete(&id).unwrap().task.leased_until, None);
    }

    fn the_owner_hands_its_task_on_and_its_fence_ends(place) {
        let (sam, kim) = (place.person("Sam"), place.person("Kim"));
        let id = sam.create("handed on");
        let fence = sam.claim_for(&id, 60).unwrap().task.fence;
        let patch = Patch { owner: Some(Some(kim.name.clone())), ..Patch::default() };
        let task = sam.update(&id, patch).unwrap().task;
        assert_eq!((held_by(&task), task.leased_until), (("in_progress", Some("Kim")), None));
        assert!(task.fence > fence);
        assert_eq!(holder(sam.complete(&id)), "Kim");
        kim.complete(&id).unwrap();
    }

    fn what_changes_nothing_writes_nothing_and_says_so(place) {
        let sam = place.person("Sam");
        let id = sam.create("still");
        sam.complete(&id).unwrap();
        let before = place.latest_seq();
        let again = sam.complete(&id).unwrap();
        assert_eq!((again.replaced, again.task.revision), (0, 2));
        assert_eq!(again.warnings.len(), 1);
        assert_eq!(place.latest_seq(), before);
    }

    fn a_change_to_another_revision_is_refused(place) {
        let sam = place.person("Sam");
        let id = sam.create("versioned");
        let at = |revision, subject| Patch {
            if_revision: Some(revision),
            subject: Some(Subject::new(subject).unwrap()),
            ..Patch::default()
        };
        sam.update(&id, at(1, "second")).unwrap();
        let late = refusal(sam.update(&id, at(1, "third")));
        assert!(matches!(late, Refusal::Conflict(Conflict::Revision { sent: 1, current: 2, .. })));
    }

    fn the_speed_limit_is_per_identity_and_counts_only_what_is_written(place) {
        let slow = Limits { writes_per_second: 2, ..Limits::default() };
        let (sam, kim) = (place.person_with("Sam", slow.clone()), place.person_with("Kim", slow));
        let id = sam.create("one");
        sam.claim(&id).unwrap();
        let limited = refusal(sam.complete(&id));
        assert!(matches!(&limited, Refusal::RateLimited { wait_ms: 500, .. }), "{limited}");
        assert!(limited.retryable() && place.kinds(&id).len() == 2);
        sam.claim(&id).unwrap();
        kim.create("two");
        place.clock.advance(500);
        sam.complete(&id).unwrap();
    }
}
