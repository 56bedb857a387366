//! `taskbus torture`: what becomes of a store when many processes work on it and are killed, frozen and raced, checked
//! from what they were told and from what is stored. It works on a store of its own, on the disk that is to be tested.
//!
//! ```text
//!  seed ─▶ mind, dice ─▶ deed ─▶ hand (library or server) ─▶ told
//!                          └─▶ record: a log that survives its writer ─▶ collect ─▶ checker ─▶ report
//!  storm kills and freezes those who do it; race has many do the same
//! ```

mod checker;
mod collect;
mod deed;
mod dice;
mod forge;
mod hand;
mod life;
mod mind;
mod place;
mod power;
mod race;
mod record;
mod report;
mod rude;
#[cfg(test)]
mod sabotage_tests;
mod storm;
mod told;
mod worker;

use std::time::{Duration, Instant};

use self::deed::Deed;
use self::place::Place;
use self::race::Course;
use self::report::{Phase, TortureReport};
use self::storm::Size;
use self::worker::Orders;
use crate::options::{Globals, Torture, TortureWorker};
use crate::term::failure::Failure;
use crate::term::progress::Progress;
use crate::term::report::Report;

/// How long it takes when nothing is said, in seconds.
const SECONDS: u32 = 60;
/// Of a hundred parts of the time, the storm has so many,
const STORM_PARTS: u32 = 50;
/// the races at most so many,
const RACE_PARTS: u32 = 25;
/// and the load so many.
const LOAD_PARTS: u32 = 6;
/// What a minute is to reach: races,
const RACES: u32 = 500;
/// rings of tasks that nobody could close,
const RINGS: u32 = 60;
/// processes killed,
const KILLS: u32 = 2_500;
/// sleepers frozen beyond their leases,
const FREEZES: u32 = 500;
/// changes acknowledged, and found again,
const ACKNOWLEDGED: u32 = 10_000;
/// images of a power cut,
const IMAGES: u32 = 300;
/// writes of a thousand that take at most half a second under load.
const QUICK: u64 = 990;
/// A write under load may take so long on any machine, in microseconds: whoever waits longer is starved.
const LOAD_US_MAX: u64 = 8_000_000;

const QUICK_WRITES: &str = "of 1000 writes within 500 ms";

/// What needs a shim between a process and its files, which does not ship.
const ELSEWHERE: [(&str, &str); 2] = [
    ("failing calls (I/O errors, no space, half writes)", "cargo nextest run -p taskbus -E 'binary(faults)'"),
    ("power cuts that lose what was not synced", "cargo nextest run -p taskbus -E 'binary(faults)'"),
];

/// A task of no importance.
const NEW: Deed = Deed::Add { parent: None, blocked_by: Vec::new(), before: None };

/// Runs the torture.
pub(crate) fn run(globals: &Globals, args: &Torture) -> Result<Box<dyn Report>, Failure> {
    let seconds = args.minutes.map_or(args.seconds.unwrap_or(SECONDS), |minutes| minutes * 60);
    let seed = args.seed.unwrap_or_else(fresh_seed);
    let place = Place::new(globals.store.as_deref(), seed)?;
    let progress = Progress::new(u64::from(seconds));
    progress.note(&format!("seed {seed}, in {}", place.path().display()));
    let part = |parts: u32| Duration::from_secs(u64::from(seconds)) * parts / 100;
    let phases = untested(|| {
        let goal = |minute: u32| u64::from(minute) * u64::from(seconds) / u64::from(SECONDS);
        let (kills, freezes) = (goal(KILLS), goal(FREEZES));
        let size = Size { libraries: 6, servers: 2, sleepers: 8, time: part(STORM_PARTS), kills, freezes };
        let mut storm = timed(|| storm_phase(&place, &size, &progress))?;
        storm.goals.push(("acknowledged", goal(ACKNOWLEDGED)));
        let verdict = timed(|| verdict_phase(&place, &size, &mut storm, &progress))?;
        let (races, rings) = (goal(RACES), goal(RINGS));
        let (most, load) = (2 * part(RACE_PARTS), part(LOAD_PARTS));
        let course = Course { racers: race::RACERS, races, rings, most, load };
        let race = timed(|| race_phase(&place, &course, &progress))?;
        let power = timed(|| power_phase(&place, goal(IMAGES), &progress))?;
        let rude = timed(|| rude_phase(&place, &progress))?;
        Ok(vec![storm, race, power, rude, verdict])
    })?;
    drop(progress);
    let replay = replay_line(globals, args, seed);
    let mut report = TortureReport { seed, replay, phases, elsewhere: ELSEWHERE.to_vec(), evidence: None };
    if !report.ok() {
        report.evidence = Some(place.keep().display().to_string());
    }
    Ok(Box::new(report))
}

