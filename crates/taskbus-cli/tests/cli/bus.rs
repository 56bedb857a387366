//! Messages, channels and memories on the command line, and waiting for a message in the background.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taskbus::store::Store as _;
use taskbus::store::sqlite::{SqliteOptions, SqliteStore};

use crate::common::mcp::Server;
use crate::common::{Place, Ran, run};

/// How long anything may take that should take no time.
const PATIENCE: Duration = Duration::from_secs(20);

/// A command that acts under a name.
fn by(place: &Place, name: &str, args: &[&str]) -> Command {
    let mut command = place.command(args);
    command.env("TASKBUS_AS", name);
    command
}

fn ok(place: &Place, name: &str, args: &[&str]) -> Value {
    let mut all = vec!["--json"];
    all.extend(args);
    let ran = run(&mut by(place, name, &all));
    assert_eq!(ran.code, 0, "{args:?}: {ran:?}");
    ran.value()
}

fn refused(place: &Place, name: &str, args: &[&str]) -> Value {
    let mut all = vec!["--json"];
    all.extend(args);
    let ran = run(&mut by(place, name, &all));
    assert_eq!(ran.code, 1, "{args:?}: {ran:?}");
    ran.value()["error"].clone()
}

fn said(received: &Value) -> Vec<&str> {
    received["messages"].as_array().unwrap().iter().map(|message| message["content"].as_str().unwrap()).collect()
}

#[test]
fn a_message_is_sent_received_and_acknowledged() {
    let place = Place::new();
    ok(&place, "amp", &["recv"]);
    let sent =
        ok(&place, "zed", &["send", "dm/amp", "hello", "--subject", "Greeting", "--tag", "rust", "--meta", "k=v"]);
    assert_eq!(sent["seq"], 1);
    let mail = ok(&place, "amp", &["recv"]);
    assert_eq!((said(&mail), &mail["messages"][0]["subject"]), (vec!["hello"], &json!("Greeting")));
    let batch = mail["batch"].as_str().unwrap();
    let read = ok(&place, "amp", &["recv", "--ack", batch]);
    assert_eq!((said(&read), read.get("batch")), (vec![], None));
    let late = run(&mut by(&place, "amp", &["recv", "--wait", "1s"]));
    assert_eq!((late.code, late.out.as_str()), (4, "nothing new\n"));
    let unknown = refused(&place, "zed", &["send", "dm/nobody", "hello"]);
    assert_eq!(unknown["code"], "not_found");
    let words = run(&mut by(&place, "zed", &["send", "general", "in words"]));
    assert_eq!((words.code, words.out.as_str()), (0, "sent to general as #2\n"));
}

#[test]
fn a_text_comes_from_standard_input_or_a_file_and_hostile_ones_are_shown_escaped() {
    let place = Place::new();
    let file = place.write("text", "from a\nfile \u{1b}[2J\n");
    ok(&place, "amp", &["recv"]);
    ok(&place, "zed", &["send", "dm/amp", "--file", &file]);
    let mut piped = by(&place, "zed", &["send", "dm/amp", "-"]);
    assert_eq!(crate::common::run_with_input(&mut piped, b"from a pipe\n").code, 0);
    let shown = run(&mut by(&place, "amp", &["recv"]));
    assert!(shown.out.contains("    from a\n    file ") && shown.out.contains("    from a pipe\n"), "{shown:?}");
    assert!(!shown.out.contains('\u{1b}'), "{shown:?}");
    let nothing = run(&mut by(&place, "zed", &["send", "dm/amp"]));
    assert_eq!(nothing.code, 2, "{nothing:?}");
}

