//! The settings of an engine: how much, how fast, how long. Each is named after the key of the configuration that sets
//! it; its default is the limit of the core. What they mean is said where they are used.

use std::path::PathBuf;
use std::time::Duration;

use taskbus_core::limits;

/// The settings of an engine.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Writes per second and identity.
    pub writes_per_second: u32,
    /// KiB written per second and identity.
    pub write_kib_per_second: u32,
    /// How long a receipt answers a repeated key, in minutes.
    pub receipt_minutes: i64,
    /// Largest message, in KiB.
    pub max_message_kib: usize,
    /// Messages of one `receive`, `history` or `search` when the caller names no count.
    pub receive_default_count: usize,
    /// Most messages of one of them.
    pub receive_max_count: usize,
    /// Longest wait of one `receive`, in seconds.
    pub receive_max_wait_seconds: u64,
    /// Largest answer, in KiB, unless a single record is larger.
    pub result_default_kib: usize,
    /// Whether sessions may ask who else is there.
    pub discovery_enabled: bool,
    /// A subscription that nobody reads for longer than this ends, in hours.
    pub cursor_idle_hours: i64,
    /// How long an ordinary message is kept, in hours.
    pub message_retention_hours: i64,
    /// How long what is no longer live stays in the store, in hours.
    pub tombstone_min_hours: i64,
    /// A memory that nobody reads for longer than this ends, in hours; 0: never.
    pub memory_expiry_hours: i64,
    /// A task list in which nothing happens for longer than this ends, in hours; 0: never.
    pub task_expiry_hours: i64,
    /// How large the store may grow, in MiB.
    pub sqlite_budget_mib: u64,
    /// How much of the budget an eviction leaves free, in percent.
    pub cleanup_free_percent: u64,
    /// The time between two maintenance ticks, in seconds.
    pub cleanup_interval_seconds: u64,
    /// Who is asked before each write, if anybody.
    pub inspection: Option<InspectionAt>,
    /// Who turns text into vectors, if anybody.
    pub embedding: Option<EmbeddingAt>,
}

/// A program that is asked before each write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectionAt {
    /// The program and its arguments; run directly, not by a shell.
    pub command: Vec<String>,
    /// How long it may take.
    pub timeout: Duration,
}

/// A server that turns text into vectors, as OpenAI's does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddingAt {
    /// Its address, whole.
    pub endpoint: String,
    /// The model to ask for.
    pub model: String,
    /// Where its key is.
    pub api_key: ApiKey,
    /// How long a search waits for it.
    pub query_timeout: Duration,
}

/// Where the key of a server is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ApiKey {
    /// It needs none.
    #[default]
    None,
    /// In this variable of the environment.
    Variable(String),
    /// In this file: alone, or behind the `=` of the one line that sets a variable.
    File(PathBuf),
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            writes_per_second: limits::WRITES_PER_SECOND,
            write_kib_per_second: limits::WRITE_KIB_PER_SECOND,
            receipt_minutes: limits::RECEIPT_MINUTES,
            max_message_kib: limits::MESSAGE_KIB_MAX,
            receive_default_count: limits::RECEIVE_COUNT_DEFAULT,
            receive_max_count: limits::RECEIVE_COUNT_MAX,
            receive_max_wait_seconds: limits::WAIT_SECONDS_MAX,
            result_default_kib: limits::RESULT_BYTES_DEFAULT / 1024,
            discovery_enabled: true,
            cursor_idle_hours: limits::CURSOR_IDLE_HOURS,
            message_retention_hours: limits::MESSAGE_RETENTION_HOURS,
            tombstone_min_hours: limits::TOMBSTONE_MIN_HOURS,
            memory_expiry_hours: limits::MEMORY_EXPIRY_HOURS,
            task_expiry_hours: limits::TASK_EXPIRY_HOURS,
            sqlite_budget_mib: limits::STORE_BUDGET_MIB,
            cleanup_free_percent: limits::CLEANUP_FREE_PERCENT,
            cleanup_interval_seconds: limits::CLEANUP_INTERVAL_SECONDS,
            inspection: None,
            embedding: None,
        }
    }
}
