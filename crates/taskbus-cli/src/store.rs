//! Which store: `--store URL`, `TASKBUS_STORE`, the configuration, or the default place. Opening is left to the library.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use taskbus::store::claude::{ClaudeOptions, ClaudeStore, PlaceError, Surroundings, list_directory};
use taskbus::store::memory::MemoryStore;
use taskbus::store::rows::RowStore;
use taskbus::store::sidecar::{NameError, Options, Sidecar, check_session};
use taskbus::store::small::Small;
use taskbus::store::sqlite::{Accepted, HighWater, Recorded, SqliteOptions, SqliteStore};
use taskbus::store::{Store, StoreError};

use crate::config::Config;
use crate::term::failure::Failure;

/// Where the tasks are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreUrl {
    /// One SQLite file.
    Sqlite(PathBuf),
    /// This process only.
    Memory,
    /// One Kin sidecar.
    Sidecar(PathBuf),
    /// The Kin sidecar of a session, in the directory of its journal.
    Session {
        /// The directory.
        dir: PathBuf,
        /// The session's id.
        id: String,
    },
    /// A task directory of Claude Code.
    Claude(PathBuf),
}

impl StoreUrl {
    /// Whether it keeps one list, the same for everybody, and no sessions.
    pub(crate) fn is_one_list(&self) -> bool {
        match self {
            StoreUrl::Sqlite(_) | StoreUrl::Memory => false,
            StoreUrl::Sidecar(_) | StoreUrl::Session { .. } | StoreUrl::Claude(_) => true,
        }
    }
}

/// What is wrong with a store's name. All of them are errors of usage.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UrlError {
    /// A scheme that this build does not have.
    #[error(
        "there is no store {given:?}; use sqlite:PATH (the usual one), memory: (gone when the process ends), file:PATH (a Kin sidecar) or claude:DIR (a task directory of Claude Code)"
    )]
    Unknown {
        /// What was given.
        given: String,
    },
    /// No path after the scheme.
    #[error("{scheme} names no file; write {scheme}PATH")]
    NoPath {
        /// The scheme.
        scheme: &'static str,
    },
    /// `sqlite://x`, which could mean `x` or `/x`.
    #[error("{given:?} is ambiguous; write {scheme}PATH with one colon and the path as it is")]
    Slashes {
        /// What was given.
        given: String,
        /// The scheme.
        scheme: &'static str,
    },
    /// `~` that no shell has expanded.
    #[error("{given:?} begins with ~, which only a shell expands; write the directory out, or $HOME")]
    Tilde {
        /// What was given.
        given: String,
    },
    /// An option behind the path that a sidecar does not have.
    #[error("{given:?} is no option of file:; write file:PATH, or file:DIR?session=ID for the sidecar of a session")]
    Option {
        /// What stands behind the question mark.
        given: String,
    },
    /// A session id that cannot be part of a file's name.
    #[error(transparent)]
    Session(NameError),
    /// Nothing says which list of Claude Code is meant.
    #[error(transparent)]
    Claude(PlaceError),
    /// No home directory to put the default store into.
    #[error("neither XDG_DATA_HOME nor HOME says where to keep tasks; set one of them or pass --store sqlite:PATH")]
    NoHome,
}

/// The store to open: what was given, else what the configuration says.
pub(crate) fn choose(given: Option<&OsStr>, config: &Config) -> Result<StoreUrl, UrlError> {
    match given.filter(|given| !given.is_empty()).or(config.store().map(OsStr::new)) {
        Some(given) => named(given),
        None => default_url(config),
    }
}

/// The store with this name.
pub(crate) fn named(given: &OsStr) -> Result<StoreUrl, UrlError> {
    parse(given, &claude_surroundings)
}

/// Who opens a store (ADR 0017).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opener {
    /// A session that begins: what earlier ones left in progress for too long is given back, where the policy says so.
    Session,
    /// One command, beside a session that may be at work.
    Command,
}

