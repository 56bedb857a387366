//! A disk that is full, and writers that die in the middle of writing: the file stays as it was, and what they leave
//! beside it does no harm.
//!
//! A process that may not write files beyond a size stands for the full disk. If it takes no notice of the kernel's
//! warning, the write fails; if it does, it dies on the spot, with half a file written.

use std::fs;
use std::io::Write as _;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, Output, Stdio};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use taskbus::answer::Answer;
use taskbus::engine::{Engine, Error, Limits, ListAsk, Registration, Request};
use taskbus::store::StoreError;
use taskbus::store::sidecar::{Options, Sidecar};
use taskbus::store::small::Small;
use taskbus_core::command::{Command, Draft};
use taskbus_core::limits::SIDECAR_BYTES_MAX;
use taskbus_core::name::Identity;
use taskbus_core::text::{Body, Subject};
use tempfile::TempDir;

const ORDERS: &str = "TASKBUS_TEST_FULL";
/// More than a limited process may write, in bytes.
const TOO_LARGE: usize = 60_000;
/// How often a process is killed while it writes, at most, until one is caught between writing and moving.
const KILLS_MAX: usize = 100;
const SIGKILL: i32 = 9;
const SIGXFSZ: i32 = 25;

/// A sidecar with one task in it.
struct Place {
    dir: TempDir,
}

struct Session {
    engine: Engine,
    zed: Identity,
}

impl Place {
    fn new() -> Self {
        let place = Self { dir: tempfile::tempdir().unwrap() };
        open(&place.path()).add("first", 0).unwrap();
        place
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("s1.tasks.json")
    }

    /// A sidecar of this size, most of it something of Kin's that we do not know.
    fn large(bytes: usize) -> Self {
        let place = Self::new();
        let mut file: serde_json::Value = serde_json::from_slice(&place.bytes()).unwrap();
        file["ballast"] = "x".repeat(bytes - place.bytes().len()).into();
        fs::write(place.path(), file.to_string()).unwrap();
        place
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(self.path()).unwrap()
    }

    fn subjects(&self) -> Vec<String> {
        open(&self.path()).subjects()
    }

    /// The names of sidecars that did not get to their place.
    fn left(&self) -> Vec<String> {
        let names = fs::read_dir(self.dir.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with("-tmp")).collect()
    }

    /// This program again, as the writer below.
    fn writer(&self) -> Process {
        let mut process = Process::new("sh");
        process.stdin(Stdio::null()).stdout(Stdio::piped()).env(ORDERS, self.path());
        process
    }

    /// The same, and it may not write more than a few KiB into one file.
    fn limited(&self, script: &str) -> Output {
        let script = format!("{script} ulimit -c 0; ulimit -f 16; exec \"$@\"");
        let exe = std::env::current_exe().unwrap();
        self.writer().args(["-c", &script, "sh"]).arg(exe).args(WRITER).output().unwrap()
    }
}

const WRITER: [&str; 3] = ["full::writer", "--exact", "--nocapture"];

fn open(path: &Path) -> Session {
    let store = Small::new(Sidecar::at(path, Options::default()).unwrap()).unwrap();
    let engine = Engine::new(Arc::new(store), Limits { write_kib_per_second: 1_000_000, ..Limits::default() });
    let zed = engine.register(&Registration { name: "zed".to_owned(), ..Registration::default() }).unwrap().name;
    Session { engine, zed }
}

impl Session {
    fn add(&self, subject: &str, bytes: usize) -> Result<(), Error> {
        let description = (bytes > 0).then(|| Body::new("x".repeat(bytes)).unwrap());
        let draft = Draft { description, ..Draft::new(Subject::new(subject).unwrap()) };
        let list = Some(self.engine.lists()?[0].name.clone());
        let command = Command::Create(Box::new(draft));
        let made = self.engine.execute(&Request { caller: self.zed.clone(), list, command, key: None })?;
        assert!(matches!(made, Answer::Created(_)));
        Ok(())
    }

    fn subjects(&self) -> Vec<String> {
        let list = self.engine.lists().unwrap()[0].name.clone();
        let page = self.engine.list(None, &list, &ListAsk { limit: Some(200), ..ListAsk::default() }).unwrap();
        page.tasks.iter().map(|task| task.subject.to_string()).collect()
    }
}

