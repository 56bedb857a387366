//! Many at once: threads, handles and processes on one file.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use taskbus::core::change::Kind;
use taskbus::core::id::TaskId;
use taskbus::store::sqlite::{SqliteOptions, SqliteStore};
use taskbus::store::{Abort, Author, Store, StoreError, read_with, write_with};

use crate::support::{Home, at, change, create, list, relaxed, revised};

const COUNTER: &str = "count";

/// Counts one up in the task's metadata.
fn increment(store: &dyn Store, id: &TaskId) {
    let count = |store: &dyn Store| {
        write_with(store, Some(&list()), |tx| {
            let task = tx.task(id)?.unwrap();
            let next = task.metadata.get(COUNTER).and_then(serde_json::Value::as_u64).unwrap_or(0) + 1;
            let change = revised(&task, Kind::Changed, |task| {
                task.metadata.insert(COUNTER.to_owned(), next.into());
            });
            Ok(tx.append(&change, &Author::default())?)
        })
    };
    count(store).unwrap();
}

#[track_caller]
fn check_count(store: &SqliteStore, id: &TaskId, expected: u64) {
    let task = read_with(store, Some(&list()), |snapshot| Ok(snapshot.task(id)?)).unwrap().unwrap();
    assert_eq!((task.metadata[COUNTER].as_u64(), task.revision), (Some(expected), expected + 1));
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn handles_in_many_threads_lose_no_change() {
    let home = Home::new();
    let id = create(&home.with_list(), |_| {}).id;
    std::thread::scope(|scope| {
        for _ in 0..32 {
            scope.spawn(|| {
                let store = home.open();
                (0..20).for_each(|_| increment(&store, &id));
            });
        }
    });
    check_count(&home.open(), &id, 32 * 20);
}

#[test]
fn threads_on_one_handle_lose_no_change() {
    let home = Home::new();
    let store = SqliteStore::open(&home.path, SqliteOptions::default()).unwrap();
    let id = create(&home.with_list(), |_| {}).id;
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| (0..20).for_each(|_| increment(&store, &id)));
        }
    });
    check_count(&store, &id, 16 * 20);
}

/// What a child process is told by its environment.
const CHILD: &str = "TASKBUS_TEST_CHILD";

/// Runs one test of this program in another process.
fn child(test: &str, home: &Home) -> Child {
    command(test, home).spawn().unwrap()
}

fn command(test: &str, home: &Home) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(CHILD, &home.path);
    command
}

/// The path that this process was given as a child; none in the parent.
fn given() -> Option<std::path::PathBuf> {
    std::env::var_os(CHILD).map(Into::into)
}

#[test]
fn processes_lose_no_change() {
    if let Some(path) = given() {
        let store = SqliteStore::open(path, SqliteOptions::default()).unwrap();
        return (0..50).for_each(|_| increment(&store, &TaskId::number(1).unwrap()));
    }
    let home = Home::new();
    let id = create(&home.with_list(), |_| {}).id;
    let children: Vec<Child> = (0..4).map(|_| child("contention::processes_lose_no_change", &home)).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    check_count(&home.open(), &id, 4 * 50);
}

