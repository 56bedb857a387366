//! What a store of rows must do: the contract of [`RowStore`], each line a check.

use std::sync::Arc;

use serde_json::{Map, Value};
use taskbus_core::id::TaskId;
use taskbus_core::name::Identity;
use taskbus_core::rank::Rank;
use taskbus_core::refusal::{Invalid, Refusal};
use taskbus_core::task::{Stamp, State, Task};
use taskbus_core::text::Subject as Line;
use taskbus_core::time::Timestamp;

use super::place::RowPlace;
use super::suite::{Check, Subject, Verdict};
use crate::store::rows::{RowSet, RowStore, Rows};
use crate::store::{Abort, StoreError};

mod deletes;
mod durable;
mod ids;
mod order;
mod races;
mod reopen;
mod shapes;
mod transactions;
mod values;

macro_rules! checks {
    ($($subject:ident: $module:ident { $($name:ident),* $(,)? })*) => {
        /// Every check on rows.
        pub const CHECKS: &[Check<dyn RowPlace>] =
            &[$($(Check { subject: Subject::$subject, name: stringify!($name), run: $module::$name }),*),*];
    };
}

checks! {
    Ids: ids {
        an_id_is_given_once,
        an_id_is_not_given_again_after_a_delete,
        a_fresh_id_comes_after_all_that_are_there,
        an_id_that_another_program_took_is_not_given,
    }
    Values: values {
        what_is_set_is_got,
        every_field_is_kept,
        text_is_kept_to_the_byte,
        metadata_is_kept_as_it_is,
        setting_again_replaces_the_whole_row,
        a_task_that_was_handed_out_is_a_copy,
        a_task_that_was_taken_in_is_a_copy,
    }
    Order: order {
        a_list_is_ordered_by_id_whatever_the_order_of_writing,
        numbers_ascend_before_text,
        every_list_has_the_same_order,
    }
    Shapes: shapes {
        missing_lists_of_blockers_are_empty_ones,
        a_row_that_cannot_be_read_is_reported_and_kept,
    }
    Transactions: transactions {
        what_a_body_refused_is_not_kept,
        what_a_body_failed_in_is_not_kept,
        what_a_body_panicked_in_is_not_kept,
        many_rows_are_kept_together,
        a_body_sees_what_it_wrote,
        nobody_sees_a_body_before_its_end_nor_waits_for_it,
        a_body_that_writes_nothing_changes_nothing,
    }
    Durable: durable {
        what_was_acknowledged_is_there,
        the_version_differs_after_every_change,
        a_waiter_hears_of_a_change,
        a_waiter_returns_in_time_when_nothing_changes,
    }
    Deletes: deletes {
        a_delete_says_whether_the_row_existed,
        a_deleted_row_is_not_live,
        a_delete_leaves_the_others_alone,
        a_deleted_row_can_be_set_again,
        a_tombstone_keeps_the_task_as_it_was_last,
    }
    Races: races {
        ids_given_at_once_do_not_collide,
        no_update_is_lost_between_threads,
        no_update_is_lost_between_processes,
        ids_given_by_processes_do_not_collide,
    }
    Reopen: reopen {
        the_rows_are_the_same,
        no_id_is_given_again,
        no_id_is_given_again_when_all_rows_are_deleted,
        a_killed_process_loses_nothing_and_leaves_no_half,
    }
}

/// The same store, opened `count` times.
fn handles(place: &dyn RowPlace, count: usize) -> Vec<Arc<dyn RowStore>> {
    (0..count).map(|_| place.open()).collect()
}

/// Runs a body that must pass, and hands its result out.
#[track_caller]
fn within<T>(store: &dyn RowStore, mut f: impl FnMut(&mut dyn Rows) -> Result<T, StoreError>) -> T {
    let mut result = None;
    let done = store.transact(&mut |rows| {
        result = Some(f(rows)?);
        Ok(())
    });
    done.expect("a transaction that nothing is wrong with is kept");
    result.expect("a transaction that was kept ran its body")
}

/// A new row with a subject.
#[track_caller]
fn put(store: &dyn RowStore, subject: &str) -> Task {
    within(store, |rows| {
        let task = task(rows.allocate()?, subject);
        rows.set(&task)?;
        Ok(task)
    })
}

/// A new row; its id.
pub(super) fn put_new(store: &dyn RowStore) -> TaskId {
    put(store, "by a process").id
}

#[track_caller]
fn set(store: &dyn RowStore, task: &Task) {
    within(store, |rows| rows.set(task));
}

#[track_caller]
fn get(store: &dyn RowStore, id: &TaskId) -> Option<Task> {
    within(store, |rows| rows.get(id))
}

#[track_caller]
fn delete(store: &dyn RowStore, id: &TaskId) -> bool {
    within(store, |rows| rows.delete(id))
}

#[track_caller]
fn snapshot(store: &dyn RowStore) -> RowSet {
    store.snapshot().expect("the rows can be read")
}

fn ids(rows: &[Task]) -> Vec<TaskId> {
    rows.iter().map(|task| task.id.clone()).collect()
}

/// The first row of a counter that several writers raise.
const COUNTER: &str = "counter";

/// Raises the counter by one, which takes a read and a write.
pub(super) fn add_one(store: &dyn RowStore) {
    within(store, |rows| {
        let all = rows.list()?;
        let mut task = all.live.into_iter().find(|task| task.metadata.contains_key(COUNTER)).expect("a counter");
        let count = task.metadata[COUNTER].as_u64().expect("a number");
        task.metadata.insert(COUNTER.to_owned(), (count + 1).into());
        task.revision += 1;
        rows.set(&task)
    });
}

/// Makes the counter.
fn put_counter(store: &dyn RowStore) {
    within(store, |rows| {
        let mut counter = task(rows.allocate()?, "count");
        counter.metadata.insert(COUNTER.to_owned(), 0.into());
        rows.set(&counter)
    });
}

fn counted(store: &dyn RowStore) -> Value {
    let counters = snapshot(store).live.into_iter().filter_map(|task| task.metadata.get(COUNTER).cloned());
    let counters: Vec<Value> = counters.collect();
    assert_eq!(counters.len(), 1, "one counter");
    counters[0].clone()
}

/// A pending task with a subject and nothing else. Its rank is what a row of its id has anyway, where ids are numbers.
fn task(id: TaskId, subject: &str) -> Task {
    let stamp = Stamp { at: Timestamp::from_millis(1_796_054_400_000), by: Identity::new("zed").ok() };
    Task {
        rank: Rank::nth(id.as_number().unwrap_or(1)),
        id,
        subject: Line::new(subject).expect("a subject of the suite is valid"),
        description: None,
        active_form: None,
        state: State::Pending { assignee: None },
        parent: None,
        blocked_by: Vec::new(),
        not_before: None,
        labels: std::collections::BTreeSet::new(),
        paths: std::collections::BTreeSet::new(),
        metadata: Map::new(),
        result: None,
        created: stamp.clone(),
        updated: stamp,
        revision: 1,
        fence: 0,
        reclaims: 0,
        parked: false,
        extra: Map::new(),
    }
}

/// A refusal to stop a body with.
fn refusal() -> Abort {
    Abort::Refused(Refusal::Invalid(Invalid::Cursor))
}

/// What the suite compares of a task: what a caller put in. Stamps and counts may be the store's own.
fn said(task: &Task) -> impl PartialEq + std::fmt::Debug + use<> {
    let texts = (task.subject.clone(), task.description.clone(), task.active_form.clone());
    let links = (task.id.clone(), task.status(), task.owner().cloned(), task.blocked_by.clone());
    (texts, links, task.metadata.clone())
}
