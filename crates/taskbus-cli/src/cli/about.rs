//! The commands about taskbus itself: status, doctor, completions, man.

use std::path::{Path, PathBuf};

use clap::CommandFactory as _;
use serde_json::{Map, Value, json};
use taskbus::answer::status::BusStatus;
use taskbus::store::{Abilities, Store};
use taskbus_core::neighbourhood::Tally;

use super::args::{self, Cli};
use super::desk::Desk;
use super::next::{tally_json, tally_words};
use super::show::Sheet;
use crate::options::Globals;
use crate::project::{ChosenList, Source};
use crate::setup::Setup;
use crate::term::failure::{DONE, Failure, REFUSED, UNAVAILABLE};
use crate::term::report::Report;
use crate::term::safe::display_safe;

/// The version of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The store, the list and the name that commands would use.
pub(crate) fn status(desk: &Desk) -> Result<Box<dyn Report>, Failure> {
    let store = desk.engine.store();
    let list = desk.chosen_list().cloned().map_err(|failure| failure.words());
    let lists = desk.engine.lists()?;
    let known = list.as_ref().is_ok_and(|list| lists.iter().any(|row| row.name == list.name));
    let tally = match &list {
        Ok(list) if known => Some(desk.engine.tally(&list.name)?),
        _ => None,
    };
    let bus = if store.has_bus() { Some(desk.engine.bus_status()?) } else { None };
    let (config, data) = (desk.config.file().map(Path::to_owned), desk.config.data_directory());
    let (store, abilities) = (store.describe(), store.abilities());
    Ok(Box::new(Status { store, abilities, name: desk.name(), list, tally, bus, config, data }))
}

/// What commands would use.
struct Status {
    store: String,
    abilities: Abilities,
    name: String,
    list: Result<ChosenList, String>,
    tally: Option<Tally>,
    bus: Option<BusStatus>,
    config: Option<PathBuf>,
    data: Option<PathBuf>,
}

impl Report for Status {
    fn json(&self) -> Map<String, Value> {
        let mut json = Map::from_iter([
            ("version".to_owned(), json!(VERSION)),
            ("store".to_owned(), json!(self.store)),
            ("durable".to_owned(), json!(self.abilities.durable)),
            ("shared_across_processes".to_owned(), json!(self.abilities.shared_across_processes)),
            ("liveness".to_owned(), json!(self.abilities.liveness)),
            ("as".to_owned(), json!(self.name)),
        ]);
        if let Some(why) = no_bus(self.abilities) {
            json.insert("no_bus_tools".to_owned(), json!(why));
        }
        match &self.list {
            Ok(list) => {
                json.insert("channel".to_owned(), json!(list.name));
                json.insert("channel_from".to_owned(), json!(source(list)));
                json.insert("exists".to_owned(), json!(self.tally.is_some()));
            }
            Err(why) => {
                json.insert("no_channel".to_owned(), json!(why));
            }
        }
        json.extend(self.tally.iter().map(|tally| ("tally".to_owned(), tally_json(tally))));
        let paths = [("config", &self.config), ("data_directory", &self.data)].into_iter();
        json.extend(paths.filter_map(|(name, path)| Some((name.to_owned(), json!(path.as_ref()?.to_string_lossy())))));
        json.extend(self.bus.iter().map(|bus| ("bus".to_owned(), json!(bus))));
        json
    }

    fn words(&self, _: Option<usize>) -> String {
        let mut sheet = Sheet::new("");
        sheet.field("version", VERSION);
        sheet.field("store", &self.store);
        sheet.field("kept", kept(self.abilities));
        if let Some(why) = no_bus(self.abilities) {
            sheet.field("bus", why);
        }
        sheet.field("name", &self.name);
        match &self.list {
            Ok(list) => sheet.field("list", format!("{} ({})", list.name, source(list))),
            Err(why) => sheet.field("list", why),
        }
        match &self.tally {
            Some(tally) => sheet.field("tasks", tally_words(tally).trim()),
            None if self.list.is_ok() => sheet.field("tasks", "the list does not exist yet; add or plan makes it"),
            None => {}
        }
        sheet.some("config", self.config.as_ref().map(|path| path.display()));
        if let Some(bus) = &self.bus {
            bus_words(&mut sheet, bus);
        }
        sheet.0
    }
}

