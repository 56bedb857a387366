//! The table of commands and flags. Help, completions and manual pages come from it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueHint};
use taskbus_core::id::TaskId;
use taskbus_core::task::Status;

use super::bus::args as bus;
use super::hook::Event;
use super::late::Late;
use super::values::{Lease, Moment, Pair, lease, moment, pair, seconds, status};
use crate::options::{Bench, Demo, DemoWorker, Globals, Mcp, Serve, Torture, TortureWorker};
use crate::setup::CLIENTS;

const AFTER_HELP: &str = "\
Exit codes: 0 done, 1 refused, 2 wrong usage, 3 store unavailable, 4 nothing came in time.
The list is --list, TASKBUS_LIST, or the one of the repository around the current directory.";

const PLAN_HELP: &str = "\
A task is a checklist item; one that is indented below another is a part of it:
  - [ ] Write the store @rust (id: store)
    Text below an item, indented, is its description.
    - [x] Choose the engine
  - [ ] Ship it (after: store)
Ticked items come in as completed. The same file on the same list again within the hour changes nothing.
JSON: [{\"key\", \"subject\", \"description\", \"parent\", \"blocked_by\", \"labels\", \"paths\", \"metadata\", \"done\"}, …].";

const VERIFY_HELP: &str = "\
Exit code 0: everything adds up; 1: something differs, and each difference is told; 3: the store cannot be read.
Nothing is ever changed. The head stands for the whole history: written down elsewhere, it shows later whether
somebody has made the history anew.";

const MIRROR_HELP: &str = "\
Nothing is deleted on the list because a file is gone, as Claude Code clears its directory by itself; it is told instead.
What the list refuses, such as a task that somebody else holds, goes back in the directory.
With --json it prints one JSON value a line, one for each thing that happened, and one at the end.";

const WAIT_HELP: &str = "\
It prints a line of JSON for each message that woke it, without the text of those to one agent alone. They stay unread.
Exit codes when it waits for a message: 0 one came, 1 none in time, 2 it cannot wait, 3 another wait for the same name
took its place, 4 the program that started it has ended. The name is --as, else that of the session in the same program,
else the repository's.";

/// A task list that coding agents share.
#[derive(Debug, Parser)]
#[command(name = "taskbus", version, after_help = AFTER_HELP, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Those that work on a store.
    #[command(flatten)]
    AtDesk(AtDesk),
    /// Serve the tools to an agent over standard input and output (MCP)
    Mcp(Late<Mcp>),
    /// Serve the tools to many agents over HTTP (MCP), until a signal ends it
    Serve(Late<Serve>),
    /// Watch several worker processes do a plan together, and one of them die
    Demo(Late<Demo>),
    /// Measure what each call costs on this machine, against a bare SQLite transaction
    Bench(Late<Bench>),
    /// Kill, freeze and race many processes on a store of their own, and check that nothing was lost
    Torture(Late<Torture>),
    /// One worker of the torture
    #[command(hide = true)]
    TortureWorker(Late<TortureWorker>),
    /// One worker of the demo
    #[command(hide = true)]
    DemoWorker(Late<DemoWorker>),
    /// Make this repository known to its agents: their name and channels, in .local/taskbus.json
    Init(Late<Init>),
    /// Answer a client at a certain moment of its agent; always ends well
    #[command(subcommand)]
    Hook(Late<Event>),
    /// Print who to register as in this repository, and how agents work together
    Identity,
    /// Put taskbus into the configuration of a client: the server, hooks, a skill; without a client, say how far each is
    Setup(Late<Setup>),
    /// Have the agents of this repository follow a channel or tags, from their next registration on
    Subscribe(Late<Follow>),
    /// Have them follow it no longer
    Unsubscribe(Late<Follow>),
    /// Check the store and the surroundings
    Doctor(Doctor),
    /// Show the configuration in force, and where each value comes from
    Config,
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man {
        /// Of this command
        command: Option<String>,
    },
}

/// The commands that work on a store.
#[derive(Debug, Subcommand)]
pub(crate) enum AtDesk {
    /// Add a task
    Add(Late<Box<Add>>),
    /// Add a whole plan: a Markdown checklist or JSON, all of it or nothing
    #[command(after_help = PLAN_HELP)]
    Plan(Late<Plan>),
    /// Take the next ready task, perhaps completing the last one
    Next(Late<Next>),
    /// Take a certain task
    Claim(Late<Claim>),
    /// Complete a task
    Done(Late<Done>),
    /// Give a task back
    Release(Late<Release>),
    /// Change a task
    Update(Late<Box<Update>>),
    /// Delete a task; `restore` brings it back
    Rm(Late<Remove>),
    /// Bring a deleted task back
    Restore(Late<One>),
    /// Show a task whole
    Show(Late<Show>),
    /// List tasks, page by page
    List(Late<List>),
    /// List all tasks as a tree
    Tree(Late<List>),
    /// List the tasks that can be started now
    Ready(Late<List>),
    /// List the tasks that wait for others
    Blocked(Late<List>),
    /// Say why a task cannot be started
    Why(Late<One>),
    /// Show what happened to a task
    Log(Late<One>),
    /// Wait for a message, or until a task is ready
    #[command(after_help = WAIT_HELP)]
    Wait(Late<bus::Wait>),
    /// Keep the list and a task directory of Claude Code in step, both ways, until told to end
    #[command(after_help = MIRROR_HELP)]
    Mirror(Late<Mirror>),
    /// Send a message to a channel, or to one agent
    Send(Late<Box<bus::Send>>),
    /// Receive what is new
    Recv(Late<bus::Recv>),
    /// Show the channels there are
    Channels,
    /// Make, delete, hear or read a channel
    #[command(subcommand)]
    Channel(Late<bus::Channel>),
    /// Keep, show, edit or delete a memory
    #[command(subcommand)]
    Memory(Late<bus::Memory>),
    /// Find messages, memories and tasks
    Search(Late<Box<bus::Search>>),
    /// Empty the store, after asking
    Reset,
    /// Show the task lists there are
    Lists,
    /// Show who is at work
    Who,
    /// Show the store, the list and the name that commands would use
    Status,
    /// Write a copy of the store while others go on, and verify it
    Backup(Backup),
    /// Put a backup in the place of the store; the file that is there is kept under another name
    RestoreBackup(RestoreBackup),
    /// Look at the whole store: follow the chain of revisions, replay every history, recompute every row
    #[command(after_help = VERIFY_HELP)]
    Verify,
}

/// `backup`.
#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The file to write
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Replace the file if it is there
    #[arg(long)]
    pub(crate) force: bool,
}

