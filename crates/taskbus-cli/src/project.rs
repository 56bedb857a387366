//! Which list: `--list`, `TASKBUS_LIST`, or the project's own. A project is the repository around
//! `CLAUDE_PROJECT_DIR` or the current directory; all its worktrees share one list, because the list is named
//! after the directory that they have in common. `/` and the home directory are never a project.
//!
//! Git is not run; only its small pointer files are read (gitrepository-layout(5)).

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use taskbus_core::limits;
use taskbus_core::name::ListName;
use taskbus_core::text::TextError;

/// A list, and how it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChosenList {
    /// Which.
    pub(crate) name: ListName,
    /// Why this one.
    pub(crate) source: Source,
}

/// How a list was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Somebody named it.
    Named,
    /// It belongs to the project in this directory.
    Project(PathBuf),
    /// The store has no other.
    Only,
}

/// Why no list was found. All of them are errors of usage.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProjectError {
    /// The name is none.
    #[error("the list name {given:?} {error}")]
    Name {
        /// What was given.
        given: String,
        /// What is wrong.
        error: TextError,
    },
    /// The current directory was deleted or may not be read.
    #[error("the current directory cannot be found ({0}); change into another one, or pass --list NAME")]
    NoDirectory(io::Error),
    /// Nothing around here is a project.
    #[error("{} is in no Git repository, so it has no list of its own; pass --list NAME or set TASKBUS_LIST", .0.display())]
    NoProject(PathBuf),
    /// A place that is never a project.
    #[error("{} is no project; change into one, pass --list NAME or set TASKBUS_LIST", .0.display())]
    NeverAProject(PathBuf),
    /// Another list than the only one of the store.
    #[error("the store {store} has one list, {only}, and not {given}; leave --list and TASKBUS_LIST out")]
    NotTheOnlyOne {
        /// The store.
        store: String,
        /// Its list.
        only: ListName,
        /// What was named.
        given: ListName,
    },
    /// `CLAUDE_PROJECT_DIR` names nothing.
    #[error("CLAUDE_PROJECT_DIR is {}, which is no directory; correct it, or pass --list NAME", .0.display())]
    NoSuchProject(PathBuf),
}

/// What the choice depends on, besides the file system.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surroundings {
    /// `--list` or `TASKBUS_LIST`.
    pub(crate) named: Option<String>,
    /// `CLAUDE_PROJECT_DIR`.
    pub(crate) project_dir: Option<PathBuf>,
    /// The home directory.
    pub(crate) home: Option<PathBuf>,
}

impl Surroundings {
    /// Reads the environment; `named` is what the command line or `TASKBUS_LIST` said.
    pub(crate) fn from_env(named: Option<String>) -> Self {
        let dir = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        Self { named, project_dir: dir("CLAUDE_PROJECT_DIR"), home: etcetera::home_dir().ok() }
    }
}

/// The list to work on.
pub(crate) fn choose(around: &Surroundings) -> Result<ChosenList, ProjectError> {
    if let Some(name) = named(around.named.as_deref())? {
        return Ok(ChosenList { name, source: Source::Named });
    }
    let root = project_root(around)?;
    Ok(ChosenList { name: list_name(&root), source: Source::Project(root) })
}

/// The list to work on where the store has just one; somebody who named another one is told.
pub(crate) fn choose_only(given: Option<&str>, only: ListName, store: &str) -> Result<ChosenList, ProjectError> {
    match named(given)? {
        Some(given) if given != only => Err(ProjectError::NotTheOnlyOne { store: store.to_owned(), only, given }),
        Some(_) | None => Ok(ChosenList { name: only, source: Source::Only }),
    }
}

/// A name that somebody gave.
fn named(given: Option<&str>) -> Result<Option<ListName>, ProjectError> {
    let Some(given) = given.filter(|given| !given.is_empty()) else { return Ok(None) };
    let name = ListName::from_short(given);
    name.map(Some).map_err(|error| ProjectError::Name { given: given.to_owned(), error })
}

fn project_root(around: &Surroundings) -> Result<PathBuf, ProjectError> {
    let (start, explicit) = start(around)?;
    let never = |dir: &Path| is_never_a_project(dir, around.home.as_deref());
    if never(&start) {
        return Err(ProjectError::NeverAProject(start));
    }
    match common_root(&start).filter(|root| !never(root)) {
        Some(root) => Ok(root),
        None if explicit => Ok(start),
        None => Err(ProjectError::NoProject(start)),
    }
}

