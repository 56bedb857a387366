//! What `setup` says: file by file what became of it, and what else to know.

use serde_json::{Map, Value, json};

use super::apply::{Action, Change, Way};
use super::clients::Client;
use super::{CLIENTS, Setup, State};
use crate::term::layout::{Column, Table};
use crate::term::report::Report;
use crate::term::safe::{display_safe, display_safe_lines};

/// One client, done.
pub(crate) struct Done {
    pub(super) client: &'static Client,
    pub(super) changes: Vec<Change>,
    pub(super) way: Way,
    pub(super) dry: bool,
}

impl Done {
    /// Whether anything was changed, or would be.
    pub(crate) fn is_news(&self) -> bool {
        self.changes.iter().any(|change| change.action != Action::Keep)
    }

    /// For people.
    pub(crate) fn words(&self) -> String {
        let mut text = format!("{}\n", self.client.title);
        for change in &self.changes {
            text.push_str(&change.words(self.dry));
        }
        if self.way == Way::Setup && self.is_news() {
            text.extend(self.client.notes.iter().map(|note| format!("  {note}\n")));
        }
        text
    }

    /// For programs.
    pub(crate) fn json(&self) -> Value {
        let files: Vec<Value> = self.changes.iter().map(Change::json).collect();
        json!({"client": self.client.name, "dry_run": self.dry, "files": files, "notes": self.client.notes})
    }
}

impl Change {
    fn json(&self) -> Value {
        let path = |path: &std::path::Path| path.to_string_lossy().into_owned();
        let mut json = json!({"file": path(&self.path), "action": self.action.word()});
        if let Some(really) = &self.really {
            json["written_to"] = json!(path(really));
        }
        if let Some(backup) = &self.backup {
            json["backup"] = json!(path(backup));
        }
        if !self.lines.is_empty() {
            json["lines"] = json!(self.lines);
        }
        json
    }

    fn words(&self, dry: bool) -> String {
        let (would, path) =
            (if dry && self.action != Action::Keep { "would be " } else { "" }, self.path.to_string_lossy());
        let mut text = format!("  {}: {would}{}", display_safe(&path), self.action.word());
        if let (Action::Change, Some(backup)) = (self.action, &self.backup) {
            text.push_str(&format!(", with a copy in {}", display_safe(&backup.to_string_lossy())));
        }
        if let (Some(really), true) = (&self.really, self.action != Action::Keep) {
            text.push_str(&format!(
                "; a link leads to {}, which is what is written",
                display_safe(&really.to_string_lossy())
            ));
        }
        if self.is_ours && matches!(self.action, Action::Create | Action::Change) {
            text.push_str(" (the skill that tells agents how to use it)");
        }
        text.push('\n');
        if self.action != Action::Restore && self.action != Action::Delete && !self.is_ours {
            text.extend(self.lines.iter().map(|line| format!("    {}\n", display_safe(line))));
        }
        text
    }
}

impl Action {
    /// For people and for programs.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Action::Keep => "unchanged",
            Action::Create => "created",
            Action::Change => "changed",
            Action::Restore => "restored",
            Action::Delete => "removed",
        }
    }
}

impl Report for Vec<Done> {
    fn json(&self) -> Map<String, Value> {
        Map::from_iter([("clients".to_owned(), self.iter().map(Done::json).collect())])
    }

    fn words(&self, _: Option<usize>) -> String {
        if self.is_empty() {
            return "there is nothing to do\n".to_owned();
        }
        self.iter().map(Done::words).collect()
    }
}

/// Every client, and how far it is set up.
pub(crate) struct Overview(Vec<(&'static Client, bool, State)>);

impl Overview {
    /// Looks at the files of every client.
    pub(crate) fn of(setup: &Setup) -> Self {
        Self(CLIENTS.iter().map(|client| (client, client.is_here(&setup.home), setup.state(client))).collect())
    }
}

impl State {
    fn word(&self) -> &'static str {
        match self {
            State::Whole => "yes",
            State::Part => "in part",
            State::Nothing => "no",
            State::Unknown(_) => "a file of it cannot be read",
        }
    }
}

impl Report for Overview {
    fn json(&self) -> Map<String, Value> {
        let row = |(client, here, state): &(&Client, bool, State)| {
            let mut row = json!({"client": client.name, "title": client.title, "found": here, "set_up": state.word()});
            if let State::Unknown(why) = state {
                row["why"] = json!(why);
            }
            row
        };
        Map::from_iter([("clients".to_owned(), self.0.iter().map(row).collect())])
    }

    fn words(&self, width: Option<usize>) -> String {
        let mut table = Table::new([Column::left("CLIENT"), Column::left("FOUND"), Column::flexible("SET UP")]);
        for (client, here, state) in &self.0 {
            table.row([client.name.into(), if *here { "yes" } else { "no" }.into(), state.word().into()]);
        }
        let why =
            self.0.iter().filter_map(|(_, _, state)| if let State::Unknown(why) = state { Some(why) } else { None });
        let why: String =
            why.map(|why| format!("{}\n", display_safe_lines(why.split(". Nothing").next().unwrap_or(why)))).collect();
        format!("{}{why}", table.render(width))
    }
}
