//! Reading: one task, and a page of a list. A read writes only when it finds an abandoned task, and never fails
//! because it could not mend that.

use std::collections::BTreeSet;

use taskbus_core::decide::{Facts, is_abandoned, is_kept_apart};
use taskbus_core::id::TaskId;
use taskbus_core::limits::{IDS_SHOWN_MAX, PAGE_ROWS_DEFAULT, PAGE_ROWS_MAX};
use taskbus_core::name::{Identity, ListName};
use taskbus_core::refusal::{Invalid, Refusal};
use taskbus_core::task::Task;
use taskbus_core::tree::TreePath;

use super::{Engine, Error, ListAsk, history, missing_list, missing_task, tick, view};
use crate::answer::{Got, HistoryEntry, ListPage};
use crate::store::{Page, PageQuery, Row, Snapshot, StoreError, View, read_with};

/// What was found, or why it may not be shown.
pub(super) type Found<T> = Result<Result<T, Refusal>, StoreError>;

impl Engine {
    /// One task. A caller of none is a reader without a session, whose fix-ups are signed by nobody.
    ///
    /// # Errors
    /// [`Error`]: `not_found`.
    pub fn get(&self, caller: Option<&Identity>, id: &TaskId, history: bool) -> Result<Got, Error> {
        let list = self.store.locate(id)?;
        let facts = self.facts(caller)?;
        let look = |snapshot: &dyn Snapshot| {
            let Some(list) = &list else { return Ok(Err(missing_task(id))) };
            self.look_at(snapshot, list, id, history, &facts)
        };
        let (got, abandoned) = read_with(self.store(), list.as_ref(), look)??;
        let Some(list) = list.as_ref().filter(|_| abandoned) else { return Ok(got) };
        if self.mended(self.fix_up(list, caller, tick::Which::One(id)))? {
            let (got, _) = read_with(self.store(), Some(list), look)??;
            return Ok(got);
        }
        Ok(got)
    }

    /// A page of a list. A caller of none is a reader without a session.
    ///
    /// # Errors
    /// [`Error`]: `not_found` for the list, `validation` for a bad cursor or limit.
    pub fn list(&self, caller: Option<&Identity>, list: &ListName, ask: &ListAsk) -> Result<ListPage, Error> {
        let facts = self.facts(caller)?;
        let query = query(ask, &facts)?;
        let look = |snapshot: &dyn Snapshot| self.look_over(snapshot, list, &query, &facts);
        let (page, abandoned) = read_with(self.store(), Some(list), look)??;
        if abandoned && self.mended(self.fix_up(list, caller, tick::Which::All))? {
            let (page, _) = read_with(self.store(), Some(list), look)??;
            return Ok(page);
        }
        Ok(page)
    }

    pub(super) fn facts(&self, caller: Option<&Identity>) -> Result<Facts, Error> {
        Ok(Facts { now: self.store.now()?, caller: caller.cloned() })
    }

    /// Whether a fix-up went through. Only what says that the caller or the store is wrong stops a read.
    pub(super) fn mended(&self, fixed: Result<usize, Error>) -> Result<bool, Error> {
        match fixed {
            Ok(_) => Ok(true),
            Err(Error::Store(error @ (StoreError::Moved { .. } | StoreError::Damaged { .. }))) => Err(error.into()),
            Err(Error::Store(error)) => {
                tracing::warn!(%error, "an abandoned task could not be returned to its queue; shown as it stands");
                Ok(false)
            }
            Err(refused @ Error::Refused(_)) => Err(refused),
        }
    }

    pub(super) fn may_read(&self, snapshot: &dyn Snapshot, facts: &Facts) -> Found<()> {
        match &facts.caller {
            Some(caller) => Ok(self.session(snapshot, caller)?.map(|_| ())),
            None => Ok(Ok(())),
        }
    }

    fn look_at(
        &self,
        snapshot: &dyn Snapshot,
        list: &ListName,
        id: &TaskId,
        history: bool,
        facts: &Facts,
    ) -> Found<(Got, bool)> {
        if let Err(refusal) = self.may_read(snapshot, facts)? {
            return Ok(Err(refusal));
        }
        let Some(task) = snapshot.task(id)? else { return Ok(Err(missing_task(id))) };
        let abandoned = is_abandoned(&task, snapshot, facts)?;
        Ok(Ok((got(snapshot, list, task, history, facts)?, abandoned)))
    }

    fn look_over(
        &self,
        snapshot: &dyn Snapshot,
        list: &ListName,
        query: &PageQuery,
        facts: &Facts,
    ) -> Found<(ListPage, bool)> {
        if let Err(refusal) = self.may_read(snapshot, facts)? {
            return Ok(Err(refusal));
        }
        if snapshot.list(list)?.is_none() {
            return Ok(Err(missing_list(list)));
        }
        if let Some(below) = &query.below
            && snapshot.task(below)?.is_none()
        {
            return Ok(Err(missing_task(below)));
        }
        let abandoned = tick::has_abandoned(snapshot, facts)?;
        Ok(Ok((page(snapshot, query)?, abandoned)))
    }
}