/// Where to look, and whether somebody named that place.
fn start(around: &Surroundings) -> Result<(PathBuf, bool), ProjectError> {
    if let Some(dir) = &around.project_dir {
        let found = fs::canonicalize(dir).ok().filter(|dir| dir.is_dir());
        return found.map(|dir| (dir, true)).ok_or_else(|| ProjectError::NoSuchProject(dir.clone()));
    }
    let dir = std::env::current_dir().and_then(fs::canonicalize).map_err(ProjectError::NoDirectory)?;
    Ok((dir, false))
}

fn is_never_a_project(dir: &Path, home: Option<&Path>) -> bool {
    dir.parent().is_none() || home.is_some_and(|home| same_place(dir, home))
}

fn same_place(a: &Path, b: &Path) -> bool {
    a == b || fs::canonicalize(b).is_ok_and(|b| a == b)
}

/// The directory that stands for the repository around `start`: the main working tree, or the bare repository.
fn common_root(start: &Path) -> Option<PathBuf> {
    start.ancestors().find_map(common_dir).map(|dir| root_of(&dir))
}

/// The common directory of the repository whose working tree, or whose inside, begins at `dir`.
fn common_dir(dir: &Path) -> Option<PathBuf> {
    let dot_git = dir.join(".git");
    let git_dir = if dot_git.is_dir() { dot_git } else { pointed_at(&dot_git).or_else(|| is_bare(dir))? };
    let common = fs::read_to_string(git_dir.join("commondir"));
    Some(common.map_or(git_dir.clone(), |path| tidied(&git_dir.join(path.trim_end_matches(['\n', '\r'])))))
}

/// The repository that a `.git` file points at.
fn pointed_at(dot_git: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(dot_git).ok()?;
    let path = text.strip_prefix("gitdir:")?.trim();
    Some(tidied(&dot_git.parent()?.join(path)))
}

fn is_bare(dir: &Path) -> Option<PathBuf> {
    let is_one = dir.join("HEAD").is_file() && dir.join("objects").is_dir() && dir.join("refs").is_dir();
    is_one.then(|| dir.to_owned())
}

/// `.git` and other hidden directories belong to the directory around them; a bare repository or a submodule's
/// directory stands for itself.
fn root_of(common: &Path) -> PathBuf {
    let hidden = common.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    match common.parent() {
        Some(parent) if hidden => parent.to_owned(),
        _ => common.to_owned(),
    }
}

/// Resolves links if the path exists, else only the `..` in it.
fn tidied(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| {
        path.components().fold(PathBuf::new(), |mut tidy, part| {
            if part == Component::ParentDir {
                tidy.pop();
            } else {
                tidy.push(part);
            }
            tidy
        })
    })
}

/// The list named after a directory: what no list name may have is replaced or cut.
fn list_name(root: &Path) -> ListName {
    let name = root.file_name().unwrap_or(OsStr::new("project")).to_string_lossy();
    let name = name.strip_suffix(".git").filter(|name| !name.is_empty()).unwrap_or(&name);
    let name: String = name.chars().map(|c| if c.is_control() || is_separator(c) { '-' } else { c }).collect();
    let name = &name[..name.floor_char_boundary(limits::LIST_NAME_BYTES_MAX)];
    let plain = || ListName::from_short("project").expect("BUG: a plain word is a list name");
    ListName::new(format!("{}{name}", ListName::PREFIX)).unwrap_or_else(|_| plain())
}

