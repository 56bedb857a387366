//! Threat T17: files from a stranger. Whatever is in them, opening and reading them ends, in good order and soon, and
//! what they ask for is not done.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::common::Place;

/// How many spoiled files of each kind are read.
const SPOILED: u64 = 60;
const PATIENCE: Duration = Duration::from_secs(20);

/// Numbers that differ from seed to seed and are the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % end as u64).unwrap()
    }
}

/// Spoils a file: some bits, some bytes, a piece twice, a piece left out, or its end.
fn spoil(bytes: &mut Vec<u8>, dice: &mut Dice) {
    let at = dice.below(bytes.len());
    match dice.below(5) {
        0 => (0..=dice.below(16)).for_each(|_| {
            let at = dice.below(bytes.len());
            bytes[at] ^= 1 << dice.below(8);
        }),
        1 => (0..=dice.below(64)).for_each(|_| {
            let at = dice.below(bytes.len());
            bytes[at] = u8::try_from(dice.below(256)).unwrap();
        }),
        2 => {
            let piece = bytes[at..bytes.len().min(at + 512)].to_vec();
            let to = dice.below(bytes.len());
            bytes.splice(to..bytes.len().min(to + piece.len()), piece);
        }
        3 => {
            bytes.drain(at..bytes.len().min(at + 100));
        }
        _ => bytes.truncate(at.max(1)),
    }
}

/// What is asked of each: it may be refused, and must not fail in any other way.
fn asked(place: &Place, store: &str, seed: u64) {
    let id = "1";
    for args in [&["list"][..], &["show", id, "--history"], &["doctor"], &["add", "x"]] {
        let mut command = place.bare(args);
        let begun = Instant::now();
        let ran = crate::common::run(command.args(["--as", "zed", "--store", store]));
        assert!([0, 1, 2, 3].contains(&ran.code), "seed {seed}, {args:?}: {ran:?}");
        assert!(begun.elapsed() < PATIENCE, "seed {seed}, {args:?}: {:?}", begun.elapsed());
    }
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.retain(|path| path.is_file() && path.metadata().unwrap().len() > 0);
    all.sort();
    all
}

/// Makes a store, and spoils one of its files again and again.
fn spoiled(scheme: &str, name: &str, more: &[&str]) {
    let place = Place::new();
    let dir = place.path("work/stranger");
    let target = dir.join(name);
    let store = format!("{scheme}:{}", target.display());
    std::fs::create_dir(&dir).unwrap();
    for subject in ["one", "two", "three"] {
        let mut args = vec!["add", subject, "--description", "some words", "--as", "zed", "--store", &store];
        args.extend(more);
        let ran = crate::common::run(&mut place.bare(&args));
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    let inside = if target.is_dir() { target } else { dir };
    let whole: Vec<(PathBuf, Vec<u8>)> =
        files(&inside).into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
    for seed in 0..SPOILED {
        let mut dice = Dice(seed);
        std::fs::remove_dir_all(&inside).unwrap();
        std::fs::create_dir_all(&inside).unwrap();
        let one = dice.below(whole.len());
        for (at, (path, bytes)) in whole.iter().enumerate() {
            let mut bytes = bytes.clone();
            if at == one {
                spoil(&mut bytes, &mut dice);
            }
            std::fs::write(path, bytes).unwrap();
        }
        asked(&place, &store, seed);
    }
}

#[test]
fn a_spoiled_database_is_read_or_refused() {
    spoiled("sqlite", "tasks.db", &["--create", "--list", "stranger"]);
}

#[test]
fn a_spoiled_sidecar_is_read_or_refused() {
    spoiled("file", "session.tasks.json", &[]);
}

#[test]
fn a_spoiled_task_directory_is_read_or_refused() {
    spoiled("claude", "tasks", &[]);
}

#[test]
fn a_database_that_brings_programs_is_refused_and_left_as_it_is() {
    for program in [
        "CREATE TRIGGER theirs AFTER INSERT ON messages BEGIN DELETE FROM tasks; END",
        "CREATE VIEW theirs AS SELECT * FROM tasks",
    ] {
        let place = Place::new();
        place.ok(&["add", "one", "--create"]);
        let file = place.path("tasks.db");
        Connection::open(&file).unwrap().execute_batch(program).unwrap();
        let before = std::fs::read(&file).unwrap();
        for args in [&["list"][..], &["add", "two"], &["doctor"]] {
            let (code, value) = place.json(args);
            assert_eq!(code, 3, "{value}");
            assert!(value.to_string().contains("theirs"), "{value}");
        }
        assert_eq!(std::fs::read(&file).unwrap(), before);
    }
}