fn got(snapshot: &dyn Snapshot, list: &ListName, task: Task, history: bool, facts: &Facts) -> Result<Got, StoreError> {
    let not_ready = view::not_ready(&task, snapshot, facts.now)?;
    Ok(Got {
        ready: not_ready.is_empty(),
        not_ready,
        open_children: snapshot.children(&task.id, true, IDS_SHOWN_MAX)?,
        history: if history { Some(past(snapshot, &task.id)?) } else { None },
        task: view::task(list, task, snapshot)?,
    })
}

fn past(snapshot: &dyn Snapshot, id: &TaskId) -> Result<Vec<HistoryEntry>, StoreError> {
    let rows = snapshot.history(id, None, PAGE_ROWS_MAX + 1)?;
    Ok(history::entries(&rows, rows.len() <= PAGE_ROWS_MAX))
}

fn query(ask: &ListAsk, facts: &Facts) -> Result<PageQuery, Refusal> {
    let limit = ask.limit.unwrap_or(PAGE_ROWS_DEFAULT);
    if limit == 0 || limit > PAGE_ROWS_MAX {
        let (given, max) = (i64::try_from(limit).unwrap_or(i64::MAX), PAGE_ROWS_MAX as i64);
        return Err(Refusal::Invalid(Invalid::OutOfRange { field: "limit", given, min: 1, max }));
    }
    let after = match &ask.cursor {
        None => None,
        Some(text) => Some(TreePath::from_cursor(text).ok_or(Refusal::Invalid(Invalid::Cursor))?),
    };
    Ok(PageQuery {
        view: ask.view,
        status: ask.status,
        owner: ask.owner.clone(),
        label: ask.label.clone(),
        below: ask.below.clone(),
        after,
        limit,
        now: facts.now,
    })
}

fn page(snapshot: &dyn Snapshot, query: &PageQuery) -> Result<ListPage, StoreError> {
    let apart = if query.view == View::Ready { kept_apart(snapshot, query)? } else { BTreeSet::new() };
    let page = if apart.is_empty() { snapshot.page(query)? } else { page_without(snapshot, query, &apart)? };
    Ok(ListPage {
        total: page.total,
        truncated: page.more,
        next: page.rows.last().filter(|_| page.more).map(|row| row.path.to_cursor()),
        tasks: page.rows.into_iter().map(view::summary).collect(),
    })
}

/// A page that leaves some tasks out and is full all the same. Whether more follow is known only when one more
/// row has been found.
fn page_without(snapshot: &dyn Snapshot, query: &PageQuery, out: &BTreeSet<TaskId>) -> Result<Page, StoreError> {
    let mut rows: Vec<Row> = Vec::new();
    let mut query = PageQuery { limit: query.limit + 1, ..query.clone() };
    let total = loop {
        let page = snapshot.page(&query)?;
        query.after = page.rows.last().map(|row| row.path.clone()).or(query.after);
        rows.extend(page.rows.into_iter().filter(|row| !out.contains(&row.id)));
        if rows.len() >= query.limit || !page.more {
            break page.total;
        }
    };
    let more = rows.len() >= query.limit;
    rows.truncate(query.limit - 1);
    Ok(Page { rows, total: total.saturating_sub(out.len() as u64), more })
}

/// The tasks that would be in this view if nobody worked on the same files.
fn kept_apart(snapshot: &dyn Snapshot, query: &PageQuery) -> Result<BTreeSet<TaskId>, StoreError> {
    let in_use = snapshot.paths_in_use()?;
    if in_use.is_empty() {
        return Ok(BTreeSet::new());
    }
    let mut apart = BTreeSet::new();
    for (id, paths) in snapshot.ready_with_paths(query.now)? {
        if is_kept_apart(&paths.into_iter().collect(), &in_use) && is_selected(snapshot, &id, query)? {
            apart.insert(id);
        }
    }
    Ok(apart)
}

/// Whether the filters of a query select this ready task.
fn is_selected(snapshot: &dyn Snapshot, id: &TaskId, query: &PageQuery) -> Result<bool, StoreError> {
    let Some(task) = snapshot.task(id)? else { return Ok(false) };
    let selected = query.status.is_none_or(|status| task.status() == status)
        && query.owner.as_ref().is_none_or(|owner| task.owner() == Some(owner))
        && query.label.as_ref().is_none_or(|label| task.labels.contains(label));
    match &query.below {
        Some(top) if selected => is_below(snapshot, task, top),
        Some(_) | None => Ok(selected),
    }
}

fn is_below(snapshot: &dyn Snapshot, mut task: Task, top: &TaskId) -> Result<bool, StoreError> {
    while let Some(parent) = task.parent {
        if parent == *top {
            return Ok(true);
        }
        let Some(above) = snapshot.task(&parent)? else { return Ok(false) };
        task = above;
    }
    Ok(false)
}
