//! A list from its front, whole tasks of it in one look: what is in progress, then what is pending, then what is
//! completed, and what was deleted. For surfaces that show a list at a glance, and say how much more there is.

use taskbus_core::decide::Facts;
use taskbus_core::name::{Identity, ListName};
use taskbus_core::neighbourhood::Tally;
use taskbus_core::policy::Policy;
use taskbus_core::task::Status;
use taskbus_core::time::Timestamp;

use super::read::Found;
use super::{Engine, Error, missing_list, tick, view};
use crate::answer::TaskView;
use crate::store::{PageQuery, Snapshot, StoreError, read_with};

/// A list at a glance.
#[derive(Clone, Debug)]
pub struct Overview {
    /// How strict it is.
    pub policy: Policy,
    /// Live tasks: those in progress, then the pending, then the completed, each in tree order.
    pub tasks: Vec<TaskView>,
    /// Deleted tasks as they were, the newest ids first.
    pub deleted: Vec<TaskView>,
    /// How many live tasks there are.
    pub tally: Tally,
    /// How many deleted ones.
    pub deleted_total: u64,
}

/// The order of importance.
const FRONT_FIRST: [Status; 3] = [Status::InProgress, Status::Pending, Status::Completed];

impl Engine {
    /// A list at a glance, at most `limit` tasks of it. A caller of none is a reader without a session.
    ///
    /// # Errors
    /// [`Error`]: `not_found` for the list.
    pub fn overview(&self, caller: Option<&Identity>, list: &ListName, limit: usize) -> Result<Overview, Error> {
        let facts = self.facts(caller)?;
        let look = |snapshot: &dyn Snapshot| self.look_around(snapshot, list, limit, &facts);
        let (overview, abandoned) = read_with(self.store(), Some(list), look)??;
        if abandoned && self.mended(self.fix_up(list, caller, tick::Which::All))? {
            let (overview, _) = read_with(self.store(), Some(list), look)??;
            return Ok(overview);
        }
        Ok(overview)
    }

    fn look_around(
        &self,
        snapshot: &dyn Snapshot,
        list: &ListName,
        limit: usize,
        facts: &Facts,
    ) -> Found<(Overview, bool)> {
        if let Err(refusal) = self.may_read(snapshot, facts)? {
            return Ok(Err(refusal));
        }
        if snapshot.list(list)?.is_none() {
            return Ok(Err(missing_list(list)));
        }
        let abandoned = tick::has_abandoned(snapshot, facts)?;
        Ok(Ok((overview(snapshot, list, limit, facts.now)?, abandoned)))
    }
}

/// The list in scope at a glance.
pub(super) fn overview(
    snapshot: &dyn Snapshot,
    list: &ListName,
    limit: usize,
    now: Timestamp,
) -> Result<Overview, StoreError> {
    let mut tasks = Vec::new();
    for status in FRONT_FIRST {
        let query = PageQuery { status: Some(status), ..PageQuery::all(limit - tasks.len(), now) };
        for row in if query.limit > 0 { snapshot.page(&query)?.rows } else { Vec::new() } {
            if let Some(task) = snapshot.task(&row.id)? {
                tasks.push(view::task(list, task, snapshot)?);
            }
        }
    }
    let (deleted, deleted_total) = snapshot.deleted(limit - tasks.len())?;
    let deleted = deleted.into_iter().map(|task| view::task(list, task, snapshot)).collect::<Result<_, _>>()?;
    Ok(Overview { policy: snapshot.rules()?.policy, tasks, deleted, tally: snapshot.tally(now)?, deleted_total })
}
