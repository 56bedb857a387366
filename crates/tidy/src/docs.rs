//! Checks of the documents: the paths, links and commands in them exist, and the records are numbered.

use std::collections::BTreeSet;

use crate::repo::{File, files, no_complaints, root, rust_below, text};
use crate::source::{is_tests, only_tests, words};

const GLOSSARY: &str = "docs/glossary.md";
const RECORDS: &str = "docs/adr/";
const LIMITS: &str = "crates/taskbus-core/src/limits.rs";

fn documents() -> Vec<File> {
    files().into_iter().filter(|file| file.path.ends_with(".md")).collect()
}

/// The targets of `[text](target)` that are files of the repository.
fn links(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.map(|t| t.split('#').next().unwrap_or(t)).filter(|t| !t.is_empty() && !t.contains("://")).collect()
}

fn broken_links(file: &File) -> Vec<String> {
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let broken = links(&file.text).into_iter().filter(|link| !root().join(folder).join(link).exists());
    broken.map(|link| format!("{}: links to {link}, which does not exist", file.path)).collect()
}

/// What stands between single back ticks, outside of code blocks.
fn quoted(text: &str) -> Vec<&str> {
    let prose = text.split("```").step_by(2);
    prose.flat_map(|part| part.split('`').skip(1).step_by(2)).collect()
}

fn looks_like_a_path(word: &str) -> bool {
    let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c));
    let tops = ["crates/", "docs/", "tests/", "examples/", ".ci/"];
    plain && tops.iter().any(|top| word.starts_with(top))
}

fn missing_paths(file: &File) -> Vec<String> {
    let missing = quoted(&file.text).into_iter().filter(|w| looks_like_a_path(w)).filter(|w| !root().join(w).exists());
    missing.map(|path| format!("{}: names `{path}`, which does not exist", file.path)).collect()
}

/// Documents that a source text names, and that are not there.
fn missing_documents(file: &File) -> Vec<String> {
    let inside = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let named = file.text.split(|c| !inside(c)).map(|word| word.trim_start_matches(['.', '/']));
    let documents = named.filter(|word| word.ends_with(".md") && word.len() > 3 && !word.starts_with('-'));
    let missing = documents.filter(|word| !root().join(word).exists() && !root().join("examples").join(word).exists());
    missing.map(|word| format!("{}: names {word}, which does not exist", file.path)).collect()
}

/// A record is `NNNN-words.md` and opens with `# NNNN Words`.
fn bad_record(at: usize, file: &File) -> Option<String> {
    let number = format!("{:04}", at + 1);
    let named = file.path.starts_with(&format!("{RECORDS}{number}-")) && file.path.ends_with(".md");
    let headed = file.text.starts_with(&format!("# {number} "));
    let parts =
        ["\n## Context\n", "\n## Decision\n", "\n## Consequences\n"].iter().all(|part| file.text.contains(part));
    (!(named && headed && parts)).then(|| {
        format!(
            "{}: record {number} in order needs this number in name and heading, and Context, Decision, Consequences",
            file.path
        )
    })
}

/// The words that a table in the glossary defines.
fn glossary_words(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("| **")?.split("**").next()).collect()
}

/// Whether code or comments use a word, in any of its usual forms.
fn is_used(word: &str, lower_case_code: &str) -> bool {
    let word = word.to_lowercase();
    [word.clone(), word.replace('-', "_"), format!("{word}s"), format!("{word}ed"), format!("{word}d")]
        .iter()
        .any(|form| words(lower_case_code, form).next().is_some())
}

/// The names of `pub const`s.
fn constants(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("pub const ")?.split(':').next()).collect()
}

fn without_test<'a>(names: &[&'a str], tests: &str) -> Vec<&'a str> {
    names.iter().filter(|name| words(tests, name).next().is_none()).copied().collect()
}

/// The folders below `crates` that hold code, and the crates themselves, without their integration tests.
fn code_folders() -> BTreeSet<String> {
    let ours = rust_below(&["crates/"]).into_iter().filter(|file| file.path.contains("/src/"));
    let folder = |file: File| file.path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    let folders: BTreeSet<String> = ours.filter_map(folder).collect();
    let crates = folders.iter().filter_map(|folder| Some(folder.split_once("/src")?.0.to_owned()));
    crates.chain(folders.clone()).collect()
}