fn is_separator(c: char) -> bool {
    matches!(c, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tempfile::TempDir;

    fn git_dir(dir: &Path) {
        fs::create_dir_all(dir.join("objects")).unwrap();
        fs::create_dir_all(dir.join("refs")).unwrap();
        fs::write(dir.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    }

    fn place() -> (TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().canonicalize().unwrap();
        (place, path)
    }

    fn chosen(dir: &Path, home: Option<&Path>) -> Result<ChosenList, ProjectError> {
        choose(&Surroundings { named: None, project_dir: Some(dir.to_owned()), home: home.map(Path::to_owned) })
    }

    #[track_caller]
    fn check(dir: &Path, name: &str) {
        assert_eq!(chosen(dir, None).unwrap().name.short(), name, "{}", dir.display());
    }

    #[test]
    fn a_repository_and_its_worktrees_share_a_list() {
        let (_keep, at) = place();
        git_dir(&at.join("widget/.git"));
        fs::create_dir_all(at.join("widget/src/deep")).unwrap();
        fs::create_dir_all(at.join("widget/.git/worktrees/fix")).unwrap();
        fs::write(at.join("widget/.git/worktrees/fix/commondir"), "../..\n").unwrap();
        fs::create_dir_all(at.join("elsewhere/fix/src")).unwrap();
        let pointer = format!("gitdir: {}\n", at.join("widget/.git/worktrees/fix").display());
        fs::write(at.join("elsewhere/fix/.git"), pointer).unwrap();
        for dir in ["widget", "widget/src/deep", "elsewhere/fix", "elsewhere/fix/src"] {
            check(&at.join(dir), "widget");
        }
    }

    #[test]
    fn bare_repositories_count() {
        let (_keep, at) = place();
        git_dir(&at.join("widget.git"));
        check(&at.join("widget.git"), "widget");
        check(&at.join("widget.git/refs"), "widget");
        git_dir(&at.join("house/.bare"));
        fs::write(at.join("house/.git"), "gitdir: ./.bare\n").unwrap();
        check(&at.join("house"), "house");
    }

    #[test]
    fn submodules_and_nested_repositories_are_their_own() {
        let (_keep, at) = place();
        git_dir(&at.join("outer/.git"));
        git_dir(&at.join("outer/.git/modules/part"));
        fs::create_dir_all(at.join("outer/part")).unwrap();
        fs::write(at.join("outer/part/.git"), "gitdir: ../.git/modules/part\n").unwrap();
        git_dir(&at.join("outer/inner/.git"));
        check(&at.join("outer/part"), "part");
        check(&at.join("outer/inner"), "inner");
        check(&at.join("outer"), "outer");
    }

    #[test]
    fn home_and_the_root_are_never_projects() {
        let (_keep, at) = place();
        git_dir(&at.join(".git"));
        fs::create_dir_all(at.join("notes")).unwrap();
        assert!(matches!(chosen(&at, Some(&at)), Err(ProjectError::NeverAProject(_))));
        assert!(matches!(chosen(Path::new("/"), None), Err(ProjectError::NeverAProject(_))));
        assert_eq!(chosen(&at.join("notes"), Some(&at)).unwrap().name.short(), "notes");
    }

    #[test]
    fn a_directory_that_is_not_there_is_an_error() {
        let (_keep, at) = place();
        let error = chosen(&at.join("gone"), None).unwrap_err();
        assert!(error.to_string().contains("CLAUDE_PROJECT_DIR"), "{error}");
    }

    #[test]
    fn directory_names_become_list_names() {
        let check = |dir: &str, name: &str| assert_eq!(list_name(Path::new(dir)).short(), name, "{dir:?}");
        check("/a/my project", "my project");
        check("/a/tab\there", "tab-here");
        check("/a/.git", ".git");
        check("/a/日本語.git", "日本語");
        check("/a/\u{200b}", "project");
        check(&format!("/a/{}", "é".repeat(100)), &"é".repeat(64));
    }

    #[test]
    fn where_there_is_one_list_another_is_refused() {
        let only = ListName::from_short("s-1").unwrap();
        for given in [None, Some(""), Some("s-1"), Some("tasks/s-1")] {
            let chosen = choose_only(given, only.clone(), "file:x").unwrap();
            assert_eq!(chosen, ChosenList { name: only.clone(), source: Source::Only }, "{given:?}");
        }
        let error = choose_only(Some("other"), only, "file:x").unwrap_err().to_string();
        assert!(error.contains("file:x has one list, tasks/s-1, and not tasks/other"), "{error}");
    }

    #[test]
    fn a_name_wins_and_a_bad_one_is_refused() {
        let around = |name: &str| Surroundings { named: Some(name.to_owned()), ..Surroundings::default() };
        assert_eq!(choose(&around("demo")).unwrap().name, choose(&around("tasks/demo")).unwrap().name);
        for bad in ["a/b", "tasks/", " ", "a\nb"] {
            assert!(matches!(choose(&around(bad)), Err(ProjectError::Name { .. })), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn every_directory_name_becomes_a_list_name(name in any::<String>()) {
            let list = list_name(&Path::new("/a").join(name));
            prop_assert!(list.as_str().starts_with(ListName::PREFIX));
        }
    }
}
