//! Many processes at once: again and again all claim the same task, and one gets it; then all write as fast as they
//! can, and nobody is turned away or kept waiting for long.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use taskbus_core::id::TaskId;

use super::NEW;
use super::deed::Deed;
use super::hand::Hand;
use super::hand::library::Library;
use super::mind::now_ms;
use super::place::Place;
use super::record::Number;
use super::storm::RULES;
use super::told::Told;
use super::worker::{Orders, Part};
use crate::term::failure::Failure;

/// The name of the phase.
pub(super) const RACE: &str = "race";
/// How many processes.
pub(super) const RACERS: u64 = 64;
/// Tasks in a ring.
const RING: usize = 8;
/// A write under load takes no longer on a machine that has nothing else to do, but for one of a hundred.
const QUICK_US: u64 = 500_000;
/// How long a racer holds what it wins, in milliseconds: longer than the phase.
const HOLD_MS: i64 = 3_600_000;

/// What a racer is told.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    /// Claim this task.
    Claim(TaskId),
    /// Have one task wait for another.
    Block { id: TaskId, on: TaskId },
    /// Write for so long, in milliseconds.
    Load(u64),
}

/// What a racer says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    /// It is ready.
    Ready,
    /// It got the task, under this fence; or the link is there.
    Won(u64),
    /// It was refused.
    Lost(String),
    /// It took so long to write each time, in microseconds.
    Wrote(Vec<u64>),
    /// It could not, and should have.
    Failed(String),
}

/// How the races and the load went.
#[derive(Debug, Default)]
pub(super) struct Score {
    /// Races that one process won, and in which every other was refused.
    pub(super) races: u64,
    /// Rings of tasks of which not every link was made.
    pub(super) rings: u64,
    /// Refused claims.
    pub(super) refused: u64,
    /// Writes under load.
    pub(super) writes: u64,
    /// Those of a thousand that took at most [`QUICK_US`].
    pub(super) quick: u64,
    /// How long a write took: of a hundred, half and all but one, and the longest, in microseconds.
    pub(super) half_us: u64,
    /// All but one of a hundred.
    pub(super) most_us: u64,
    /// The longest.
    pub(super) worst_us: u64,
    /// What went wrong.
    pub(super) wrongs: Vec<String>,
}

/// One process of it.
pub(super) fn run(mut hand: impl Hand, client: u64) -> io::Result<()> {
    say(&Said::Ready)?;
    let mut number = Number { client, life: 0, deed: 0 };
    for line in io::stdin().lock().lines() {
        let said = match serde_json::from_str(&line?)? {
            Word::Claim(id) => claim(&mut hand, &mut number, id),
            Word::Block { id, on } => block(&mut hand, &mut number, id, on),
            Word::Load(ms) => load(&mut hand, &mut number, Duration::from_millis(ms)),
        };
        say(&said)?;
    }
    Ok(())
}

/// Says something on a line of its own, whatever stands in front of it.
fn say(said: &Said) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(format!("\n{}\n", serde_json::to_string(said)?).as_bytes())?;
    out.flush()
}

fn act(hand: &mut impl Hand, number: &mut Number, deed: &Deed) -> Told {
    number.deed += 1;
    hand.act(*number, deed, None).unwrap_or_else(|gone| Told::Failed(gone.0))
}

fn claim(hand: &mut impl Hand, number: &mut Number, id: TaskId) -> Said {
    match act(hand, number, &Deed::Claim { id, until: now_ms() + HOLD_MS, force: false }) {
        Told::Wrote(tasks) => Said::Won(tasks.first().and_then(|task| task.fence).unwrap_or(0)),
        Told::Refused { code, .. } if code.starts_with("conflict") => Said::Lost(code),
        told => Said::Failed(format!("{told:?}")),
    }
}

fn block(hand: &mut impl Hand, number: &mut Number, id: TaskId, on: TaskId) -> Said {
    match act(hand, number, &Deed::Block { id, on }) {
        Told::Wrote(_) => Said::Won(1),
        Told::Refused { code, .. } => Said::Lost(code),
        told => Said::Failed(format!("{told:?}")),
    }
}

fn load(hand: &mut impl Hand, number: &mut Number, time: Duration) -> Said {
    let (until, mut took) = (Instant::now() + time, Vec::new());
    while Instant::now() < until {
        let before = Instant::now();
        let told = act(hand, number, &NEW);
        took.push(u64::try_from(before.elapsed().as_micros()).unwrap_or(u64::MAX));
        if !told.wrote() {
            return Said::Failed(format!("{told:?}"));
        }
    }
    Said::Wrote(took)
}

/// A racer as it is seen from here.
struct Racer {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Racer {
    fn start(place: &Place, client: u64) -> Result<Self, Failure> {
        let orders = Orders {
            store: place.store(RACE),
            log: place.log(client),
            seed: place.seed,
            client,
            life: 0,
            name: format!("racer-{client}"),
            others: Vec::new(),
            part: Part::Racer,
        };
        let mut process = place.spawn(&orders)?;
        let input = process.stdin.take().expect("BUG: the input was piped");
        let output = BufReader::new(process.stdout.take().expect("BUG: the output was piped"));
        Ok(Self { process, input, output })
    }

