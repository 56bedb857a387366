//! One round of the torture: every phase in turn, on stores of its own in one place.

use std::time::{Duration, Instant};

use super::place::Place;
use super::race::Course;
use super::report::Phase;
use super::storm::Size;
use super::{SECONDS, checker, collect, forge, place, power, race, rude, storm};
use crate::term::failure::Failure;

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

const STORM: &str = "storm";
const RACE: &str = "race and load";
const POWER: &str = "power";
const RUDE: &str = "rude world";
const VERDICT: &str = "verdict";

/// Hears how many seconds of the round are over, and what is going on.
pub(super) type Tell<'a> = dyn Fn(u64, &str) + 'a;

/// Runs a round of so many seconds.
pub(super) fn run(place: &Place, seconds: u32, tell: &Tell<'_>) -> Result<Vec<Phase>, Failure> {
    let part = |parts: u32| Duration::from_secs(u64::from(seconds)) * parts / 100;
    let goal = |minute: u32| u64::from(minute) * u64::from(seconds) / u64::from(SECONDS);
    let over = |parts: u32| u64::from(seconds * parts / 100);
    let (kills, freezes) = (goal(KILLS), goal(FREEZES));
    let size = Size { libraries: 6, servers: 2, sleepers: 8, time: part(STORM_PARTS), kills, freezes };
    let mut storm = timed(STORM, || storm_phase(place, &size, tell))?;
    storm.goals.push(("acknowledged", goal(ACKNOWLEDGED)));
    tell(over(STORM_PARTS), VERDICT);
    let verdict = timed(VERDICT, || verdict_phase(place, &size, &mut storm))?;
    tell(over(STORM_PARTS), RACE);
    let (races, rings) = (goal(RACES), goal(RINGS));
    let (most, load) = (2 * part(RACE_PARTS), part(LOAD_PARTS));
    let course = Course { racers: race::RACERS, races, rings, most, load };
    let race = timed(RACE, || race_phase(place, &course))?;
    tell(over(STORM_PARTS + RACE_PARTS + LOAD_PARTS), POWER);
    let power = timed(POWER, || power::cut(place, goal(IMAGES)))?;
    tell(u64::from(seconds), RUDE);
    let rude = timed(RUDE, || rude::all(place))?;
    Ok(vec![storm, race, power, rude, verdict])
}

/// Times a phase. A store that does not work is broken; what else goes wrong means that it could not be tested.
fn timed(name: &'static str, phase: impl FnOnce() -> Result<Phase, Failure>) -> Result<Phase, Failure> {
    let began = Instant::now();
    let done = match phase() {
        Err(failure @ (Failure::Broken(_) | Failure::Call(_))) => {
            Phase { wrongs: vec![failure.words()], ..Phase::new(name) }
        }
        done => done.map_err(|failure| Failure::usage(format!("it could not be tested: {}", failure.words())))?,
    };
    Ok(Phase { took: began.elapsed(), ..done })
}

fn storm_phase(place: &Place, size: &Size, tell: &Tell<'_>) -> Result<Phase, Failure> {
    let weather = storm::blow(place, size, &|elapsed| tell(elapsed.as_secs(), STORM))?;
    let mut phase = Phase::new(STORM);
    phase.count("killed", weather.killed);
    phase.count("servers killed", weather.servers_killed);
    phase.count("frozen past the lease", weather.frozen);
    phase.count("stopped anywhere", weather.stopped);
    phase.count("ended by themselves", weather.ended);
    phase.goals = vec![("killed", size.kills), ("frozen past the lease", size.freezes)];
    Ok(phase)
}

/// Reads the history of the storm and checks it; and whether the checker would see a forged one.
fn verdict_phase(place: &Place, size: &Size, storm: &mut Phase) -> Result<Phase, Failure> {
    let store = place.store(storm::STORM);
    let names: Vec<_> = (0..size.libraries).map(place::name).collect();
    storm.wrongs.extend(collect::verify(&store)?);
    let history = collect::history(place.path(), &store, storm::RULES, &names)?;
    let findings = checker::check(&history);
    storm.counts.extend(findings.counts);
    storm.wrongs.extend(findings.violations.iter().map(ToString::to_string));
    storm.wrongs.extend((findings.more > 0).then(|| format!("and {} more", findings.more)));
    SOMETIMES.iter().for_each(|what| storm.must_have(what));
    let mut phase = Phase::new(VERDICT);
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

fn race_phase(place: &Place, course: &Course) -> Result<Phase, Failure> {
    let score = race::hold(place, course)?;
    let mut phase = Phase::new(RACE);
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
