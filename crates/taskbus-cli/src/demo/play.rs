//! The course of the demo: the workers race for one task, then work through the rest; some are killed while they
//! hold a task, and when their task has come back, somebody tries to finish it with the dead worker's fence.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taskbus_core::id::TaskId;

use super::crew::{self, Crew};
use super::worker::{Event, GO, Hold, LEASE_SECONDS, RACE};
use crate::client::{CallError, Client};
use crate::term::failure::Failure;
use crate::term::progress::Progress;

/// What happened.
#[derive(Debug, Default)]
pub(super) struct Story {
    /// Each worker.
    pub(super) workers: Vec<Fate>,
    /// The task that all raced for.
    pub(super) race: Option<Race>,
    /// Each worker that was killed.
    pub(super) victims: Vec<Victim>,
    /// Whether it came to its end in time.
    pub(super) ended: bool,
}

/// What became of a worker.
#[derive(Debug, Default)]
pub(super) struct Fate {
    /// The name it got.
    pub(super) name: String,
    /// How many tasks it completed.
    pub(super) done: usize,
    /// How many of its claims were refused.
    pub(super) refused: usize,
    /// How it ended, in a word or a sentence.
    pub(super) end: String,
    /// Whether that is an end to be content with.
    pub(super) well: bool,
}

/// A race for one task.
#[derive(Debug)]
pub(super) struct Race {
    /// The task.
    pub(super) id: TaskId,
    /// Who got it.
    pub(super) winners: Vec<String>,
    /// Whom the others were told.
    pub(super) named: Vec<Option<String>>,
}

/// A worker that was killed, and what came of its task.
#[derive(Debug)]
pub(super) struct Victim {
    /// Its name.
    pub(super) name: String,
    /// What it held.
    pub(super) hold: Hold,
    /// Who took the task after it.
    pub(super) heir: Option<String>,
    /// What came of writing with its fence afterwards: the reason of the refusal, or what went wrong.
    pub(super) late_write: Option<String>,
}

/// The demo under way.
pub(super) struct Play<'a> {
    crew: Crew,
    ghost: Client,
    ghost_name: String,
    progress: &'a Progress,
    story: Story,
    total: usize,
    kills: usize,
    ready: usize,
    gone: usize,
    /// Who won the race and waits for the word to go on.
    winner: Option<(usize, Hold)>,
}

impl<'a> Play<'a> {
    /// A demo with these workers; `ghost` speaks for the dead.
    pub(super) fn new(crew: Crew, workers: usize, mut ghost: Client, progress: &'a Progress) -> Result<Self, Failure> {
        let answer = ghost.call("register", &json!({"name": "ghost"})).map_err(Failure::machine_error)?;
        let ghost_name = answer.get("as").and_then(Value::as_str).unwrap_or("ghost").to_owned();
        let fates = (0..workers).map(|worker| Fate { name: crew::name(worker), ..Fate::default() }).collect();
        let story = Story { workers: fates, ..Story::default() };
        Ok(Self { crew, ghost, ghost_name, progress, story, total: 0, kills: 0, ready: 0, gone: 0, winner: None })
    }

    /// Lets them work on `total` tasks, the first of which they race for, and kills `kills` of them.
    pub(super) fn run(mut self, first: TaskId, total: usize, kills: usize) -> Result<Story, Failure> {
        (self.total, self.kills) = (total, kills);
        self.story.race = Some(Race { id: first, winners: Vec::new(), named: Vec::new() });
        let allowed = Duration::from_secs(60 + LEASE_SECONDS * kills as u64 + total as u64 / 5);
        let deadline = Instant::now() + allowed;
        while self.gone < self.story.workers.len() {
            match self.crew.hear(deadline)? {
                Some((worker, event)) => self.on(worker, event)?,
                None => return Ok(self.story),
            }
        }
        self.story.ended = true;
        Ok(self.story)
    }

    fn on(&mut self, worker: usize, event: Event) -> Result<(), Failure> {
        match event {
            Event::Ready { name } => self.on_ready(worker, name),
            Event::Claimed(hold) => return self.on_claimed(worker, hold),
            Event::Refused { owner, .. } => return self.on_refused(worker, owner),
            Event::Done { id } => self.on_done(worker, &id),
            Event::Finished => {
                let fate = &mut self.story.workers[worker];
                (fate.end, fate.well) = ("finished".to_owned(), true);
            }
            Event::Failed { why } => {
                self.progress.note(&format!("{}: {why}", self.story.workers[worker].name));
                self.story.workers[worker].end = why;
            }
            Event::Gone => self.gone += 1,
        }
        Ok(())
    }

