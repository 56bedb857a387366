//! `verify`: follows the chain of revisions, replays the histories, recomputes every derived row, and says what differs.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use taskbus::store::verdict::{Difference, Verdict};

use super::desk::Desk;
use crate::term::failure::{DONE, Failure, REFUSED};
use crate::term::progress::Progress;
use crate::term::report::Report;
use crate::term::safe::display_safe;

/// From then on a bar shows how far it is.
const PATIENCE: Duration = Duration::from_secs(1);
/// Differences shown to people.
const SHOWN_MAX: usize = 20;

const NEXT: &str = "copy the store's file and what lies beside it somewhere else before anything else; nothing was \
                    changed, and taskbus restore-backup FILE puts a backup in its place";

/// Looks at the whole store.
pub(crate) fn verify(desk: &Desk) -> Result<Box<dyn Report>, Failure> {
    let store = desk.engine.store();
    let (begun, mut bar) = (Instant::now(), None);
    let mut progress = |done: u64, all: u64| {
        if begun.elapsed() > PATIENCE {
            bar.get_or_insert_with(|| Progress::new(all)).set(done);
        }
    };
    let verdict = store.verify(&mut progress)?;
    drop(bar);
    let chained = verdict.is_some();
    let verdict = match verdict {
        Some(verdict) => verdict,
        None => plain(desk.check_store()?),
    };
    Ok(Box::new(Verified { place: store.describe(), chained, verdict }))
}

/// The verdict on a store that keeps no history.
fn plain(found: Vec<String>) -> Verdict {
    let difference = |what| Difference { seq: None, task: None, column: None, what };
    Verdict { differences: found.into_iter().map(difference).collect(), ..Verdict::default() }
}

/// What was found.
struct Verified {
    place: String,
    /// Whether the store keeps a history.
    chained: bool,
    verdict: Verdict,
}

impl Report for Verified {
    fn json(&self) -> Map<String, Value> {
        let Verdict { store, epoch, seq, head, revisions, tasks, differences, more } = &self.verdict;
        let mut json = Map::from_iter([
            ("ok".to_owned(), json!(self.verdict.is_sound())),
            ("store".to_owned(), json!(self.place)),
            ("differences".to_owned(), json!(differences)),
            ("more".to_owned(), json!(more)),
        ]);
        if self.chained {
            json.extend([
                ("id".to_owned(), json!(store)),
                ("epoch".to_owned(), json!(epoch)),
                ("seq".to_owned(), json!(seq)),
                ("head".to_owned(), json!(head)),
                ("revisions".to_owned(), json!(revisions)),
                ("tasks".to_owned(), json!(tasks)),
            ]);
        }
        if !self.verdict.is_sound() {
            json.insert("next".to_owned(), json!(NEXT));
        }
        json
    }

    fn words(&self, _: Option<usize>) -> String {
        let Verdict { seq, head, revisions, tasks, differences, .. } = &self.verdict;
        if !self.chained && self.verdict.is_sound() {
            return format!(
                "✓ {}: nothing is out of order; it keeps no history to verify\n",
                display_safe(&self.place)
            );
        }
        if self.verdict.is_sound() {
            return format!(
                "✓ {}: {revisions} revisions and {tasks} tasks add up\n  newest seq {seq}, head {head}\n",
                display_safe(&self.place)
            );
        }
        let mut words = format!("✗ {}\n", display_safe(&self.place));
        for difference in differences.iter().take(SHOWN_MAX) {
            words += &format!("  {}\n", display_safe(&difference.what));
        }
        let more = self.verdict.more + differences.len().saturating_sub(SHOWN_MAX) as u64;
        if more > 0 {
            words += &format!("  and {more} more\n");
        }
        words + &format!("next: {NEXT}\n")
    }

    fn exit(&self) -> u8 {
        if self.verdict.is_sound() { DONE } else { REFUSED }
    }
}
