//! Processes that work on one directory, and what they say they did. Each is this test program again, told by its
//! environment what to do; it prints a line before each operation and one after it.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::{Value, json};

const ORDERS: &str = "TASKBUS_TEST_ORDERS";
const MARK: char = '~';

/// What one process is to do.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    pub(crate) dir: std::path::PathBuf,
    pub(crate) worker: u64,
    /// Numbers of its operations, so that a successor goes on where it was killed.
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// Whether it takes the locks.
    pub(crate) locks: bool,
}

/// The orders of this process, if it was started to work.
pub(crate) fn orders() -> Option<Orders> {
    let orders: Value = serde_json::from_str(&std::env::var(ORDERS).ok()?).unwrap();
    let number = |key: &str| orders[key].as_u64().unwrap();
    let dir = orders["dir"].as_str().unwrap().into();
    let locks = orders["locks"].as_bool().unwrap();
    Some(Orders { dir, worker: number("worker"), first: number("first"), last: number("last"), locks })
}

/// Says something to whoever started this process, in one piece.
pub(crate) fn say(line: &Value) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n{MARK}{line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Something that a process said; none when it ended.
pub(crate) struct Said {
    pub(crate) worker: u64,
    pub(crate) line: Option<Value>,
}

/// The processes.
pub(crate) struct Crew {
    test: &'static str,
    children: BTreeMap<u64, Child>,
    says: Sender<Said>,
    pub(crate) heard: Receiver<Said>,
}

impl Crew {
    /// A crew whose processes run the test with this name.
    pub(crate) fn new(test: &'static str) -> Self {
        let (says, heard) = channel();
        Self { test, children: BTreeMap::new(), says, heard }
    }

    pub(crate) fn start(&mut self, orders: &Orders) {
        let Orders { dir, worker, first, last, locks } = orders;
        let text = json!({"dir": dir, "worker": worker, "first": first, "last": last, "locks": locks});
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", self.test, "--nocapture", "--test-threads=1"])
            .env(ORDERS, text.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (out, says, worker) = (child.stdout.take().unwrap(), self.says.clone(), orders.worker);
        std::thread::spawn(move || {
            let lines = BufReader::new(out).lines().map_while(Result::ok);
            for line in lines.filter_map(|line| serde_json::from_str(line.strip_prefix(MARK)?).ok()) {
                let _ = says.send(Said { worker, line: Some(line) });
            }
            let _ = says.send(Said { worker, line: None });
        });
        self.children.insert(orders.worker, child);
    }

    pub(crate) fn workers(&self) -> Vec<u64> {
        self.children.keys().copied().collect()
    }

    /// Kills a process without a warning.
    pub(crate) fn kill(&mut self, worker: u64) {
        self.children.get_mut(&worker).unwrap().kill().unwrap();
    }

    /// Takes a process that ended off the crew; says whether it ended well.
    pub(crate) fn ended(&mut self, worker: u64) -> bool {
        self.children.remove(&worker).unwrap().wait().unwrap().success()
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for child in self.children.values_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Numbers that look random and are the same in every run with the same seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end.max(1)
    }
}

pub(crate) fn path_of(dir: &Path, id: u64) -> std::path::PathBuf {
    dir.join(format!("{id}.json"))
}