/// `restore-backup`.
#[derive(Debug, Args)]
pub(crate) struct RestoreBackup {
    /// A file that `taskbus backup` has made
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// `doctor`.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Go on with a store that has lost acknowledged changes: new tasks get numbers above all that were given out
    #[arg(long)]
    pub(crate) accept_rollback: bool,
}

/// `init`.
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Instead, set up every client that is found on this machine
    #[arg(long)]
    pub(crate) global: bool,
    /// Only say what would be written
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// `setup`.
#[derive(Debug, Args)]
pub(crate) struct Setup {
    /// Which clients
    #[arg(value_name = "CLIENT", value_parser = clients())]
    pub(crate) clients: Vec<String>,
    /// Every client that is found on this machine
    #[arg(long, conflicts_with = "clients")]
    pub(crate) all: bool,
    /// Only say what would be changed
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Take out again what was put in, and nothing else; without a client: of all
    #[arg(long)]
    pub(crate) undo: bool,
}

fn clients() -> PossibleValuesParser {
    PossibleValuesParser::new(CLIENTS.iter().map(|client| client.name))
}

/// `subscribe`, `unsubscribe`.
#[derive(Debug, Args)]
pub(crate) struct Follow {
    /// A channel, such as general/app
    #[arg(required_unless_present = "tags", conflicts_with = "tags")]
    pub(crate) channel: Option<String>,
    /// Tags that a message must have all; db* means those that begin so
    #[arg(long, value_name = "TAG", value_delimiter = ',')]
    pub(crate) tags: Vec<String>,
}

/// `mirror`.
#[derive(Debug, Args)]
pub(crate) struct Mirror {
    /// The directory: claude:DIR, or claude: for the one that Claude Code would use here
    #[arg(value_name = "claude:DIR")]
    pub(crate) directory: OsString,
    /// Bring both into step once, and end
    #[arg(long)]
    pub(crate) once: bool,
}

