//! A file of any name and any bytes in a task directory: the first line is its name.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use taskbus::core::id::TaskId;
use taskbus::core::text::Subject;
use taskbus::store::Abort;
use taskbus::store::claude::{ClaudeOptions, ClaudeStore};
use taskbus::store::rows::{RowStore as _, Rows};

use crate::harness::{Made, Target};
use crate::{files, scratch, task};

/// A task of ours that is there beside it.
const OURS: &str =
    r#"{"id":"3","subject":"ours","description":"","status":"pending","blocks":[],"blockedBy":[],"x":1}"#;

#[test]
fn a_file_in_a_task_directory_is_a_task_or_stays_as_it_is() {
    let words = &[
        "7.json\n",
        ".json",
        ".taskbus-journal\n",
        ".highwatermark\n",
        ".lock",
        "\"id\":\"7\"",
        "\"subject\":",
        "\"status\":",
        "\"in_progress\"",
        "\"blocks\":[",
        "\"blockedBy\":[\"3\"]",
        "\"metadata\":{",
        "\"_taskbus\":",
        "\"_internal\":true",
        "\"deleted\"",
        "null",
        "{",
        "}",
        "[",
        "]",
        ",",
        "\"",
        "\\udc00",
        "\n",
    ];
    Target { name: "task_files", corpus: include_str!("corpus/task_files.txt"), words, take }.hunt_both(300);
}

fn open(dir: &Path) -> ClaudeStore {
    ClaudeStore::open(dir, ClaudeOptions { busy: Duration::from_millis(20), ..ClaudeOptions::default() }).unwrap()
}

fn take(input: &[u8]) -> Made {
    let mut parts = input.splitn(2, |byte| *byte == b'\n');
    let (name, body) = (String::from_utf8_lossy(parts.next().unwrap()), parts.next().unwrap_or_default());
    let keep = scratch();
    let dir = keep.path();
    fs::write(dir.join("3.json"), OURS).unwrap();
    if name.is_empty() || name.contains(['/', '\0']) || name == "3.json" || fs::write(dir.join(&*name), body).is_err() {
        return Made::Refused;
    }
    let store = open(dir);
    let rows = store.snapshot().unwrap();
    assert!(rows.live.iter().any(|task| task.id == TaskId::Number(3)), "ours is still there: {rows:?}");
    let id = rows.live.iter().map(|task| &task.id).find(|id| **id != TaskId::Number(3)).cloned();
    assert!(id.as_ref().is_none_or(|id| format!("{id}.json") == name), "{id:?} is no task of {name}");
    let unread = rows.unreadable.len() + rows.deleted.len();
    let written = write(&store, id.as_ref());
    let after = files(dir);
    match (&id, written) {
        (Some(_), Ok(new)) => changed(body, &after[&*name], &new),
        (None, Ok(new)) => {
            assert!(new != name && after.contains_key(&new), "{new} is new beside {name}");
            // Only the mark is ours to write; the others' files are theirs.
            assert!(&*name == ".highwatermark" || after.get(&*name).is_none_or(|there| there == body), "{name}");
            assert!(after.contains_key(&*name) || name.contains(".tmp."), "{name} is gone");
        }
        (_, Err(error)) => {
            assert!(error.to_string().len() > 20, "{error}");
            assert_eq!(after[&*name], body, "a refusal changes nothing");
            assert_eq!(after["3.json"], OURS.as_bytes(), "a refusal changes nothing");
        }
    }
    Made::of(id.is_some() || unread > 0)
}

/// Makes a task, and changes the one that was found. Says what the new file is called.
fn write(store: &ClaudeStore, found: Option<&TaskId>) -> Result<String, Abort> {
    let mut made = String::new();
    store.transact(&mut |rows: &mut dyn Rows| {
        let id = rows.allocate()?;
        made = format!("{id}.json");
        rows.set(&task(id))?;
        let Some(found) = found else { return Ok(()) };
        let mut task = rows.get(found)?.expect("what was shown is there");
        task.subject = Subject::new("another subject").unwrap();
        task.revision += 1;
        Ok(rows.set(&task)?)
    })?;
    Ok(made)
}

/// Another subject, our own notes, and everything else as it was.
fn changed(before: &[u8], after: &[u8], new: &str) {
    let [before, after]: [Value; 2] = [before, after].map(|bytes| serde_json::from_slice(bytes).unwrap());
    assert_eq!(after["subject"], "another subject", "beside {new}");
    for (key, value) in before.as_object().unwrap() {
        let ours = ["subject", "metadata", "id", "status", "blocks", "blockedBy", "owner", "description", "activeForm"];
        assert!(ours.contains(&key.as_str()) || after[key] == *value, "{key}: {before}\n{after}");
    }
    for (key, value) in before["metadata"].as_object().into_iter().flatten() {
        assert!(
            key.starts_with("_taskbus") || key == "taskbus" || after["metadata"][key] == *value,
            "{key}: {before}\n{after}"
        );
    }
}
