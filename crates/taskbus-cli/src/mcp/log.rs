//! A log file, only when `TASKBUS_LOG` asks for one. Never standard output, which carries the protocol, and never
//! standard error, which some clients show.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use etcetera::BaseStrategy as _;
use tracing_subscriber::EnvFilter;

/// A log that is longer at the start of a process is put aside.
const BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Starts the log, if one is wanted: `TASKBUS_LOG` holds a filter such as `info` or `taskbus=debug`. A log that
/// cannot be written is done without.
pub(super) fn start() {
    let Some(filter) = std::env::var("TASKBUS_LOG").ok().filter(|filter| !filter.trim().is_empty()) else { return };
    let Some(file) = path().and_then(|path| open(&path).ok()) else { return };
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(Mutex::new(file));
    // An error means that there is a log already.
    let _ = log.try_init();
}

/// `$XDG_STATE_HOME/taskbus/mcp.log`.
fn path() -> Option<PathBuf> {
    Some(etcetera::base_strategy::Xdg::new().ok()?.state_dir()?.join("taskbus").join("mcp.log"))
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(dir) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    if fs::metadata(path).is_ok_and(|old| old.len() > BYTES_MAX) {
        fs::rename(path, path.with_extension("log.1"))?;
    }
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}
