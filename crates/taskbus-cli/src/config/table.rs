//! Every key of the configuration, once: what it may be, what it is when nobody sets it, what it is for. The reader,
//! `taskbus config` and `docs/config.md` all come from here.

use super::kind::Kind;

/// A key.
#[derive(Debug)]
pub(super) struct Key {
    /// Its name in the file; in the environment it is `TASKBUS_` and the name in capitals.
    pub(super) name: &'static str,
    /// What it may be.
    pub(super) kind: Kind,
    /// What it is when nobody sets it, in the spelling of the file.
    pub(super) default: &'static str,
    /// The same for people, where the value itself says nothing.
    pub(super) default_words: &'static str,
    /// Whether it is only about how something looks: a bad value is a warning, not an error.
    pub(super) is_looks: bool,
    /// What it is for.
    pub(super) about: &'static str,
}

const fn key(name: &'static str, kind: Kind, default: &'static str, about: &'static str) -> Key {
    Key { name, kind, default, default_words: "", is_looks: false, about }
}

impl Key {
    const fn or(self, default_words: &'static str) -> Self {
        Self { default_words, ..self }
    }

    const fn looks(self) -> Self {
        Self { is_looks: true, ..self }
    }
}

const HOURS: Kind = Kind::Whole(0, i64::MAX);

/// All of them.
pub(super) static KEYS: [Key; 36] = [
    key("store", Kind::Store, "\"\"", "Where tasks and messages are kept, unless `--store` or `TASKBUS_STORE` says otherwise.")
        .or("`taskbus.db` in the data directory"),
    key("data_directory", Kind::Directory, "\"\"", "Where taskbus keeps what it must not lose. `TASKBUS_DATA_DIR` goes before everything.")
        .or("`taskbus` in the user's data directory"),
    key("sqlite_journal", Kind::Word(&["wal", "rollback"]), "\"wal\"", "How SQLite keeps a transaction whole; `rollback` for a file system that cannot carry a log."),
    key("sqlite_sync", Kind::Word(&["full", "relaxed"]), "\"full\"", "Whether an answer means that the change is on disk (`full`), or that the operating system has it."),
    key("sqlite_budget_mib", Kind::Whole(64, 1_048_576), "2048", "How large the database may grow before old messages are dropped."),
    key("message_retention_hours", Kind::Whole(1, 8760), "168", "How long a message of a chat channel is kept."),
    key("cleanup_free_percent", Kind::Whole(5, 90), "25", "How much of the budget is free after old messages were dropped to make room."),
    key("cleanup_interval_seconds", Kind::Whole(5, 3600), "60", "How often one of the processes cleans up."),
    key("cursor_idle_hours", Kind::Whole(1, 720), "72", "How long a subscription that nobody reads is kept."),
    key("tombstone_min_hours", Kind::Whole(72, 720), "72", "How long the mark of a deletion is kept at least."),
    key("receipt_retention_minutes", Kind::Whole(1, 1440), "60", "How long a call with the same `idempotency_key` gets the answer of the first."),
    key("max_message_kib", Kind::Whole(1, 1024), "64", "The largest message."),
    key("send_messages_per_second", Kind::Whole(1, 10_000), "100", "Writes a second, for each sender in each process."),
    key("send_kib_per_second", Kind::Whole(64, 65_536), "1024", "KiB written a second, for each sender in each process."),
    key("receive_default_count", Kind::Whole(1, 1000), "100", "Messages that one `receive` returns when it does not say how many; not more than `receive_max_count`."),
    key("receive_max_count", Kind::Whole(1, 10_000), "1000", "The most that one `receive` may ask for."),
    key("receive_max_wait_seconds", Kind::Whole(0, 50), "50", "The longest that one `receive` may wait. Clients give up at 60."),
    key("result_default_kib", Kind::Whole(1, 4096), "8", "The largest answer of `receive`, `history` and `search`, except a single record that is larger itself; those of the task tools stay below 8 KiB. Codex cuts at about 12."),
    key("discovery_enabled", Kind::Flag, "true", "Whether agents may ask who else is there."),
    key("inspection_command", Kind::Command, "[]", "A program that is asked before each write: it reads a JSON object and answers `{\"allow\": …, \"reason\": …}`.").or("none"),
    key("inspection_timeout_seconds", Kind::Seconds(0.1, 60.0), "5", "How long it may take."),
    key("embedding_endpoint", Kind::Address, "\"\"", "An OpenAI-compatible server for search by meaning; needs `embedding_model`.").or("none: search by text only"),
    key("embedding_model", Kind::Text, "\"\"", "The model to ask it for.").or("none"),
    key("embedding_api_key_file", Kind::File, "\"\"", "A file whose first line is the key of that server.").or("none"),
    key("embedding_api_key_env", Kind::Text, "\"\"", "A variable of the environment that holds the key instead.").or("none"),
    key("embedding_query_timeout_seconds", Kind::Seconds(0.1, 120.0), "10", "How long a search waits for the server."),
    key("task_idle_hours", HOURS, "168", "After how long without a change an open task is marked idle; 0: never."),
    key("task_expiry_hours", HOURS, "720", "After how long without a change a task list is dropped, whatever is open in it; 0: never."),
    key("memory_expiry_hours", HOURS, "8760", "After how long without being read a memory is dropped; 0: never."),
    key("log_level", Kind::Word(&["debug", "info", "warn", "error"]), "\"info\"", "The least that `taskbus mcp` writes to its log. `TASKBUS_LOG` goes before it."),
    key("tui_name", Kind::Name, "\"\"", "Your name in the terminal interface.").or("the name of the user"),
    key("tui_rail_width", Kind::Whole(0, 1000), "0", "The width of its left rail in columns; 0: a fifth of the screen."),
    key("theme", Kind::Name, "\"default\"", "Its colours.").looks(),
    key("themes", Kind::Table, "{}", "More sets of colours, by name.").or("none").looks(),
    key("icons", Kind::Word(&["emoji", "nerdfont", "custom"]), "\"emoji\"", "Its icons.").looks(),
    key("icon_map", Kind::Table, "{}", "The icons of `custom`, by name.").or("none").looks(),
];
