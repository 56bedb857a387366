//! What `taskbus config` shows: every key, its value in force, and where that comes from.

use owo_colors::Style;
use serde_json::{Map, json};

use super::load::is_nothing;
use super::{Config, Entry, Origin};
use crate::term::layout::{Cell, Column, Table};
use crate::term::report::Report;
use crate::term::safe::display_safe;

impl Origin {
    fn words(&self) -> String {
        match self {
            Origin::Default => String::new(),
            Origin::File => "the file".to_owned(),
            Origin::Variable(name) => name.clone(),
        }
    }
}

impl Entry {
    fn shown(&self) -> String {
        match &self.value {
            value if is_nothing(value) => self.key.default_words.replace('`', ""),
            value => value.to_string(),
        }
    }
}

impl Config {
    /// The file, whether it is there, and what is to be said of it, in a line.
    pub(crate) fn standing(&self) -> String {
        let file = self.file.as_ref().map_or_else(|| "no file".to_owned(), |file| file.to_string_lossy().into_owned());
        let state = if self.found { "" } else { " (not there: defaults hold)" };
        let warnings: String = self.warnings.iter().map(|warning| format!("; {warning}")).collect();
        format!("{file}{state}{warnings}")
    }
}

impl Report for Config {
    fn json(&self) -> Map<String, serde_json::Value> {
        let row = |entry: &Entry| {
            let from = if entry.origin == Origin::Default { "default".to_owned() } else { entry.origin.words() };
            json!({"key": entry.key.name, "value": entry.value, "from": from, "about": entry.key.about})
        };
        Map::from_iter([
            ("file".to_owned(), json!(self.file.as_ref().map(|file| file.to_string_lossy()))),
            ("file_exists".to_owned(), json!(self.found)),
            ("data_directory".to_owned(), json!(self.data_directory().map(|dir| dir.to_string_lossy().into_owned()))),
            ("keys".to_owned(), self.entries.iter().map(row).collect()),
            ("warnings".to_owned(), json!(self.warnings)),
        ])
    }

    fn words(&self, width: Option<usize>) -> String {
        let mut table = Table::new([Column::left("KEY"), Column::flexible("VALUE"), Column::left("SET BY")]);
        for entry in &self.entries {
            let set = entry.origin != Origin::Default;
            let style = if set { Style::new().bold() } else { Style::new() };
            table.row([
                Cell::new(entry.key.name, style),
                Cell::plain(entry.shown()),
                Cell::new(entry.origin.words(), Style::new().dimmed()),
            ]);
        }
        format!("{}\n{}", display_safe(&self.standing()), table.render(width))
    }
}
