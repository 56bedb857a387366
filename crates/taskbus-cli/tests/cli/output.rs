//! What reaches a terminal, a pipe, or nobody.

use std::io::Read as _;
use std::process::Stdio;

use crate::common::{Place, run};

fn many(place: &Place) {
    let tasks: String =
        (0..900).map(|number| format!("- [ ] a task with a long enough subject, number {number}\n")).collect();
    assert_eq!(place.run_with_input(&["plan", "-", "--create"], tasks.as_bytes()).code, 0);
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let place = Place::new();
    many(&place);
    for args in [&["tree", "--all"][..], &["tree", "--all", "--json"], &["completions", "bash"]] {
        let mut command = place.command(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = [0_u8; 16];
        let mut out = child.stdout.take().unwrap();
        out.read_exact(&mut first).unwrap();
        drop(out);
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]), "{args:?}");
    }
}

#[test]
fn nobody_reading_from_the_start_is_no_failure() {
    let place = Place::new();
    place.ok(&["add", "one"]);
    for args in [&["list"][..], &["list", "--json"], &["show", "7", "--json"]] {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "exec \"$0\" \"$@\" >&-"]).arg(crate::common::program()).args(args);
        let ran = run(command.env("TASKBUS_STORE", place.store()).env("TASKBUS_LIST", "demo").env("TASKBUS_AS", "zed"));
        assert!(ran.code <= 1 && ran.code >= 0, "{args:?}: {ran:?}");
    }
}

#[test]
fn colours_only_where_they_are_wanted() {
    let place = Place::new();
    place.ok(&["add", "one"]);
    let out = |variables: &[(&str, &str)]| run(place.command(&["list"]).envs(variables.iter().copied())).out;
    assert!(!out(&[]).contains('\u{1b}'), "a pipe is plain");
    assert!(out(&[("CLICOLOR_FORCE", "1")]).contains('\u{1b}'));
    assert!(!out(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]).contains('\u{1b}'));
    assert!(!out(&[("TERM", "dumb")]).contains('\u{1b}'));
}

#[test]
fn hostile_text_is_shown_escaped_and_kept_as_it_is() {
    let place = Place::new();
    let subject = "pay\u{202e}dne\u{200b}r";
    let body = "a\u{1b}[2J\u{1b}]0;owned\u{7}b\r\u{9b}31m\u{2066}c\nnext line";
    let added = place.run_with_input(&["--json", "add", subject, "--description", "-"], body.as_bytes()).value();
    assert_eq!((&added["task"]["subject"], &added["task"]["description"]), (&subject.into(), &body.into()));
    place.ok(&["done", "1", "--result", body, "--note", body]);
    place.ok(&["add", "two", "--list", "list", "--as", "name", "--create", "--meta", "k\u{202e}=\u{1b}[1m"]);
    for args in [
        &["list"][..],
        &["tree"],
        &["show", "1", "--history"],
        &["show", "2"],
        &["log", "1"],
        &["why", "1"],
        &["who"],
        &["lists"],
        &["list", "--list", "list"],
        &["status", "--list", "list", "--as", "\u{1b}[2J"],
        &["claim", "2", "--as", "\u{1b}[2J"],
        &["claim", "\u{1b}[2J"],
        &["\u{1b}[2J"],
        &["list", "--list", "no\u{202e}ne"],
        &["list", "--store", "sq\u{1b}[2J:x"],
        &["plan", "/no\u{1b}[2J"],
        &["add", "--\u{1b}[2J=x"],
    ] {
        let ran = place.run(args);
        let shown = format!("{}{}", ran.out, ran.err);
        let bad =
            shown.chars().find(|c| (c.is_control() && !"\n\t".contains(*c)) || "\u{202e}\u{200b}\u{2066}".contains(*c));
        assert_eq!(bad, None, "{args:?}: {ran:?}");
    }
    assert!(place.run(&["show", "1"]).out.contains("pay\\u{202e}dne\\u{200b}r"));
}

#[test]
fn text_below_a_name_keeps_its_lines() {
    let place = Place::new();
    place.ok(&["add", "日本語のタスク", "--description", "one\n  two"]);
    assert!(place.run(&["show", "1"]).out.ends_with("  description\n    one\n      two\n"));
    assert!(place.run(&["list"]).out.contains("○ 日本語のタスク"));
}
