//! Builds the shim, and runs the workload below it.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;

use crate::workload::{ORDERS, Orders};

/// What the shim is to do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wish {
    /// Write down every call here.
    pub(crate) record: Option<PathBuf>,
    /// Which call fails, from 1, and how.
    pub(crate) fail: Option<(u64, &'static str)>,
    /// Which syncs do nothing.
    pub(crate) drop: Option<&'static str>,
    /// The file of this path never seems to change.
    pub(crate) stat: Option<PathBuf>,
}

/// The shim, built once by each process of the tests, and put into its place whole.
fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let home = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let (fresh, library) = (home.join(format!("shim.{}.so", std::process::id())), home.join("shim.so"));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/shim.c");
        let built = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&fresh).arg(source).status();
        assert!(built.expect("a C compiler is there").success(), "the shim does not build");
        std::fs::rename(&fresh, &library).unwrap();
        library
    };
    BUILT.get_or_init(build)
}

/// The workload on the store in this directory, below the shim.
pub(crate) fn command(dir: &Path, orders: &Orders, wish: &Wish) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["workload::worker", "--exact", "--nocapture", "--test-threads", "1"]);
    command.env(ORDERS, orders.text(dir)).env("LD_PRELOAD", library()).env("TASKBUS_SHIM_DIR", dir);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Some(record) = &wish.record {
        command.env("TASKBUS_SHIM_LOG", record);
    }
    if let Some((number, how)) = wish.fail {
        command.env("TASKBUS_SHIM_FAIL", format!("{number}:{how}"));
    }
    if let Some(drop) = wish.drop {
        command.env("TASKBUS_SHIM_DROP", drop);
    }
    if let Some(stat) = &wish.stat {
        command.env("TASKBUS_SHIM_STAT", stat);
    }
    command
}

/// Runs it to its end.
pub(crate) fn run(dir: &Path, orders: &Orders, wish: &Wish) -> ExitStatus {
    command(dir, orders, wish).status().unwrap()
}
