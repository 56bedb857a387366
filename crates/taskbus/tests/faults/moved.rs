//! The store is moved away while a process writes to it: what was acknowledged is in the file that was moved, and nothing
//! is acknowledged that is not. A process that is told that the file is still the same must be seen to lose.

use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use crate::shim::{self, Wish};
use crate::workload::{Acks, Orders, STORE, USUAL, wrongs};

/// Nobody needs so long to write a few times.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(2);

fn comes_to(mut done: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < until, "it does not come to that");
        std::thread::sleep(LOOK);
    }
}

fn count(dir: &Path) -> usize {
    Acks::of(dir).all.len()
}

/// The store is copied away and removed after some writes, as a backup tool may do; what is wrong with the copy when the
/// process has given up, or has written for a while longer.
fn removed_under(wish: &Wish, dir: &Path) -> Vec<String> {
    let mut child: Child = shim::command(dir, &Orders { calls: 100_000, ..USUAL }, wish).spawn().unwrap();
    comes_to(|| count(dir) >= 5);
    let (store, away) = (dir.join(STORE), dir.join("away.db"));
    std::fs::rename(&store, &away).unwrap();
    let before = count(dir);
    comes_to(|| Acks::of(dir).failed > 0 || count(dir) > before + 20);
    child.kill().unwrap();
    child.wait().unwrap();
    // What is at the path afterwards is what the next process finds, with the log that is there.
    let written_on = count(dir) > before + 20;
    std::fs::rename(&away, &store).unwrap();
    let mut wrongs = wrongs(dir, &Acks::of(dir));
    wrongs.extend(written_on.then(|| format!("{} writes were acknowledged after it was gone", count(dir) - before)));
    wrongs
}

fn home() -> (tempfile::TempDir, std::path::PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().canonicalize().unwrap();
    (home, dir)
}

#[test]
fn nothing_is_acknowledged_once_the_path_names_no_store() {
    let (_home, dir) = home();
    assert_eq!(removed_under(&Wish::default(), &dir), [""; 0]);
}

#[test]
fn a_process_that_does_not_look_is_seen_to_write_on() {
    let (_home, dir) = home();
    let stat = Some(dir.join(STORE));
    let wrongs = removed_under(&Wish { stat, ..Wish::default() }, &dir);
    assert!(wrongs.iter().any(|wrong| wrong.contains("after it was gone")), "{wrongs:?}");
}