#[test]
fn channels_are_made_heard_and_looked_through() {
    let place = Place::new();
    assert_eq!(ok(&place, "zed", &["channel", "create", "talk", "--kind", "ordinary"])["kind"], "ordinary");
    let conflict = refused(&place, "zed", &["channel", "create", "talk", "--kind", "memory"]);
    assert_eq!(conflict["code"], "conflict");
    ok(&place, "zed", &["send", "talk", "old", "--tag", "rust"]);
    assert_eq!(ok(&place, "amp", &["channel", "subscribe", "talk", "--oldest"])["subscribed"], "talk");
    assert_eq!(said(&ok(&place, "amp", &["recv"])), ["old"]);
    assert_eq!(
        ok(&place, "amp", &["channel", "subscribe", "--tag", "rust,env*"])["subscribed_tags"],
        json!(["env*", "rust"])
    );
    ok(&place, "zed", &["send", "talk", "new"]);
    assert_eq!(said(&ok(&place, "amp", &["channel", "history", "talk"])), ["old", "new"]);
    assert_eq!(said(&ok(&place, "amp", &["channel", "history", "talk", "--tag", "ru*"])), ["old"]);
    assert_eq!(said(&ok(&place, "amp", &["channel", "history", "talk", "--after", "1"])), ["new"]);
    assert_eq!(ok(&place, "amp", &["channel", "unsubscribe", "talk"])["unsubscribed"], "talk");
    let names: Vec<Value> = ok(&place, "zed", &["channels"])["channels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["name"].clone())
        .collect();
    assert_eq!(names, ["general", "memory", "talk"]);
    for wrong in [&["channel", "subscribe"][..], &["channel", "subscribe", "talk", "--tag", "x"], &["channel"]] {
        assert_eq!(run(&mut by(&place, "zed", wrong)).code, 2, "{wrong:?}");
    }
}

#[test]
fn memories_are_kept_found_revised_and_removed() {
    let place = Place::new();
    let kept = ok(&place, "zed", &["memory", "add", "the build needs cmake", "--subject", "Build", "--tag", "build"]);
    let id = kept["memory_id"].to_string();
    let found = ok(&place, "amp", &["search", "CMAKE", "bui*"]);
    assert_eq!((found["hits"][0]["memory_id"].to_string(), &found["hits"][0]["sender"]), (id.clone(), &json!("zed")));
    assert_eq!(ok(&place, "amp", &["memory", "edit", &id, "it needs ninja"])["revision"], 2);
    let shown = ok(&place, "zed", &["memory", "show", &id])["memory"].clone();
    assert_eq!(
        (&shown["content"], &shown["subject"], &shown["tags"]),
        (&json!("it needs ninja"), &json!("Build"), &json!(["build"]))
    );
    ok(&place, "zed", &["memory", "edit", &id, "x", "--subject", "", "--tag", ""]);
    let shown = ok(&place, "zed", &["memory", "show", &id])["memory"].clone();
    assert_eq!((shown.get("subject"), shown.get("tags")), (None, None));
    assert_eq!(ok(&place, "zed", &["memory", "rm", &id])["deleted"].to_string(), id);
    assert_eq!(refused(&place, "zed", &["memory", "show", &id])["code"], "not_found");
    let words = run(&mut by(&place, "zed", &["search", "ninja"]));
    assert_eq!((words.code, words.out.as_str()), (0, "nothing found\n"));
    assert_eq!(refused(&place, "zed", &["search", "**"])["field"], "query");
    assert_eq!(run(&mut by(&place, "zed", &["search", "x", "--since", "2h"])).code, 2);
}

fn answering(place: &Place, args: &[&str], answer: &str) -> Ran {
    crate::common::run_with_input(&mut by(place, "zed", args), answer.as_bytes())
}

#[test]
fn a_store_is_emptied_after_an_exact_yes_and_numbers_go_on() {
    let place = Place::new();
    let mut server = Server::named(&place.store(), "Zed");
    let before = server.ok("send", json!({"channel": "general", "content": "x"}))["seq"].as_u64().unwrap();
    for answer in ["", "no\n", "YES\n", "yes \n", "y\n"] {
        let kept = answering(&place, &["reset"], answer);
        assert_eq!(kept.code, 2, "{answer:?}: {kept:?}");
    }
    server.ok("send", json!({"channel": "general", "content": "still here"}));
    let emptied = answering(&place, &["--json", "reset"], "yes\n");
    assert_eq!(emptied.code, 0, "{emptied:?}");
    assert!(emptied.err.contains("1 live sessions"), "{emptied:?}");
    assert_eq!(emptied.value()["sessions"].as_array().unwrap().len(), 1);
    let gone = server.call("send", &json!({"as": "Zed", "channel": "general", "content": "x"})).unwrap_err();
    assert_eq!(gone["code"], "not_registered");
    let again = server.ok("register", json!({"name": "Zed"}));
    assert_eq!((&again["as"], &again["resumed"]), (&json!("Zed"), &json!(false)));
    let after = server.ok("send", json!({"channel": "general", "content": "x"}))["seq"].as_u64().unwrap();
    assert!(after > before + 1, "{after} after {before}");
}

#[test]
fn a_channel_is_deleted_after_a_yes_unless_others_hear_it() {
    let place = Place::new();
    ok(&place, "zed", &["channel", "create", "talk", "--kind", "ordinary"]);
    ok(&place, "zed", &["send", "talk", "x"]);
    assert_eq!(answering(&place, &["channel", "delete", "talk"], "no\n").code, 2);
    ok(&place, "amp", &["channel", "subscribe", "talk"]);
    let heard = refused(&place, "zed", &["channel", "delete", "talk", "--yes"]);
    assert_eq!((&heard["code"], &heard["subscribers"]), (&json!("conflict"), &json!(["amp"])));
    ok(&place, "amp", &["channel", "unsubscribe", "talk"]);
    let asked = answering(&place, &["channel", "delete", "talk"], "y\n");
    assert!(asked.code == 0 && asked.err.contains("1 messages"), "{asked:?}");
    assert_eq!(refused(&place, "zed", &["channel", "delete", "talk", "--yes"])["code"], "not_found");
    assert_eq!(refused(&place, "zed", &["channel", "delete", "general", "--yes"])["code"], "validation");
}

#[test]
fn status_tells_of_the_bus() {
    let place = Place::new();
    ok(&place, "amp", &["recv"]);
    ok(&place, "zed", &["send", "dm/amp", "x"]);
    let bus = ok(&place, "zed", &["status"])["bus"].clone();
    assert!(bus["budget_mib"] == 2048 && bus["used_mib"].is_u64(), "{bus}");
    let names: Vec<&Value> = bus["channels"].as_array().unwrap().iter().map(|row| &row["name"]).collect();
    assert!(names.contains(&&json!("dm/amp")) && names.contains(&&json!("general")), "{bus}");
    assert_eq!(bus["sessions"].as_array().unwrap().len(), 2);
    let words = run(&mut by(&place, "zed", &["status"])).out;
    assert!(words.contains("dm/amp (1)") && words.contains("MiB of 2048"), "{words}");
}

/// A wait that runs.
struct Waiting {
    child: Child,
}

impl Waiting {
    /// Starts one, and returns when it has written down that it waits.
    fn start(place: &Place, name: &str, args: &[&str]) -> Self {
        let mut all = vec!["wait"];
        all.extend(args);
        Self::of(place, &mut by(place, name, &all))
    }

    fn of(place: &Place, command: &mut Command) -> Self {
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let waiting = Self { child };
        let (begun, directory) = (Instant::now(), place.path("home").join(".local/share/taskbus/wait"));
        let pid = format!("{} ", waiting.child.id());
        let is_there = || {
            let files = std::fs::read_dir(&directory).into_iter().flatten().flatten();
            files.filter_map(|file| std::fs::read_to_string(file.path()).ok()).any(|text| text.starts_with(&pid))
        };
        while !is_there() {
            assert!(begun.elapsed() < PATIENCE, "it does not wait");
            std::thread::yield_now();
        }
        waiting
    }

    fn end(self) -> Ran {
        let output = self.child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }
}

fn lines(ran: &Ran) -> Vec<Value> {
    ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_wait_wakes_for_a_message_and_leaves_it_unread() {
    let place = Place::new();
    ok(&place, "amp", &["channel", "subscribe", "general"]);
    let waiting = Waiting::start(&place, "amp", &[]);
    ok(&place, "zed", &["send", "general", "hello"]);
    let woken = waiting.end();
    assert_eq!(woken.code, 0, "{woken:?}");
    assert_eq!((lines(&woken)[0]["content"].as_str(), lines(&woken).len()), (Some("hello"), 1));
    // Whoever waits again is woken again, until the messages are received.
    let again = run(&mut by(&place, "amp", &["--json", "wait"]));
    assert_eq!((again.code, said(&again.value())), (0, vec!["hello"]));
    assert_eq!(said(&ok(&place, "amp", &["recv"])), ["hello"]);
    // What was handed out wakes nobody, acknowledged or not.
    let late = run(&mut by(&place, "amp", &["wait", "--for", "1s"]));
    assert_eq!((late.code, late.out.as_str()), (1, ""));
    assert!(
        !place
            .path("home")
            .join(".local/share/taskbus/wait")
            .read_dir()
            .unwrap()
            .any(|file| { file.unwrap().file_name().to_string_lossy().ends_with(".pid") }),
        "a wait that has ended has left its file"
    );
}

#[test]
fn what_was_sent_to_one_agent_is_not_shown_by_its_wait() {
    let place = Place::new();
    ok(&place, "amp", &["recv"]);
    ok(&place, "zed", &["send", "dm/amp", "secret text", "--subject", "secret subject", "--meta", "k=secret"]);
    for args in [&["wait"][..], &["--json", "wait"]] {
        let woken = run(&mut by(&place, "amp", args));
        assert!(
            woken.code == 0 && woken.out.contains("\"sender\":\"zed\"") && !woken.out.contains("secret"),
            "{woken:?}"
        );
    }
}

#[test]
fn a_filter_chooses_but_not_among_what_is_meant_for_one_name() {
    let place = Place::new();
    ok(&place, "amp", &["channel", "subscribe", "general"]);
    ok(&place, "amp", &["channel", "subscribe", "--tag", "urgent"]);
    ok(&place, "zed", &["channel", "create", "talk", "--kind", "ordinary"]);
    ok(&place, "zed", &["send", "general", "nothing of interest"]);
    let wait = &["wait", "--filter", "(?i)DEPLOY|release", "--for", "1s"];
    assert_eq!(run(&mut by(&place, "amp", wait)).code, 1);
    ok(&place, "zed", &["send", "general", "x", "--subject", "Deploy now"]);
    let woken = run(&mut by(&place, "amp", wait));
    assert_eq!((woken.code, lines(&woken).len()), (0, 1), "{woken:?}");
    ok(&place, "amp", &["recv"]);
    ok(&place, "zed", &["send", "talk", "y", "--tag", "urgent"]);
    ok(&place, "zed", &["send", "dm/amp", "z"]);
    let woken = run(&mut by(&place, "amp", wait));
    assert_eq!((woken.code, lines(&woken).len()), (0, 2), "{woken:?}");
    let elsewhere = run(&mut by(&place, "amp", &["wait", "--channel", "general", "--for", "1s"]));
    assert_eq!(elsewhere.code, 1, "{elsewhere:?}");
    ok(&place, "amp", &["send", "general", "my own"]);
    assert_eq!(run(&mut by(&place, "amp", &["wait", "--channel", "general", "--for", "1s"])).code, 1);
    assert_eq!(run(&mut by(&place, "amp", &["wait", "--channel", "general", "--include-own"])).code, 0);
}

#[test]
fn a_wait_that_cannot_be_ends_with_two() {
    let place = Place::new();
    ok(&place, "amp", &["recv"]);
    for args in [
        &["wait", "--filter", "("][..],
        &["wait", "--channel", "nowhere"],
        &["wait", "--ready", "--filter", "x"],
        &["wait", "--store", "file:s.json"],
    ] {
        let ran = run(&mut by(&place, "amp", args));
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}: {ran:?}");
    }
    let stranger = run(&mut by(&place, "nobody", &["--json", "wait"]));
    assert_eq!((stranger.code, &stranger.value()["error"]["code"]), (2, &json!("not_found")));
}

#[test]
fn a_new_wait_takes_the_place_of_the_last_one_for_the_same_name() {
    let place = Place::new();
    for name in ["amp", "jan"] {
        ok(&place, name, &["recv"]);
    }
    let first = Waiting::start(&place, "amp", &[]);
    let other = Waiting::start(&place, "jan", &[]);
    let second = Waiting::start(&place, "amp", &[]);
    let replaced = first.end();
    assert_eq!((replaced.code, replaced.out.as_str(), replaced.err.as_str()), (3, "", ""));
    for (name, waiting) in [("amp", second), ("jan", other)] {
        ok(&place, "zed", &["send", &format!("dm/{name}"), "hello"]);
        assert_eq!(waiting.end().code, 0, "{name}");
    }
}

#[test]
fn a_wait_ends_with_the_program_that_started_it() {
    let place = Place::new();
    ok(&place, "amp", &["recv"]);
    // A program between the test and the wait; its standard output stays open, so that the end is seen.
    let script = "import os, subprocess, sys\n\
        child = subprocess.Popen(sys.argv[1:])\n\
        print(child.pid, flush=True)\n\
        sys.stdin.read()\n\
        os._exit(0)\n";
    let start = |extra: &[&str]| {
        let inner = by(&place, "amp", &[&["wait"][..], extra].concat());
        let mut command = Command::new("python3");
        command.args(["-c", script]).arg(inner.get_program()).args(inner.get_args()).env_clear();
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mut child =
            command.current_dir(place.path("work")).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        (child, out, line.trim().parse::<u32>().unwrap())
    };
    let (mut child, mut out, _) = start(&[]);
    drop(child.stdin.take());
    child.wait().unwrap();
    // The pipe closes when the wait has ended, too: without a word.
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
    let (mut child, mut out, _) = start(&["--no-harness-watch"]);
    drop(child.stdin.take());
    child.wait().unwrap();
    ok(&place, "zed", &["send", "dm/amp", "hello"]);
    out.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("\"sender\":\"zed\""), "it did not outlive the program: {rest:?}");
}

