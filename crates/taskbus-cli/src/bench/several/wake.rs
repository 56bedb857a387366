//! How long it takes until a commit wakes those who wait in other processes, beside looking every 10 ms; and what
//! waiting costs while nothing happens.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use taskbus_core::bus::channel::ChannelName;
use taskbus_core::bus::message::{Content, Draft, Sort};

use super::job::Job;
use super::notice::IS_GIVEN;
use super::wait::now_nanos;
use super::{Crew, median};
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
/// Commits by which it is known how long one takes when nobody waits.
const ALONE: usize = 15;

/// Wakes, and the quiet between them.
pub(in crate::bench) fn bars(effort: &Effort, dir: Option<&Path>) -> Result<Vec<Bar>, Failure> {
    let place = crate::bench::place(dir)?;
    let field = Field::empty(place.path())?;
    let mut bars = wakes(&field, FEW, effort.wakes.0)?;
    bars.extend(wakes(&field, MANY, effort.wakes.1)?);
    bars.extend(idle(&field, effort.idle)?);
    Ok(bars)
}

/// How long each took, in nanoseconds.
#[derive(Default)]
struct Times(Vec<u64>);

/// Of those who wait through the engine, who look again and again, and who only hear the notice.
#[derive(Default)]
struct Wakes {
    ours: Times,
    polls: Times,
    notices: Times,
}

impl Times {
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
    let alone = alone(field)?;
    let store = || field.path.clone();
    let mut waiting = Crew::start((0..waiters).map(|worker| Job::Wait { store: store(), worker }))?;
    let mut polling = Crew::start((0..waiters).map(|_| Job::Poll { store: store() }))?;
    let bell = Bell::hang(&field.path)?;
    let noticing = (0..waiters).filter(|_| IS_GIVEN).map(|_| Job::Notice { file: bell.path.clone() });
    let mut noticing = Crew::start(noticing)?;
    let mut wakes = Wakes::default();
    for round in 0..rounds {
        let send = || send(field, round, alone);
        wakes.ours.0.extend(wake(&mut waiting, round, send)?);
        wakes.polls.0.extend(wake(&mut polling, round, send)?);
        wakes.notices.0.extend(wake(&mut noticing, round, || bell.ring())?);
        progress.set(round as u64 + 1);
    }
    Ok(wake_bars(waiters, &mut wakes))
}

fn wake_bars(waiters: usize, wakes: &mut Wakes) -> Vec<Bar> {
    let (ours, polls, latest) = (wakes.ours.part(0.5), wakes.polls.part(0.5), wakes.ours.part(0.99));
    let middle = |of: &str, nanos: f64| Bar::figure(format!("{of}_{waiters}_p50"), nanos / 1e3, Unit::Micros);
    let latest_name = format!("wake_{waiters}_p99");
    let mut bars = vec![
        Bar::at_most(format!("wake_{waiters}_to_poll"), ratio(ours, polls), TO_POLL),
        Bar::new(latest_name, latest / 1e6, Unit::Millis, Target::AtMost(LATEST_MILLIS)),
        middle("wake", ours),
        middle("poll", polls),
    ];
    if !wakes.notices.0.is_empty() {
        bars.push(middle("notice", wakes.notices.part(0.5)));
    }
    bars
}

/// Something that all of a crew wait for, which says when it happened: how long until each knows.
fn wake(crew: &mut Crew, round: usize, happen: impl Fn() -> Result<u64, Failure>) -> Result<Vec<u64>, Failure> {
    crew.run::<()>()?;
    std::thread::sleep(SETTLE + Duration::from_millis(round as u64 % PHASES));
    let happened = happen()?;
    let heard: Vec<u64> = crew.hear()?;
    // The notice may come before the writer's own call returns.
    Ok(heard.into_iter().map(|at| at.saturating_sub(happened)).collect())
}

/// How long it takes to send a message, as rarely as here, when nobody waits for it.
fn alone(field: &Field) -> Result<Duration, Failure> {
    let time = |round| {
        std::thread::sleep(SETTLE);
        let began = Instant::now();
        field.relaxed.send(&field.caller, &ChannelName::general(), &letter(round), None)?;
        Ok(began.elapsed().as_secs_f64())
    };
    let times: Result<Vec<f64>, Failure> = (0..ALONE).map(time).collect();
    times.map(|times| Duration::from_secs_f64(median(times)))
}

/// It has happened when the call would have returned if nobody waited. In fact it returns later: those that it wakes
/// run first, where there are fewer processors than waiters.
fn send(field: &Field, round: usize, alone: Duration) -> Result<u64, Failure> {
    let began = now_nanos();
    field.relaxed.send(&field.caller, &ChannelName::general(), &letter(round), None)?;
    Ok(began + u64::try_from(alone.as_nanos()).unwrap_or_default())
}

/// A bare file beside the store.
struct Bell {
    path: PathBuf,
    file: File,
}

impl Bell {
    fn hang(store: &Path) -> Result<Self, Failure> {
        let path = store.with_extension("bell");
        let file = File::create(&path).map_err(|error| Failure::machine("a file cannot be made", error))?;
        Ok(Self { path, file })
    }

    /// It happens within a call that takes no time, but does not return as long as those that it wakes run.
    fn ring(&self) -> Result<u64, Failure> {
        let now = now_nanos();
        self.file.write_all_at(b"!", 0).map_err(|error| Failure::machine("a file cannot be written", error))?;
        Ok(now)
    }
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

fn idle(field: &Field, time: Duration) -> Result<[Bar; 2], Failure> {
    let progress = Progress::new(1);
    progress.note(&format!("{MANY} wait for what does not come"));
    let job = |worker| Job::Idle { store: field.path.clone(), worker, time };
    let parts: Vec<f64> = Crew::start((0..MANY).map(job))?.run()?;
    let most = parts.iter().copied().fold(0.0, f64::max);
    Ok([
        Bar::new("idle_cpu", most * 100.0, Unit::Percent, Target::AtMost(IDLE_PERCENT)),
        Bar::figure("idle_cpu_p50", median(parts) * 100.0, Unit::Percent),
    ])
}
