//! The panel of a list, and its changes as events.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::Place;

fn add(place: &Place, subject: &str, more: &[&str]) -> String {
    let args = [&["add", subject, "--create"], more].concat();
    place.ok(&args)["task"]["id"].to_string()
}

/// A command that goes on, and what it prints.
fn start(place: &Place, args: &[&str]) -> (Child, BufReader<ChildStdout>) {
    let mut child = place.command(args).stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    (child, out)
}

fn line(out: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    line
}

#[test]
fn the_panel_shows_what_is_under_way_and_what_comes_next() {
    let place = Place::new();
    let first = add(&place, "Run the tests", &["--active-form", "Running the tests"]);
    assert_eq!(place.run(&["list", "--lite"]).out, "○ Run the tests\n");
    add(&place, "Ship it", &["--blocked-by", &first]);
    for n in 0..6 {
        add(&place, &format!("More {n}"), &[]);
    }
    place.ok(&["claim", &first]);
    let shown = place.run(&["list", "--lite"]).out;
    assert_eq!(shown, "◐ Running the tests\n○ Ship it (blocked)\n○ More 0\n○ More 1\n○ More 2\n○ More 3\n");
    let json = place.ok(&["list", "--lite"]);
    assert_eq!((json["tasks"].as_array().unwrap().len(), &json["tasks"][1]["blocked"]), (6, &json!(true)));
}

#[test]
fn the_panel_hides_when_nothing_is_open() {
    let place = Place::new();
    let id = add(&place, "Only one", &[]);
    place.ok(&["done", &id]);
    let ran = place.run(&["list", "--lite"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""));
}

#[test]
fn the_panel_goes_with_list_alone() {
    let place = Place::new();
    for args in [&["tree", "--lite"][..], &["list", "--watch"], &["list", "--lite", "--all"]] {
        assert_eq!(place.run(args).code, 2, "{args:?}");
    }
    assert_eq!(place.run(&["--json", "list", "--lite", "--watch"]).code, 2);
}

#[test]
fn a_watched_panel_follows_and_ends_with_its_reader() {
    let place = Place::new();
    let id = add(&place, "Watched", &[]);
    let (mut child, mut out) = start(&place, &["list", "--lite", "--watch"]);
    assert_eq!(line(&mut out), "○ Watched\n");
    place.ok(&["claim", &id]);
    assert_eq!((line(&mut out), line(&mut out)), ("\n".to_owned(), "◐ Watched\n".to_owned()));
    drop(out);
    place.ok(&["done", &id]);
    assert!(child.wait().unwrap().success(), "a closed pipe is no failure");
}

#[test]
fn each_change_is_an_event_with_the_whole_graph() {
    let place = Place::new();
    let first = add(&place, "first", &[]);
    let second = add(&place, "second", &["--blocked-by", &first]);
    let (mut child, mut out) = start(&place, &["wait", "--events", "--for", "60s"]);
    let (event, events) = channel();
    std::thread::spawn(move || {
        while let Ok(value) = serde_json::from_str::<Value>(&line(&mut out)) {
            let _ = event.send(value);
        }
    });
    // When the watcher has begun cannot be seen, so changes are made until it tells of one.
    let begun = (0..100).any(|n| {
        add(&place, &format!("more {n}"), &[]);
        events.recv_timeout(Duration::from_millis(500)).is_ok()
    });
    assert!(begun, "no event came");
    place.ok(&["rm", &second]);
    let patience = Duration::from_secs(30);
    let last = std::iter::from_fn(|| events.recv_timeout(patience).ok())
        .find(|event| event["snapshot"]["tasks"][1]["status"] == "deleted")
        .unwrap();
    assert_eq!(last["event"], "tasks_changed");
    assert_eq!(last["snapshot"]["tasks"][0]["blocks"], json!([second]), "a deleted row still names its blocker");
    child.kill().unwrap();
    child.wait().unwrap();
    let late = place.run(&["wait", "--events", "--for", "1s"]);
    assert_eq!((late.code, late.out.as_str()), (4, ""));
}
