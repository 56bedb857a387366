//! Clocks that are set, and machines that are started again: a lease lasts as long as was said, and so does a session
//! (docs/rules.md 4, ADR 0032).

use taskbus::answer::Written;
use taskbus::core::command::{LeaseAsk, Patch};
use taskbus::core::id::TaskId;
use taskbus::core::time::Timestamp;
use taskbus::engine::Limits;
use taskbus::store::read_with;

use crate::support::{Person, Place, held_by, holder, list, on_every_store, sqlite};

const HOUR_MS: i64 = 3_600_000;
const YEAR_MS: i64 = 365 * 24 * HOUR_MS;
const JUMPS: [i64; 6] = [HOUR_MS, -HOUR_MS, YEAR_MS, -YEAR_MS, 10 * YEAR_MS, -YEAR_MS];

fn everybody_lives(people: [&Person; 2]) {
    for person in people {
        assert_eq!(person.engine.heartbeat().unwrap(), 1);
    }
}

/// The other one is refused for so many milliseconds from now, and not a millisecond longer.
#[track_caller]
fn is_held_for(place: &Place, other: &Person, id: &TaskId, millis: i64) {
    place.clock.advance(millis - 1);
    holder(other.claim(id));
    place.clock.advance(1);
    other.claim(id).unwrap();
}

fn claim_until(person: &Person, id: &TaskId, until: Timestamp) -> Written {
    person.update(id, Patch::claim(person.name.clone(), Some(LeaseAsk::Until(until)))).unwrap()
}

on_every_store! {
    fn a_wall_clock_that_is_set_neither_ends_nor_draws_out_a_lease(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        for jump in JUMPS {
            let id = zed.create("leased");
            everybody_lives([&zed, &amp]);
            zed.claim_for(&id, 20).unwrap();
            place.clock.set_by(jump);
            holder(amp.claim(&id));
            is_held_for(&place, &amp, &id, 20_000);
            assert_eq!(place.kinds(&id), ["", "", "reclaimed", ""]);
            amp.complete(&id).unwrap();
        }
    }

    fn a_wall_clock_that_is_set_neither_ends_nor_draws_out_a_session(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        for jump in JUMPS {
            let id = zed.create("held");
            everybody_lives([&zed, &amp]);
            zed.claim(&id).unwrap();
            place.clock.set_by(jump);
            assert_eq!(amp.engine.sessions().unwrap().len(), 2);
            place.clock.advance(29_000);
            assert_eq!(amp.engine.heartbeat().unwrap(), 1);
            holder(amp.claim(&id));
            place.clock.advance(999);
            holder(amp.claim(&id));
            place.clock.advance(1);
            amp.claim(&id).unwrap();
            amp.complete(&id).unwrap();
        }
    }

    fn a_lease_that_is_renewed_lasts_from_then_on_wherever_the_wall_clock_is(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let id = zed.create("renewed");
        zed.claim_for(&id, 20).unwrap();
        for jump in JUMPS {
            place.clock.set_by(jump);
            place.clock.advance(19_000);
            everybody_lives([&zed, &amp]);
            zed.claim_for(&id, 20).unwrap();
        }
        assert_eq!(place.kinds(&id), [""; 8]);
        is_held_for(&place, &amp, &id, 20_000);
    }

    fn time_that_a_machine_sleeps_counts(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let id = zed.create("slept over");
        zed.claim_for(&id, 3600).unwrap();
        // The wall clock of some machines stands meanwhile.
        place.clock.advance(2 * HOUR_MS);
        place.clock.set_by(-2 * HOUR_MS);
        assert_eq!(held_by(&amp.claim(&id).unwrap().task), ("in_progress", Some("Amp")));
    }

    fn after_a_restart_of_the_machine_everybodys_tasks_are_free(place) {
        let (zed, terminal) = (place.person("Zed"), place.command("Poe"));
        let (held, leased) = (zed.create("held"), zed.create("leased"));
        zed.claim(&held).unwrap();
        terminal.claim_for(&leased, 7200).unwrap();
        place.clock.restart(2);
        let amp = place.person("Amp");
        assert_eq!(amp.engine.sessions().unwrap().len(), 1);
        for id in [&held, &leased] {
            assert_eq!(held_by(&amp.claim(id).unwrap().task), ("in_progress", Some("Amp")));
            assert_eq!(place.kinds(id), ["", "", "reclaimed", ""]);
        }
    }

    fn a_wall_clock_that_was_set_is_followed_once_no_lease_runs(place) {
        let zed = place.person("Zed");
        let id = zed.create("leased");
        zed.claim_for(&id, 20).unwrap();
        let before = place.now();
        place.clock.set_by(HOUR_MS);
        zed.create("another");
        assert_eq!(place.store.now().unwrap(), before);
        zed.complete(&id).unwrap();
        zed.engine.heartbeat().unwrap();
        assert_eq!(place.store.now().unwrap(), before.plus_millis(HOUR_MS));
        assert_eq!(zed.engine.sessions().unwrap().len(), 1);
    }

    fn a_lease_until_a_time_ends_then_by_the_stores_clock(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let id = zed.create("leased");
        let until = place.now().plus_millis(20_000);
        assert_eq!(claim_until(&zed, &id, until).task.leased_until, Some(until));
        place.clock.set_by(HOUR_MS);
        assert_eq!(amp.get(&id).task.leased_until, Some(until));
        is_held_for(&place, &amp, &id, 20_000);
    }
}

