//! The log files: what a process without anybody to talk to has to say. Never standard output, which carries the
//! protocol, and never standard error, which some clients show. A file comes to be with the first line in it, and a log
//! that cannot be written is done without.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use etcetera::BaseStrategy as _;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// A log that is longer when a process begins to write it is put aside.
const BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Starts the log `NAME.log`: what taskbus says from `level` on, or what the filter in `TASKBUS_LOG` lets through, such
/// as `warn` or `taskbus=debug`.
pub(crate) fn start(name: &str, level: &str) {
    let Some(path) = path(name) else { return };
    let usual = || EnvFilter::new(format!("warn,taskbus={level}"));
    let wish = std::env::var("TASKBUS_LOG").ok().filter(|filter| !filter.trim().is_empty());
    let filter = wish.and_then(|filter| EnvFilter::try_new(filter).ok()).unwrap_or_else(usual);
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(Late::at(path));
    // An error means that there is a log already.
    let _ = log.try_init();
}

/// `$XDG_STATE_HOME/taskbus/NAME.log`.
fn path(name: &str) -> Option<PathBuf> {
    let dir = etcetera::base_strategy::Xdg::new().ok()?.state_dir()?;
    Some(dir.join("taskbus").join(format!("{name}.log")))
}

/// A file that is opened when there is something to write.
struct Late {
    path: PathBuf,
    file: OnceLock<Option<File>>,
}

impl Late {
    fn at(path: PathBuf) -> Self {
        Self { path, file: OnceLock::new() }
    }
}

impl<'a> MakeWriter<'a> for Late {
    type Writer = Box<dyn Write + 'a>;

    fn make_writer(&'a self) -> Self::Writer {
        match self.file.get_or_init(|| open(&self.path).ok()) {
            // Each line is one write to the end of the file, so that lines of several threads do not mix.
            Some(file) => Box::new(file),
            None => Box::new(io::sink()),
        }
    }
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