/// `add`.
#[derive(Debug, Args)]
pub(crate) struct Add {
    /// One line that says what to do; `-` reads it, and the description below it, from standard input
    #[arg(allow_hyphen_values = true, required_unless_present_any = ["subject_option", "file"])]
    pub(crate) subject: Option<String>,
    /// The subject, for one that begins with a dash
    #[arg(long = "subject", id = "subject_option", value_name = "TEXT", conflicts_with = "subject")]
    pub(crate) subject_option: Option<String>,
    /// Read the subject (first line) and the description (the rest) from a file
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, conflicts_with_all = ["subject", "subject_option", "description"])]
    pub(crate) file: Option<PathBuf>,
    /// The long form; `-` reads it from standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) description: Option<String>,
    /// What to show while it is worked on, such as "Running tests"
    #[arg(long, value_name = "TEXT")]
    pub(crate) active_form: Option<String>,
    /// The task that this one is a part of
    #[arg(long, value_name = "ID")]
    pub(crate) parent: Option<TaskId>,
    #[command(flatten)]
    pub(crate) place: Place,
    /// A task that must be completed first; repeat it for more
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(crate) blocked_by: Vec<TaskId>,
    /// Not ready before: 2h, or 2026-12-01T08:00:00Z
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) not_before: Option<Moment>,
    /// What a worker must be able to do; repeat it for more
    #[arg(long = "label", value_name = "LABEL", value_delimiter = ',')]
    pub(crate) labels: Vec<String>,
    /// Files that the work touches, as a glob; repeat it for more
    #[arg(long = "path", value_name = "GLOB")]
    pub(crate) paths: Vec<String>,
    /// Free data, as KEY=VALUE; repeat it for more
    #[arg(long = "meta", value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) metadata: Vec<Pair>,
    /// Make the list if it does not exist, without saying so
    #[arg(long)]
    pub(crate) create: bool,
    #[command(flatten)]
    pub(crate) key: Key,
}

/// `plan`.
#[derive(Debug, Args)]
pub(crate) struct Plan {
    /// A Markdown checklist or a JSON array; `-` reads standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Make the list if it does not exist
    #[arg(long)]
    pub(crate) create: bool,
    #[command(flatten)]
    pub(crate) key: Key,
}

/// `next`.
#[derive(Debug, Args)]
pub(crate) struct Next {
    /// What this worker can do: a task's labels must all be among these
    #[arg(long = "label", value_name = "LABEL", value_delimiter = ',')]
    pub(crate) labels: Vec<String>,
    /// Only tasks below this one
    #[arg(long, value_name = "ID")]
    pub(crate) parent: Option<TaskId>,
    /// How many tasks, up to 16
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) count: usize,
    /// How long to hold it: 30m, 2h, or none
    #[arg(long, value_name = "TIME", value_parser = lease, default_value = "1h")]
    pub(crate) lease: Lease,
    /// Complete this task first, in the same step
    #[arg(long, value_name = "ID")]
    pub(crate) complete: Option<TaskId>,
    /// What came of the completed task; `-` reads it from standard input
    #[arg(long, value_name = "TEXT", requires = "complete", allow_hyphen_values = true)]
    pub(crate) result: Option<String>,
    /// The fence of the claim on the completed task
    #[arg(long, value_name = "N", requires = "complete")]
    pub(crate) fence: Option<u64>,
    /// Wait so long for a task to become ready (exit code 4 if none did)
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub(crate) wait: Option<u64>,
    #[command(flatten)]
    pub(crate) key: Key,
}

/// `claim`.
#[derive(Debug, Args)]
pub(crate) struct Claim {
    /// Which task: 7, #7 and 007 are the same
    pub(crate) id: TaskId,
    /// How long to hold it: 30m, 2h, or none
    #[arg(long, value_name = "TIME", value_parser = lease, default_value = "1h")]
    pub(crate) lease: Lease,
    #[command(flatten)]
    pub(crate) guard: Guard,
    #[command(flatten)]
    pub(crate) key: Key,
}

/// `done`.
#[derive(Debug, Args)]
pub(crate) struct Done {
    /// Which task
    pub(crate) id: TaskId,
    /// What came of it; `-` reads it from standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) result: Option<String>,
    #[command(flatten)]
    pub(crate) guard: Guard,
    #[command(flatten)]
    pub(crate) key: Key,
}

/// `release`.
#[derive(Debug, Args)]
pub(crate) struct Release {
    /// Which task
    pub(crate) id: TaskId,
    #[command(flatten)]
    pub(crate) guard: Guard,
    #[command(flatten)]
    pub(crate) key: Key,
}