    /// When all are ready, all race.
    fn on_ready(&mut self, worker: usize, name: String) {
        self.story.workers[worker].name = name;
        self.ready += 1;
        let all = self.story.workers.len();
        if let (true, Some(race)) = (self.ready == all, &self.story.race) {
            self.progress.note(&format!("{all} workers race for #{}", race.id));
            let word = format!("{RACE}{}", race.id);
            (0..all).for_each(|worker| self.crew.tell(worker, &word));
        }
    }

    fn on_refused(&mut self, worker: usize, owner: Option<String>) -> Result<(), Failure> {
        self.story.workers[worker].refused += 1;
        if let Some(race) = &mut self.story.race {
            race.named.push(owner);
        }
        self.end_race()
    }

    fn on_claimed(&mut self, worker: usize, hold: Hold) -> Result<(), Failure> {
        self.inherit(worker, &hold);
        let (racing, name) = (self.is_racing(), self.story.workers[worker].name.clone());
        match &mut self.story.race {
            Some(race) if racing && race.id == hold.id => {
                race.winners.push(name);
                self.winner = Some((worker, hold));
                self.end_race()
            }
            _ => self.kill_or_go(worker, hold),
        }
    }

    fn is_racing(&self) -> bool {
        let answered = self.story.race.as_ref().map_or(0, |race| race.winners.len() + race.named.len());
        answered < self.story.workers.len()
    }

    /// The winner goes on when everybody has had an answer, so that nobody comes too late to be refused.
    fn end_race(&mut self) -> Result<(), Failure> {
        match self.winner.take() {
            Some((worker, hold)) if !self.is_racing() => {
                self.progress.note(&format!("{} has won it, the others were refused", self.story.workers[worker].name));
                self.kill_or_go(worker, hold)
            }
            waiting => {
                self.winner = waiting;
                Ok(())
            }
        }
    }

    fn kill_or_go(&mut self, worker: usize, hold: Hold) -> Result<(), Failure> {
        if !self.is_time_to_kill(&hold) {
            self.crew.tell(worker, GO);
            return Ok(());
        }
        self.crew.kill(worker)?;
        let fate = &mut self.story.workers[worker];
        (fate.end, fate.well) = (format!("killed with #{} in its hands", hold.id), true);
        let name = fate.name.clone();
        self.progress.note(&format!("killed {name} while it holds #{}: {}", hold.id, hold.subject));
        self.story.victims.push(Victim { name, hold, heir: None, late_write: None });
        Ok(())
    }

    /// The kills are spread over the work; no task loses its worker twice.
    fn is_time_to_kill(&self, hold: &Hold) -> bool {
        let killed = self.story.victims.len();
        let struck: BTreeSet<&TaskId> = self.story.victims.iter().map(|victim| &victim.hold.id).collect();
        let due = !self.is_racing() && self.done() >= self.total * (killed + 1) / (self.kills + 3);
        killed < self.kills && due && !struck.contains(&hold.id)
    }

    fn done(&self) -> usize {
        self.story.workers.iter().map(|fate| fate.done).sum()
    }

    fn on_done(&mut self, worker: usize, id: &TaskId) {
        self.story.workers[worker].done += 1;
        self.progress.set(self.done() as u64);
        self.progress.doing(&format!("{} did #{id}", self.story.workers[worker].name));
    }

    /// A dead worker's task has come back: its late write is tried while its heir holds it.
    fn inherit(&mut self, worker: usize, hold: &Hold) {
        let heir = self.story.workers[worker].name.clone();
        let Some(victim) = self.story.victims.iter_mut().find(|v| v.hold.id == hold.id && v.heir.is_none()) else {
            return;
        };
        self.progress.note(&format!("#{} came back; {heir} has it now", hold.id));
        victim.heir = Some(heir);
        let late = json!({
            "task_id": victim.hold.id,
            "status": "completed",
            "fence": victim.hold.fence,
            "result": "too late",
            "as": self.ghost_name,
        });
        let outcome = match self.ghost.call("task_update", &late) {
            Ok(_) => "written".to_owned(),
            Err(CallError::Refused(facts)) => {
                facts.get("reason").and_then(Value::as_str).unwrap_or("refused").to_owned()
            }
            Err(error) => error.to_string(),
        };
        self.progress.note(&format!("a late write with fence {} of {}: {outcome}", victim.hold.fence, victim.name));
        victim.late_write = Some(outcome);
    }
}