/// Opens the store.
pub(crate) fn open(url: &StoreUrl, options: SqliteOptions, opener: Opener) -> Result<Arc<dyn Store>, StoreError> {
    match url {
        StoreUrl::Sqlite(path) => Ok(Arc::new(SqliteStore::lazy(path, options))),
        StoreUrl::Memory => Ok(Arc::new(MemoryStore::new())),
        StoreUrl::Sidecar(path) => over(Sidecar::at(path, Options::default())?, opener),
        StoreUrl::Session { dir, id } => over(Sidecar::of_session(dir, id, Options::default())?, opener),
        StoreUrl::Claude(dir) => over(open_claude(dir)?, opener),
    }
}

fn over(rows: impl RowStore + 'static, opener: Opener) -> Result<Arc<dyn Store>, StoreError> {
    Ok(match opener {
        Opener::Session => Arc::new(Small::new(rows)?),
        Opener::Command => Arc::new(Small::beside(rows)?),
    })
}

/// Opens a task directory of Claude Code.
pub(crate) fn open_claude(dir: &Path) -> Result<ClaudeStore, StoreError> {
    ClaudeStore::open(dir, ClaudeOptions::default())
}

/// What does not add up in a store; empty when all is well. Reads everything.
pub(crate) fn check(url: &StoreUrl, options: SqliteOptions) -> Result<Vec<String>, StoreError> {
    match url {
        StoreUrl::Sqlite(path) => SqliteStore::open(path, options)?.check(),
        StoreUrl::Claude(dir) => {
            let problems = open_claude(dir)?.problems()?;
            Ok(problems.iter().map(ToString::to_string).collect())
        }
        // Whoever could open it has read it whole.
        StoreUrl::Memory | StoreUrl::Sidecar(_) | StoreUrl::Session { .. } => Ok(Vec::new()),
    }
}

/// The store as what it is, not opened yet; a usage error for others, which are files that can be copied.
pub(crate) fn as_sqlite(url: &StoreUrl, options: SqliteOptions) -> Result<SqliteStore, Failure> {
    match url {
        StoreUrl::Sqlite(path) => Ok(SqliteStore::lazy(path, options)),
        StoreUrl::Memory | StoreUrl::Sidecar(_) | StoreUrl::Session { .. } | StoreUrl::Claude(_) => Err(
            Failure::usage("only a store in SQLite (sqlite:PATH) is backed up this way; copy the files of any other"),
        ),
    }
}

/// How a store stands against the file that says which numbers were acknowledged; none if it has no such file.
pub(crate) fn high_water(url: &StoreUrl, options: SqliteOptions) -> Result<Option<String>, Failure> {
    let StoreUrl::Sqlite(path) = url else { return Ok(None) };
    let HighWater { seq, epoch, recorded } = SqliteStore::open(path, options)?.high_water()?;
    let told = match recorded {
        Recorded::Seq(noted) => format!("{noted} was acknowledged"),
        Recorded::Nothing => "the high-water file has none yet".to_owned(),
        Recorded::Foreign => "the high-water file was another store's; the next change writes it anew".to_owned(),
        Recorded::Permitted(lost) => format!("those up to {lost} went with a restart, as relaxed durability permits"),
        Recorded::Unusable(why) => return Err(Failure::Broken(format!("the high-water file cannot be used: {why}"))),
        Recorded::Lost(lost) => {
            return Err(Failure::Broken(format!(
                "acknowledged changes are missing: the newest number is {seq}, but {lost} was given out; put the newer \
                 file back together with its log, or go on without what is lost: taskbus doctor --accept-rollback"
            )));
        }
    };
    Ok(Some(format!("newest is {seq} of epoch {epoch}, {told}")))
}

/// Goes on with a store that lost acknowledged changes.
pub(crate) fn accept_rollback(url: &StoreUrl, options: SqliteOptions) -> Result<String, Failure> {
    let StoreUrl::Sqlite(path) = url else {
        return Err(Failure::usage(
            "--accept-rollback is about stores in SQLite; this one keeps no numbers to go on from",
        ));
    };
    Ok(match SqliteStore::open(path, options)?.accept_rollback()? {
        None => "nothing is missing, nothing was changed".to_owned(),
        Some(Accepted { epoch, kept, lost }) => {
            format!(
                "epoch {epoch} begins; changes after {kept} are lost, and no number up to {lost} is given out again"
            )
        }
    })
}

