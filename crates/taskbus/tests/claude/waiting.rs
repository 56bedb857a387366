//! Hearing of changes: of real ones, and of nothing else.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use taskbus::store::rows::RowStore as _;

use crate::support::Place;

const LONG: Duration = Duration::from_secs(20);

/// How long a wait takes that is woken by `change` after it began.
fn woken_by(place: &Place, change: impl FnOnce(&Place)) -> Duration {
    let seen = place.store.version().unwrap();
    let store = Arc::clone(&place.store);
    let (ready, begun) = std::sync::mpsc::channel();
    let waiter = std::thread::spawn(move || {
        ready.send(()).unwrap();
        store.wait(seen, LONG).unwrap();
        (Instant::now(), store.version().unwrap())
    });
    begun.recv().unwrap();
    let start = Instant::now();
    change(place);
    let (end, version) = waiter.join().unwrap();
    assert_ne!(version, seen);
    end - start
}

#[test]
fn a_change_by_anybody_wakes() {
    let place = Place::new();
    let changes: [fn(&Place); 5] = [
        |place| place.put_task(1, &json!({})),
        |place| place.put_task(1, &json!({"subject": "other"})),
        |place| assert_eq!(place.create("ours", &[1]), 2),
        |place| fs::remove_file(place.file("1.json")).unwrap(),
        |place| fs::rename(place.path(), place.path().with_extension("aside")).unwrap(),
    ];
    for change in changes {
        let took = woken_by(&place, change);
        assert!(took < Duration::from_secs(5), "{took:?}");
    }
}

#[test]
fn a_wait_that_is_late_returns_at_once() {
    let place = Place::new();
    let seen = place.store.version().unwrap();
    place.put_task(1, &json!({}));
    let start = Instant::now();
    place.store.wait(seen, LONG).unwrap();
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn locks_and_temporary_files_are_no_change() {
    let place = Place::new();
    place.create("a", &[]);
    let seen = place.store.version().unwrap();
    for name in [".lock.lock", "1.json.lock"] {
        fs::create_dir(place.file(name)).unwrap();
        fs::remove_dir(place.file(name)).unwrap();
    }
    place.put("1.json.tmp.0a1b2c3d", "half");
    let start = Instant::now();
    place.store.wait(seen, Duration::from_millis(300)).unwrap();
    assert!(start.elapsed() >= Duration::from_millis(300));
    assert_eq!(place.store.version().unwrap(), seen);
}
