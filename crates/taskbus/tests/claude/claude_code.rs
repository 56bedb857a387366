//! Another program that writes to a task directory as Claude Code was seen to do: its locks, its order of steps, its
//! form of a file, and no knowledge of anything else. It drops top-level keys that it does not know and keeps metadata.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value, json};

const KNOWN: [&str; 9] =
    ["id", "subject", "description", "activeForm", "owner", "status", "blocks", "blockedBy", "metadata"];

/// A lock that is held.
struct Lock(PathBuf);

impl Lock {
    /// Tries so often, 5 to 100 ms apart; an abandoned lock is removed after ten seconds.
    fn take(target: &Path, tries: u32) -> Option<Self> {
        let path = PathBuf::from(format!("{}.lock", target.display()));
        for attempt in 0..tries {
            match fs::create_dir(&path) {
                Ok(()) => return Some(Self(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => panic!("{}: {error}", path.display()),
            }
            let modified = fs::metadata(&path).and_then(|meta| meta.modified());
            let age = modified.ok().and_then(|at| SystemTime::now().duration_since(at).ok());
            if age.is_some_and(|age| age > Duration::from_secs(10)) {
                let _ = fs::remove_dir(&path);
                continue;
            }
            std::thread::sleep(Duration::from_millis(u64::from(5 * (attempt + 1)).min(100)));
        }
        None
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

fn sentinel(dir: &Path) -> PathBuf {
    let path = dir.join(".lock");
    let _ = fs::File::create_new(&path);
    path
}

fn file(dir: &Path, id: u64) -> PathBuf {
    dir.join(format!("{id}.json"))
}

fn read(path: &Path) -> Option<Map<String, Value>> {
    let task: Map<String, Value> = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    (task.get("blocks")?.is_array() && task.get("blockedBy")?.is_array()).then_some(task)
}

fn pretty(task: &Map<String, Value>) -> String {
    let known = KNOWN.iter().filter_map(|key| Some(((*key).to_owned(), task.get(*key)?.clone())));
    serde_json::to_string_pretty(&known.collect::<Map<_, _>>()).unwrap()
}

fn mark(dir: &Path) -> u64 {
    fs::read_to_string(dir.join(".highwatermark")).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

fn numbers(dir: &Path) -> BTreeSet<u64> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter_map(|name| name.strip_suffix(".json")?.parse().ok()).collect()
}

/// TaskCreate.
pub(crate) fn create(dir: &Path, subject: &str) -> Option<u64> {
    let _lock = Lock::take(&sentinel(dir), 30)?;
    let id = numbers(dir).last().copied().unwrap_or(0).max(mark(dir)) + 1;
    let task = json!({"id": id.to_string(), "subject": subject, "description": "made by the other program",
        "status": "pending", "blocks": [], "blockedBy": []});
    fs::write(file(dir, id), pretty(task.as_object().unwrap())).unwrap();
    Some(id)
}

/// TaskUpdate; none when the task is not there or its lock cannot be had.
pub(crate) fn update(dir: &Path, id: u64, change: impl FnOnce(&mut Map<String, Value>)) -> Option<()> {
    let path = file(dir, id);
    let _lock = Lock::take(&path, 10)?;
    let mut task = read(&path)?;
    change(&mut task);
    let temp = dir.join(format!("{id}.json.tmp.{:08x}", std::process::id()));
    fs::write(&temp, pretty(&task)).unwrap();
    fs::rename(temp, path).unwrap();
    Some(())
}

/// TaskUpdate with addBlockedBy: both files, one after the other.
pub(crate) fn add_blocker(dir: &Path, id: u64, blocker: u64) -> Option<()> {
    let push = |task: &mut Map<String, Value>, key: &str, id: u64| {
        let list = task[key].as_array_mut().unwrap();
        if !list.contains(&json!(id.to_string())) {
            list.push(json!(id.to_string()));
        }
    };
    update(dir, blocker, |task| push(task, "blocks", id))?;
    update(dir, id, |task| push(task, "blockedBy", blocker))
}

/// TaskUpdate to deleted.
pub(crate) fn delete(dir: &Path, id: u64) -> Option<()> {
    let _lock = Lock::take(&sentinel(dir), 30)?;
    read(&file(dir, id))?;
    fs::write(dir.join(".highwatermark"), mark(dir).max(numbers(dir).last().copied().unwrap_or(0)).to_string())
        .unwrap();
    fs::remove_file(file(dir, id)).unwrap();
    for other in numbers(dir) {
        let names =
            |task: &Map<String, Value>, key: &str| task[key].as_array().unwrap().contains(&json!(id.to_string()));
        if read(&file(dir, other)).is_some_and(|task| names(&task, "blocks") || names(&task, "blockedBy")) {
            let _ = update(dir, other, |task| {
                for key in ["blocks", "blockedBy"] {
                    task[key].as_array_mut().unwrap().retain(|item| item != &json!(id.to_string()));
                }
            });
        }
    }
    Some(())
}
