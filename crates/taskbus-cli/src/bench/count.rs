//! One call, so many times over, and nothing that is measured: for a counter of instructions from outside. Everything
//! before the calls is the same for any number of them, so the difference of two runs is what the calls cost.

use std::path::Path;

use serde_json::{Map, Value, json};
use taskbus::engine::Error;
use taskbus::store::View;
use taskbus_core::id::TaskId;

use super::lists::calls::Hub;
use super::lists::field::{Field, Mode};
use crate::options::Counted;
use crate::term::failure::Failure;
use crate::term::report::Report;

/// Tasks in the list; a tenth of them are hubs.
const TASKS: usize = 1_000;
/// Hubs that are claimed beforehand, to be completed.
const HELD: usize = 60;

/// What was called, and how often.
pub(super) struct CountReport {
    call: Counted,
    times: u8,
}

/// Fills a list in a directory, and makes the calls.
pub(super) fn run(dir: &Path, call: Counted, times: u8) -> Result<CountReport, Failure> {
    let field = Field::fill(dir, TASKS, &|_| ())?;
    let claim = |turn| Ok(field.claim(Mode::Relaxed, field.hub(Hub::Small, turn), None)?.0);
    let held: Vec<TaskId> = (0..HELD).map(claim).collect::<Result<_, Error>>()?;
    let mut held = held.into_iter();
    let mut cursor = None;
    for turn in 0..usize::from(times) {
        match call {
            Counted::Create => drop(field.create(Mode::Relaxed, turn)?),
            Counted::Next => drop(field.next(Mode::Relaxed, None)?),
            Counted::Complete => {
                let id = held.next().expect("BUG: no more are completed than are held");
                field.complete(Mode::Relaxed, id)?;
            }
            Counted::Page => cursor = field.page(View::Tree, cursor.as_ref())?.1,
        }
    }
    Ok(CountReport { call, times })
}

impl Report for CountReport {
    fn json(&self) -> Map<String, Value> {
        Map::from_iter([
            ("call".to_owned(), json!(format!("{:?}", self.call).to_lowercase())),
            ("times".to_owned(), json!(self.times)),
            ("build".to_owned(), json!(super::report::build())),
            ("sqlite".to_owned(), json!(super::raw::sqlite_version())),
        ])
    }

    fn words(&self, _: Option<usize>) -> String {
        format!("{:?}, {} times\n", self.call, self.times).to_lowercase()
    }
}
