//! How long it takes until a commit wakes those who wait in other processes, beside looking every 10 ms; and what
//! waiting costs while nothing happens.

use std::path::Path;
use std::time::Duration;

use taskbus_core::bus::channel::ChannelName;
use taskbus_core::bus::message::{Content, Draft, Sort};

use super::Crew;
use super::job::Job;
use super::wait::now_nanos;
use crate::bench::bar::{Bar, Target, Unit, ratio};
use crate::bench::effort::Effort;
use crate::bench::lists::field::Field;
use crate::term::failure::Failure;
use crate::term::progress::Progress;

/// How many wait: one, and a crowd.
const FEW: usize = 1;
const MANY: usize = 32;
/// Half of the wakes, to half of those by looking again and again; and all but one of a hundred, in milliseconds.
const TO_POLL: f64 = 0.0333;
const LATEST_MILLIS: f64 = 10.0;
/// Of one processor, in per cent, for each who waits.
const IDLE_PERCENT: f64 = 0.01;
/// Until all wait for sure; and up to so much more, so that one who polls is met anywhere between two looks.
const SETTLE: Duration = Duration::from_millis(20);
const PHASES: u64 = 10;

/// Wakes, and the quiet between them.
pub(in crate::bench) fn bars(effort: &Effort, dir: Option<&Path>) -> Result<Vec<Bar>, Failure> {
    let place = crate::bench::place(dir)?;
    let field = Field::empty(place.path())?;
    let mut bars = wakes(&field, FEW, effort.wakes.0)?;
    bars.extend(wakes(&field, MANY, effort.wakes.1)?);
    bars.push(idle(&field, effort.idle)?);
    Ok(bars)
}

/// Latencies in nanoseconds.
struct Wakes(Vec<u64>);

impl Wakes {
    /// The one below which this part of them lies.
    fn part(&mut self, part: f64) -> f64 {
        self.0.sort_unstable();
        let at = (self.0.len() as f64 * part) as usize;
        self.0.get(at).or(self.0.last()).copied().unwrap_or_default() as f64
    }
}

fn wakes(field: &Field, waiters: usize, rounds: usize) -> Result<Vec<Bar>, Failure> {
    let progress = Progress::new(rounds as u64);
    progress.note(&format!("waking {waiters} in other processes"));
    let store = || field.path.clone();
    let mut waiting = Crew::start((0..waiters).map(|worker| Job::Wait { store: store(), worker }))?;
    let mut polling = Crew::start((0..waiters).map(|_| Job::Poll { store: store() }))?;
    let (mut ours, mut polls) = (Wakes(Vec::new()), Wakes(Vec::new()));
    for round in 0..rounds {
        ours.0.extend(wake(field, &mut waiting, round)?);
        polls.0.extend(wake(field, &mut polling, round)?);
        progress.set(round as u64 + 1);
    }
    Ok(wake_bars(waiters, &mut ours, &mut polls))
}

fn wake_bars(waiters: usize, ours: &mut Wakes, polls: &mut Wakes) -> Vec<Bar> {
    let (middle, middle_of_polls, latest) = (ours.part(0.5), polls.part(0.5), ours.part(0.99));
    let latest_bar =
        |millis| Bar::new(format!("wake_{waiters}_p99"), millis, Unit::Millis, Target::AtMost(LATEST_MILLIS));
    vec![
        Bar::at_most(format!("wake_{waiters}_to_poll"), ratio(middle, middle_of_polls), TO_POLL),
        latest_bar(latest / 1e6),
        Bar::figure(format!("wake_{waiters}_p50"), middle / 1e3, Unit::Micros),
        Bar::figure(format!("poll_{waiters}_p50"), middle_of_polls / 1e3, Unit::Micros),
    ]
}

/// One message to all of a crew that waits: after its commit, how long until each has it.
fn wake(field: &Field, crew: &mut Crew, round: usize) -> Result<Vec<u64>, Failure> {
    crew.run::<()>()?;
    std::thread::sleep(SETTLE + Duration::from_millis(round as u64 % PHASES));
    field.relaxed.send(&field.caller, &ChannelName::general(), &letter(round), None)?;
    let sent = now_nanos();
    let came: Vec<u64> = crew.hear()?;
    // The notice may come before the writer's own call returns.
    Ok(came.into_iter().map(|at| at.saturating_sub(sent)).collect())
}

fn letter(round: usize) -> Draft {
    Draft {
        content: Content::new(format!("message {round}")).expect("BUG: a short line is a content"),
        sort: Sort::default(),
        subject: None,
        reply_to: None,
        metadata: None,
        tags: Vec::new(),
    }
}

fn idle(field: &Field, time: Duration) -> Result<Bar, Failure> {
    let progress = Progress::new(1);
    progress.note(&format!("{MANY} wait for what does not come"));
    let job = |worker| Job::Idle { store: field.path.clone(), worker, time };
    let parts: Vec<f64> = Crew::start((0..MANY).map(job))?.run()?;
    let most = parts.into_iter().fold(0.0, f64::max);
    Ok(Bar::new("idle_cpu", most * 100.0, Unit::Percent, Target::AtMost(IDLE_PERCENT)))
}
