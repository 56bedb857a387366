//! What the tests of the real binary share: a place of its own for each test, and runs with what came out of them.
#![allow(dead_code, clippy::unwrap_used, clippy::needless_pass_by_value, unreachable_pub)]

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

pub mod mcp;

/// The program under test.
pub fn program() -> PathBuf {
    assert_cmd::cargo::cargo_bin!("taskbus").to_owned()
}

/// A home, a store and a working directory that no other test knows.
pub struct Place {
    dir: TempDir,
}

/// What a run left behind.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Place {
    pub fn new() -> Self {
        let place = Self { dir: tempfile::tempdir().unwrap() };
        std::fs::create_dir(place.path("home")).unwrap();
        std::fs::create_dir(place.path("work")).unwrap();
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    /// The store of this place, as `--store` takes it.
    pub fn store(&self) -> OsString {
        let mut url = OsString::from("sqlite:");
        url.push(self.path("tasks.db"));
        url
    }

    /// A command that knows nothing but this place: the list `demo`, the name `zed`.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.bare(args);
        command.env("TASKBUS_STORE", self.store()).env("TASKBUS_LIST", "demo").env("TASKBUS_AS", "zed");
        command
    }

    /// A command with `HOME` and `PATH` alone.
    pub fn bare(&self, args: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(args).env_clear().current_dir(self.path("work"));
        command.env("HOME", self.path("home")).env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        run(&mut self.command(args))
    }

    pub fn run_with_input(&self, args: &[&str], input: &[u8]) -> Ran {
        run_with_input(&mut self.command(args), input)
    }

    /// Runs with `--json`, which must print exactly one value with its version in front.
    pub fn json(&self, args: &[&str]) -> (i32, Value) {
        let mut all = vec!["--json"];
        all.extend(args);
        let ran = self.run(&all);
        (ran.code, ran.value())
    }

    /// The same, for what must succeed.
    pub fn ok(&self, args: &[&str]) -> Value {
        let (code, value) = self.json(args);
        assert_eq!(code, 0, "{args:?}: {value}");
        value
    }

    /// The code of the refusal that this must meet.
    pub fn refused(&self, args: &[&str]) -> Value {
        let (code, value) = self.json(args);
        assert_eq!(code, 1, "{args:?}: {value}");
        value["error"].clone()
    }

    /// Writes a file into the working directory.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.path("work").join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Ran {
    /// The one JSON value on standard output.
    #[track_caller]
    pub fn value(&self) -> Value {
        assert!(self.out.starts_with("{\"schema_version\":1"), "{self:?}");
        assert_eq!(self.out.matches('\n').count(), 1, "{self:?}");
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

pub fn run(command: &mut Command) -> Ran {
    ran(&command.stdin(Stdio::null()).output().unwrap())
}

pub fn run_with_input(command: &mut Command, input: &[u8]) -> Ran {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that refuses its arguments does not read its input.
    let _unread = child.stdin.take().unwrap().write_all(input);
    ran(&child.wait_with_output().unwrap())
}

fn ran(output: &Output) -> Ran {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let ran = Ran { code: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) };
    assert!(!ran.err.contains("panicked"), "{ran:?}");
    ran
}

/// Runs `git` in a directory; the tests of worktrees need the real one.
pub fn git(dir: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command.args(args).current_dir(dir).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    for (name, value) in [("NAME", "zed"), ("EMAIL", "zed@example.org")] {
        command.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
    }
    let output = command.output().expect("git is needed for this test");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

pub fn os(text: &str) -> &OsStr {
    OsStr::new(text)
}