const SQLITE: &str = "sqlite:";
const FILE: &str = "file:";
const CLAUDE: &str = "claude:";

fn parse(given: &OsStr, around: &dyn Fn() -> Surroundings) -> Result<StoreUrl, UrlError> {
    if given == "memory:" {
        return Ok(StoreUrl::Memory);
    }
    if given == CLAUDE {
        return list_directory(&around()).map(StoreUrl::Claude).map_err(UrlError::Claude);
    }
    let schemes = [SQLITE, FILE, CLAUDE].into_iter();
    let found = schemes.filter_map(|scheme| Some((scheme, strip_prefix(given, scheme)?))).next();
    let Some((scheme, rest)) = found else {
        return Err(UrlError::Unknown { given: without_password(&given.to_string_lossy()) });
    };
    check_path(given, scheme, &rest)?;
    match scheme {
        SQLITE => Ok(StoreUrl::Sqlite(rest.into())),
        FILE => sidecar(&rest),
        _ => Ok(StoreUrl::Claude(rest.into())),
    }
}

fn check_path(given: &OsStr, scheme: &'static str, path: &OsStr) -> Result<(), UrlError> {
    let shown = || given.to_string_lossy().into_owned();
    match path.as_encoded_bytes() {
        [] => Err(UrlError::NoPath { scheme }),
        [b'~'] | [b'~', b'/', ..] => Err(UrlError::Tilde { given: shown() }),
        [b'/', b'/', third, ..] if *third != b'/' => Err(UrlError::Slashes { given: shown(), scheme }),
        _ => Ok(()),
    }
}

/// `PATH`, or `DIR?session=ID`. A question mark with something like an option behind it is not taken for a path.
fn sidecar(rest: &OsStr) -> Result<StoreUrl, UrlError> {
    let bytes = rest.as_bytes();
    let mark = bytes.iter().rposition(|byte| *byte == b'?').filter(|at| bytes[*at..].contains(&b'='));
    let Some(at) = mark else { return Ok(StoreUrl::Sidecar(rest.into())) };
    let option = String::from_utf8_lossy(&bytes[at + 1..]).into_owned();
    let Some(id) = option.strip_prefix("session=") else { return Err(UrlError::Option { given: option }) };
    check_session(id).map_err(UrlError::Session)?;
    let dir = if at == 0 { OsStr::new(".") } else { OsStr::from_bytes(&bytes[..at]) };
    Ok(StoreUrl::Session { dir: dir.into(), id: id.to_owned() })
}

/// What the environment says about Claude Code's list.
fn claude_surroundings() -> Surroundings {
    let text = |name| std::env::var(name).ok().filter(|text: &String| !text.is_empty());
    Surroundings {
        config_dir: std::env::var_os("CLAUDE_CONFIG_DIR").map(PathBuf::from),
        home: etcetera::home_dir().ok(),
        list_id: text("CLAUDE_CODE_TASK_LIST_ID"),
        session_id: text("CLAUDE_CODE_SESSION_ID"),
        has_teams: text("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS").is_some_and(|text| text != "0" && text != "false"),
    }
}

/// Keeps bytes that are no UTF-8: a path is not text.
fn strip_prefix(text: &OsStr, prefix: &str) -> Option<OsString> {
    text.as_bytes().strip_prefix(prefix.as_bytes()).map(|rest| OsStr::from_bytes(rest).to_owned())
}

fn default_url(config: &Config) -> Result<StoreUrl, UrlError> {
    let dir = config.data_directory().ok_or(UrlError::NoHome)?;
    Ok(StoreUrl::Sqlite(dir.join("taskbus.db")))
}

