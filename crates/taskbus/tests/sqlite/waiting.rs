//! Versions and waiting: whoever commits, in whatever handle, those who wait are told at once.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use taskbus::core::change::Kind;
use taskbus::store::sqlite::{Journal, SqliteOptions, SqliteStore};
use taskbus::store::{Abort, SessionRow, Store, StoreError, read_with, write_with};

use crate::support::{Home, at, change, create, list, who};

pub(crate) fn session(name: &str) -> SessionRow {
    SessionRow {
        name: who(name),
        token: "t".to_owned(),
        alive_until: at(1000),
        registered_at: at(1),
        context: String::new(),
        client: String::new(),
        pid: 1,
        harness: None,
    }
}

/// Long enough for any machine, short enough to show that nobody waited for the look every second.
const AT_ONCE: Duration = Duration::from_millis(700);

#[test]
fn the_version_differs_after_every_commit_and_only_then() {
    let home = Home::new();
    let (store, other) = (home.with_list(), home.open());
    let mut seen = vec![store.version().unwrap()];
    for writer in [&store, &other, &store, &other] {
        create(writer, |_| {});
        let version = store.version().unwrap();
        assert!(!seen.contains(&version), "{version} in {seen:?}");
        seen.push(version);
    }
    let last = store.version().unwrap();
    read_with(&store, None, |snapshot| snapshot.lists()).unwrap();
    store.write(None, &mut |_| Ok(())).unwrap();
    let refused = store.write(None, &mut |tx| {
        tx.put_session(&session("Amp"))?;
        Err(Abort::Failed(StoreError::Moved { store: String::new() }))
    });
    assert!(refused.is_err());
    assert_eq!(store.version().unwrap(), last);
}

fn check_wakes(store: &SqliteStore, writer: &SqliteStore) {
    let task = create(writer, |_| {});
    for round in 0..5 {
        let seen = store.version().unwrap();
        let (ready, is_ready) = mpsc::channel();
        let (woken, took) = std::thread::scope(|scope| {
            let waiters: Vec<_> = (0..4)
                .map(|_| {
                    let ready = ready.clone();
                    scope.spawn(move || {
                        ready.send(()).unwrap();
                        store.wait(seen, Duration::from_secs(20)).unwrap();
                        (store.version().unwrap(), Instant::now())
                    })
                })
                .collect();
            (0..4).for_each(|_| is_ready.recv().unwrap());
            let since = Instant::now();
            change(writer, &task, Kind::Changed, |task| task.revision += round);
            let ends: Vec<_> = waiters.into_iter().map(|waiter| waiter.join().unwrap()).collect();
            let last = ends.iter().map(|(_, end)| end.duration_since(since)).max().unwrap();
            (ends.iter().all(|(version, _)| *version != seen), last)
        });
        assert!(woken && took < AT_ONCE, "{woken} after {took:?}");
    }
}

#[test]
fn those_who_wait_are_woken_by_another_handle() {
    let home = Home::new();
    check_wakes(&home.with_list(), &home.open());
}

#[test]
fn those_who_wait_are_woken_by_their_own_handle() {
    let home = Home::new();
    let store = home.with_list();
    check_wakes(&store, &store);
}

#[test]
fn those_who_wait_are_woken_without_a_log_too() {
    let home = Home::new();
    let options = SqliteOptions { journal: Journal::Rollback, ..SqliteOptions::default() };
    let store = SqliteStore::open(&home.path, options).unwrap();
    write_with(&store, None, |tx| Ok(tx.create_list(&list(), Default::default(), at(0))?)).unwrap();
    check_wakes(&store, &SqliteStore::open(&home.path, options).unwrap());
}

#[test]
fn a_wait_ends_when_its_time_is_over_and_begins_with_a_look() {
    let home = Home::new();
    let store = home.with_list();
    let seen = store.version().unwrap();
    let since = Instant::now();
    store.wait(seen, Duration::from_millis(60)).unwrap();
    assert!((Duration::from_millis(60)..AT_ONCE).contains(&since.elapsed()), "{:?}", since.elapsed());
    create(&store, |_| {});
    let since = Instant::now();
    store.wait(seen, Duration::from_secs(20)).unwrap();
    store.wait(store.version().unwrap(), Duration::ZERO).unwrap();
    assert!(since.elapsed() < AT_ONCE, "{:?}", since.elapsed());
}

/// The one who listens for all leaves first; another takes over.
#[test]
fn a_listener_that_leaves_is_replaced() {
    let home = Home::new();
    let (store, writer) = (home.with_list(), home.open());
    let seen = store.version().unwrap();
    std::thread::scope(|scope| {
        let (left, has_left) = mpsc::channel();
        let first = scope.spawn(|| store.wait(seen, Duration::from_millis(50)));
        let second = scope.spawn(|| {
            store.wait(seen, Duration::from_secs(20)).unwrap();
            Instant::now()
        });
        first.join().unwrap().unwrap();
        left.send(()).unwrap();
        has_left.recv().unwrap();
        let since = Instant::now();
        create(&writer, |_| {});
        let took = second.join().unwrap().duration_since(since);
        assert!(took < AT_ONCE, "{took:?}");
    });
}
