//! Which store: `--store URL`, `TASKBUS_STORE`, or the default place. Opening is left to the library.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;

use etcetera::BaseStrategy as _;
use taskbus::store::memory::MemoryStore;
use taskbus::store::sqlite::{SqliteOptions, SqliteStore};
use taskbus::store::{Store, StoreError};

/// Where the tasks are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreUrl {
    /// One SQLite file.
    Sqlite(PathBuf),
    /// This process only.
    Memory,
}

/// What is wrong with a store's name. All of them are errors of usage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UrlError {
    /// A scheme that this build does not have.
    #[error("there is no store {given:?}; use sqlite:PATH (the usual one) or memory: (gone when the process ends)")]
    Unknown {
        /// What was given.
        given: String,
    },
    /// No path after the scheme.
    #[error("sqlite: names no file; write sqlite:PATH")]
    NoPath,
    /// `sqlite://x`, which could mean `x` or `/x`.
    #[error("{given:?} is ambiguous; write sqlite:PATH with one colon and the path as it is")]
    Slashes {
        /// What was given.
        given: String,
    },
    /// `~` that no shell has expanded.
    #[error("{given:?} begins with ~, which only a shell expands; write the directory out, or $HOME")]
    Tilde {
        /// What was given.
        given: String,
    },
    /// No home directory to put the default store into.
    #[error("neither XDG_DATA_HOME nor HOME says where to keep tasks; set one of them or pass --store sqlite:PATH")]
    NoHome,
}

/// The store to open: what was given, else `sqlite:` in the user's data directory.
pub(crate) fn choose(given: Option<&OsStr>) -> Result<StoreUrl, UrlError> {
    match given.filter(|given| !given.is_empty()) {
        Some(given) => parse(given),
        None => default_url(),
    }
}

/// Opens the store.
pub(crate) fn open(url: &StoreUrl) -> Result<Arc<dyn Store>, StoreError> {
    Ok(match url {
        StoreUrl::Sqlite(path) => Arc::new(SqliteStore::lazy(path, SqliteOptions::default())),
        StoreUrl::Memory => Arc::new(MemoryStore::new()),
    })
}

/// What does not add up in a store; empty when all is well. Reads everything.
pub(crate) fn check(url: &StoreUrl) -> Result<Vec<String>, StoreError> {
    match url {
        StoreUrl::Sqlite(path) => SqliteStore::open(path, SqliteOptions::default())?.check(),
        StoreUrl::Memory => Ok(Vec::new()),
    }
}

fn parse(given: &OsStr) -> Result<StoreUrl, UrlError> {
    let shown = || given.to_string_lossy().into_owned();
    if given == "memory:" {
        return Ok(StoreUrl::Memory);
    }
    let Some(path) = strip_prefix(given, "sqlite:") else {
        return Err(UrlError::Unknown { given: shown() });
    };
    let bytes = path.as_encoded_bytes();
    match bytes {
        [] => Err(UrlError::NoPath),
        [b'~'] | [b'~', b'/', ..] => Err(UrlError::Tilde { given: shown() }),
        [b'/', b'/', third, ..] if *third != b'/' => Err(UrlError::Slashes { given: shown() }),
        _ => Ok(StoreUrl::Sqlite(path.into())),
    }
}

/// Keeps bytes that are no UTF-8: a path is not text.
fn strip_prefix(text: &OsStr, prefix: &str) -> Option<OsString> {
    use std::os::unix::ffi::OsStrExt as _;
    text.as_bytes().strip_prefix(prefix.as_bytes()).map(|rest| OsStr::from_bytes(rest).to_owned())
}

fn default_url() -> Result<StoreUrl, UrlError> {
    let base = etcetera::base_strategy::Xdg::new().map_err(|_| UrlError::NoHome)?;
    let dir = base.data_dir();
    if !dir.is_absolute() || dir.parent().is_none() {
        return Err(UrlError::NoHome);
    }
    Ok(StoreUrl::Sqlite(dir.join("taskbus").join("taskbus.db")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(given: &str, expected: &Result<StoreUrl, UrlError>) {
        assert_eq!(&choose(Some(OsStr::new(given))), expected, "{given}");
    }

    fn sqlite(path: &str) -> Result<StoreUrl, UrlError> {
        Ok(StoreUrl::Sqlite(path.into()))
    }

    #[test]
    fn stores_are_named_by_scheme() {
        check("memory:", &Ok(StoreUrl::Memory));
        check("sqlite:a b#c?d%e.db", &sqlite("a b#c?d%e.db"));
        check("sqlite:/x/y.db", &sqlite("/x/y.db"));
        check("sqlite:///x/y.db", &sqlite("///x/y.db"));
    }

    #[test]
    fn anything_else_is_explained() {
        check("sqlite:", &Err(UrlError::NoPath));
        check("sqlite:~/x.db", &Err(UrlError::Tilde { given: "sqlite:~/x.db".to_owned() }));
        check("sqlite://x.db", &Err(UrlError::Slashes { given: "sqlite://x.db".to_owned() }));
        for given in ["x.db", "postgres://h/d", "memory", "SQLITE:x", "file:x"] {
            let error = choose(Some(OsStr::new(given))).unwrap_err().to_string();
            assert!(error.contains(given) && error.contains("sqlite:PATH"), "{error}");
        }
    }

    #[test]
    fn a_path_is_not_text() {
        use std::os::unix::ffi::OsStrExt as _;
        let given = OsStr::from_bytes(b"sqlite:/x/\xff.db");
        assert_eq!(choose(Some(given)), Ok(StoreUrl::Sqlite(OsStr::from_bytes(b"/x/\xff.db").into())));
    }
}
