//! `init`: makes a repository known to its agents, or the program to the clients of this machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};
use taskbus_core::bus::channel::ChannelName;
use taskbus_core::name::{Identity, ListName};
use taskbus_core::neighbourhood::ListRules;

use super::args;
use super::desk::Desk;
use crate::files;
use crate::options::Globals;
use crate::protocol;
use crate::repo_file::{self, RepoFile};
use crate::repo_name;
use crate::setup::{Action, Done, Setup, State, Way};
use crate::term::failure::Failure;
use crate::term::report::Report;
use crate::term::safe::{display_safe, display_safe_lines};

/// What keeps `.local` out of the history of the repository.
const IGNORED: &str = ".local/";

/// Writes the files, or says what it would write.
pub(crate) fn init(globals: Globals, args: &args::Init) -> Result<Box<dyn Report>, Failure> {
    if args.global {
        return clients(args.dry_run);
    }
    let (cwd, home) = repo_name::surroundings()?;
    let mut init = Init::plan(&repo_file::place(&cwd, home.as_deref())?, args.dry_run)?;
    if !args.dry_run {
        init.write()?;
        if let Err(failure) = init.make_channels(globals) {
            init.notes.push(format!("its channels are made when the first agent registers ({})", failure.words()));
        }
    }
    init.look_for_clients();
    Ok(Box::new(init))
}

/// Every client that is on this machine.
fn clients(dry: bool) -> Result<Box<dyn Report>, Failure> {
    let setup = Setup::here()?;
    let done: Vec<Done> = setup.found().map(|client| setup.run(client, Way::Setup, dry)).collect::<Result<_, _>>()?;
    if done.is_empty() {
        return Err(Failure::usage(
            "none of the clients was found on this machine; taskbus setup CLIENT sets one up all the same",
        ));
    }
    Ok(Box::new(done))
}

/// A repository and what becomes of it.
struct Init {
    identity: Identity,
    file: RepoFile,
    /// What was there.
    old: Option<String>,
    ignore: Ignore,
    notes: Vec<String>,
    dry: bool,
}

/// `.gitignore`, and what it should hold; none when nothing has to be added.
struct Ignore {
    path: PathBuf,
    is_there: bool,
    new: Option<Vec<u8>>,
}

impl Init {
    fn plan(path: &Path, dry: bool) -> Result<Self, Failure> {
        let is_there = path.exists();
        let mut file =
            if is_there { RepoFile::read(path)? } else { RepoFile::new(path.to_owned(), &repo_name::identity(path)?) };
        let old = is_there.then(|| file.text());
        let identity = file.identity()?;
        for channel in own_channels(&identity)? {
            file.add_channel(&channel)?;
        }
        let mut notes = Vec::new();
        for list in lists_in(&file) {
            notes.push(format!("{list} is a task list, which agents follow by themselves; it was taken out"));
            file.remove_channel(&list);
        }
        let root = path.parent().and_then(Path::parent).unwrap_or(Path::new("."));
        let ignore = Ignore::plan(root).map_err(|error| Failure::machine(".gitignore cannot be read", error))?;
        Ok(Self { identity, file, old, ignore, notes, dry })
    }

    fn is_news(&self) -> bool {
        self.old.as_ref() != Some(&self.file.text())
    }

    fn write(&self) -> Result<(), Failure> {
        if self.is_news() {
            self.file.write()?;
        }
        let writing = |error| Failure::machine(format!("{} cannot be written", self.ignore.path.display()), error);
        self.ignore.new.as_ref().map_or(Ok(()), |new| files::replace(&self.ignore.path, new, 0o644)).map_err(writing)
    }

    /// The channels of the project. Whoever registers makes them too; now they can be written to at once.
    fn make_channels(&self, globals: Globals) -> Result<(), Failure> {
        let desk = Desk::open(globals)?;
        for name in own_channels(&self.identity)? {
            desk.engine.create_channel(desk.caller()?, &name, None, ListRules::default())?;
        }
        Ok(())
    }

