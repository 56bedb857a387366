//! The flags of the commands about messages, channels and memories.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use crate::cli::args::Key;
use crate::cli::values::{Moment, Pair, moment, pair, seconds};

/// What a message or a memory says.
#[derive(Debug, Args)]
pub(crate) struct Said {
    /// The text; `-` reads it from standard input
    #[arg(value_name = "TEXT", allow_hyphen_values = true, required_unless_present = "file")]
    pub(crate) content: Option<String>,
    /// Read the text from a file
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, conflicts_with = "content")]
    pub(crate) file: Option<PathBuf>,
    /// What it is about, in a word such as report or question
    #[arg(long = "type", value_name = "WORD")]
    pub(crate) sort: Option<String>,
    /// Free data, as KEY=VALUE; repeat it for more
    #[arg(long = "meta", value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) metadata: Vec<Pair>,
}

/// `send`.
#[derive(Debug, Args)]
pub(crate) struct Send {
    /// Where to: general, another channel, or dm/NAME
    pub(crate) channel: String,
    #[command(flatten)]
    pub(crate) said: Said,
    /// One line that says what it is about
    #[arg(long, value_name = "TEXT")]
    pub(crate) subject: Option<String>,
    /// The number of the message that it answers
    #[arg(long, value_name = "SEQ")]
    pub(crate) reply_to: Option<u64>,
    /// A tag; repeat it for more
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',')]
    pub(crate) tags: Vec<String>,
    #[command(flatten)]
    pub(crate) key: Key,
}

/// `recv`.
#[derive(Debug, Args)]
pub(crate) struct Recv {
    /// The batch of the last call, which was read: without it, the same messages come again
    #[arg(long, value_name = "BATCH")]
    pub(crate) ack: Option<String>,
    /// How many messages [default: 100]
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<i64>,
    /// Wait so long for one (exit code 4 if none came)
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub(crate) wait: Option<u64>,
    /// Only this channel; repeat it for more
    #[arg(long = "channel", value_name = "NAME")]
    pub(crate) channels: Vec<String>,
    /// What was sent under this name, too
    #[arg(long)]
    pub(crate) include_own: bool,
}

/// `channel`.
#[derive(Debug, Subcommand)]
pub(crate) enum Channel {
    /// Make a channel; fine if it exists already
    Create {
        /// Its name: general/NAME, memory/NAME, tasks/NAME, or any other, with its kind
        channel: String,
        /// What it keeps: ordinary (messages that age out) or memory
        #[arg(long, value_name = "KIND", value_parser = ["ordinary", "memory"])]
        kind: Option<String>,
        /// For a task list: park a task that was abandoned more often; 0 never does
        #[arg(long, value_name = "N", default_value_t = 0)]
        max_reclaims: u32,
    },
    /// Delete a channel with everything in it, after asking; refused while others hear it
    Delete {
        /// Its name
        channel: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Hear a channel, or tags, under this name (for a whole repository: taskbus subscribe)
    Subscribe {
        #[command(flatten)]
        what: Heard,
        /// From its oldest message on, not from now
        #[arg(long, conflicts_with = "tags")]
        oldest: bool,
    },
    /// Hear it no longer
    Unsubscribe {
        #[command(flatten)]
        what: Heard,
    },
    /// Show messages of a channel, read or not; it moves no place
    History {
        /// Its name
        channel: String,
        /// Only messages with lower numbers
        #[arg(long, value_name = "SEQ")]
        before: Option<u64>,
        /// Only messages with higher numbers
        #[arg(long, value_name = "SEQ")]
        after: Option<u64>,
        /// How many, the newest of them [default: 100]
        #[arg(long, value_name = "N")]
        count: Option<i64>,
        /// Only with one of these tags; prefix* is allowed
        #[arg(long = "tag", value_name = "TAG", value_delimiter = ',')]
        tags: Vec<String>,
    },
}

/// A channel, or a set of tags.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Heard {
    /// The channel
    pub(crate) channel: Option<String>,
    /// Instead: messages with all of these tags, in any ordinary channel; prefix* is allowed
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',')]
    pub(crate) tags: Vec<String>,
}

