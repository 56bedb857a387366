//! The flags that more than one surface reads, and the doors by which the command line reaches the other surfaces.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use crate::term::failure::Failure;
use crate::term::report::Report;

/// What every command takes.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Everywhere")]
pub(crate) struct Globals {
    /// Print one JSON value on standard output, errors too
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Act under this name [default: the name of the user]
    #[arg(long = "as", value_name = "NAME", global = true, env = "TASKBUS_AS", hide_env_values = true)]
    pub(crate) name: Option<String>,
    /// Work on this list; `demo` and `tasks/demo` are the same [default: the project's own]
    #[arg(long, value_name = "NAME", global = true, env = "TASKBUS_LIST", hide_env_values = true)]
    pub(crate) list: Option<String>,
    /// Where tasks are kept: sqlite:PATH, memory:, file:PATH (a Kin sidecar) or claude:DIR (a task directory of Claude
    /// Code) [default: taskbus.db in the user's data directory]
    #[arg(long, value_name = "URL", global = true, env = "TASKBUS_STORE", hide_env_values = true)]
    pub(crate) store: Option<OsString>,
    /// Read the configuration from this file [default: taskbus/config.toml in the user's configuration directory]
    #[arg(long, value_name = "PATH", global = true, env = "TASKBUS_CONFIG", hide_env_values = true, value_hint = clap::ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
}

/// `mcp`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Mcp {
    /// The tools to offer; repeat it or use commas for more sets
    #[arg(long, value_name = "SET", value_enum, value_delimiter = ',', default_value = "core")]
    pub(crate) tools: Vec<ToolSet>,
}

/// `serve`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Serve {
    /// Listen here; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7777")]
    pub(crate) listen: SocketAddr,
    /// Write the port into this file once it can be reached; the file goes when the server does
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    pub(crate) port_file: Option<PathBuf>,
    /// The tools to offer; repeat it or use commas for more sets
    #[arg(long, value_name = "SET", value_enum, value_delimiter = ',', default_value = "core")]
    pub(crate) tools: Vec<ToolSet>,
    /// Answer requests for this host name too, as a proxy in front passes them on; repeat it for more
    #[arg(long = "allow-host", value_name = "NAME")]
    pub(crate) allow_hosts: Vec<String>,
    /// Let pages of this origin ask, such as `https://board.example`; repeat it for more
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    pub(crate) allow_origins: Vec<String>,
    /// Listen where other machines reach it, although nobody is asked who they are
    #[arg(long)]
    pub(crate) insecure: bool,
}

/// A set of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToolSet {
    /// An agent on a shared list, with messages
    Core,
    /// All of the bus: core, and channels, subscriptions, history, search, memories
    Full,
    /// TaskCreate, TaskGet, TaskUpdate and TaskList, in place of Claude Code's own
    Claude,
    /// Kin's one tool, tasks
    Kin,
}

impl ToolSet {
    /// Every set, in the order in which they are published.
    pub(crate) const ALL: [ToolSet; 4] = [ToolSet::Core, ToolSet::Full, ToolSet::Claude, ToolSet::Kin];
}

/// `demo`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Demo {
    /// How many worker processes
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) workers: u8,
    /// How many tasks; the plan is repeated if it has fewer [default: those of the plan]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) tasks: Option<u32>,
    /// How many workers are killed while they hold a task; fewer than there are [default: 1, if there are two]
    #[arg(long, value_name = "N")]
    pub(crate) kill: Option<u8>,
}

/// `demo-worker`.
#[derive(Clone, Debug, Args)]
pub(crate) struct DemoWorker {
    /// The name to register
    #[arg(long)]
    pub(crate) worker: String,
    /// What it can do
    #[arg(long = "label")]
    pub(crate) labels: Vec<String>,
}

/// `bench`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Bench {
    /// Less of everything: less than a minute. In a debug build, whose times mean nothing, just enough to see that it works
    #[arg(long)]
    pub(crate) quick: bool,
    /// Measure lists of so many tasks instead; repeat it for more
    #[arg(long = "size", value_name = "N", value_parser = clap::value_parser!(u32).range(1000..=1_000_000))]
    pub(crate) sizes: Vec<u32>,
    /// Measure this part only; repeat it for more
    #[arg(long = "part", value_name = "PART", value_enum)]
    pub(crate) parts: Vec<BenchPart>,
    /// Where to put the files: on the disk that is to be measured [default: the directory for temporary files]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
    /// Make one call a number of times and measure nothing, for a counter of instructions
    #[arg(long, hide = true, value_name = "CALL", requires = "times", conflicts_with_all = ["quick", "sizes", "parts"])]
    pub(crate) count: Option<Counted>,
    /// How many times
    #[arg(long, hide = true, value_name = "N", requires = "count", value_parser = clap::value_parser!(u8).range(0..=60))]
    pub(crate) times: Option<u8>,
    /// Do what one process of the bench does
    #[arg(long, hide = true, value_name = "JOB", conflicts_with_all = ["quick", "sizes", "parts", "count"])]
    pub(crate) job: Option<String>,
}

/// A part of the bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BenchPart {
    /// Each call on lists of several sizes, and how it grows
    Lists,
    /// A dependency that turns a whole list around, and completing what a thousand wait for
    Graph,
    /// Four processes that drain a list
    Drain,
    /// Eight processes that write until it is on disk
    Durable,
    /// Eight and 64 processes that do nothing but write
    Crowd,
    /// Waking who waits in other processes, and what waiting costs
    Wake,
    /// How long rank keys get
    Rank,
}

/// A call whose instructions are counted.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Counted {
    /// Adding a task with two blockers.
    Create,
    /// Taking the first ready task.
    Next,
    /// Completing a task that two wait for.
    Complete,
    /// A page of 50 in tree order.
    Page,
}

/// `torture`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Torture {
    /// How long, in seconds [default: 60]
    #[arg(long, value_name = "N", conflicts_with = "minutes", value_parser = clap::value_parser!(u32).range(10..=86_400))]
    pub(crate) seconds: Option<u32>,
    /// How long, in minutes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_440))]
    pub(crate) minutes: Option<u32>,
    /// What decides the operations, the kills and the freezes; printed when left out
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

/// `torture-worker`: one client of the storm, which is killed and started again.
#[derive(Clone, Debug, Args)]
pub(crate) struct TortureWorker {
    /// What it is to do, as JSON
    #[arg(long)]
    pub(crate) orders: String,
}

/// What a command answers.
pub(crate) type Answer = Result<Box<dyn Report>, Failure>;

/// The other surfaces, which the command line starts but does not know.
pub(crate) struct Doors {
    /// Serves MCP until the client is gone.
    pub(crate) mcp: fn(Globals, &Mcp) -> ExitCode,
    /// Serves HTTP until a signal ends it.
    pub(crate) serve: fn(Globals, &Serve) -> Result<(), Failure>,
    /// Runs the demo.
    pub(crate) demo: fn(&Globals, &Demo) -> Answer,
    /// Runs the bench.
    pub(crate) bench: fn(&Globals, &Bench) -> Answer,
    /// Runs the torture.
    pub(crate) torture: fn(&Globals, &Torture) -> Answer,
    /// Runs one worker of the demo.
    pub(crate) demo_worker: fn(&Globals, &DemoWorker) -> Result<(), Failure>,
    /// Runs one worker of the torture.
    pub(crate) torture_worker: fn(&TortureWorker) -> Result<(), Failure>,
}