/// A writer is killed at any moment, again and again: what it was told is done is done, and the file is whole.
#[test]
fn a_killed_writer_takes_nothing_back() {
    const ACKED: &str = "acked ";
    if let Some(path) = given() {
        let store = SqliteStore::open(path, SqliteOptions::default()).unwrap();
        for n in 1.. {
            increment(&store, &TaskId::number(1).unwrap());
            println!("{ACKED}{n}");
        }
    }
    let home = Home::new();
    let id = create(&home.with_list(), |_| {}).id;
    let mut revision = 1;
    for round in 0..12 {
        let mut command = command("contention::a_killed_writer_takes_nothing_back", &home);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut acked = 0;
        for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
            let Some(n) = line.strip_prefix(ACKED) else { continue };
            acked = n.parse().unwrap();
            if acked == 1 + round * 3 {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        let store = home.open();
        let task = read_with(&store, Some(&list()), |snapshot| Ok(snapshot.task(&id)?)).unwrap().unwrap();
        assert!((acked..=acked + 1).contains(&(task.revision - revision)), "{acked}: {revision} -> {}", task.revision);
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
        revision = task.revision;
    }
}

/// POSIX drops a process's locks on a file when it closes any handle to it. So while one handle of a process is in a
/// transaction, others may come and go, and the file stays locked for the rest of the world.
#[test]
fn handles_that_come_and_go_do_not_drop_the_lock_of_another() {
    if let Some(path) = given() {
        let options = SqliteOptions { deadline: Duration::from_millis(50), ..relaxed() };
        let store = SqliteStore::open(path, options).unwrap();
        let result = write_with(&store, None, |tx| Ok(tx.drop_receipts(at(0), 1)?));
        return assert!(matches!(result, Err(Abort::Failed(StoreError::Busy { .. }))), "{result:?}");
    }
    let home = Home::new();
    let store = home.with_list();
    store
        .write(None, &mut |tx| {
            tx.put_session(&crate::waiting::session("Amp"))?;
            for _ in 0..3 {
                drop(home.open());
                SqliteStore::lazy(&home.path, relaxed()).version().unwrap();
            }
            let mut child = child("contention::handles_that_come_and_go_do_not_drop_the_lock_of_another", &home);
            assert!(child.wait().unwrap().success());
            Ok(())
        })
        .unwrap();
}

#[test]
fn who_waits_too_long_is_told_and_readers_do_not_wait() {
    let home = Home::new();
    let store = Arc::new(home.with_list());
    create(&*store, |_| {});
    let (begun, has_begun) = mpsc::channel();
    let (done, is_done) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let held = store.clone();
        let holder = scope.spawn(move || {
            held.write(Some(&list()), &mut |tx| {
                tx.put_session(&crate::waiting::session("Amp"))?;
                begun.send(()).unwrap();
                let _ = is_done.recv();
                Ok(())
            })
        });
        has_begun.recv().unwrap();
        let options = SqliteOptions { deadline: Duration::from_millis(150), ..relaxed() };
        let hasty = SqliteStore::open(&home.path, options).unwrap();
        let since = Instant::now();
        let result = write_with(&hasty, None, |tx| Ok(tx.drop_receipts(at(0), 1)?));
        let took = since.elapsed();
        let Err(Abort::Failed(error @ StoreError::Busy { waited_ms, .. })) = result else { panic!("{result:?}") };
        assert!(error.retryable() && (150..5000).contains(&waited_ms) && took < Duration::from_secs(5), "{error}");

        // Neither a reader of its own nor one beside the writer sees the session before it is committed.
        for reader in [&*store, &hasty] {
            assert_eq!(read_with(reader, None, |snapshot| snapshot.sessions(at(0))).unwrap(), []);
        }
        done.send(()).unwrap();
        holder.join().unwrap().unwrap();
        assert_eq!(read_with(&hasty, None, |snapshot| snapshot.sessions(at(0))).unwrap().len(), 1);
    });
}

/// A thread that waits for another thread's turn at the same handle gives up in time, too.
#[test]
fn waiting_for_another_thread_ends_as_well() {
    let home = Home::new();
    drop(home.with_list());
    let options = SqliteOptions { deadline: Duration::from_millis(100), ..relaxed() };
    let store = SqliteStore::open(&home.path, options).unwrap();
    let result = store.write(None, &mut |_| {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| write_with(&store, None, |tx| Ok(tx.drop_receipts(at(0), 1)?)));
            let result = other.join().unwrap();
            assert!(matches!(result, Err(Abort::Failed(StoreError::Busy { .. }))), "{result:?}");
        });
        Ok(())
    });
    result.unwrap();
}

#[test]
fn a_panic_leaves_no_trace_and_the_store_in_order() {
    let home = Home::new();
    let store = home.with_list();
    let task = create(&store, |_| {});
    for _ in 0..3 {
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            store.write(Some(&list()), &mut |tx| {
                tx.append(&revised(&task, Kind::Deleted, |_| {}), &Author::default())?;
                panic!("in the middle");
            })
        }));
        assert!(panicked.is_err());
        let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            store.read(None, &mut |_| panic!("in the middle"))
        }));
        assert!(read.is_err());
    }
    let task = change(&store, &task, Kind::Changed, |_| {});
    assert_eq!(task.revision, 2);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

/// What a read sees does not change while it looks.
#[test]
fn a_read_is_one_snapshot() {
    let home = Home::new();
    let store = home.with_list();
    let other = home.open();
    let task = create(&store, |_| {});
    store
        .read(Some(&list()), &mut |snapshot| {
            let before = (snapshot.task(&task.id)?, snapshot.lists()?, snapshot.tally(at(0))?);
            change(&other, &task, Kind::Deleted, |_| {});
            create(&store, |_| {});
            assert_eq!((snapshot.task(&task.id)?, snapshot.lists()?, snapshot.tally(at(0))?), before);
            Ok(())
        })
        .unwrap();
    assert_eq!(read_with(&other, Some(&list()), |snapshot| Ok(snapshot.task(&task.id)?)).unwrap(), None);
}

/// Everybody gets a turn: nobody waits for as long as the whole run takes.
#[test]
fn writers_share_the_lock() {
    let home = Home::new();
    let id = create(&home.with_list(), |_| {}).id;
    let start = Barrier::new(8);
    let counts: Vec<u32> = std::thread::scope(|scope| {
        let write = || {
            let store = home.open();
            start.wait();
            let until = Instant::now() + Duration::from_millis(600);
            let mut count = 0;
            while Instant::now() < until {
                increment(&store, &id);
                count += 1;
            }
            count
        };
        let writers: Vec<_> = (0..8).map(|_| scope.spawn(write)).collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
    assert!(least * 20 >= *most, "{counts:?}");
}