/// Runs one worker.
pub(crate) fn work(args: &TortureWorker) -> Result<(), Failure> {
    let orders: Orders = serde_json::from_str(&args.orders).map_err(Failure::usage)?;
    worker::work(&orders)
}

/// What could not be tested is told apart from what was tested and found broken.
fn untested(phases: impl FnOnce() -> Result<Vec<Phase>, Failure>) -> Result<Vec<Phase>, Failure> {
    phases().map_err(|failure| Failure::usage(format!("it could not be tested: {}", failure.words())))
}

fn fresh_seed() -> u64 {
    record::nanos() % 1_000_000_000
}

fn replay_line(globals: &Globals, args: &Torture, seed: u64) -> String {
    let time = match (args.minutes, args.seconds) {
        (Some(minutes), _) => format!("--minutes {minutes}"),
        (None, seconds) => format!("--seconds {}", seconds.unwrap_or(SECONDS)),
    };
    let store = globals.store.as_ref().map_or_else(String::new, |store| format!(" --store {}", store.display()));
    format!("taskbus torture {time} --seed {seed}{store}")
}

fn timed(phase: impl FnOnce() -> Result<Phase, Failure>) -> Result<Phase, Failure> {
    let began = Instant::now();
    let done = phase()?;
    Ok(Phase { took: began.elapsed(), ..done })
}

fn storm_phase(place: &Place, size: &Size, progress: &Progress) -> Result<Phase, Failure> {
    progress.doing("the storm");
    let weather = storm::blow(place, size, &|elapsed| progress.set(elapsed.as_secs()))?;
    let mut phase = Phase::new("storm");
    phase.count("killed", weather.killed);
    phase.count("servers killed", weather.servers_killed);
    phase.count("frozen past the lease", weather.frozen);
    phase.count("stopped anywhere", weather.stopped);
    phase.count("ended by themselves", weather.ended);
    phase.goals = vec![("killed", size.kills), ("frozen past the lease", size.freezes)];
    Ok(phase)
}

/// Reads the history of the storm and checks it; and whether the checker would see a forged one.
fn verdict_phase(place: &Place, size: &Size, storm: &mut Phase, progress: &Progress) -> Result<Phase, Failure> {
    progress.doing("the verdict");
    let store = place.store(storm::STORM);
    let names: Vec<_> = (0..size.libraries).map(place::name).collect();
    storm.wrongs.extend(collect::verify(&store)?);
    let history = collect::history(place.path(), &store, storm::RULES, &names)?;
    let findings = checker::check(&history);
    storm.counts.extend(findings.counts);
    storm.wrongs.extend(findings.violations.iter().map(ToString::to_string));
    storm.wrongs.extend((findings.more > 0).then(|| format!("and {} more", findings.more)));
    SOMETIMES.iter().for_each(|what| storm.must_have(what));
    let mut phase = Phase::new("verdict");
    for (name, found) in forge::try_two(&history, place.seed) {
        phase.count("forgeries found out", u64::from(found));
        phase.wrongs.extend((!found).then(|| format!("the checker passes a history in which {name}")));
    }
    phase.goals = vec![("forgeries found out", forge::TRIED as u64)];
    Ok(phase)
}

/// What must have happened in a storm, else it has shown nothing.
const SOMETIMES: [&str; 12] = [
    "killed",
    "servers killed",
    "frozen past the lease",
    "stopped anywhere",
    "acknowledged",
    "recovered",
    "reclaimed",
    "lease lost",
    "refused",
    "answers repeated",
    "delivered again",
    "reads",
];

fn race_phase(place: &Place, course: &Course, progress: &Progress) -> Result<Phase, Failure> {
    progress.doing("the races");
    let score = race::hold(place, course)?;
    let mut phase = Phase::new("race and load");
    phase.count("processes", course.racers);
    phase.count("rings left open", score.rings);
    phase.count("races with one winner", score.races);
    phase.count("claims refused", score.refused);
    phase.count("writes under load", score.writes);
    phase.count("median µs", score.half_us);
    phase.count("p99 µs", score.most_us);
    phase.count("longest µs", score.worst_us);
    phase.goals =
        vec![("races with one winner", course.races), ("rings left open", course.rings), (QUICK_WRITES, QUICK)];
    phase.wrongs = score.wrongs;
    phase.count(QUICK_WRITES, score.quick);
    if score.worst_us > LOAD_US_MAX {
        phase.wrongs.push(format!("a write took longer than {LOAD_US_MAX} µs: {}", score.worst_us));
    }
    phase.wrongs.extend(collect::verify(&place.store(race::RACE))?);
    Ok(phase)
}

fn power_phase(place: &Place, images: u64, progress: &Progress) -> Result<Phase, Failure> {
    progress.doing("the power cuts");
    power::cut(place, images)
}

fn rude_phase(place: &Place, progress: &Progress) -> Result<Phase, Failure> {
    progress.doing("the rude world");
    rude::all(place)
}
