//! A disk that is full, and a writer that dies in the middle of writing: every file stays as it was, and what is left
//! beside them does no harm.
//!
//! A process that may not write files beyond a size stands for the full disk. If it takes no notice of the kernel's
//! warning, the write fails; if it does, it dies on the spot, with half a file written.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::json;
use taskbus::core::id::TaskId;
use taskbus::core::text::Body;
use taskbus::store::Abort;
use taskbus::store::rows::Rows;

use crate::support::{Place, create, failed, open, write};

const ORDERS: &str = "TASKBUS_TEST_FULL";
/// More than a limited process may write, in bytes.
const TOO_LARGE: usize = 60_000;
const SIGXFSZ: i32 = 25;
/// What a directory with three tasks holds.
const NAMES: [&str; 4] = [".lock", "1.json", "2.json", "3.json"];

/// A task that waits for the first one, and a long description of another one: three files, one of them too large.
fn large(rows: &mut dyn Rows) -> Result<(), Abort> {
    create(rows, "waits", &[1])?;
    let mut task = rows.get(&TaskId::Number(2))?.unwrap();
    task.description = Some(Body::new("x".repeat(TOO_LARGE)).unwrap());
    Ok(rows.set(&task)?)
}

/// Writes too much and then a little, and says what came of it; without orders it has nothing to do.
#[test]
fn a_writer() {
    let Some(path) = std::env::var_os(ORDERS) else { return };
    let store = open(Path::new(&path));
    println!("\n~{}", failed(write(&store, large)));
    write(&store, |rows| create(rows, "small", &[1])).unwrap();
}

impl Place {
    fn with_two_tasks() -> Self {
        let place = Self::new();
        place.create("first", &[]);
        place.create("second", &[]);
        place
    }

    fn contents(&self) -> BTreeMap<String, Vec<u8>> {
        self.names().into_iter().filter_map(|name| Some((name.clone(), fs::read(self.file(&name)).ok()?))).collect()
    }

    /// The writer, which may not write more than a few KiB into one file.
    fn limited(&self, script: &str) -> Output {
        let script = format!("{script} ulimit -c 0; ulimit -f 16; exec \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh"]).arg(std::env::current_exe().unwrap());
        command.args(["full::a_writer", "--exact", "--nocapture"]).env(ORDERS, self.path());
        command.stdin(Stdio::null()).output().unwrap()
    }
}

#[test]
fn on_a_full_disk_nothing_is_lost_and_it_is_said() {
    let place = Place::with_two_tasks();
    let before = place.contents();
    let output = place.limited("trap '' XFSZ;");
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{out}");
    let said = out.lines().find_map(|line| line.strip_prefix('~')).unwrap();
    for part in ["list cannot grow", "nothing was written", "free some space"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(place.names(), NAMES);
    assert_eq!(
        (place.text("2.json").into_bytes(), &place.json(1)["blocks"]),
        (before["2.json"].clone(), &json!(["3"]))
    );
    assert_eq!((place.json(3)["subject"].as_str(), place.problems()), (Some("small"), vec![]));
}

#[test]
fn a_writer_that_dies_with_half_a_file_written_leaves_the_old_ones() {
    let place = Place::with_two_tasks();
    let before = place.contents();
    let output = place.limited("");
    assert_eq!(output.status.signal(), Some(SIGXFSZ), "{}", String::from_utf8_lossy(&output.stdout));
    let left = |place: &Place| -> Vec<String> {
        place.names().into_iter().filter(|name| !before.contains_key(name) && name != ".lock.lock").collect()
    };
    let halves = left(&place);
    assert!(halves.iter().any(|name| name.starts_with("2.json.tmp.")), "{halves:?}");
    assert!(before.iter().all(|(name, bytes)| place.contents()[name] == *bytes), "every file is as it was");
    assert_eq!((place.live(), place.problems()), (vec![1, 2], vec![]), "a reader takes no notice");
    assert_eq!(left(&place), halves, "and removes nothing");
    assert_eq!(place.create("third", &[1]), 3);
    assert_eq!((place.names(), place.live()), (NAMES.map(str::to_owned).to_vec(), vec![1, 2, 3]));
}