/// How the bus is: how full, who is there, what it has to say.
fn bus_words(sheet: &mut Sheet, bus: &BusStatus) {
    sheet.field("size", format!("{} MiB of {}", bus.used_mib, bus.budget_mib));
    sheet.some("notice", bus.notice.as_ref());
    if let Some(embedding) = &bus.embedding {
        let counts = (embedding.embedded, embedding.backlog, embedding.rejected);
        sheet.field(
            "vectors",
            format!("{} by {}, {} to come, {} rejected", counts.0, embedding.model, counts.1, counts.2),
        );
        sheet.some("last error", embedding.last_error.as_ref());
    }
    sheet.list("sessions", joined(bus.sessions.iter().map(|session| session.name.to_string())));
    sheet.list("channels", joined(bus.channels.iter().map(|row| format!("{} ({})", row.name, row.messages))));
}

fn joined(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

fn kept(abilities: Abilities) -> &'static str {
    match (abilities.durable, abilities.shared_across_processes) {
        (true, true) => "on disk before each answer; shared with other processes",
        (true, false) => "on disk before each answer; for one process at a time",
        (false, _) => "nowhere: it is gone when this process ends",
    }
}

/// Why the tools of a bus are not offered on a store without sessions.
fn no_bus(abilities: Abilities) -> Option<&'static str> {
    (!abilities.liveness).then_some(
        "none: one list and no sessions are kept here, so nobody registers, nobody's tasks are given back when their \
         process ends, and there are no channels, messages and memories: the tools register, create_channel, send, \
         receive and those of the set full are not offered; keep a shared list in sqlite:PATH",
    )
}

fn source(list: &ChosenList) -> String {
    match &list.source {
        Source::Named => "named".to_owned(),
        Source::Only => "the only one of this store".to_owned(),
        Source::Project(root) => format!("the project in {}", root.display()),
    }
}

/// Checks the store and the surroundings, one after the other.
pub(crate) fn doctor(globals: Globals, wish: &args::Doctor) -> Box<dyn Report> {
    let mut doctor = Doctor { checks: Vec::new(), exit: DONE };
    match Desk::open(globals) {
        Ok(desk) => {
            if wish.accept_rollback {
                doctor.examine("rollback", desk.accept_rollback());
            }
            doctor.store(&desk);
            doctor.surroundings(&desk);
        }
        Err(failure) => doctor.failed("store", &failure),
    }
    Box::new(doctor)
}

/// What the check of a store found, as a verdict.
fn sound(found: &[String]) -> Result<String, Failure> {
    const SHOWN_MAX: usize = 10;
    if found.is_empty() {
        return Ok("every derived row is what its documents say".to_owned());
    }
    let shown = found[..found.len().min(SHOWN_MAX)].join("; ");
    Err(Failure::Broken(format!(
        "{} things do not add up: {shown}; make a copy of the file before anything else",
        found.len()
    )))
}

/// The store's clock against this machine's.
fn clock(store: &dyn Store) -> Result<String, Failure> {
    const APART_MS_MAX: i64 = 5_000;
    let here = jiff::Timestamp::now().as_millisecond();
    let apart = store.now()?.as_millis().abs_diff(here);
    if apart > APART_MS_MAX.unsigned_abs() {
        return Err(Failure::Broken(format!(
            "the store's clock and this machine's are {apart} ms apart: one of them was set. A store on this machine \
             keeps to its time while tasks are held under leases, so that none ends early or late, and is right again with \
             the first write after the last of them; otherwise set the clocks right"
        )));
    }
    Ok(format!("{apart} ms apart"))
}

/// The checks and how they went.
struct Doctor {
    checks: Vec<Check>,
    exit: u8,
}

struct Check {
    name: &'static str,
    ok: bool,
    detail: String,
}

