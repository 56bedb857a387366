//! The program that an agent runs in: the nearest ancestor of this process that is no shell. The server that it starts
//! and the hooks that it runs find each other by it. Whether it is alive is asked of the system, never of the store.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use taskbus::store::Harness;

/// Programs that only run others.
const SHELLS: [&str; 9] = ["sh", "bash", "zsh", "dash", "ksh", "fish", "cmd", "powershell", "pwsh"];
/// How often a system without notices is asked.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
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
    around(parent(), &system::process).program
}

/// What this process belongs to, and should not outlive: the program around it, else the outermost shell.
pub(crate) fn owner() -> Option<Harness> {
    let above = around(parent(), &system::process);
    above.program.or(above.shell)
}

fn parent() -> u32 {
    rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get().unsigned_abs())
}

/// What is above a process.
#[derive(Debug, PartialEq, Eq)]
struct Above {
    /// The nearest that is no shell.
    program: Option<Harness>,
    /// The outermost shell below that.
    shell: Option<Harness>,
}

fn around(parent: u32, process: &dyn Fn(u32) -> Option<Process>) -> Above {
    let (mut pid, mut shell) = (parent, None);
    for _ in 0..ANCESTORS_MAX {
        if pid <= 1 {
            break;
        }
        // One that cannot be looked at is there all the same: its number alone must do.
        let Some(found) = process(pid) else { return Above { program: Some(Harness { pid, start: 0 }), shell } };
        let it = Harness { pid, start: found.start };
        if !is_shell(&found.name) {
            return Above { program: Some(it), shell };
        }
        shell = Some(it);
        pid = found.parent;
    }
    Above { program: None, shell }
}

fn is_shell(name: &str) -> bool {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name).to_ascii_lowercase();
    let name = name.trim_start_matches('-');
    SHELLS.contains(&name.strip_suffix(".exe").unwrap_or(name))
}

/// This process, known in the same way.
pub(crate) fn this_process() -> Harness {
    let pid = std::process::id();
    Harness { pid, start: system::process(pid).map_or(0, |found| found.start) }
}

/// Asks a process to end, if it still is the one that is meant.
pub(crate) fn terminate(process: Harness) {
    let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid.filter(|_| is_alive(process)) {
        // It may end by itself in between.
        let _gone = kill_process(pid, Signal::TERM);
    }
}

/// Returns when the program has ended.
pub(crate) fn wait_for_end(harness: Harness) {
    while is_alive(harness) {
        system::wait(harness);
    }
}

/// Whether the program still runs.
pub(crate) fn is_alive(harness: Harness) -> bool {
    system::process(harness.pid).is_some_and(|found| Harness { pid: harness.pid, start: found.start }.is(harness))
}

#[cfg(target_os = "linux")]
mod system {
    //! Processes as Linux shows them.

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    use super::{Harness, LOOK_AGAIN, Process, is_alive};

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

    /// Returns when a process ends, and perhaps before.
    pub(super) fn wait(harness: Harness) {
        let pid = i32::try_from(harness.pid).ok().and_then(Pid::from_raw);
        let Some(Ok(fd)) = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())) else {
            return std::thread::sleep(LOOK_AGAIN);
        };
        // Only a handle that was opened while it was alive is surely its own.
        if is_alive(harness) && poll(&mut [PollFd::new(&fd, PollFlags::IN)], None).is_err() {
            std::thread::sleep(LOOK_AGAIN);
        }
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

    use super::{Harness, LOOK_AGAIN, Process};

    /// A running process, as far as is known.
    pub(super) fn process(pid: u32) -> Option<Process> {
        let known = i32::try_from(pid).ok().and_then(Pid::from_raw)?;
        test_kill_process(known).ok().map(|()| Process { parent: 0, name: String::new(), start: 0 })
    }

    /// Waits a while.
    pub(super) fn wait(_: Harness) {
        std::thread::sleep(LOOK_AGAIN);
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
        around(parent, &|pid| known.get(&pid).cloned()).program
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
        let shells = |pid| Some(Process { parent: pid / 10, name: "sh".to_owned(), start: 7 }).filter(|_| pid > 1);
        let outermost = Some(Harness { pid: 5, start: 7 });
        assert_eq!(around(56, &shells), Above { program: None, shell: outermost }, "nothing but shells");
    }

    #[test]
    fn this_test_has_a_program_around_it() {
        let harness = around_here().expect("something started this test");
        assert!(is_alive(harness));
        assert!(!is_alive(Harness { start: harness.start + 1, ..harness }) || harness.start == 0);
    }

    #[test]
    fn the_end_of_a_program_is_noticed() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let harness = Harness { pid: child.id(), start: system::process(child.id()).unwrap().start };
        let (told, heard) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            wait_for_end(harness);
            told.send(()).unwrap();
        });
        assert!(is_alive(harness));
        child.kill().unwrap();
        child.wait().unwrap();
        heard.recv_timeout(Duration::from_secs(20)).expect("nobody noticed its end");
        assert!(!is_alive(harness));
    }
}