/// `memory`.
#[derive(Debug, Subcommand)]
pub(crate) enum Memory {
    /// Keep a memory
    Add {
        #[command(flatten)]
        said: Said,
        /// Where
        #[arg(long, value_name = "NAME", default_value = "memory")]
        channel: String,
        /// One line that says what it is about
        #[arg(long, value_name = "TEXT")]
        subject: Option<String>,
        /// A tag; repeat it for more
        #[arg(long = "tag", value_name = "TAG", value_delimiter = ',')]
        tags: Vec<String>,
        #[command(flatten)]
        key: Key,
    },
    /// Show a memory as it is now
    Show {
        /// Its number
        id: u64,
    },
    /// Replace what a memory says; its type and data are replaced too, subject and tags stay unless given
    Edit {
        /// Its number
        id: u64,
        #[command(flatten)]
        said: Said,
        /// The new subject; an empty one removes it
        #[arg(long, value_name = "TEXT")]
        subject: Option<String>,
        /// The new tags; an empty one removes them all
        #[arg(long = "tag", value_name = "TAG", value_delimiter = ',')]
        tags: Option<Vec<String>>,
        #[command(flatten)]
        key: Key,
    },
    /// Delete a memory
    Rm {
        /// Its number
        id: u64,
        #[command(flatten)]
        key: Key,
    },
}

/// `search`.
#[derive(Debug, Args)]
pub(crate) struct Search {
    /// The words, all of which must occur; word* is a beginning
    #[arg(required = true)]
    pub(crate) query: Vec<String>,
    /// By words (text), by meaning (semantic), or both
    #[arg(long, value_name = "MODE", value_parser = ["text", "semantic", "both"])]
    pub(crate) mode: Option<String>,
    /// Only in this channel
    #[arg(long, value_name = "NAME")]
    pub(crate) channel: Option<String>,
    /// Only from this sender
    #[arg(long, value_name = "NAME")]
    pub(crate) sender: Option<String>,
    /// Only from then on: 2026-12-01T08:00:00Z
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) since: Option<Moment>,
    /// Only until then
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) until: Option<Moment>,
    /// Only this message and its answers
    #[arg(long, value_name = "SEQ")]
    pub(crate) thread: Option<u64>,
    /// Only with one of these tags; prefix* is allowed
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',')]
    pub(crate) tags: Vec<String>,
    /// How many [default: 100]
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<i64>,
    /// Where the last page ended
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
}

/// `wait`.
#[derive(Debug, Args)]
pub(crate) struct Wait {
    /// How long: 30s, 5m [default: without end; 50s with --ready and --events]
    #[arg(long = "for", visible_alias = "timeout", value_name = "TIME", value_parser = seconds)]
    pub(crate) seconds: Option<u64>,
    /// Instead of a message, wait until a task of the list is ready (exit code 4 if none was)
    #[arg(long, conflicts_with_all = ["events", "channels", "include_own", "filter", "no_harness_watch"])]
    pub(crate) ready: bool,
    /// Instead, print a line of JSON for each change of the list in that time, with the whole graph, and for each
    /// message that is new to this name
    #[arg(long, conflicts_with_all = ["channels", "include_own", "filter", "no_harness_watch"])]
    pub(crate) events: bool,
    /// Only messages of this channel; repeat it for more
    #[arg(long = "channel", value_name = "NAME")]
    pub(crate) channels: Vec<String>,
    /// What was sent under this name, too
    #[arg(long)]
    pub(crate) include_own: bool,
    /// Only messages whose subject or text matches this regular expression; those to this name alone, and those with
    /// tags that it follows, wake it all the same
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true)]
    pub(crate) filter: Option<String>,
    /// Wait on when the program that started this has ended
    #[arg(long)]
    pub(crate) no_harness_watch: bool,
}