/// Adds a large task and then a small one, and says what came of it; without orders it has nothing to do.
#[test]
fn writer() {
    let Some(path) = std::env::var_os(ORDERS) else { return };
    let session = open(Path::new(&path));
    let said = session.add("large", TOO_LARGE).map_or_else(|error| error.to_string(), |()| "written".to_owned());
    let after = session.subjects();
    session.add("small", 0).unwrap();
    std::io::stdout().write_all(format!("\n~{said}; then there were {after:?}\n").as_bytes()).unwrap();
}

#[test]
fn on_a_full_disk_nothing_is_lost_and_it_is_said() {
    let place = Place::new();
    let output = place.limited("trap '' XFSZ;");
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{out}");
    let said = out.lines().find_map(|line| line.strip_prefix('~')).unwrap();
    for part in ["s1.tasks.json cannot grow", "nothing was written", "free some space", "there were [\"first\"]"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!((place.subjects(), place.left()), (vec!["first".to_owned(), "small".to_owned()], vec![]));
}

#[test]
fn a_writer_that_dies_with_half_a_file_written_leaves_the_old_one() {
    let place = Place::new();
    let before = place.bytes();
    let output = place.limited("");
    assert_eq!(output.status.signal(), Some(SIGXFSZ), "{:?}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(place.bytes(), before);
    let left = place.left();
    assert_eq!(left.len(), 1, "{left:?}");
    let half = fs::read(place.dir.path().join(&left[0])).unwrap();
    assert!(half.len() > before.len() && serde_json::from_slice::<serde_json::Value>(&half).is_err());
    assert_eq!(place.subjects(), ["first"], "a reader takes no notice");
    assert_eq!(place.left(), left, "and removes nothing");
    open(&place.path()).add("next", 0).unwrap();
    assert_eq!((place.subjects(), place.left()), (vec!["first".to_owned(), "next".to_owned()], vec![]));
}

/// Waits until the process begins a new sidecar, or ends.
fn begins_to_write(place: &Place, start: impl FnOnce() -> Child) -> Child {
    let ear = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).unwrap();
    inotify::add_watch(&ear, place.dir.path(), WatchFlags::CREATE).unwrap();
    let mut child = start();
    let mut buffer = [MaybeUninit::uninit(); 1024];
    let mut reader = inotify::Reader::new(&ear, &mut buffer);
    while child.try_wait().unwrap().is_none() {
        let patience = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        let ready = poll(&mut [PollFd::new(&ear, PollFlags::IN)], Some(&patience)).unwrap();
        while ready > 0
            && let Ok(event) = reader.next()
        {
            if event.file_name().is_some_and(|name| name.to_bytes().ends_with(b"-tmp")) {
                return child;
            }
        }
    }
    child
}

#[test]
fn a_writer_that_is_killed_before_its_file_is_in_place_leaves_the_old_one() {
    // Large, so that writing takes a while.
    let place = Place::large(4_000_000);
    let session = open(&place.path());
    for kill in 1..=KILLS_MAX {
        let before = place.bytes();
        let exe = std::env::current_exe().unwrap();
        let start = || place.writer().args(["-c", "exec \"$@\"", "sh"]).arg(exe).args(WRITER).spawn().unwrap();
        let mut child = begins_to_write(&place, start);
        child.kill().unwrap();
        let (status, caught) = (child.wait().unwrap(), !place.left().is_empty());
        if caught {
            assert_eq!(status.signal(), Some(SIGKILL));
            assert!(place.bytes() == before, "the old file is there, to the byte");
        }
        session.add(&format!("after kill {kill}"), 0).unwrap();
        assert_eq!(place.left(), [""; 0]);
        if caught {
            println!("process {kill} was killed between writing and moving");
            return;
        }
    }
    panic!("none of {KILLS_MAX} processes was killed between writing and moving");
}

#[test]
fn a_sidecar_never_becomes_larger_than_can_be_read() {
    let place = Place::large(SIDECAR_BYTES_MAX - 20_000);
    let (before, session) = (place.bytes(), open(&place.path()));
    let error = session.add("large", TOO_LARGE).unwrap_err();
    assert!(matches!(error, Error::Store(StoreError::Full { .. })), "{error}");
    assert!(error.to_string().contains("larger than 16777216 bytes"), "{error}");
    assert!(place.bytes() == before && place.left().is_empty());
    session.add("small", 0).unwrap();
    assert_eq!(place.subjects(), ["first", "small"]);
}
