//! The commands that hand out work or wait for it: next, wait.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use taskbus::answer::{Advice, Answer, Idle, Taken};
use taskbus::engine::ListAsk;
use taskbus::store::View;
use taskbus_core::command::{self, Finish};
use taskbus_core::limits;
use taskbus_core::name::ListName;
use taskbus_core::neighbourhood::Tally;
use taskbus_core::time::Timestamp;

use super::args::Next;
use super::change::{consequences, hold, lease_ask};
use super::desk::Desk;
use super::input;
use super::json;
use super::show;
use crate::term::failure::{DONE, Failure, LATE};
use crate::term::report::Report;

/// The longest that one look at the store may be away: leases end and deferred tasks become ready without anybody
/// writing.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Takes the next ready task.
pub(crate) fn next(desk: &Desk, next: Next) -> Result<Box<dyn Report>, Failure> {
    let asked = next.count;
    let waits = next.wait.map(Duration::from_secs);
    let key = input::key(&next.key)?;
    let result = input::note("result", next.result.as_deref(), &desk.input)?;
    let command = command::Next {
        labels: input::labels(&next.labels)?,
        parent: next.parent,
        count: next.count,
        lease: lease_ask(next.lease),
        complete: next.complete.map(|id| Finish { id, result, fence: next.fence }),
    };
    let list = desk.list()?.clone();
    let request = desk.request(Some(&list), command::Command::Next(Box::new(command)), key)?;
    let answer = match waits {
        None => desk.engine.execute(&request)?,
        Some(wait) => wait_for(desk, request, wait)?,
    };
    let Answer::Next(taken) = answer else { unreachable!("BUG: next answers with what it took") };
    Ok(Box::new(Handed { list, taken: *taken, asked, waited: waits.is_some(), now: desk.engine.now()? }))
}

/// The engine waits for less than a minute at a time; what was completed on the way is completed once.
fn wait_for(desk: &Desk, mut request: taskbus::engine::Request, wait: Duration) -> Result<Answer, Failure> {
    let deadline = Instant::now() + wait;
    let mut completed = None;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let part = left.min(Duration::from_secs(limits::WAIT_SECONDS_MAX));
        let answer = desk.engine.next_waiting(&request, part, &|| false)?;
        let Answer::Next(mut taken) = answer else { return Ok(answer) };
        completed = completed.or(taken.completed.take());
        if !taken.tasks.is_empty() || Instant::now() >= deadline {
            taken.completed = completed;
            return Ok(Answer::Next(taken));
        }
        request.key = None;
        if let command::Command::Next(next) = &mut request.command {
            next.complete = None;
        }
    }
}

/// Waits until a task is ready.
pub(crate) fn wait(desk: &Desk, time: Duration) -> Result<Box<dyn Report>, Failure> {
    let list = desk.list()?.clone();
    let deadline = Instant::now() + time;
    loop {
        let seen = desk.engine.store().version()?;
        let ask = ListAsk { view: View::Ready, limit: Some(1), ..ListAsk::default() };
        let ready = desk.engine.list(None, &list, &ask)?.total;
        let left = deadline.saturating_duration_since(Instant::now());
        if ready > 0 || left.is_zero() {
            let tally = desk.engine.tally(&list)?;
            return Ok(Box::new(Waited { list, ready, tally }));
        }
        desk.engine.store().wait(seen, left.min(LOOK_AGAIN))?;
    }
}

/// What `next` handed out, or why it did not.
struct Handed {
    list: ListName,
    taken: Taken,
    asked: usize,
    waited: bool,
    now: Timestamp,
}

impl Report for Handed {
    fn json(&self) -> Map<String, Value> {
        json::taken(&self.taken, self.asked)
    }

    fn words(&self, _: Option<usize>) -> String {
        let mut words = String::new();
        if let Some(done) = &self.taken.completed {
            let title = show::title(&done.task.id, done.task.subject.as_str());
            words.push_str(&format!("completed {title}\n{}", consequences(done)));
        }
        for task in &self.taken.tasks {
            words.push_str(&show::task(task, self.now));
            words.push_str(&hold(task, self.now));
        }
        if let Some(idle) = &self.taken.idle {
            words.push_str(&idle_words(&self.list, idle, self.now));
        }
        words
    }

    fn exit(&self) -> u8 {
        if self.waited && self.taken.tasks.is_empty() { LATE } else { DONE }
    }
}

fn idle_words(list: &ListName, idle: &Idle, now: Timestamp) -> String {
    let advice = match idle.advice {
        Advice::Wait => "something will become ready: taskbus next --wait 10m",
        Advice::Done => "all is done",
        Advice::Stuck => "nothing will become ready by itself: see taskbus blocked and taskbus list",
    };
    let mut words = format!("nothing is ready for you on {list}; {advice}\n");
    let counts = [
        (idle.ready_for_others, "ready for others"),
        (idle.in_progress, "in progress"),
        (idle.blocked, "blocked"),
        (idle.deferred, "deferred"),
        (idle.parked, "parked"),
        (idle.done, "completed"),
    ];
    words.push_str(&counted(&counts));
    for holder in &idle.holders {
        let owner = holder.owner.as_ref().map_or_else(|| "nobody".to_owned(), ToString::to_string);
        let until = holder.leased_until.map_or_else(String::new, |at| format!(" until {}", show::when(at, now)));
        let line = format!("  #{} is held by {owner}{until}", holder.id);
        words.push_str(&format!("{}\n", crate::term::safe::display_safe(&line)));
    }
    words
}

/// `  2 blocked, 1 parked`, without what there is none of.
fn counted(counts: &[(u64, &str)]) -> String {
    let some: Vec<String> = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    if some.is_empty() { "  the list is empty\n".to_owned() } else { format!("  {}\n", some.join(", ")) }
}

/// How many tasks are in which condition, in words.
pub(crate) fn tally_words(tally: &Tally) -> String {
    counted(&[
        (tally.ready, "ready"),
        (tally.in_progress, "in progress"),
        (tally.blocked, "blocked"),
        (tally.deferred, "deferred"),
        (tally.parked, "parked"),
        (tally.completed, "completed"),
    ])
}

/// How many tasks are in which condition, as JSON.
pub(crate) fn tally_json(tally: &Tally) -> Value {
    json!({
        "ready": tally.ready,
        "in_progress": tally.in_progress,
        "blocked": tally.blocked,
        "deferred": tally.deferred,
        "parked": tally.parked,
        "completed": tally.completed,
    })
}

/// How waiting ended.
struct Waited {
    list: ListName,
    ready: u64,
    tally: Tally,
}

impl Report for Waited {
    fn json(&self) -> Map<String, Value> {
        Map::from_iter([
            ("channel".to_owned(), json!(self.list)),
            ("ready".to_owned(), json!(self.ready > 0)),
            ("tally".to_owned(), tally_json(&self.tally)),
        ])
    }

    fn words(&self, _: Option<usize>) -> String {
        let head = match self.ready {
            0 => format!("nothing became ready on {}", self.list),
            1 => format!("1 task is ready on {}: taskbus next", self.list),
            n => format!("{n} tasks are ready on {}: taskbus next", self.list),
        };
        format!("{}\n{}", crate::term::safe::display_safe(&head), tally_words(&self.tally))
    }

    fn exit(&self) -> u8 {
        if self.ready > 0 { DONE } else { LATE }
    }
}