    fn look_for_clients(&mut self) {
        let Ok(setup) = Setup::here() else { return };
        let is_known =
            crate::setup::CLIENTS.iter().any(|client| matches!(setup.state(client), State::Whole | State::Part));
        if !is_known {
            self.notes.push(
                "no client on this machine starts taskbus yet; taskbus init --global sets up those that are here"
                    .to_owned(),
            );
        }
    }

    /// Each file and what became of it.
    fn files(&self) -> [(&Path, Action); 2] {
        let file = match (&self.old, self.is_news()) {
            (None, _) => Action::Create,
            (Some(_), true) => Action::Change,
            (Some(_), false) => Action::Keep,
        };
        let ignore = match &self.ignore.new {
            None => Action::Keep,
            Some(_) if self.ignore.is_there => Action::Change,
            Some(_) => Action::Create,
        };
        [(self.file.path(), file), (&self.ignore.path, ignore)]
    }
}

/// The channels of a project: one to talk in, one for its memories.
fn own_channels(identity: &Identity) -> Result<[ChannelName; 2], Failure> {
    let named =
        |prefix| ChannelName::new(format!("{prefix}{identity}")).map_err(|error| Failure::text("identity", error));
    Ok([named("general/")?, named("memory/")?])
}

/// The task lists among the channels of a file.
fn lists_in(file: &RepoFile) -> Vec<ChannelName> {
    let channels = file.channels().unwrap_or_default().into_iter();
    let is_list = |name: &String| name.starts_with(ListName::PREFIX);
    channels.filter(is_list).filter_map(|name| ChannelName::new(name).ok()).collect()
}

impl Ignore {
    fn plan(root: &Path) -> std::io::Result<Self> {
        let path = root.join(".gitignore");
        let old = files::read(&path)?;
        let is_there = old.is_some();
        let old = old.unwrap_or_default();
        if is_ignored(root) || String::from_utf8_lossy(&old).lines().any(says_so) {
            return Ok(Self { path, is_there, new: None });
        }
        let mut new = old;
        if new.last().is_some_and(|byte| *byte != b'\n') {
            new.push(b'\n');
        }
        new.extend_from_slice(format!("{IGNORED}\n").as_bytes());
        Ok(Self { path, is_there, new: Some(new) })
    }
}

/// Whether Git says so, if there is Git: it also knows what the user ignores everywhere.
fn is_ignored(root: &Path) -> bool {
    let mut git = Command::new("git");
    git.arg("-C").arg(root).args(["check-ignore", "--quiet", "--no-index", repo_file::PLACE]);
    let status = git.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn says_so(line: &str) -> bool {
    matches!(line.trim().trim_start_matches('/').trim_end_matches(['*', '/']), ".local" | ".local/taskbus.json")
}

impl Report for Init {
    fn json(&self) -> Map<String, Value> {
        let files = self.files();
        let files = files.iter().map(|(path, action)| json!({"file": path.to_string_lossy(), "action": action.word()}));
        Map::from_iter([
            ("identity".to_owned(), json!(self.identity.as_str())),
            ("dry_run".to_owned(), json!(self.dry)),
            ("files".to_owned(), files.collect()),
            ("channels".to_owned(), json!(self.file.channels())),
            ("notes".to_owned(), json!(self.notes)),
            ("text".to_owned(), json!(protocol::register(&self.identity))),
        ])
    }

    fn words(&self, _: Option<usize>) -> String {
        let would = if self.dry { "would be " } else { "" };
        let line = |(path, action): &(&Path, Action)| {
            let would = if *action == Action::Keep { "" } else { would };
            format!("{}: {would}{}\n", display_safe(&path.to_string_lossy()), action.word())
        };
        let mut text: String = self.files().iter().map(line).collect();
        if self.dry && self.is_news() {
            text.push_str(&display_safe_lines(&self.file.text()));
        }
        text.extend(self.notes.iter().map(|note| format!("{}\n", display_safe_lines(note))));
        format!("{text}\n{}\n", display_safe_lines(&protocol::register(&self.identity)))
    }
}