/// Two agents in one repository: a wait without a name is for the one that the same program runs.
#[test]
fn a_wait_without_a_name_is_for_the_session_of_the_same_program() {
    let place = Place::new();
    std::fs::create_dir(place.path("work").join(".git")).unwrap();
    // The server is a child of this test, as the wait is: one program for both.
    let mut server = Server::named(&place.store(), "Zed2");
    let mut wait = place.command(&["wait"]);
    wait.env_remove("TASKBUS_AS");
    let waiting = Waiting::of(&place, &mut wait);
    server.ok("register", json!({"name": "other"}));
    ok(&place, "jan", &["send", "dm/Zed2", "hello"]);
    let woken = waiting.end();
    assert_eq!((woken.code, lines(&woken)[0]["channel"].as_str()), (0, Some("dm/Zed2")), "{woken:?}");
}

#[test]
fn a_wait_does_not_act_as_another_programs_session() {
    let place = Place::new();
    std::fs::create_dir(place.path("work").join(".git")).unwrap();
    // A server below a program of its own that holds the repository's name.
    let script = "import subprocess, sys\nsys.exit(subprocess.call(sys.argv[1:]))\n";
    let program = crate::common::program();
    let mut command = Command::new("python3");
    command.args(["-c", script]).arg(program).arg("mcp").arg("--store").arg(place.store());
    let mut other = Server::of(command.current_dir(place.path("work")));
    assert_eq!(other.ok("register", json!({"name": "work"}))["as"], "work");
    let mut wait = place.command(&["wait", "--for", "1s"]);
    let refused = run(wait.env_remove("TASKBUS_AS"));
    assert!(refused.code == 2 && refused.err.contains("another session's name"), "{refused:?}");
    drop(other);
    // Its end frees the name; nobody is subscribed to anything else.
    let mut wait = place.command(&["wait", "--for", "1s"]);
    assert_eq!(run(wait.env_remove("TASKBUS_AS")).code, 1);
}

#[test]
fn events_are_changes_of_the_list_and_messages() {
    let place = Place::new();
    ok(&place, "amp", &["channel", "subscribe", "general"]);
    ok(&place, "amp", &["add", "first"]);
    let store = SqliteStore::lazy(place.path("tasks.db"), SqliteOptions::default());
    let seen = store.version().unwrap();
    let mut child = by(&place, "amp", &["wait", "--events", "--for", "3s"]).stdout(Stdio::piped()).spawn().unwrap();
    ok(&place, "zed", &["send", "general", "hello"]);
    ok(&place, "zed", &["send", "dm/amp", "secret"]);
    store.wait(seen, PATIENCE).unwrap();
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{out}");
    let events: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let messages: Vec<&Value> =
        events.iter().filter(|event| event["event"] == "message").map(|event| &event["message"]).collect();
    assert_eq!((messages.len(), &messages[0]["content"]), (2, &json!("hello")), "{out}");
    assert!(!out.contains("secret") && messages[1]["channel"] == "dm/amp", "{out}");
}
