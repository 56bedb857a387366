//! The repository as the checks see it: its files, as git lists them, and cargo's view of the dependencies.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file of the repository that is text.
pub(crate) struct File {
    /// Its path from the root, with `/`.
    pub(crate) path: String,
    /// Its text.
    pub(crate) text: String,
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("two levels up").to_path_buf()
}

/// Every text file that is tracked, or will be when it is added, by path.
pub(crate) fn files() -> Vec<File> {
    let listing = run("git", &["-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard"]);
    let paths: BTreeSet<&str> = listing.split('\0').filter(|path| !path.is_empty()).collect();
    paths.into_iter().filter_map(read).collect()
}

/// The Rust files below one of these folders.
pub(crate) fn rust_below(folders: &[&str]) -> Vec<File> {
    let below = |file: &File| folders.iter().any(|folder| file.path.starts_with(folder));
    files().into_iter().filter(|file| file.path.ends_with(".rs") && below(file)).collect()
}

/// One file of the repository.
pub(crate) fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Runs a program in the root and returns what it prints.
pub(crate) fn run(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).current_dir(root()).output();
    let output = output.unwrap_or_else(|error| panic!("{program} cannot be started: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {} failed: {errors}", args.join(" "));
    String::from_utf8(output.stdout).expect("its output is UTF-8")
}

/// Fails with every complaint, one a line.
#[track_caller]
pub(crate) fn no_complaints(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

fn read(path: &str) -> Option<File> {
    let bytes = std::fs::read(root().join(path)).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    Some(File { path: path.to_owned(), text })
}
