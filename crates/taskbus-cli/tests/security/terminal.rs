//! Threat T9: what others wrote moves no cursor, sets no title, fills no clipboard. Shown in a real terminal (tmux).

use std::process::{Command, Output};

use serde_json::json;

use crate::common::mcp::Server;
use crate::common::{Place, program};
use crate::corpus;

const TEXTS: usize = 300;
const PATIENCE_SECONDS: &str = "120";

/// A terminal with a shell in it.
struct Terminal<'a> {
    place: &'a Place,
}

impl<'a> Terminal<'a> {
    fn open(place: &'a Place) -> Self {
        let terminal = Self { place };
        std::fs::write(
            place.path("tmux.conf"),
            "set -g set-clipboard on\nset -g allow-rename on\nset -g history-limit 100000\n",
        )
        .unwrap();
        let config = place.path("tmux.conf");
        let shell =
            ["-f", config.to_str().unwrap(), "new-session", "-d", "-x", "160", "-y", "50", "-s", "t", "exec sh"];
        terminal.tmux(&shell);
        terminal.tmux(&["select-pane", "-t", "t", "-T", "untouched"]);
        terminal
    }

    fn tmux(&self, args: &[&str]) -> String {
        let output = self.try_tmux(args);
        assert!(output.status.success(), "tmux {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn try_tmux(&self, args: &[&str]) -> Output {
        let mut tmux = Command::new("tmux");
        tmux.arg("-S").arg(self.place.path("socket")).args(args).env_clear();
        tmux.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.place.path("home"));
        tmux.env("LC_ALL", "C.UTF-8").env("TERM", "xterm-256color");
        tmux.output().expect("tmux is needed for this test")
    }

    /// Runs a script in the shell until it is done.
    fn run(&self, script: &str) {
        let (path, socket) = (self.place.path("script"), self.place.path("socket"));
        std::fs::write(&path, format!("{script}\ntmux -S '{}' wait-for -S shown\n", socket.display())).unwrap();
        self.tmux(&["send-keys", "-t", "t", &format!(". {}", path.display()), "Enter"]);
        let mut wait = Command::new("timeout");
        wait.arg(PATIENCE_SECONDS).arg("tmux").arg("-S").arg(socket).args(["wait-for", "shown"]);
        assert!(wait.status().unwrap().success(), "{}", self.screen());
    }

    /// All that was ever shown.
    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-J", "-t", "t", "-S", "-"])
    }

    fn says(&self, format: &str) -> String {
        self.tmux(&["display-message", "-p", "-t", "t", format]).trim().to_owned()
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        self.try_tmux(&["kill-server"]);
    }
}

/// Five texts in each task, and a message with each.
fn filled(place: &Place) -> usize {
    place.ok(&["add", "first", "--create"]);
    let mut server = Server::named(&place.store(), "Zed");
    let (lines, subjects) = (corpus::lines(TEXTS), corpus::subjects(TEXTS));
    for (lines, subjects) in lines.chunks(5).zip(subjects.chunks(5)) {
        let made = server.ok(
            "task_create",
            json!({"channel": "tasks/demo", "subject": subjects[0], "description": lines[0], "metadata": {"k": lines[1]}}),
        );
        server.ok("task_update", json!({"task_id": made["id"], "note": lines[2]}));
        server.ok("send", json!({"channel": "general", "content": lines[3]}));
        server.ok("send", json!({"channel": "memory", "content": lines[4]}));
    }
    TEXTS / 5
}

#[test]
fn three_hundred_hostile_texts_leave_the_terminal_as_it_is() {
    let place = Place::new();
    let tasks = filled(&place);
    let terminal = Terminal::open(&place);
    let taskbus = format!("'{}' --store '{}' --list demo", program().display(), place.store().to_str().unwrap());
    let before = "echo MARK-BEFORE";
    let views = format!(
        "{taskbus} list --limit 200; {taskbus} tree; {taskbus} ready; {taskbus} channel history general --count 200; {taskbus} channel history memory --count 200"
    );
    let each = format!("for n in $(seq 2 {}); do {taskbus} show $n --history; {taskbus} log $n >&2; done", tasks + 1);
    let errors = format!("{taskbus} claim '\u{1b}]0;owned\u{7}'; {taskbus} '\u{1b}[2J'");
    terminal.run(&format!("clear; {before}\n{views}\n{each}\n{errors}"));
    assert_eq!(terminal.says("#{pane_title}"), "untouched");
    assert_eq!(terminal.says("#{alternate_on} #{mouse_any_flag} #{cursor_flag} #{pane_in_mode}"), "0 0 1 0");
    assert!(!terminal.try_tmux(&["show-buffer"]).status.success(), "something was copied");
    let screen = terminal.screen();
    let marks: Vec<&str> = screen.lines().filter(|line| line.starts_with("MARK-")).collect();
    assert_eq!(marks, ["MARK-BEFORE"], "the mark above was wiped out");
    assert!(screen.contains("\\u{1b}]52;c;b3duZWQ=\\u{7}"), "the texts are there, escaped");
    let shown = screen.matches("\\u{1b}").count();
    assert!(shown >= TEXTS / 5, "{shown}");
}