    fn tell(&mut self, word: &Word) -> io::Result<()> {
        self.input.write_all(format!("{}\n", serde_json::to_string(word)?).as_bytes())
    }

    /// What it says next; what is no word of a racer is passed over.
    fn hear(&mut self) -> io::Result<Said> {
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                return Ok(Said::Failed("it has ended".to_owned()));
            }
            if let Ok(said) = serde_json::from_str(&line) {
                return Ok(said);
            }
        }
    }
}

impl Drop for Racer {
    fn drop(&mut self) {
        let _ended = self.process.kill().and_then(|()| self.process.wait());
    }
}

/// How much there is to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course {
    /// Processes.
    pub(super) racers: u64,
    /// Races for a task,
    pub(super) races: u64,
    /// and rings of tasks, each link of which somebody tries to make at the same time,
    pub(super) rings: u64,
    /// as far as they fit into this time.
    pub(super) most: Duration,
    /// The load, for so long.
    pub(super) load: Duration,
}

/// Runs the races, and then the load.
pub(super) fn hold(place: &Place, course: &Course) -> Result<Score, Failure> {
    let mut planner = Library::open(&place.store(RACE), "planner")?;
    planner.engine.create_list(&planner.caller, &planner.list, RULES)?;
    let mut racers = (0..course.racers).map(|client| Racer::start(place, client)).collect::<Result<Vec<_>, _>>()?;
    let mut score = Score::default();
    let heard = |error: io::Error| Failure::machine("a racer cannot be heard", error);
    for (at, racer) in racers.iter_mut().enumerate() {
        if !matches!(racer.hear().map_err(heard)?, Said::Ready) {
            score.wrongs.push(format!("racer {at} did not start"));
        }
    }
    let until = Instant::now() + course.most;
    let mut number = Number { client: course.racers, life: 0, deed: 0 };
    let mut fresh = || match act(&mut planner, &mut number, &NEW) {
        Told::Wrote(tasks) if !tasks.is_empty() => Ok(tasks[0].id.clone()),
        told => Err(Failure::Broken(format!("no task to race for: {told:?}"))),
    };
    while score.rings < course.rings && score.wrongs.is_empty() && Instant::now() < until {
        let ring = (0..RING).map(|_| fresh()).collect::<Result<Vec<_>, _>>()?;
        close(&mut racers, &ring, &mut score).map_err(heard)?;
    }
    while score.races < course.races && score.wrongs.is_empty() && Instant::now() < until {
        race(&mut racers, &fresh()?, &mut score).map_err(heard)?;
    }
    if !course.load.is_zero() && score.wrongs.is_empty() {
        under_load(&mut racers, course.load, &mut score).map_err(heard)?;
    }
    Ok(score)
}

/// Each of some racers has one task of a ring wait for the next, all at the same time: the last link would close it.
fn close(racers: &mut [Racer], ring: &[TaskId], score: &mut Score) -> io::Result<()> {
    for (at, racer) in racers.iter_mut().take(ring.len()).enumerate() {
        racer.tell(&Word::Block { id: ring[at].clone(), on: ring[(at + 1) % ring.len()].clone() })?;
    }
    let mut links = 0;
    for racer in racers.iter_mut().take(ring.len()) {
        match racer.hear()? {
            Said::Won(_) => links += 1,
            Said::Lost(_) => {}
            said => score.wrongs.push(format!("in the ring {ring:?} a racer said {said:?}")),
        }
    }
    if links != ring.len() - 1 {
        score.wrongs.push(format!("of the {} links of the ring {ring:?} {links} were made", ring.len()));
    }
    score.rings += 1;
    Ok(())
}

fn race(racers: &mut [Racer], id: &TaskId, score: &mut Score) -> io::Result<()> {
    for racer in &mut *racers {
        racer.tell(&Word::Claim(id.clone()))?;
    }
    let mut winners = 0;
    for racer in racers {
        match racer.hear()? {
            Said::Won(1) => winners += 1,
            Said::Lost(_) => score.refused += 1,
            said => score.wrongs.push(format!("in the race for task {id} a racer said {said:?}")),
        }
    }
    if winners != 1 {
        score.wrongs.push(format!("the race for task {id} was won by {winners}"));
    }
    score.races += 1;
    Ok(())
}

fn under_load(racers: &mut [Racer], time: Duration, score: &mut Score) -> io::Result<()> {
    let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    for racer in &mut *racers {
        racer.tell(&Word::Load(ms))?;
    }
    let mut took = Vec::new();
    for racer in racers {
        match racer.hear()? {
            Said::Wrote(times) => took.extend(times),
            said => score.wrongs.push(format!("under load a process said {said:?}")),
        }
    }
    took.sort_unstable();
    let at = |part: usize| took.get(took.len() * part / 100).copied().unwrap_or(0);
    (score.writes, score.half_us, score.most_us) = (took.len() as u64, at(50), at(99));
    let quick = took.partition_point(|time| *time <= QUICK_US);
    score.quick = (quick * 1_000 / took.len().max(1)) as u64;
    score.worst_us = took.last().copied().unwrap_or(0);
    Ok(())
}
