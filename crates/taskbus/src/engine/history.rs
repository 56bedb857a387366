//! What a revision changed, in words.

use std::collections::BTreeSet;
use std::fmt::Display;

use serde_json::{Map, Value};
use taskbus_core::change::Kind;
use taskbus_core::task::Task;

use crate::answer::HistoryEntry;
use crate::store::RevisionRow;

/// Longest text shown from a subject, in characters.
const SHOWN_CHARS_MAX: usize = 60;

/// The history made of revisions, newest first. `whole` says that the last row is the first revision of all;
/// if it is not, that row only serves to compare with.
pub(super) fn entries(rows: &[RevisionRow], whole: bool) -> Vec<HistoryEntry> {
    let shown = if whole { rows.len() } else { rows.len().saturating_sub(1) };
    let numbered = rows[..shown].iter().enumerate().filter(|(_, row)| row.kind != Kind::Reranked);
    numbered.map(|(at, row)| entry(row, rows.get(at + 1))).collect()
}

fn entry(row: &RevisionRow, before: Option<&RevisionRow>) -> HistoryEntry {
    HistoryEntry {
        seq: row.seq,
        revision: row.task.revision,
        at: row.task.updated.at,
        by: row.task.updated.by.clone(),
        kind: row.kind,
        changes: before.map_or_else(Vec::new, |before| changes(&before.task, &row.task)),
        note: row.note.clone(),
    }
}

fn changes(old: &Task, new: &Task) -> Vec<String> {
    let mut words = Words(Vec::new());
    words.value("status", old.status().as_str(), new.status().as_str());
    words.option("owner", old.owner(), new.owner());
    words.option("leased_until", old.leased_until().as_ref(), new.leased_until().as_ref());
    words.value("subject", &shown(old.subject.as_str()), &shown(new.subject.as_str()));
    words.text("description", old.description.as_ref(), new.description.as_ref());
    words.text("active_form", old.active_form.as_ref(), new.active_form.as_ref());
    words.text("result", old.result.as_ref(), new.result.as_ref());
    words.option("parent", old.parent.as_ref(), new.parent.as_ref());
    if old.rank != new.rank {
        words.0.push("moved among its siblings".to_owned());
    }
    words.set("blocked_by", &old.blocked_by.iter().collect(), &new.blocked_by.iter().collect());
    words.option("not_before", old.not_before.as_ref(), new.not_before.as_ref());
    words.set("labels", &old.labels.iter().collect(), &new.labels.iter().collect());
    words.set("paths", &old.paths.iter().collect(), &new.paths.iter().collect());
    words.metadata(&old.metadata, &new.metadata);
    if old.parked != new.parked {
        words.0.push(if new.parked { "parked" } else { "no longer parked" }.to_owned());
    }
    words.0
}

struct Words(Vec<String>);

impl Words {
    fn value<T: PartialEq + Display + ?Sized>(&mut self, field: &str, old: &T, new: &T) {
        if old != new {
            self.0.push(format!("{field}: {old} -> {new}"));
        }
    }

    fn option<T: PartialEq + Display>(&mut self, field: &str, old: Option<&T>, new: Option<&T>) {
        let name = |value: Option<&T>| value.map_or_else(|| "none".to_owned(), ToString::to_string);
        if old != new {
            self.0.push(format!("{field}: {} -> {}", name(old), name(new)));
        }
    }

    fn text<T: PartialEq>(&mut self, field: &str, old: Option<&T>, new: Option<&T>) {
        match (old, new) {
            (None, Some(_)) => self.0.push(format!("{field} set")),
            (Some(_), None) => self.0.push(format!("{field} removed")),
            (Some(old), Some(new)) if old != new => self.0.push(format!("{field} changed")),
            (None, None) | (Some(_), Some(_)) => {}
        }
    }

    fn set<T: Ord + Display>(&mut self, field: &str, old: &BTreeSet<T>, new: &BTreeSet<T>) {
        let added = new.difference(old).map(|item| format!("+{item}"));
        let removed = old.difference(new).map(|item| format!("-{item}"));
        let signed: Vec<String> = added.chain(removed).collect();
        if !signed.is_empty() {
            self.0.push(format!("{field}: {}", signed.join(" ")));
        }
    }

    fn metadata(&mut self, old: &Map<String, Value>, new: &Map<String, Value>) {
        let removed = old.keys().filter(|key| !new.contains_key(*key)).map(|key| format!("-{}", shown(key)));
        let set = new.iter().filter_map(|(key, value)| match old.get(key) {
            None => Some(format!("+{}", shown(key))),
            Some(before) if before != value => Some(format!("~{}", shown(key))),
            Some(_) => None,
        });
        let signed: Vec<String> = set.chain(removed).collect();
        if !signed.is_empty() {
            self.0.push(format!("metadata: {}", signed.join(" ")));
        }
    }
}

fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}
