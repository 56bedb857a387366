//! `mirror`: the list and a task directory of Claude Code in step. It tells what it does, line by line.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use taskbus::engine::Error;
use taskbus::mirror::{Event, Mirror, MirrorError, Notice};
use taskbus::store::rows::RowStore as _;

use super::args;
use super::desk::Desk;
use crate::store::{self, StoreUrl};
use crate::term::failure::Failure;
use crate::term::report::{self, Report};

/// Runs the mirror until a signal, or once.
pub(crate) fn mirror(desk: &Desk, args: &args::Mirror, json: bool) -> Result<Box<dyn Report>, Failure> {
    let StoreUrl::Claude(path) = store::named(&args.directory)? else {
        return Err(Failure::usage(format!(
            "{} is no task directory of Claude Code; name it as claude:DIR",
            args.directory.to_string_lossy()
        )));
    };
    let files = store::open_claude(&path)?;
    let list = desk.ensure_list()?;
    let mut mirror = Mirror::start(&desk.engine, list, &files)?;
    let mut told = Told { json, ..Told::default() };
    if args.once {
        mirror.settle(&mut |event| told.tell(&event))?;
        desk.engine.close()?;
    } else {
        let stop = stop_signal()?;
        told.begin(&files.describe(), list.as_str());
        mirror.run(&|| stop.load(Ordering::SeqCst), &mut |event| told.tell(&event))?;
    }
    Ok(Box::new(told))
}

/// Set when this process is told to end.
fn stop_signal() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|error| Failure::machine("listening for signals", error))?;
    }
    Ok(stop)
}

/// What was told so far, counted.
#[derive(Default)]
struct Told {
    json: bool,
    to_files: u64,
    to_list: u64,
    refused: u64,
    vanished: u64,
}

impl Told {
    fn begin(&self, directory: &str, list: &str) {
        let fields = Map::from_iter([
            ("event".to_owned(), json!("mirroring")),
            ("directory".to_owned(), json!(directory)),
            ("channel".to_owned(), json!(list)),
        ]);
        self.print(fields, &format!("mirroring {directory} and {list}; Ctrl-C ends it"));
    }

    fn tell(&mut self, event: &Event) {
        match event {
            Event::FileMade { .. } | Event::FileChanged { .. } | Event::FileRemoved { .. } => self.to_files += 1,
            Event::TaskMade { .. } | Event::TaskChanged { .. } => self.to_list += 1,
            Event::Refused { .. } => self.refused += 1,
            Event::Notice(Notice::Vanished { .. }) => self.vanished += 1,
            Event::Notice(_) | Event::Trouble(_) => {}
        }
        let (name, words) = (name(event), words(event));
        let mut fields = Map::from_iter([("event".to_owned(), json!(name)), ("message".to_owned(), json!(words))]);
        fields.extend(facts(event));
        self.print(fields, &words);
    }

    /// That nobody reads any more is no reason to stop mirroring.
    fn print(&self, fields: Map<String, Value>, words: &str) {
        let _unread = report::print_line(fields, words, self.json);
    }
}

fn name(event: &Event) -> &'static str {
    match event {
        Event::FileMade { .. } => "file_made",
        Event::TaskMade { .. } => "task_made",
        Event::FileChanged { .. } => "file_changed",
        Event::TaskChanged { .. } => "task_changed",
        Event::FileRemoved { .. } => "file_removed",
        Event::Refused { .. } => "refused",
        Event::Notice(Notice::Vanished { .. }) => "vanished",
        Event::Notice(Notice::Elsewhere { .. }) => "elsewhere",
        Event::Notice(Notice::Orphan { .. }) => "orphan",
        Event::Notice(Notice::BothChanged { .. }) => "both_changed",
        Event::Trouble(_) => "trouble",
    }
}

fn words(event: &Event) -> String {
    match event {
        Event::FileMade { shared, file } => format!("task {shared} is file {file} now"),
        Event::TaskMade { shared, file } => format!("file {file} is task {shared} now"),
        Event::FileChanged { file } => format!("file {file} follows the list"),
        Event::TaskChanged { shared } => format!("task {shared} follows the directory"),
        Event::FileRemoved { file } => format!("file {file} is removed, as its task was deleted"),
        Event::Refused { id, refusal } => {
            format!("{id} does not go to the list: {}", Failure::from(Error::from(refusal.clone())).words())
        }
        Event::Notice(Notice::Vanished { shared, file }) => {
            format!("file {file} is gone; task {shared} stays on the list and is not mirrored any more")
        }
        Event::Notice(Notice::Elsewhere { id, half }) => format!("{id} is left alone: it belongs to {half}"),
        Event::Notice(Notice::Orphan { file, shared }) => {
            format!("file {file} is left alone: it names task {shared}, which is not there or has another file")
        }
        Event::Notice(Notice::BothChanged { shared, field }) => {
            format!("both sides changed {field} of task {shared}; what the list says is kept")
        }
        Event::Trouble(error) => format!("{error}; trying again"),
    }
}

fn facts(event: &Event) -> Map<String, Value> {
    let facts = match event {
        Event::FileMade { shared, file } | Event::TaskMade { shared, file } => json!({"task_id": shared, "file": file}),
        Event::Notice(Notice::Vanished { shared, file } | Notice::Orphan { shared, file }) => {
            json!({"task_id": shared, "file": file})
        }
        Event::FileChanged { file } | Event::FileRemoved { file } => json!({"file": file}),
        Event::TaskChanged { shared } => json!({"task_id": shared}),
        Event::Refused { id, refusal } => {
            json!({"id": id, "refusal": Failure::from(Error::from(refusal.clone())).json()})
        }
        Event::Notice(Notice::Elsewhere { id, half }) => json!({"id": id, "belongs_to": half}),
        Event::Notice(Notice::BothChanged { shared, field }) => json!({"task_id": shared, "field": field}),
        Event::Trouble(_) => json!({}),
    };
    match facts {
        Value::Object(facts) => facts,
        _ => Map::new(),
    }
}

impl Report for Told {
    fn json(&self) -> Map<String, Value> {
        Map::from_iter([
            ("event".to_owned(), json!("ended")),
            ("to_files".to_owned(), json!(self.to_files)),
            ("to_list".to_owned(), json!(self.to_list)),
            ("refused".to_owned(), json!(self.refused)),
            ("vanished".to_owned(), json!(self.vanished)),
        ])
    }

    fn words(&self, _: Option<usize>) -> String {
        format!(
            "{} changes went to the directory, {} to the list; {} were refused, {} files vanished\n",
            self.to_files, self.to_list, self.refused, self.vanished
        )
    }
}

impl From<MirrorError> for Failure {
    fn from(error: MirrorError) -> Self {
        match error {
            MirrorError::Running { .. } => Failure::Broken(error.to_string()),
            MirrorError::Shared(error) => error.into(),
            MirrorError::Files(error) => error.into(),
        }
    }
}
