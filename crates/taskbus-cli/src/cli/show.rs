//! How tasks look to people: marks, states, times. Nothing here prints.

use owo_colors::Style;
use taskbus::answer::{Summary, TaskView};
use taskbus_core::id::TaskId;
use taskbus_core::task::Status;
use taskbus_core::time::Timestamp;

use crate::term::safe::{display_safe, display_safe_lines};

/// Pending, in progress, completed, blocked.
pub(crate) fn mark(status: Status, blocked: bool) -> &'static str {
    match status {
        Status::Pending if blocked => "⊘",
        Status::Pending => "○",
        Status::InProgress => "◐",
        Status::Completed => "●",
    }
}

/// The colour of a task in this condition.
pub(crate) fn style(status: Status, blocked: bool) -> Style {
    match status {
        Status::Pending if blocked => Style::new().yellow(),
        Status::Pending => Style::new(),
        Status::InProgress => Style::new().cyan(),
        Status::Completed => Style::new().dimmed(),
    }
}

/// What to know about a row besides its subject: who, until when, what it waits for.
pub(crate) fn remarks(row: &Summary, now: Timestamp) -> String {
    let mut remarks = Vec::new();
    remarks.extend(row.owner.as_ref().map(ToString::to_string));
    remarks.extend(row.leased_until.map(|until| format!("until {}", when(until, now))));
    if !row.open_blockers.is_empty() {
        remarks.push(format!("after {}", ids(&row.open_blockers)));
    }
    remarks.extend(row.not_before.filter(|at| *at > now).map(|at| format!("not before {}", when(at, now))));
    if row.parked {
        remarks.push("parked".to_owned());
    }
    remarks.extend(row.labels.iter().map(|label| format!("@{label}")));
    remarks.join(", ")
}

/// Ids as people write them.
pub(crate) fn ids<'a>(ids: impl IntoIterator<Item = &'a TaskId>) -> String {
    ids.into_iter().map(|id| format!("#{id}")).collect::<Vec<_>>().join(", ")
}

/// A time in UTC, and how far away it is.
pub(crate) fn when(at: Timestamp, now: Timestamp) -> String {
    let seconds = Timestamp::from_millis(at.as_millis().div_euclid(1000).saturating_mul(1000));
    let distance = at.as_millis().saturating_sub(now.as_millis());
    match distance {
        0.. => format!("{seconds} (in {})", span(distance)),
        _ => format!("{seconds} ({} ago)", span(distance.saturating_neg())),
    }
}

/// A duration in its two largest units.
fn span(millis: i64) -> String {
    let seconds = millis / 1000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes, seconds % 60) {
        (0, 0, 0, seconds) => format!("{seconds}s"),
        (0, 0, minutes, seconds) => two(minutes, "m", seconds, "s"),
        (0, hours, minutes, _) => two(hours, "h", minutes, "m"),
        (days, hours, _, _) => two(days, "d", hours, "h"),
    }
}

fn two(first: i64, first_unit: &str, second: i64, second_unit: &str) -> String {
    match second {
        0 => format!("{first}{first_unit}"),
        _ => format!("{first}{first_unit}{second:02}{second_unit}"),
    }
}

/// `#7 subject`, safe.
pub(crate) fn title(id: &TaskId, subject: &str) -> String {
    format!("#{} {}", display_safe(&id.to_string()), display_safe(subject))
}

