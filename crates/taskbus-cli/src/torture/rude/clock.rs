//! Clocks that jump: three clients work on a store, each with a clock of its own that is an hour ahead, an hour behind, or
//! right, and changes between calls. The store's time goes by the clock since boot, which nobody can set; so nobody notices
//! while a lease runs. The same checker judges what comes of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use taskbus::store::sqlite::{SqliteOptions, SqliteStore};
use taskbus::store::{Clock, SystemClock};
use taskbus_core::clock::SinceBoot;
use taskbus_core::name::Identity;
use taskbus_core::time::Timestamp;

use super::Outcome;
use crate::term::failure::Failure;
use crate::torture::checker::{Kind, check};
use crate::torture::dice::Dice;
use crate::torture::hand::Hand as _;
use crate::torture::hand::library::Library;
use crate::torture::mind::{Mind, now_ms};
use crate::torture::place::Place;
use crate::torture::record::{Begin, Line, Number, nanos};
use crate::torture::storm::RULES;
use crate::torture::{collect, place};

/// Who works.
const CLIENTS: u64 = 3;
/// How often each calls.
const CALLS: u64 = 120;
/// How often a clock jumps, of a hundred calls.
const JUMPS_PERCENT: u64 = 15;
const HOUR_MS: i64 = 3_600_000;
/// Between leases the store follows each of these clocks, and its times jump with them: whether it was right to give a task
/// back cannot be told from the revisions.
const OF_OWNERS: [Kind; 2] = [Kind::Owner, Kind::Unruly];

/// A clock that is wrong by so many milliseconds.
#[derive(Debug, Default)]
struct Wrong(AtomicI64);

impl Clock for Wrong {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(now_ms() + self.0.load(Ordering::SeqCst))
    }

    fn since_boot(&self) -> Option<SinceBoot> {
        SystemClock.since_boot()
    }
}

struct Client {
    library: Library,
    clock: Arc<Wrong>,
    mind: Mind,
}

/// Whatever the clocks say, nothing acknowledged is lost, nobody's late write is taken, and every number goes up.
pub(super) fn jumps(place: &Place, dice: &mut Dice) -> Outcome {
    let path = place.store("clock");
    let names: Vec<Identity> = (0..CLIENTS).map(place::name).collect();
    let mut clients = names.iter().map(|name| start(&path, name, &names, dice)).collect::<Result<Vec<_>, _>>()?;
    let first = &clients[0].library;
    first.engine.create_list(&first.caller, &first.list, RULES)?;
    let mut lines = Vec::new();
    for deed in 0..CALLS {
        for (client, it) in (0..).zip(&mut clients) {
            if dice.percent(JUMPS_PERCENT) {
                it.clock.0.store(dice.pick(&[-HOUR_MS, 0, HOUR_MS]).copied().unwrap_or(0), Ordering::SeqCst);
            }
            lines.extend(it.act(Number { client, life: 0, deed })?);
        }
    }
    drop(clients);
    let mut wrongs = collect::verify(&path)?;
    let findings = check(&collect::history_of(&path, RULES, &[], lines)?);
    let told = findings.violations.iter().filter(|violation| !OF_OWNERS.contains(&violation.kind));
    wrongs.extend(told.map(ToString::to_string));
    Ok((CLIENTS * CALLS, wrongs))
}

fn start(path: &std::path::Path, name: &Identity, names: &[Identity], dice: &mut Dice) -> Result<Client, Failure> {
    let clock = Arc::new(Wrong::default());
    let store = SqliteStore::open(path, SqliteOptions::default())?.with_clock(Arc::clone(&clock) as Arc<dyn Clock>);
    let library = Library::over(Arc::new(store), name.as_str())?;
    let own = std::iter::once(name).chain(names.iter().filter(|other| *other != name));
    Ok(Client { library, clock, mind: Mind::new(Dice::of(dice.roll(), 0, 0), own.cloned().collect()) })
}

impl Client {
    fn act(&mut self, number: Number) -> Result<[Line; 2], Failure> {
        if let Some(status) = self.mind.wants_to_look(number.deed) {
            self.mind.has_seen(self.library.look(status, 20).map_err(|gone| Failure::Machine(gone.0))?);
        }
        let (deed, _) = self.mind.next(number);
        let caller = self.library.caller.clone();
        let begin = Begin { number, at: nanos(), caller, deed, key: None, is_wrong: false };
        let told = self.library.act(number, &begin.deed, None).map_err(|gone| Failure::Machine(gone.0))?;
        self.mind.learn(&begin.deed, &told);
        Ok([Line::Begin(begin), Line::End { number, at: nanos(), told }])
    }
}
