//! A sidecar out of any bytes, and a session id out of any text.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use taskbus::store::Abort;
use taskbus::store::rows::{RowSet, RowStore as _, Rows};
use taskbus::store::sidecar::{Options, Sidecar};

use crate::harness::{Made, Target};
use crate::{files, scratch, task};

const NAME: &str = "s1.tasks.json";

#[test]
fn a_sidecar_is_read_or_told_and_what_it_says_is_kept() {
    let words = &[
        "\"tasks\": [",
        "\"id\": ",
        "\"t_1720600000000_a1b2\"",
        "\"status\": \"deleted\"",
        "\"in_progress\"",
        "\"blockedBy\"",
        "\"taskbus\": {",
        "\"rank\"",
        "\"revision\"",
        "\"fence\"",
        "null",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\ud800",
        "\"version\": 2",
        "\"created_at\": 1720600000.5",
        "\"2024-07-10T08:26:40Z\"",
    ];
    Target { name: "sidecars", corpus: include_str!("corpus/sidecars.txt"), words, take }.hunt_both(5_000);
}

#[test]
fn a_session_is_a_file_in_its_directory_or_none() {
    let words = &["..", "/", "\\", ".", ".tasks.json", "-", "%2f"];
    Target { name: "sessions", corpus: include_str!("corpus/sessions.txt"), words, take: session }.hunt_both(10_000);
}

fn options() -> Options {
    Options { patience: Duration::from_millis(50), ..Options::default() }
}

fn take(input: &[u8]) -> Made {
    let dir = scratch();
    let path = dir.path().join(NAME);
    fs::write(&path, input).unwrap();
    let read = Sidecar::at(&path, options()).unwrap().snapshot();
    let written = add(&path);
    let after = fs::read(&path).unwrap();
    match read {
        Err(error) => {
            assert!(error.to_string().contains(NAME), "{error}");
            assert!(matches!(written, Err(Abort::Failed(_))), "{written:?}");
            assert_eq!(after, input, "what cannot be read stays as it is");
            Made::Refused
        }
        Ok(rows) => {
            written.unwrap();
            kept(input, &after, &rows, &Sidecar::at(&path, options()).unwrap().snapshot().unwrap());
            Made::Taken
        }
    }
}

fn add(path: &Path) -> Result<(), Abort> {
    let body = &mut |rows: &mut dyn Rows| {
        let id = rows.allocate()?;
        Ok(rows.set(&task(id))?)
    };
    Sidecar::at(path, options()).unwrap().transact(body)
}

/// One row more, and everything else as it was, what nobody here knows too.
fn kept(before: &[u8], after: &[u8], old: &RowSet, new: &RowSet) {
    let [mut before, mut after]: [Value; 2] = [before, after].map(|bytes| serde_json::from_slice(bytes).unwrap());
    let [was, is] = [&mut before, &mut after].map(|whole| whole["tasks"].take());
    assert_eq!(before, after, "the keys around the tasks");
    let (was, is) = (was.as_array().unwrap(), is.as_array().unwrap());
    assert_eq!((is.len(), &is[..was.len()]), (was.len() + 1, &was[..]), "the rows");
    assert_eq!((new.live.len(), &new.deleted), (old.live.len() + 1, &old.deleted));
    assert!(old.live.iter().all(|task| new.live.contains(task)), "{old:?}\n{new:?}");
}

fn session(input: &[u8]) -> Made {
    let text = String::from_utf8_lossy(input);
    let dir = std::env::temp_dir();
    let sidecar = Sidecar::of_session(&dir, &text, options());
    if let Ok(sidecar) = &sidecar {
        let (path, dir) = (sidecar.path(), dir.canonicalize().unwrap());
        assert_eq!(path.parent(), Some(&*dir), "{text:?}");
        assert_eq!(path.file_name().unwrap().to_str(), Some(&*format!("{text}.tasks.json")));
        assert!(!text.starts_with('.') && text.is_ascii(), "{text:?}");
    }
    Made::of(sidecar.is_ok())
}

/// What the harness calls a directory of files sees a sidecar and what lies beside it.
#[test]
fn nothing_but_a_lock_is_left_beside_a_sidecar() {
    let dir = scratch();
    add(&dir.path().join(NAME)).unwrap();
    let names: Vec<String> = files(dir.path()).into_keys().collect();
    assert_eq!(names, [NAME.to_owned(), format!("{NAME}.taskbus-lock")]);
}
