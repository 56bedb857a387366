//! The log under many writers: it stays short, and whoever is killed while it is moved loses nothing.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::SystemTime;

use taskbus::core::change::Kind;
use taskbus::core::id::TaskId;
use taskbus::store::sqlite::{Durability, SqliteOptions, SqliteStore};
use taskbus::store::{Author, Store, read_with, write_with};

use crate::support::{Home, create, list, revised};

/// What a child process is told by its environment.
const CHILD: &str = "TASKBUS_TEST_CHILD";
/// A change is so long that some hundreds fill a log.
const FILLER: usize = 40_000;

fn given() -> Option<PathBuf> {
    std::env::var_os(CHILD).map(Into::into)
}

fn child(test: &str, home: &Home) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(CHILD, &home.path);
    command.stdout(Stdio::piped()).spawn().unwrap()
}

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, SqliteOptions { durability: Durability::Relaxed, ..SqliteOptions::default() }).unwrap()
}

/// One long change of a task; its revision afterwards.
fn rewrite(store: &dyn Store, id: &TaskId) -> u64 {
    write_with(store, Some(&list()), |tx| {
        let task = tx.task(id)?.unwrap();
        let change = revised(&task, Kind::Changed, |task| {
            let text = format!("{:05}", task.revision).repeat(FILLER / 5);
            task.metadata.insert("text".to_owned(), text.into());
        });
        tx.append(&change, &Author::default())?;
        Ok(change.task.revision)
    })
    .unwrap()
}

fn log_bytes(home: &Home) -> u64 {
    let mut path = home.path.clone().into_os_string();
    path.push("-wal");
    std::fs::metadata(path).map_or(0, |log| log.len())
}

#[test]
fn the_log_stays_short_while_processes_write_without_end() {
    const WRITES: usize = 600;
    const PROCESSES: usize = 4;
    // Past 32 MiB the thread waits for its turn, past 64 a caller does, during which others still write.
    const MOST: u64 = 68 << 20;
    if let Some(path) = given() {
        let store = open(&path);
        return (0..WRITES).for_each(|n| {
            rewrite(&store, &TaskId::number(1).unwrap());
            if n % 10 == 0 {
                println!("{n}");
            }
        });
    }
    let home = Home::new();
    let id = create(&home.with_list(), |_| {}).id;
    let test = "checkpoints::the_log_stays_short_while_processes_write_without_end";
    let children: Vec<Child> = (0..PROCESSES).map(|_| child(test, &home)).collect();
    let mut longest = 0;
    for mut child in children {
        for _ in BufReader::new(child.stdout.take().unwrap()).lines() {
            longest = longest.max(log_bytes(&home));
        }
        assert!(child.wait().unwrap().success());
    }
    assert!(longest <= MOST, "the log grew to {longest} bytes");
    let store = open(&home.path);
    let task = read_with(&store, Some(&list()), |snapshot| Ok(snapshot.task(&id)?)).unwrap().unwrap();
    assert_eq!(task.revision, 1 + (PROCESSES * WRITES) as u64);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    let written = task.revision * FILLER as u64;
    assert!(written > MOST, "{written} bytes fit a log that is never moved");
}

#[test]
fn who_is_killed_while_the_log_is_moved_loses_nothing() {
    const ACKED: &str = "acked ";
    if let Some(path) = given() {
        let store = open(&path);
        loop {
            println!("{ACKED}{}", rewrite(&store, &TaskId::number(1).unwrap()));
        }
    }
    let home = Home::new();
    let id = create(&home.with_list(), |_| {}).id;
    for _ in 0..4 {
        let moved = || std::fs::metadata(&home.path).and_then(|file| file.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        let before = moved();
        let mut child = child("checkpoints::who_is_killed_while_the_log_is_moved_loses_nothing", &home);
        let mut acked = 0;
        for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
            let Some(revision) = line.strip_prefix(ACKED) else { continue };
            acked = revision.parse().unwrap();
            if moved() != before {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        let store = open(&home.path);
        let task = read_with(&store, Some(&list()), |snapshot| Ok(snapshot.task(&id)?)).unwrap().unwrap();
        assert!((acked..=acked + 1).contains(&task.revision), "{acked} was told, {} is there", task.revision);
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
    }
}