impl Doctor {
    fn passed(&mut self, name: &'static str, detail: String) {
        self.checks.push(Check { name, ok: true, detail });
    }

    fn failed(&mut self, name: &'static str, failure: &Failure) {
        self.exit = if failure.exit() == UNAVAILABLE { UNAVAILABLE } else { self.exit.max(REFUSED) };
        self.checks.push(Check { name, ok: false, detail: failure.words() });
    }

    fn examine(&mut self, name: &'static str, found: Result<String, impl Into<Failure>>) {
        match found {
            Ok(detail) => self.passed(name, detail),
            Err(failure) => self.failed(name, &failure.into()),
        }
    }

    /// A store that cannot be read is complained of once.
    fn store(&mut self, desk: &Desk) {
        let store = desk.engine.store();
        match desk.engine.lists() {
            Ok(lists) => self.passed(
                "store",
                format!("{}, {}, {}", store.describe(), counted(lists.len()), kept(store.abilities())),
            ),
            Err(error) => return self.failed("store", &error.into()),
        }
        if let Some(standing) = desk.high_water().transpose() {
            self.examine("numbers", standing);
        }
        self.examine("content", desk.check_store().and_then(|found| sound(&found)));
        self.examine("clock", clock(store));
        self.examine("name", desk.caller().map(|name| format!("{name} may act")));
    }

    /// A place without a list of its own is nothing to mend.
    fn surroundings(&mut self, desk: &Desk) {
        match desk.chosen_list() {
            Ok(list) => self.passed("list", format!("{} ({})", list.name, source(list))),
            Err(failure) => self.passed("list", failure.words()),
        }
        self.passed("config", desk.config.standing());
        self.clients();
    }

    /// Which clients start taskbus. One that does not may do without.
    fn clients(&mut self) {
        match Setup::here() {
            Ok(setup) => self.passed("clients", setup.standing()),
            Err(failure) => self.failed("clients", &failure),
        }
    }
}

fn counted(lists: usize) -> String {
    if lists == 1 { "1 list".to_owned() } else { format!("{lists} lists") }
}

impl Report for Doctor {
    fn json(&self) -> Map<String, Value> {
        let checks = self.checks.iter().map(|c| json!({"name": c.name, "ok": c.ok, "detail": c.detail}));
        Map::from_iter([
            ("version".to_owned(), json!(VERSION)),
            ("ok".to_owned(), json!(self.exit == DONE)),
            ("checks".to_owned(), checks.collect()),
        ])
    }

    fn words(&self, _: Option<usize>) -> String {
        let line = |check: &Check| {
            let mark = if check.ok { "✓" } else { "✗" };
            format!("{mark} {:<8} {}\n", check.name, display_safe(&check.detail))
        };
        self.checks.iter().map(line).collect()
    }

    fn exit(&self) -> u8 {
        self.exit
    }
}

/// A completion script.
pub(crate) fn completions(shell: clap_complete::Shell) -> Box<dyn Report> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "taskbus", &mut text);
    Box::new(Text { name: "script", text: String::from_utf8_lossy(&text).into_owned() })
}

/// The manual page of the program, or of one command.
pub(crate) fn man(command: Option<&str>) -> Result<Box<dyn Report>, Failure> {
    let mut root = Cli::command();
    root.build();
    let page = match command {
        None => root,
        Some(name) => {
            let found = root.find_subcommand(name).cloned();
            found.ok_or_else(|| Failure::usage(format!("there is no command {name:?}; taskbus --help lists them")))?
        }
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text).map_err(|error| Failure::machine("the page", error))?;
    Ok(Box::new(Text { name: "page", text: String::from_utf8_lossy(&text).into_owned() }))
}

/// A text made by ourselves.
struct Text {
    name: &'static str,
    text: String,
}

impl Report for Text {
    fn json(&self) -> Map<String, Value> {
        Map::from_iter([(self.name.to_owned(), json!(self.text))])
    }

    fn words(&self, _: Option<usize>) -> String {
        self.text.clone()
    }
}