/// `update`.
#[derive(Debug, Args)]
pub(crate) struct Update {
    /// Which task
    pub(crate) id: TaskId,
    /// pending, in_progress or completed
    #[arg(long, value_name = "STATUS", value_parser = status)]
    pub(crate) status: Option<Status>,
    /// Whose it is; an empty name takes the owner away
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: Option<String>,
    /// The new subject
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) subject: Option<String>,
    /// The new long form; `-` reads it from standard input, an empty one removes it
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) description: Option<String>,
    /// Read the new long form from a file
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, conflicts_with = "description")]
    pub(crate) file: Option<PathBuf>,
    /// The new active form; an empty one removes it
    #[arg(long, value_name = "TEXT")]
    pub(crate) active_form: Option<String>,
    /// The new parent, or none
    #[arg(long, value_name = "ID|none")]
    pub(crate) parent: Option<String>,
    #[command(flatten)]
    pub(crate) place: Place,
    /// A task that must be completed first; repeat it for more
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(crate) add_blocked_by: Vec<TaskId>,
    /// A task that need not be completed first; repeat it for more
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(crate) remove_blocked_by: Vec<TaskId>,
    /// Hold it so long from now: 30m, 2h, or none
    #[arg(long, value_name = "TIME", value_parser = lease)]
    pub(crate) lease: Option<Lease>,
    /// Not ready before: 2h, 2026-12-01T08:00:00Z, or none
    #[arg(long, value_name = "TIME|none", value_parser = moment)]
    pub(crate) not_before: Option<Moment>,
    /// The new labels, replacing the old; an empty one removes them all
    #[arg(long = "label", value_name = "LABEL", value_delimiter = ',')]
    pub(crate) labels: Option<Vec<String>>,
    /// The new paths, replacing the old; an empty one removes them all
    #[arg(long = "path", value_name = "GLOB")]
    pub(crate) paths: Option<Vec<String>>,
    /// Free data to merge, as KEY=VALUE; KEY= removes the key
    #[arg(long = "meta", value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) metadata: Vec<Pair>,
    /// What came of the work; `-` reads it from standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) result: Option<String>,
    #[command(flatten)]
    pub(crate) guard: Guard,
    #[command(flatten)]
    pub(crate) key: Key,
}

/// `rm`.
#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// Which task
    pub(crate) id: TaskId,
    #[command(flatten)]
    pub(crate) guard: Guard,
    #[command(flatten)]
    pub(crate) key: Key,
}

/// A task and nothing else.
#[derive(Debug, Args)]
pub(crate) struct One {
    /// Which task
    pub(crate) id: TaskId,
}

/// `show`.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Which task
    pub(crate) id: TaskId,
    /// Show what happened to it, too
    #[arg(long)]
    pub(crate) history: bool,
}

/// `list`, `tree`, `ready`, `blocked`.
#[derive(Debug, Default, Args)]
pub(crate) struct List {
    /// Only tasks with this status: pending, in_progress or completed
    #[arg(long, value_name = "STATUS", value_parser = status)]
    pub(crate) status: Option<Status>,
    /// Only tasks of this owner
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: Option<String>,
    /// Only tasks with this label
    #[arg(long, value_name = "LABEL")]
    pub(crate) label: Option<String>,
    /// Only tasks below this one
    #[arg(long, value_name = "ID")]
    pub(crate) below: Option<TaskId>,
    /// How many tasks to show, up to 200 [default: 50]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Where the last page ended
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
    /// Show every page
    #[arg(long, conflicts_with_all = ["limit", "cursor"])]
    pub(crate) all: bool,
    /// Show only what is in progress and up to five pending tasks; nothing when nothing is open
    #[arg(long, conflicts_with_all = ["status", "owner", "label", "below", "limit", "cursor", "all"])]
    pub(crate) lite: bool,
    /// Show it again whenever it changes
    #[arg(long, requires = "lite")]
    pub(crate) watch: bool,
}

/// A place among siblings.
#[derive(Debug, Default, Args)]
pub(crate) struct Place {
    /// Put it directly before this sibling
    #[arg(long, value_name = "ID", conflicts_with = "after")]
    pub(crate) before: Option<TaskId>,
    /// Put it directly after this sibling
    #[arg(long, value_name = "ID")]
    pub(crate) after: Option<TaskId>,
}

/// Conditions of a change, and the remark that goes with it.
#[derive(Debug, Default, Args)]
pub(crate) struct Guard {
    /// The fence of your claim: refused if the task has moved on since
    #[arg(long, value_name = "N")]
    pub(crate) fence: Option<u64>,
    /// Change only this revision
    #[arg(long, value_name = "N")]
    pub(crate) if_revision: Option<u64>,
    /// A remark for the history; `-` reads it from standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) note: Option<String>,
    /// Change it although somebody else holds it, on record
    #[arg(long)]
    pub(crate) force: bool,
}

/// An idempotency key.
#[derive(Debug, Default, Args)]
pub(crate) struct Key {
    /// Repeating a call with the same key answers what the first one did
    #[arg(long = "key", value_name = "KEY")]
    pub(crate) key: Option<String>,
}
