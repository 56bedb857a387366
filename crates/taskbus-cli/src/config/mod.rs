//! The configuration: what the user decided once for every process. Defaults, the file, the environment, in this
//! order; a flag of the command line goes before all of them. Read once, when a process starts. It says what was set;
//! what a setting does is the business of those who ask for it.
//!
//! Read [`table`] for what there is, [`load`] for where it comes from, [`kind`] for what a value may be.

#[cfg(test)]
mod docs;
mod error;
mod kind;
mod load;
mod report;
mod table;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::Duration;

use taskbus::engine::{ApiKey, EmbeddingAt, InspectionAt, Limits};
use taskbus::store::sqlite::{Durability, Journal, SqliteOptions};
use toml::Value;

pub(crate) use self::error::ConfigError;
use self::kind::text_of;
use self::table::Key;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nobody set it.
    Default,
    /// The file.
    File,
    /// This variable of the environment.
    Variable(String),
}

/// One key and its value in force.
#[derive(Clone, Debug)]
struct Entry {
    key: &'static Key,
    value: Value,
    origin: Origin,
}

/// Every key and its value in force.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    file: Option<PathBuf>,
    found: bool,
    /// What relative paths of the environment start from.
    cwd: Option<PathBuf>,
    home: Option<PathBuf>,
    /// The user's data directory, for when no other is set.
    data_home: Option<PathBuf>,
    entries: Vec<Entry>,
    warnings: Vec<String>,
}

/// The configuration of this process; `given` is `--config` or `TASKBUS_CONFIG`.
pub(crate) fn here(given: Option<&Path>) -> Result<Config, ConfigError> {
    load::load(&load::Around::here(given.map(Path::to_owned)))
}

impl Config {
    /// The file that was read, if there is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref().filter(|_| self.found)
    }

    /// The store's URL; none: the default place.
    pub(crate) fn store(&self) -> Option<&str> {
        Some(self.text("store")).filter(|url| !url.is_empty())
    }

    /// Where taskbus keeps what it must not lose; none when nothing says where a user's data goes.
    pub(crate) fn data_directory(&self) -> Option<PathBuf> {
        self.path("data_directory").or_else(|| Some(self.data_home.as_ref()?.join("taskbus")))
    }

    /// How the default store is opened.
    pub(crate) fn sqlite(&self) -> SqliteOptions {
        let durability = if self.text("sqlite_sync") == "full" { Durability::Full } else { Durability::Relaxed };
        let journal = if self.text("sqlite_journal") == "wal" { Journal::Log } else { Journal::Rollback };
        SqliteOptions { durability, journal, ..SqliteOptions::default() }
    }

    /// What the engine may do, how fast, and how long it keeps what.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            writes_per_second: self.size("send_messages_per_second"),
            write_kib_per_second: self.size("send_kib_per_second"),
            receipt_minutes: self.whole("receipt_retention_minutes"),
            max_message_kib: self.size("max_message_kib"),
            receive_default_count: self.size("receive_default_count"),
            receive_max_count: self.size("receive_max_count"),
            receive_max_wait_seconds: self.size("receive_max_wait_seconds"),
            result_default_kib: self.size("result_default_kib"),
            discovery_enabled: self.entry("discovery_enabled").value.as_bool().unwrap_or(true),
            cursor_idle_hours: self.whole("cursor_idle_hours"),
            message_retention_hours: self.whole("message_retention_hours"),
            tombstone_min_hours: self.whole("tombstone_min_hours"),
            memory_expiry_hours: self.whole("memory_expiry_hours"),
            task_expiry_hours: self.whole("task_expiry_hours"),
            sqlite_budget_mib: self.size("sqlite_budget_mib"),
            cleanup_free_percent: self.size("cleanup_free_percent"),
            cleanup_interval_seconds: self.size("cleanup_interval_seconds"),
            inspection: self.inspection(),
            embedding: self.embedding(),
        }
    }

    fn inspection(&self) -> Option<InspectionAt> {
        let words = self.entry("inspection_command").value.as_array()?.iter();
        let command: Vec<String> = words.map(|word| text_of(word).to_owned()).collect();
        let timeout = self.seconds("inspection_timeout_seconds");
        (!command.is_empty()).then_some(InspectionAt { command, timeout })
    }

    fn embedding(&self) -> Option<EmbeddingAt> {
        let variable = self.text("embedding_api_key_env");
        let api_key = match self.path("embedding_api_key_file") {
            _ if !variable.is_empty() => ApiKey::Variable(variable.to_owned()),
            Some(path) => ApiKey::File(path),
            None => ApiKey::None,
        };
        let endpoint = Some(self.text("embedding_endpoint")).filter(|endpoint| !endpoint.is_empty())?.to_owned();
        let query_timeout = self.seconds("embedding_query_timeout_seconds");
        Some(EmbeddingAt { endpoint, model: self.text("embedding_model").to_owned(), api_key, query_timeout })
    }

    /// The least that is written to the log.
    pub(crate) fn log_level(&self) -> &str {
        self.text("log_level")
    }

    /// What the value in force is, for a key of the table.
    fn entry(&self, name: &str) -> &Entry {
        self.entries
            .iter()
            .find(|entry| entry.key.name == name)
            .expect("BUG: the table has every key that is asked for")
    }

    fn text(&self, name: &str) -> &str {
        self.entry(name).value.as_str().expect("BUG: the table knows what is text")
    }

    fn whole(&self, name: &str) -> i64 {
        self.entry(name).value.as_integer().expect("BUG: the table knows what is a number")
    }

    fn size<T: TryFrom<i64>>(&self, name: &str) -> T {
        let fits = T::try_from(self.whole(name)).ok();
        fits.expect("BUG: the table's ranges fit")
    }

    fn seconds(&self, name: &str) -> Duration {
        Duration::from_secs_f64(kind::seconds(&self.entry(name).value).expect("BUG: the table knows what is a time"))
    }

    /// A path, whole: `~/` is the home directory, and what is relative starts from where it was written.
    fn path(&self, name: &str) -> Option<PathBuf> {
        let entry = self.entry(name);
        let text = Some(text_of(&entry.value)).filter(|text| !text.is_empty())?;
        if let (Some(rest), Some(home)) = (text.strip_prefix("~/"), &self.home) {
            return Some(home.join(rest));
        }
        let from = match entry.origin {
            Origin::File => self.file.as_deref().and_then(Path::parent),
            Origin::Default | Origin::Variable(_) => self.cwd.as_deref(),
        };
        Some(from.map_or_else(|| PathBuf::from(text), |from| from.join(text)))
    }
}
