//! Threat T12: what is made is nobody else's to read, whatever the umask; a link in the place of a store is not
//! followed, not even when it is put there between two looks; no name leads out of its place.

use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::common::mcp::Server;
use crate::common::{Place, os, program, run};

fn all_below(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        found.push(entry.path());
        if entry.file_type().unwrap().is_dir() {
            all_below(&entry.path(), found);
        }
    }
}

/// A command under a umask that hides nothing.
fn unmasked(place: &Place, args: &[&str]) -> Command {
    let mut command = place.bare(&[]);
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask 000; exec \"$0\" \"$@\""]).arg(program()).args(args);
    shell.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.current_dir(command.current_dir(place.path("work")).get_current_dir().unwrap());
    shell
}

#[test]
fn nobody_else_may_read_what_is_made() {
    let place = Place::new();
    let base = place.path("home/made");
    DirBuilder::new().recursive(true).mode(0o700).create(base.join("c")).unwrap();
    let url = |scheme: &str, name: &str| format!("{scheme}:{}", base.join(name).display());
    for (store, rest) in [
        (url("sqlite", "a/b/tasks.db"), &["--create", "--list", "demo"][..]),
        (url("file", "c/session.tasks.json"), &[]),
        (url("claude", "d/tasks"), &[]),
    ] {
        let mut args = vec!["add", "one", "--as", "zed", "--store", &*store];
        args.extend(rest);
        let ran = run(&mut unmasked(&place, &args));
        assert_eq!(ran.code, 0, "{store}: {ran:?}");
    }
    let mut made = vec![base.clone()];
    all_below(&base, &mut made);
    assert!(made.len() >= 8, "{made:?}");
    for path in made {
        let mode = std::fs::symlink_metadata(&path).unwrap().mode();
        assert_eq!(mode & 0o077, 0, "{} has {mode:o}", path.display());
    }
}

#[test]
fn a_link_that_comes_and_goes_in_the_place_of_a_store_is_never_followed() {
    let place = Place::new();
    let (store, victim, aside) = (place.path("tasks.db"), place.path("victim"), place.path("aside"));
    std::fs::write(&victim, vec![b'v'; 4096]).unwrap();
    let over = AtomicBool::new(false);
    let mut answers = [0_u32; 2];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                // A link takes the place, and gives it back; each by a rename, so that the place is never empty for long.
                let _moved = std::fs::rename(&store, &aside);
                let _linked = symlink(&victim, &store);
                let _back = std::fs::rename(&aside, &store);
            }
        });
        for n in 0..150 {
            let ran = place.run(&["add", &format!("task {n}"), "--create"]);
            assert!([0, 3].contains(&ran.code), "{ran:?}");
            answers[usize::from(ran.code == 3)] += 1;
        }
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(std::fs::read(&victim).unwrap(), vec![b'v'; 4096], "written through the link");
    assert!(answers[1] > 0, "the race was never on: {answers:?}");
}

#[test]
fn no_name_leads_out_of_its_place() {
    let place = Place::new();
    let dir = place.path("work/claude");
    let mut server = Server::of(place.bare(&["mcp", "--tools", "full"]).arg("--store").arg(place.store()));
    server.call("register", &json!({"name": "../../zed"})).expect_err("a name has no slash");
    server.ok("register", json!({"name": "..\\zed"}));
    for name in ["../../up", "/etc/passwd", "..", ".", "a/../../b", "~/x", "file:///x", "%2e%2e%2f", "con\\..\\x"] {
        let _either = server.call("create_channel", &json!({"name": name}));
        let _either = server.call("create_channel", &json!({"name": format!("tasks/{name}")}));
        let _either = server.call("send", &json!({"channel": name, "content": name}));
        for args in [&["show", name][..], &["done", name], &["add", "x", "--key", name], &["rm", name]] {
            let mut command = place.bare(args);
            let ran = run(command.arg("--store").arg({
                let mut url = os("claude:").to_owned();
                url.push(&dir);
                url
            }));
            assert!([0, 1, 2].contains(&ran.code), "{args:?}: {ran:?}");
        }
    }
    let mut found = Vec::new();
    all_below(&place.path(""), &mut found);
    let known = ["home", "work", "tasks.db"].map(|name| place.path(name));
    for path in found {
        assert!(
            known.iter().any(|known| path.to_str().unwrap().starts_with(known.to_str().unwrap())),
            "{}",
            path.display()
        );
    }
    let mut below = Vec::new();
    all_below(&dir, &mut below);
    assert!(below.iter().all(|path| path.parent() == Some(&dir)), "{below:?}");
}