/// A URL as it may be shown: whoever it names to log in, and with what, is left out, and so are its options.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (rest, options) = rest.split_once('?').map_or((rest, ""), |(rest, _)| (rest, "?…"));
    let host = rest.find('/').unwrap_or(rest.len());
    match rest[..host].rfind('@') {
        Some(at) => format!("{scheme}://…{}{options}", &rest[at..]),
        None => format!("{scheme}://{rest}{options}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(given: &str) -> Result<StoreUrl, String> {
        let around = || Surroundings {
            home: Some("/home/zed".into()),
            list_id: Some("sprint".to_owned()),
            ..Surroundings::default()
        };
        parse(OsStr::new(given), &around).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn check(given: &str, expected: StoreUrl) {
        assert_eq!(parsed(given), Ok(expected), "{given}");
    }

    #[track_caller]
    fn refused(given: &str, words: &[&str]) {
        let error = parsed(given).unwrap_err();
        for word in words {
            assert!(error.contains(word), "{given}: {error}");
        }
    }

    fn session(dir: &str, id: &str) -> StoreUrl {
        StoreUrl::Session { dir: dir.into(), id: id.to_owned() }
    }

    #[test]
    fn a_password_is_not_repeated() {
        refused("mysql://zed:secret@db/tasks?password=secret", &["\"mysql://…@db/tasks?…\""]);
        for url in ["mysql://zed:secret@db", "mysql://zed:s@secret@db/a@b", "mysql://db?password=secret"] {
            assert!(!parsed(url).unwrap_err().contains("secret"), "{url}");
        }
        refused("mysql:tasks", &["\"mysql:tasks\""]);
        refused("mysql://db/tasks", &["\"mysql://db/tasks\""]);
    }

    #[test]
    fn stores_are_named_by_scheme() {
        check("memory:", StoreUrl::Memory);
        check("sqlite:a b#c?d%e.db", StoreUrl::Sqlite("a b#c?d%e.db".into()));
        check("sqlite:/x/y.db", StoreUrl::Sqlite("/x/y.db".into()));
        check("sqlite:///x/y.db", StoreUrl::Sqlite("///x/y.db".into()));
        check("file:/x/s-1.tasks.json", StoreUrl::Sidecar("/x/s-1.tasks.json".into()));
        check("file:what?.json", StoreUrl::Sidecar("what?.json".into()));
        check("file:/x/sessions?session=s-1", session("/x/sessions", "s-1"));
        check("file:?session=s-1", session(".", "s-1"));
        check("claude:/x/tasks/a", StoreUrl::Claude("/x/tasks/a".into()));
        check("claude:", StoreUrl::Claude("/home/zed/.claude/tasks/sprint".into()));
    }

    #[test]
    fn anything_else_is_explained() {
        for scheme in ["sqlite:", "file:"] {
            refused(scheme, &["names no file", &format!("{scheme}PATH")]);
        }
        for scheme in ["sqlite:", "file:", "claude:"] {
            refused(&format!("{scheme}~/x"), &["begins with ~", "$HOME"]);
            refused(&format!("{scheme}//x"), &["ambiguous", &format!("{scheme}PATH")]);
        }
        for given in ["x.db", "postgres://h/d", "memory", "SQLITE:x", "files:x"] {
            refused(given, &[given, "sqlite:PATH", "file:PATH", "claude:DIR"]);
        }
        refused("file:x?sesion=a", &["\"sesion=a\"", "file:DIR?session=ID"]);
        for id in ["", "../x", "a/b", ".hidden", "a b"] {
            refused(&format!("file:x?session={id}"), &["no plain name"]);
        }
    }

    #[test]
    fn claude_alone_needs_a_list() {
        let nowhere = || Surroundings { home: Some("/home/zed".into()), ..Surroundings::default() };
        let error = parse(OsStr::new("claude:"), &nowhere).unwrap_err().to_string();
        assert!(error.contains("CLAUDE_CODE_TASK_LIST_ID") && error.contains("claude:DIR"), "{error}");
    }

    #[test]
    fn a_path_is_not_text() {
        let given = OsStr::from_bytes(b"sqlite:/x/\xff.db");
        assert_eq!(named(given).unwrap(), StoreUrl::Sqlite(OsStr::from_bytes(b"/x/\xff.db").into()));
    }
}