/// A task whole, as lines.
pub(crate) fn task(task: &TaskView, now: Timestamp) -> String {
    let mut sheet = Sheet::new(&title(&task.id, task.subject.as_str()));
    sheet.field("status", mark_and_word(task));
    sheet.some("owner", task.owner.as_ref());
    sheet.some("held until", task.leased_until.map(|at| when(at, now)));
    sheet.list("waits for", ids(&task.open_blockers));
    sheet.some("not before", task.not_before.map(|at| when(at, now)));
    sheet.some("part of", task.parent.as_ref().map(|id| format!("#{id}")));
    sheet.list("blocked by", ids(&task.blocked_by));
    sheet.list("blocks", ids(&task.blocks));
    sheet.list("labels", joined(&task.labels));
    sheet.list("paths", joined(&task.paths));
    sheet.some("active form", task.active_form.as_ref());
    for (key, value) in &task.metadata {
        sheet.field(&format!("meta {key}"), value);
    }
    sheet.field("list", &task.channel);
    sheet.field("revision", format!("{}, fence {}", task.revision, task.fence));
    if task.reclaims > 0 {
        sheet.field("reclaims", task.reclaims);
    }
    sheet.field("created", stamp(task.created_at, task.created_by.as_ref(), now));
    sheet.field("updated", stamp(task.updated_at, task.updated_by.as_ref(), now));
    sheet.some("completed", task.completed_at.map(|at| when(at, now)));
    sheet.text("description", task.description.as_ref());
    sheet.text("result", task.result.as_ref());
    sheet.0
}

fn mark_and_word(task: &TaskView) -> String {
    let parked = if task.parked { ", parked" } else { "" };
    let blocked = if task.blocked { ", blocked" } else { "" };
    format!("{} {}{blocked}{parked}", mark(task.status, task.blocked), task.status.as_str())
}

fn stamp(at: Timestamp, by: Option<&impl std::fmt::Display>, now: Timestamp) -> String {
    let by = by.map_or_else(String::new, |by| format!(" by {by}"));
    format!("{}{by}", when(at, now))
}

fn joined<'a, T: std::fmt::Display + 'a>(items: impl IntoIterator<Item = &'a T>) -> String {
    items.into_iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Lines of a name and a value each, made safe.
pub(crate) struct Sheet(pub(crate) String);

impl Sheet {
    /// A sheet with a heading; an empty one has none. The heading is safe already.
    pub(crate) fn new(heading: &str) -> Self {
        if heading.is_empty() { Self(String::new()) } else { Self(format!("{heading}\n")) }
    }

    /// A field.
    pub(crate) fn field(&mut self, name: &str, value: impl std::fmt::Display) {
        let (name, value) = (display_safe(name).into_owned(), value.to_string());
        self.0.push_str(&format!("  {name:<12} {}\n", display_safe(&value)));
    }

    /// A field, if there is something in it.
    pub(crate) fn some(&mut self, name: &str, value: Option<impl std::fmt::Display>) {
        if let Some(value) = value {
            self.field(name, value);
        }
    }

    /// A field, if it is not empty.
    pub(crate) fn list(&mut self, name: &str, value: String) {
        self.some(name, Some(value).filter(|value| !value.is_empty()));
    }

    /// A text of several lines, indented below its name.
    pub(crate) fn text(&mut self, name: &str, text: Option<impl std::fmt::Display>) {
        let Some(text) = text else { return };
        self.0.push_str(&format!("  {name}\n"));
        for line in display_safe_lines(&text.to_string()).lines() {
            self.0.push_str(&format!("    {line}\n"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc_and_say_how_far() {
        let now = Timestamp::from_millis(1_796_054_400_250);
        let at = |millis| when(now.plus_millis(millis), now);
        assert_eq!(at(3_600_000), "2026-11-30T17:00:00Z (in 1h)");
        assert_eq!(at(-90_000), "2026-11-30T15:58:30Z (1m30s ago)");
        assert_eq!(at(0), "2026-11-30T16:00:00Z (in 0s)");
        assert_eq!(at(90_000_000), "2026-12-01T17:00:00Z (in 1d01h)");
        assert!(when(Timestamp::from_millis(i64::MIN), now).contains("ago"));
    }

    #[test]
    fn sheets_are_safe() {
        let mut sheet = Sheet::new("x");
        sheet.field("a", "b\u{1b}[2J\nc");
        sheet.text("t", Some("one\n\u{202e}two"));
        assert_eq!(sheet.0, "x\n  a            b\\u{1b}[2J\\nc\n  t\n    one\n    \\u{202e}two\n");
    }
}