/// The folders that no first cell of the code map names.
fn unmapped(map: &str, folders: &BTreeSet<String>) -> Vec<String> {
    let row = |folder: &String| map.contains(&format!("\n| `{folder}` |"));
    let missing = folders.iter().filter(|folder| !row(folder));
    missing.map(|folder| format!("ARCHITECTURE.md: the code map has no row for {folder}")).collect()
}

/// Everything that only tests see.
fn all_tests() -> String {
    let text = |file: File| if is_tests(&file.path) { file.text } else { only_tests(&file.text).to_owned() };
    let ours = rust_below(&["crates/"]).into_iter().filter(|file| !file.path.starts_with("crates/tidy/"));
    ours.map(text).collect()
}

mod tests {
    use super::*;

    fn sample(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn each_check_finds_its_broken_sample() {
        assert_eq!(
            broken_links(&sample("docs/a.md", "[b](../README-none.md) [c](glossary.md) [d](https://e.f)")).len(),
            1
        );
        assert_eq!(missing_paths(&sample("a.md", "`crates/none` `crates/tidy` ```\n`crates/none2`\n```")).len(), 1);
        assert_eq!(missing_documents(&sample("a.rs", "//! See (docs/rules.md 4; none/at-all.md).")).len(), 1);
        assert!(bad_record(0, &sample("docs/adr/0002-a.md", "# 0002 A")).is_some());
        assert!(
            bad_record(0, &sample("docs/adr/0001-a.md", "# 0001 A\n\n## Context\n\n## Decision\n\n## Consequences\n"))
                .is_none()
        );
        assert_eq!(glossary_words("| **a b** | c |\n| d | e |"), ["a b"]);
        let folders = BTreeSet::from(["a/src".to_owned(), "a/src/b".to_owned()]);
        assert_eq!(unmapped("\n| `a/src` | c |", &folders).len(), 1);
        assert!(is_used("claim", "it was claimed") && !is_used("claim", "reclaimers"));
        assert_eq!(without_test(&constants("pub const A_MAX: u8 = 1;\npub const B: u8 = 2;\n"), "x(A_MAX)"), ["B"]);
    }

    #[test]
    fn links_lead_somewhere() {
        no_complaints(&documents().iter().flat_map(broken_links).collect::<Vec<_>>());
    }

    #[test]
    fn named_paths_exist() {
        no_complaints(&documents().iter().flat_map(missing_paths).collect::<Vec<_>>());
    }

    #[test]
    fn sources_name_documents_that_exist() {
        let ours = rust_below(&["crates/taskbus"]).into_iter().filter(|file| !is_tests(&file.path));
        no_complaints(&ours.flat_map(|file| missing_documents(&file)).collect::<Vec<_>>());
    }

    #[test]
    fn the_code_map_is_whole() {
        no_complaints(&unmapped(&text("ARCHITECTURE.md"), &code_folders()));
    }

    #[test]
    fn records_are_numbered_without_a_gap() {
        let records: Vec<File> = files().into_iter().filter(|file| file.path.starts_with(RECORDS)).collect();
        no_complaints(&records.iter().enumerate().filter_map(|(at, file)| bad_record(at, file)).collect::<Vec<_>>());
    }

    #[test]
    fn glossary_words_are_in_use() {
        let code: String = rust_below(&["crates/taskbus"]).into_iter().map(|file| file.text.to_lowercase()).collect();
        let glossary = text(GLOSSARY);
        let unused = glossary_words(&glossary).into_iter().filter(|word| !is_used(word, &code));
        no_complaints(&unused.map(|word| format!("{GLOSSARY}: nothing is called {word}")).collect::<Vec<_>>());
    }

    #[test]
    fn every_limit_has_a_test() {
        let (limits, tests) = (text(LIMITS), all_tests());
        let untested = without_test(&constants(&limits), &tests);
        no_complaints(&untested.iter().map(|name| format!("{LIMITS}: no test mentions {name}")).collect::<Vec<_>>());
    }

    #[test]
    fn the_two_commands_of_the_readme_are_there() {
        let readme = text("README.md");
        for command in ["cargo run --release -- demo", "./test"] {
            assert!(readme.lines().any(|line| line.starts_with(command)), "README.md does not show {command}");
        }
        let mode = std::fs::metadata(root().join("test")).expect("./test is there").permissions();
        assert!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o111 != 0, "./test cannot be executed");
        assert!(text(".ci/run").contains("/test\""), "CI runs something else than ./test");
    }

    #[test]
    fn the_changelog_has_room_for_the_next_change() {
        assert!(text("CHANGELOG.md").contains("\n## Unreleased\n"));
    }
}
