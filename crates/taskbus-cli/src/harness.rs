//! The program that an agent runs in: the nearest ancestor of this process that is no shell. The server that it starts
//! and the hooks that it runs find each other by it.

use taskbus::store::Harness;

/// Programs that only run others.
const SHELLS: [&str; 9] = ["sh", "bash", "zsh", "dash", "ksh", "fish", "cmd", "powershell", "pwsh"];
/// How far up the search goes; nobody nests shells deeper.
const ANCESTORS_MAX: usize = 64;

/// A process as the system shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    parent: u32,
    name: String,
    start: u64,
}

/// The program around this process; none when it has ended, so that the system's first process has taken its place.
pub(crate) fn around_here() -> Option<Harness> {
    let parent = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get().unsigned_abs());
    around(parent, &system::process)
}

fn around(parent: u32, process: &dyn Fn(u32) -> Option<Process>) -> Option<Harness> {
    let mut pid = parent;
    for _ in 0..ANCESTORS_MAX {
        if pid <= 1 {
            return None;
        }
        match process(pid) {
            Some(found) if is_shell(&found.name) => pid = found.parent,
            Some(found) => return Some(Harness { pid, start: found.start }),
            // It cannot be looked at, but it is there: its number alone must do.
            None => return Some(Harness { pid, start: 0 }),
        }
    }
    None
}

fn is_shell(name: &str) -> bool {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name).to_ascii_lowercase();
    let name = name.trim_start_matches('-');
    SHELLS.contains(&name.strip_suffix(".exe").unwrap_or(name))
}

#[cfg(target_os = "linux")]
mod system {
    //! Processes as Linux shows them.

    use super::Process;

    /// A running process.
    pub(super) fn process(pid: u32) -> Option<Process> {
        parsed(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// `12 (name of it) S 11 …`: the name may have anything in it, so the fields are counted from its end. One that
    /// has ended and waits for its parent is no longer there.
    fn parsed(stat: &str) -> Option<Process> {
        let (front, fields) = stat.rsplit_once(')')?;
        let (_, name) = front.split_once('(')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let (state, parent, start) = (fields.first()?, fields.get(1)?, fields.get(19)?);
        let gone = matches!(*state, "Z" | "X");
        (!gone).then_some(Process { parent: parent.parse().ok()?, name: name.to_owned(), start: start.parse().ok()? })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_name_may_have_anything_in_it() {
            let stat = |state: &str| {
                format!("12 (a) b (c) {state} 11 12 12 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 777 8 9 10\n")
            };
            let expected = Process { parent: 11, name: "a) b (c".to_owned(), start: 777 };
            assert_eq!(parsed(&stat("S")), Some(expected));
            assert_eq!(parsed(&stat("Z")), None);
            assert_eq!(parsed("nonsense"), None);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    //! Other systems: a process is known by its number alone.

    use rustix::process::{Pid, test_kill_process};

    use super::Process;

    /// A running process, as far as is known.
    pub(super) fn process(pid: u32) -> Option<Process> {
        let known = i32::try_from(pid).ok().and_then(Pid::from_raw)?;
        test_kill_process(known).ok().map(|()| Process { parent: 0, name: String::new(), start: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn among(processes: &[(u32, u32, &str)], parent: u32) -> Option<Harness> {
        let known: BTreeMap<u32, Process> = processes
            .iter()
            .map(|(pid, parent, name)| {
                (*pid, Process { parent: *parent, name: (*name).to_owned(), start: u64::from(*pid) * 10 })
            })
            .collect();
        around(parent, &|pid| known.get(&pid).cloned())
    }

    #[test]
    fn shells_are_passed_over() {
        let family = [(40, 30, "sh"), (30, 20, "-Bash"), (20, 10, "claude"), (10, 1, "zsh")];
        assert_eq!(among(&family, 40), Some(Harness { pid: 20, start: 200 }));
        assert_eq!(among(&family, 10), None, "only the first process is above");
        assert_eq!(among(&[(7, 1, "pwsh.exe")], 7), None);
        assert_eq!(among(&[(7, 1, "bashful")], 7), Some(Harness { pid: 7, start: 70 }));
        assert_eq!(among(&[], 9), Some(Harness { pid: 9, start: 0 }));
        assert_eq!(among(&[(5, 5, "sh")], 5), None, "its own parent");
    }
}
