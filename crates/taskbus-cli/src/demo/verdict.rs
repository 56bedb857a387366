//! What must hold at the end of the demo, checked from the store's own history and not from what the workers said.

use std::collections::BTreeMap;

use taskbus::answer::{Got, HistoryEntry};
use taskbus::engine::{Engine, Error};
use taskbus_core::change::Kind;
use taskbus_core::id::TaskId;
use taskbus_core::task::Status;

use super::play::Story;
use super::worker;

/// A reclaim may come so long after the lease has ended, in milliseconds.
const RECLAIM_MS_MAX: i64 = 1_500;

/// Something that must hold.
#[derive(Debug)]
pub(super) struct Check {
    /// What.
    pub(super) name: &'static str,
    /// Whether it does.
    pub(super) held: bool,
    /// The figures.
    pub(super) detail: String,
}

/// The tasks as they are at the end, with their histories.
pub(super) struct Record {
    tasks: BTreeMap<TaskId, Got>,
}

impl Record {
    /// Reads the tasks.
    pub(super) fn read(engine: &Engine, ids: &[TaskId]) -> Result<Self, Error> {
        let tasks = ids.iter().map(|id| Ok((id.clone(), engine.get(None, id, true)?)));
        Ok(Self { tasks: tasks.collect::<Result<_, Error>>()? })
    }

    /// How many tasks were completed by whom.
    pub(super) fn done_by(&self) -> BTreeMap<String, usize> {
        let mut done = BTreeMap::new();
        for entry in self.entries().filter(|entry| completes(entry)) {
            *done.entry(entry.by.as_ref().map_or_else(String::new, ToString::to_string)).or_default() += 1;
        }
        done
    }

    /// How often a task went back to its queue.
    pub(super) fn reclaims(&self) -> usize {
        self.entries().filter(|entry| entry.kind == Kind::Reclaimed).count()
    }

    fn entries(&self) -> impl Iterator<Item = &HistoryEntry> {
        self.tasks.values().flat_map(history)
    }

    fn completed_at(&self, id: &TaskId) -> Option<u64> {
        history(self.tasks.get(id)?).iter().find(|entry| completes(entry)).map(|entry| entry.seq)
    }
}

fn history(task: &Got) -> &[HistoryEntry] {
    task.history.as_deref().unwrap_or_default()
}

fn completes(entry: &HistoryEntry) -> bool {
    entry.changes.iter().any(|change| change.starts_with("status: ") && change.ends_with(" -> completed"))
}

fn starts(entry: &HistoryEntry) -> bool {
    entry.changes.iter().any(|change| change.starts_with("status: ") && change.ends_with(" -> in_progress"))
}

/// Every check, with its figures.
pub(super) fn checks(record: &Record, story: &Story, kills: usize) -> Vec<Check> {
    vec![
        ended(story),
        done_once(record),
        work_done(record),
        order(record),
        race(story),
        killed(story, kills),
        reclaimed(record, story),
        late_writes(story),
    ]
}

fn check(name: &'static str, held: bool, detail: String) -> Check {
    Check { name, held, detail }
}

fn ended(story: &Story) -> Check {
    let bad: Vec<String> =
        story.workers.iter().filter(|fate| !fate.well).map(|fate| format!("{}: {}", fate.name, fate.end)).collect();
    let detail = if bad.is_empty() { "every worker came to its end".to_owned() } else { bad.join("; ") };
    check("ended", story.ended && bad.is_empty(), if story.ended { detail } else { format!("not in time; {detail}") })
}

fn done_once(record: &Record) -> Check {
    let once = |task: &&Got| {
        task.task.status == Status::Completed && history(task).iter().filter(|entry| completes(entry)).count() == 1
    };
    let (done, all) = (record.tasks.values().filter(once).count(), record.tasks.len());
    check("done once", done == all, format!("{done} of {all} tasks"))
}

/// The result of each task is what its work gives.
fn work_done(record: &Record) -> Check {
    let mut results = BTreeMap::new();
    let right = record.tasks.values().filter(|task| {
        let subject = task.task.subject.as_str();
        let expected = results.entry(subject).or_insert_with(|| worker::work(subject));
        task.task.result.as_ref().is_some_and(|result| result.as_str() == expected)
    });
    let (right, all) = (right.count(), record.tasks.len());
    check("work done", right == all, format!("{right} of {all} results are what the work gives"))
}

/// No task was started, not even once, before everything it waits for was completed.
fn order(record: &Record) -> Check {
    let (mut links, mut broken) = (0, Vec::new());
    for (id, task) in &record.tasks {
        let first_start = history(task).iter().filter(|entry| starts(entry)).map(|entry| entry.seq).min();
        for blocker in &task.task.blocked_by {
            links += 1;
            let respected = record.completed_at(blocker).zip(first_start).is_some_and(|(done, start)| done < start);
            if !respected {
                broken.push(format!("#{id} started before #{blocker} was completed"));
            }
        }
    }
    let held = broken.is_empty();
    check("order respected", held, if held { format!("{links} dependencies") } else { broken.join("; ") })
}

/// One worker got the contested task; each of the others was told who.
fn race(story: &Story) -> Check {
    let Some(race) = &story.race else { return check("one winner", false, "there was no race".to_owned()) };
    let winner = race.winners.first().map(String::as_str);
    let rightly = race.named.iter().filter(|named| named.as_deref() == winner).count();
    let held = race.winners.len() == 1 && rightly == story.workers.len() - 1;
    let who = winner.unwrap_or("nobody");
    check("one winner", held, format!("{who} of {} got #{}; {rightly} refused, told so", story.workers.len(), race.id))
}

fn killed(story: &Story, kills: usize) -> Check {
    let detail: Vec<String> =
        story.victims.iter().map(|victim| format!("{} held #{}", victim.name, victim.hold.id)).collect();
    let detail = if detail.is_empty() { "nobody".to_owned() } else { detail.join(", ") };
    check("killed", story.victims.len() == kills, detail)
}

/// The tasks of the dead came back as their leases ended, and no other task did.
fn reclaimed(record: &Record, story: &Story) -> Check {
    let mut details = Vec::new();
    let mut held = record.reclaims() == story.victims.len();
    for victim in &story.victims {
        let back =
            record.tasks.get(&victim.hold.id).map_or(&[][..], history).iter().find(|e| e.kind == Kind::Reclaimed);
        match back.map(|entry| entry.at.as_millis() - victim.hold.leased_until) {
            Some(late_ms) => {
                held &= (0..=RECLAIM_MS_MAX).contains(&late_ms);
                details.push(format!("#{} {late_ms} ms after its lease ended", victim.hold.id));
            }
            None => {
                held = false;
                details.push(format!("#{} never", victim.hold.id));
            }
        }
    }
    let detail = if details.is_empty() { format!("{} reclaims", record.reclaims()) } else { details.join(", ") };
    check("reclaimed", held, detail)
}

fn late_writes(story: &Story) -> Check {
    let lost = story.victims.iter().filter(|victim| victim.late_write.as_deref() == Some("lease_lost")).count();
    let all = story.victims.len();
    check("late write refused", lost == all, format!("{lost} of {all}, as lease_lost"))
}