/// Whatever their clocks on the wall say, all processes of one boot mean the same by a time.
#[test]
fn processes_of_one_boot_agree_though_their_wall_clocks_do_not() {
    let place = sqlite();
    let zed = place.person("Zed");
    let id = zed.create("leased");
    zed.claim_for(&id, 20).unwrap();
    for (jump, name) in JUMPS.into_iter().zip(["Amp", "Jan", "Roo", "Poe", "Amp", "Jan"]) {
        let other = place.another().unwrap();
        other.clock.set_by(jump);
        assert_eq!(other.store.now().unwrap(), place.store.now().unwrap());
        holder(other.person(name).claim(&id));
    }
    let other = place.another().unwrap();
    other.clock.set_by(YEAR_MS);
    other.clock.advance(19_999);
    let late = other.person("Zed");
    assert_eq!(late.name.as_str(), "Zed2", "the session lives on");
    is_held_for(&other, &late, &id, 1);
}

/// Nobody has to write for it.
#[test]
fn who_looks_first_after_a_restart_finds_nobody_alive() {
    let place = sqlite();
    let zed = place.command("Zed");
    place.person("Amp").engine.close().unwrap();
    let id = zed.create("leased");
    zed.claim_for(&id, 7200).unwrap();
    let other = place.another().unwrap();
    other.clock.restart(2);
    other.clock.set_by(-HOUR_MS);
    assert!(other.engine(Limits::default()).sessions().unwrap().is_empty());
    let read = read_with(&*other.store, Some(&list()), |snapshot| Ok(snapshot.suspects(other.now(), 9)?)).unwrap();
    assert_eq!(read, [id]);
}

/// As where no boot is known.
#[test]
fn without_a_clock_since_boot_the_wall_clock_counts() {
    let place = sqlite();
    let other = place.another().unwrap();
    place.clock.restart(0);
    let (zed, amp) = (place.person("Zed"), place.person("Amp"));
    let id = zed.create("leased");
    zed.claim_for(&id, 20).unwrap();
    place.clock.set_by(HOUR_MS);
    amp.claim(&id).unwrap();
    // Who knows the boot takes over what is there.
    other.clock.set_by(HOUR_MS);
    assert_eq!(other.person("Jan").engine.sessions().unwrap().len(), 2);
}
