//! Every limit of the product, once, with its unit in its name.
//!
//! Each is tested at the limit and one past it. Where a limit can be configured, the constant is the default.

/// Longest subject and longest active form, in bytes of UTF-8.
pub const SUBJECT_BYTES_MAX: usize = 256;
/// Longest identity (display name), in bytes of UTF-8.
pub const IDENTITY_BYTES_MAX: usize = 128;
/// Longest parent identity accepted by `register`, in bytes of UTF-8.
pub const PARENT_BYTES_MAX: usize = 512;
/// Longest session context accepted by `register`, in bytes of UTF-8.
pub const CONTEXT_BYTES_MAX: usize = 1024;
/// Longest part of a list name after `tasks/`, in bytes of UTF-8.
pub const LIST_NAME_BYTES_MAX: usize = 128;
/// Longest idempotency key, in bytes of UTF-8.
pub const KEY_BYTES_MAX: usize = 256;
/// Largest stored document (a task as JSON), in KiB.
pub const MESSAGE_KIB_MAX: usize = 64;
/// Most blockers of one task.
pub const BLOCKERS_MAX: usize = 64;
/// Most labels of one task, and of one worker.
pub const LABELS_MAX: usize = 10;
/// Longest label, in characters.
pub const LABEL_CHARS_MAX: usize = 32;
/// Most path globs of one task.
pub const PATHS_MAX: usize = 64;
/// Longest path glob, in bytes of UTF-8.
pub const PATH_BYTES_MAX: usize = 512;
/// Deepest nesting of a metadata value.
pub const METADATA_DEPTH_MAX: usize = 16;
/// Longest metadata key, in bytes of UTF-8.
pub const METADATA_KEY_BYTES_MAX: usize = 256;
/// Longest note, and longest result, in bytes of UTF-8.
pub const NOTE_BYTES_MAX: usize = 16 * 1024;
/// Most tasks that one `task_next` hands out.
pub const NEXT_COUNT_MAX: usize = 16;
/// Most tasks that one `task_plan` creates.
pub const PLAN_TASKS_MAX: usize = 1000;
/// Longest local key in a plan, in bytes of UTF-8.
pub const PLAN_KEY_BYTES_MAX: usize = 128;
/// Most levels of a tree; a root is the first. See ADR 0004.
pub const TREE_DEPTH_MAX: usize = 1000;
/// Longest rank key, in bytes; a longer one re-ranks its siblings instead.
pub const RANK_BYTES_MAX: usize = 48;
/// Longest lease given as a duration, in seconds (one week).
pub const LEASE_SECONDS_MAX: u64 = 604_800;
/// A lease time below this (2001-01-01 in Unix ms) is surely in seconds.
pub const LEASE_MS_MIN: i64 = 978_307_200_000;
/// The latest time accepted anywhere (9999-12-31T23:59:59.999Z in Unix ms).
pub const TIME_MS_MAX: i64 = 253_402_300_799_999;
/// A session whose last heartbeat is older than this is dead, in milliseconds.
pub const SESSION_EXPIRY_MS: i64 = 30_000;
/// A Kin task in progress that nobody changed for longer than this is pending again when its list is opened, in
/// milliseconds.
pub const KIN_STALE_MS: i64 = 300_000;
/// A wall clock that differs from a store's by more than this was set, in milliseconds.
pub const CLOCK_APART_MS_MAX: i64 = 2_000;
/// How often a process refreshes its sessions, in milliseconds.
pub const HEARTBEAT_MS: u64 = 10_000;
/// How long a receipt answers a repeated key, in minutes.
pub const RECEIPT_MINUTES: i64 = 60;
/// Rows of one page when the caller names no limit.
pub const PAGE_ROWS_DEFAULT: usize = 50;
/// Most rows of one page.
pub const PAGE_ROWS_MAX: usize = 200;
/// Reclaims after which a task is parked, on lists that `plan` creates.
pub const PLAN_MAX_RECLAIMS: u32 = 5;
/// Longest wait of one call, in seconds (clients cut at 60).
pub const WAIT_SECONDS_MAX: u64 = 50;
/// Task writes per second and identity.
pub const WRITES_PER_SECOND: u32 = 100;
/// KiB written per second and identity.
pub const WRITE_KIB_PER_SECOND: u32 = 1024;
/// Largest Kin sidecar that is read, in bytes.
pub const SIDECAR_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Longest session id that names a sidecar, in bytes.
pub const SESSION_ID_BYTES_MAX: usize = 128;
/// Largest request a surface reads, in bytes.
pub const REQUEST_BYTES_MAX: usize = 1024 * 1024;
/// Sessions that are open on one HTTP server at the same time.
pub const HTTP_SESSIONS_MAX: usize = 512;
/// A session of an HTTP client that says nothing for longer than this ends, in seconds.
pub const HTTP_SESSION_IDLE_SECONDS: u64 = 1800;
/// Connections to one HTTP server at the same time; more wait to be accepted.
pub const HTTP_CONNECTIONS_MAX: usize = 1024;
/// What the bodies of all requests that are being read may hold together, in bytes.
pub const HTTP_BODIES_BYTES_MAX: usize = 32 * REQUEST_BYTES_MAX;
/// Longest head of an HTTP request, in bytes.
pub const HTTP_HEAD_BYTES_MAX: usize = 64 * 1024;
/// How long a head, or a body behind it, may take to come, in seconds.
pub const HTTP_READ_SECONDS_MAX: u64 = 20;
/// How long calls in flight may take once an HTTP server is told to end, in seconds.
pub const HTTP_DRAIN_SECONDS: u64 = 10;
/// Deepest JSON a surface reads.
pub const REQUEST_DEPTH_MAX: usize = 32;
/// Largest result a surface sends by default, in bytes.
pub const RESULT_BYTES_DEFAULT: usize = 8 * 1024;
/// Largest error message, in bytes.
pub const ERROR_BYTES_MAX: usize = 1024;
/// Ids named in a refusal or an answer before the rest is only counted.
pub const IDS_SHOWN_MAX: usize = 64;
/// Largest file of another program that is read as a task, in bytes.
pub const TASK_FILE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Longest part of a channel name behind its prefix, in bytes of UTF-8.
pub const CHANNEL_NAME_BYTES_MAX: usize = 128;
/// Longest summary of a message, in characters.
pub const HEADLINE_CHARS_MAX: usize = 200;
/// Longest `type` of a message, in bytes of UTF-8.
pub const SORT_BYTES_MAX: usize = 128;
/// Most tags of one message, and most patterns of one set that is followed.
pub const TAGS_MAX: usize = 10;
/// Longest query of a search, in bytes of UTF-8.
pub const QUERY_BYTES_MAX: usize = 4 * 1024;
/// Messages of one `receive` or `history` when the caller names no count.
pub const RECEIVE_COUNT_DEFAULT: usize = 100;
/// Most messages of one `receive` or `history`.
pub const RECEIVE_COUNT_MAX: usize = 1000;
/// A subscription that nobody reads for longer than this ends, in hours.
pub const CURSOR_IDLE_HOURS: i64 = 72;
/// How long an ordinary message is kept, in hours.
pub const MESSAGE_RETENTION_HOURS: i64 = 168;
/// How long a superseded revision and a deleted memory stay in the store, in hours.
pub const TOMBSTONE_MIN_HOURS: i64 = 72;
/// A memory that nobody reads for longer than this ends, in hours.
pub const MEMORY_EXPIRY_HOURS: i64 = 8760;
/// A task list in which nothing happens for longer than this ends, in hours.
pub const TASK_EXPIRY_HOURS: i64 = 720;
/// How large a store may grow, in MiB.
pub const STORE_BUDGET_MIB: u64 = 2048;
/// How much of the budget an eviction frees, in percent.
pub const CLEANUP_FREE_PERCENT: u64 = 25;
/// How often the maintenance tick runs, in seconds.
pub const CLEANUP_INTERVAL_SECONDS: u64 = 60;
/// Largest result of any call, in bytes: no batch, however it came about, is larger.
pub const RESULT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Most gaps, and most expired subscriptions, that one `receive` reports.
pub const NOTICES_MAX: usize = 256;
/// Messages that one search ranks, and shows on all its pages.
pub const SEARCH_CANDIDATES_MAX: usize = 1000;
/// The constant of reciprocal rank fusion: 1 / (this + rank).
pub const FUSION_RANK: f64 = 60.0;
/// Waited calls of `receive` in a row that end empty before it points at `wait`.
pub const EMPTY_POLLS_MAX: u32 = 3;
/// Messages that are counted one by one before a count is left open.
pub const PENDING_COUNTED_MAX: usize = 10_000;
/// Memories embedded by one request.
pub const EMBEDDING_BATCH: usize = 64;
/// Requests that one maintenance tick makes for embeddings.
pub const EMBEDDING_BATCHES_PER_TICK: usize = 4;
/// The most that is read of what an inspection command writes, in bytes of each of its outputs.
pub const INSPECTION_BYTES_MAX: usize = 64 * 1024;
