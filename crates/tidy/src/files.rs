//! Checks of single files: their length, their heading, what is left open in them, and whose machine they name.

use crate::repo::{File, files, no_complaints, rust_below};
use crate::source::{is_tests, line_of, take_apart, without_tests, words};

const LINES_MAX: usize = 600;

/// Words that say "later", cut in two so that this file does not hold them.
const OPEN_ENDS: [&str; 4] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("#[ig", "nore"), concat!("HA", "CK:")];
const OPEN_CALLS: [&str; 2] = ["todo", "unimplemented"];

/// Places that exist on one machine only, and hosts that a registry client already knows.
const PLACES: [&str; 9] = [
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/Us", "ers/"),
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("pypi", ".org"),
    concat!("python", "hosted.org"),
    concat!("registry.", "npmjs"),
    concat!("deb.", "debian.org"),
];

fn too_long(file: &File) -> Option<String> {
    if is_tests(&file.path) {
        return None;
    }
    let lines = without_tests(&file.text).lines().count();
    (lines > LINES_MAX)
        .then(|| format!("{}: {lines} lines without its tests, {LINES_MAX} allowed: split it", file.path))
}

fn no_heading(file: &File) -> Option<String> {
    (!file.text.starts_with("//!")).then(|| format!("{}: starts without a `//!` paragraph", file.path))
}

fn open_ends(file: &File) -> Vec<String> {
    let say = |at, what: &str| format!("{}:{}: `{what}` leaves something open", file.path, line_of(&file.text, at));
    let words_found = OPEN_ENDS.iter().flat_map(|end| file.text.match_indices(end).map(move |(at, _)| say(at, end)));
    let code = take_apart(&file.text).code;
    let calls = OPEN_CALLS.iter().flat_map(|call| {
        words(&code, call)
            .filter(|at| code[at + call.len()..].starts_with('!'))
            .map(|at| say(at, call))
            .collect::<Vec<_>>()
    });
    words_found.chain(calls).collect()
}

fn places(file: &File) -> Vec<String> {
    let found = PLACES.iter().flat_map(|place| file.text.match_indices(place));
    found.map(|(at, place)| format!("{}:{}: names {place}", file.path, line_of(&file.text, at))).collect()
}

/// `expect` outside tests must name an invariant.
fn bare_expects(file: &File) -> Vec<String> {
    let shipped = without_tests(&file.text);
    let code = take_apart(shipped).code;
    let calls = code.match_indices(".expect(").map(|(at, call)| at + call.len());
    let bare = calls.filter(|&at| !shipped[at..].trim_start().starts_with("\"BUG: "));
    bare.map(|at| format!("{}:{}: `expect` without \"BUG: …\"", file.path, line_of(shipped, at))).collect()
}

/// Where other programs are started, and none elsewhere: Git, a new process of our own, the operator's inspection.
const STARTERS: [&str; 6] = [
    "crates/taskbus-cli/src/cli/init.rs",
    "crates/taskbus-cli/src/demo/",
    "crates/taskbus-cli/src/bench/",
    "crates/taskbus-cli/src/torture/",
    "crates/taskbus/src/engine/bus/inspect.rs",
    "crates/taskbus-cli/src/client.rs",
];

fn starts_programs(file: &File) -> Vec<String> {
    if STARTERS.iter().any(|place| file.path.starts_with(place)) {
        return Vec::new();
    }
    let shipped = without_tests(&file.text);
    let code = take_apart(shipped).code;
    let starts = code.match_indices("Command::new(").filter(|(at, _)| !code[..*at].ends_with("clap::"));
    starts.map(|(at, _)| format!("{}:{}: starts a program", file.path, line_of(shipped, at))).collect()
}

/// What ships; the conformance suite and the files of tests only look like it.
fn shipped_rust() -> Vec<File> {
    let all = rust_below(&["crates/taskbus-core/src/", "crates/taskbus/src/", "crates/taskbus-cli/src/"]);
    all.into_iter().filter(|file| !is_tests(&file.path)).collect()
}

fn is_written_by_hand(file: &File) -> bool {
    [".rs", ".py", ".sh", ".toml", "justfile", "test", "tests/deny", "tests/sbom", "tests/clients/run"]
        .iter()
        .any(|end| file.path == *end || (end.starts_with('.') && file.path.ends_with(end)))
}

mod tests {
    use super::*;

    fn sample(text: &str) -> File {
        File { path: "sample.rs".to_owned(), text: text.to_owned() }
    }

    #[test]
    fn each_check_finds_its_broken_sample() {
        assert!(too_long(&sample(&"x\n".repeat(601))).is_some() && too_long(&sample(&"x\n".repeat(600))).is_none());
        assert!(no_heading(&sample("use a;")).is_some() && no_heading(&sample("//! b")).is_none());
        assert_eq!(open_ends(&sample(&format!("a\n// {} b", OPEN_ENDS[0]))).len(), 1);
        assert_eq!(open_ends(&sample("fn a() { todo!() } // todo! in words")).len(), 1);
        assert_eq!(places(&sample(&format!("\"{}x\"", PLACES[0]))).len(), 1);
        assert_eq!(bare_expects(&sample("a.expect(\"b\"); c.expect(\"BUG: d\");")).len(), 1);
        assert!(bare_expects(&sample("\n#[cfg(test)]\nmod tests {\n a.expect(\"b\");")).is_empty());
    }

    #[test]
    fn files_are_short() {
        no_complaints(&rust_below(&["crates/"]).iter().filter_map(too_long).collect::<Vec<_>>());
    }

    #[test]
    fn files_open_with_a_heading() {
        no_complaints(&rust_below(&["crates/"]).iter().filter_map(no_heading).collect::<Vec<_>>());
    }

    #[test]
    fn nothing_is_left_open() {
        let ours = files().into_iter().filter(is_written_by_hand);
        no_complaints(&ours.flat_map(|file| open_ends(&file)).collect::<Vec<_>>());
    }

    #[test]
    fn no_file_names_a_machine_or_a_registry_host() {
        let foreign = |file: &File| file.path == "Cargo.lock";
        no_complaints(&files().iter().filter(|file| !foreign(file)).flat_map(places).collect::<Vec<_>>());
    }

    #[test]
    fn programs_are_started_where_it_is_known() {
        assert_eq!(starts_programs(&sample("fn a() { Command::new(\"sh\"); }")).len(), 1);
        assert!(
            starts_programs(&File { path: format!("{}x.rs", STARTERS[1]), ..sample("Command::new(a)") }).is_empty()
        );
        no_complaints(&shipped_rust().iter().flat_map(starts_programs).collect::<Vec<_>>());
    }

    #[test]
    fn an_expect_names_an_invariant() {
        no_complaints(&shipped_rust().iter().flat_map(bare_expects).collect::<Vec<_>>());
    }
}
