//! What the names in a task directory mean. Two programs write there, and others leave things lying about.

use taskbus_core::id::TaskId;

/// The empty file whose name the list's lock is made from. Never removed; its presence says nothing.
pub(super) const SENTINEL: &str = ".lock";
/// The highest id ever given, as a decimal number; written before a file is removed.
pub(super) const MARK: &str = ".highwatermark";
/// What a transaction of ours that changes several files is about to write.
pub(super) const JOURNAL: &str = ".taskbus-journal";

const SUFFIX: &str = ".json";
const LOCK_SUFFIX: &str = ".lock";

/// The task whose file has this name, if it is such a name: a positive number without leading zeros, or a plain
/// word that does not begin like a hidden or a bookkeeping file.
pub(super) fn task_of(name: &str) -> Option<TaskId> {
    let stem = name.strip_suffix(SUFFIX)?;
    if stem.starts_with(['.', '_']) {
        return None;
    }
    let id: TaskId = stem.parse().ok()?;
    (id.to_string() == stem).then_some(id)
}

/// The number that a file name reserves, whether it is well written or not: `007.json` and `0.json` too.
pub(super) fn number_of(name: &str) -> Option<u64> {
    let stem = name.strip_suffix(SUFFIX)?;
    if stem.is_empty() || !stem.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    stem.parse().ok()
}

/// The file of a task; none for an id that cannot be a file here.
pub(super) fn file_of(id: &TaskId) -> Option<String> {
    let name = format!("{id}{SUFFIX}");
    (task_of(&name).as_ref() == Some(id)).then_some(name)
}

/// The directory that exists while `name` is locked.
pub(super) fn lock_of(name: &str) -> String {
    format!("{name}{LOCK_SUFFIX}")
}

/// Whether a name comes and goes with every call of any program, without anything having changed.
pub(super) fn is_noise(name: &str) -> bool {
    name == SENTINEL || name.ends_with(LOCK_SUFFIX) || is_temp(name)
}

/// Whether it is the name of something that a transaction makes and does not keep: a task's lock, a file that has
/// not taken its place. The list's own lock is none of these.
pub(super) fn is_passing(name: &str) -> bool {
    is_temp(name) || name.strip_suffix(LOCK_SUFFIX).is_some_and(|name| task_of(name).is_some())
}

fn is_temp(name: &str) -> bool {
    let Some((stem, hex)) = name.rsplit_once(".tmp.") else { return false };
    !stem.is_empty() && hex.len() == 8 && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, id: Option<&str>) {
        let expected = id.map(|id| id.parse::<TaskId>().unwrap());
        assert_eq!(task_of(name), expected, "{name}");
        if let Some(id) = expected {
            assert_eq!(file_of(&id).as_deref(), Some(name));
        }
    }

    #[test]
    fn only_plain_names_are_tasks() {
        check("1.json", Some("1"));
        check("9223372036854775807.json", Some("9223372036854775807"));
        check("t-9.json", Some("t-9"));
        check("t_1720600000000_a1b2.json", Some("t_1720600000000_a1b2"));
        for name in [
            "0.json",
            "007.json",
            "+7.json",
            "#7.json",
            " 7.json",
            "7.0.json",
            "9223372036854775808.json",
            "_meta.json",
            ".1.json",
            ".json",
            "1.json.tmp",
            "1.json.tmp.0a1b2c3d",
            ".1.json.tmp",
            "1.json.4711.1720600000000.tmp",
            "1.json.lock",
            "1.json.corrupt-1720600000000",
            "a b.json",
            "1.JSON",
        ] {
            check(name, None);
        }
    }

    #[test]
    fn digits_reserve_their_number() {
        let numbers = ["7.json", "007.json", "0.json", "99999999999999999999.json", "7", "a.json", ".json"];
        assert_eq!(numbers.map(number_of), [Some(7), Some(7), Some(0), None, None, None, None]);
    }

    #[test]
    fn locks_and_temporary_files_are_noise() {
        for name in [".lock", ".lock.lock", "1.json.lock", "1.json.tmp.0a1b2c3d"] {
            assert!(is_noise(name), "{name}");
        }
        for name in ["1.json.lock", "1.json.tmp.0a1b2c3d", ".taskbus-journal.tmp.0a1b2c3d"] {
            assert!(is_passing(name), "{name}");
        }
        assert!(!is_passing(".lock.lock") && !is_passing("_meta.json.lock") && !is_passing("1.json"));
        for name in ["1.json", ".highwatermark", ".taskbus-journal", "1.json.tmp.0a1b2c3", ".tmp.0a1b2c3d"] {
            assert!(!is_noise(name), "{name}");
        }
    }

    #[test]
    fn what_would_be_hidden_cannot_be_written() {
        for id in ["_x", ".x"] {
            assert_eq!(file_of(&TaskId::Text(id.into())), None, "{id}");
        }
    }
}
