//! What is done about a store that is behind its high-water file: writes are refused until somebody accepts the loss, and
//! then numbers go on above everything that was ever given out, in a new epoch.

use taskbus_core::time::Timestamp;

use super::SqliteStore;
use super::error::{Answer, Fault};
use super::failed;
use super::high::{self, Mark, Marks, Standing};
use super::scope::{About, Scope};
use crate::store::StoreError;
use crate::store::clock::boot;

/// Numbers left out above the mark: it may be a little behind what was acknowledged.
const MARGIN: u64 = 1000;

const RAISE: &str = "UPDATE counters SET seq = ?1, epoch = ?2, seal = ?3 WHERE id = 0";
const REMEMBER: &str = "INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)";

/// How a store stands against the file beside it that says which numbers were acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HighWater {
    /// The newest seq of the store.
    pub seq: u64,
    /// How often the store was put back to an earlier state, from 1 on.
    pub epoch: u64,
    /// What the file says.
    pub recorded: Recorded,
}

/// What a high-water file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// This seq was acknowledged, and not long ago it was the newest.
    Seq(u64),
    /// This seq was acknowledged, and the store does not reach it: acknowledged changes are missing.
    Lost(u64),
    /// Changes up to this seq went with a restart of the machine; they were never promised to be on disk.
    Permitted(u64),
    /// Nothing of this store: the next change writes it.
    Nothing,
    /// It is the file of another store: the next change writes it anew.
    Foreign,
    /// It cannot be used.
    Unusable(String),
}

/// That a loss was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The epoch that has begun.
    pub epoch: u64,
    /// The newest number that is left of the one before.
    pub kept: u64,
    /// Up to here numbers were given out, and are not given out again.
    pub lost: u64,
}

impl SqliteStore {
    /// How the store stands against its high-water file. Looks only.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub fn high_water(&self) -> Result<HighWater, StoreError> {
        let opened = self.told(self.opened())?;
        let (mut id, mut at) = (String::new(), (0, 0));
        opened.read(None, &self.steady, &mut |scope| {
            (id, at) = (self.told(scope.store_id())?, (scope.seq.get(), scope.epoch.get()));
            Ok(())
        })?;
        let recorded = match high::peek(opened.place(), &id) {
            Ok(marks) => recorded(&marks, at),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Recorded::Nothing,
            Err(error) => Recorded::Unusable(error.to_string()),
        };
        Ok(HighWater { seq: at.0, epoch: at.1, recorded })
    }

    /// Accepts that acknowledged changes are missing: from now on changes are written again, with numbers above all
    /// that were given out. None if nothing is missing.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be written.
    pub fn accept_rollback(&self) -> Result<Option<Accepted>, StoreError> {
        let opened = self.told(self.writable())?;
        let mut accepted = None;
        let done = opened.transact(About::Nothing, &self.steady, true, &mut |scope| {
            accepted = scope.accepted.get();
            Ok(())
        });
        done.map_err(failed)?;
        Ok(accepted)
    }
}

fn recorded(marks: &Marks, (seq, epoch): (u64, u64)) -> Recorded {
    match (marks.judge(seq, epoch, boot()), marks.any) {
        (Standing::RolledBack(mark), _) => Recorded::Lost(mark.seq),
        (Standing::Permitted(mark), _) => Recorded::Permitted(mark.seq),
        (Standing::Sound, Some(mark)) => Recorded::Seq(mark.seq),
        (Standing::Sound, None) if marks.foreign => Recorded::Foreign,
        (Standing::Sound, None) => Recorded::Nothing,
    }
}

impl Scope<'_> {
    /// Lets a transaction begin only in a store that is not behind its high-water file, or goes on above that.
    pub(super) fn guard(&self, standing: Standing, accept: bool) -> Answer<()> {
        match standing {
            Standing::Sound => Ok(()),
            Standing::RolledBack(mark) if !accept => Err(Fault::RolledBack { seq: self.seq.get(), high: mark.seq }),
            Standing::RolledBack(mark) => self.raise(&mark, self.now),
            Standing::Permitted(mark) => {
                tracing::warn!(kept = self.seq.get(), lost = mark.seq, "the last changes went with a restart");
                self.raise(&mark, self.now)
            }
        }
    }

    fn raise(&self, mark: &Mark, now: Timestamp) -> Answer<()> {
        let kept = self.seq.get();
        let (seq, epoch) = (kept.max(mark.seq) + MARGIN, self.epoch.get().max(mark.epoch) + 1);
        self.seq.set(seq);
        self.epoch.set(epoch);
        self.run(RAISE, rusqlite::params![seq, epoch, self.seal()?.as_bytes()])?;
        let told = serde_json::json!({"at": now.as_millis(), "kept": kept, "lost": mark.seq}).to_string();
        self.run(REMEMBER, (format!("epoch {epoch}"), told))?;
        self.accepted.set(Some(Accepted { epoch, kept, lost: mark.seq }));
        Ok(())
    }
}
