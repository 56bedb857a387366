//! What an engine over a store must do, whatever the store: the rules hold on it, and it keeps what they decide.

use std::collections::BTreeMap;
use std::sync::Arc;

use taskbus_core::command::{Command, Draft, LeaseAsk, Patch};
use taskbus_core::id::TaskId;
use taskbus_core::name::{Identity, Key, ListName};
use taskbus_core::neighbourhood::ListRules;
use taskbus_core::refusal::{Conflict, Refusal};
use taskbus_core::task::Status;
use taskbus_core::text::Subject as Line;

use super::place::StorePlace;
use super::suite::{Check, Subject, Verdict};
use crate::answer::{Answer, Got, Taken, TaskView, Written};
use crate::engine::{Engine, Error, Limits, ListAsk, Registration, Request};
use crate::store::{ManualClock, Store};

mod bus;
mod channels;
mod claims;
mod deletes;
mod durable;
mod graph;
mod ids;
mod leases;
mod memories;
mod messages;
mod order;
mod races;
mod reopen;
mod search;
mod siblings;
mod transactions;
mod upkeep;
mod values;

macro_rules! checks {
    ($($subject:ident: $module:ident { $($name:ident),* $(,)? })*) => {
        /// Every check on whole stores.
        pub const CHECKS: &[Check<dyn StorePlace>] =
            &[$($(Check { subject: Subject::$subject, name: stringify!($name), run: $module::$name }),*),*];
    };
}

checks! {
    Ids: ids {
        tasks_get_ids_that_ascend,
        a_plan_gets_ids_in_its_order,
        a_restored_task_keeps_its_id_and_a_new_one_gets_another,
    }
    Values: values {
        a_task_is_answered_as_it_was_given,
        metadata_that_is_too_deep_is_refused_with_its_path,
        metadata_is_merged_key_by_key,
        history_says_what_changed,
    }
    Order: order {
        pages_follow_one_another,
        filters_keep_the_order,
    }
    Transactions: transactions {
        a_refused_command_leaves_no_trace,
        a_plan_is_all_or_nothing,
        a_failed_body_leaves_no_trace,
        a_body_that_panicked_leaves_no_trace,
        a_body_sees_what_it_wrote,
    }
    Durable: durable {
        the_version_differs_after_a_change_by_anybody,
        who_waits_for_work_gets_it_when_it_comes,
    }
    Claims: claims {
        one_holds_a_task_and_the_others_are_told_who,
        only_the_holder_completes_or_releases,
        next_hands_out_each_task_once,
        a_blocked_task_is_not_claimed,
        a_repeated_key_gives_the_first_answer,
        without_owners_anybody_changes_anything,
    }
    Leases: leases {
        a_live_lease_is_kept,
        an_ended_lease_gives_the_task_back,
        a_late_holder_changes_nothing,
        a_dead_session_gives_its_tasks_back,
        who_is_not_known_to_be_dead_keeps_its_tasks,
    }
    Graph: graph {
        cycles_are_refused_with_their_path,
        a_task_waits_for_all_its_blockers,
        a_deleted_blocker_blocks_nothing,
        only_tasks_that_are_there_can_be_named,
        long_chains_are_walked,
        parents_form_a_tree,
    }
    Siblings: siblings {
        tasks_are_appended,
        tasks_go_before_and_after_others,
        children_stand_below_their_parents,
        many_inserts_at_one_spot_keep_their_order,
    }
    Deletes: deletes {
        a_deleted_task_is_gone_and_comes_back_whole,
        a_task_with_children_stays,
        deleting_twice_is_said,
    }
    Races: races {
        one_of_many_claims_wins,
        tasks_made_at_once_are_all_there,
        one_of_two_closing_edges_is_refused,
        next_hands_out_each_task_once_to_many,
        tasks_made_by_processes_are_all_there,
    }
    Reopen: reopen {
        every_task_is_as_it_was,
        ids_go_on,
        holders_keep_their_tasks,
        a_repeated_key_is_answered_after_reopening,
    }
    Channels: channels {
        channels_are_listed_by_name_with_inboxes_and_lists,
        a_channel_counts_what_it_has,
        a_list_counts_as_a_channel,
        a_channel_goes_with_all_that_is_in_it,
        a_list_goes_with_its_tasks_and_no_id_comes_again,
        subscriptions_are_kept_by_who_and_what,
        sets_of_tags_are_kept_by_their_patterns,
    }
    Messages: messages {
        messages_and_revisions_have_one_order,
        a_message_is_read_as_it_was_written,
        messages_come_in_the_order_asked_for,
        filters_let_pass_what_they_say,
        every_revision_of_a_task_is_a_message_of_its_list,
        a_bus_that_was_written_to_in_vain_is_as_it_was,
    }
    Memories: memories {
        a_memory_is_known_by_its_first_number,
        the_note_of_a_deletion_is_delivered_and_nothing_more,
        memories_are_watched_from_when_they_are_read,
        vectors_are_those_of_live_memories,
        a_failure_takes_a_memory_off_the_backlog,
    }
    Search: search {
        a_message_is_found_that_has_every_term,
        only_what_is_live_is_found,
        of_a_task_its_subject_description_result_and_notes_are_found,
        a_search_looks_only_where_it_may,
        the_best_is_found_first,
    }
    Upkeep: upkeep {
        the_oldest_ordinary_messages_are_evicted_first,
        notices_and_the_lease_are_remembered,
        sessions_that_ended_are_dropped_and_their_names_stay,
        a_reset_leaves_nothing_but_the_numbers,
    }
}

/// A store, its list, and those who work on it, each as if in a process of their own.
struct Crew {
    store: Arc<dyn Store>,
    list: ListName,
    rules: ListRules,
    clock: Option<Arc<ManualClock>>,
}

/// Somebody who works on a list.
struct Person {
    engine: Engine,
    name: Identity,
    list: ListName,
}

impl Crew {
    fn at(place: &dyn StorePlace) -> Self {
        let (list, rules) = place.list();
        Self { store: place.open(), list, rules, clock: place.clock() }
    }

    /// What is missing on a list that keeps no owners; none on a strict one.
    fn without_owners(&self) -> Option<Verdict> {
        let lack = Verdict::NotApplicable("a list that keeps owners (its policy lets one session do as it likes)");
        (!self.rules.policy.guards_owners()).then_some(lack)
    }

    /// Somebody new.
    fn person(&self, name: &str) -> Person {
        self.person_on(&self.store, name)
    }

    fn person_on(&self, store: &Arc<dyn Store>, name: &str) -> Person {
        // The checks write as fast as they can; how fast one may is the engine's, not the store's.
        let limits = Limits { writes_per_second: 1_000_000, write_kib_per_second: 1_000_000, ..Limits::default() };
        let engine = Engine::new(Arc::clone(store), limits);
        let wish = Registration { name: name.to_owned(), ..Registration::default() };
        let name = engine.register(&wish).expect("a name can be had").name;
        engine.create_list(&name, &self.list, self.rules).expect("the list is made");
        Person { engine, name, list: self.list.clone() }
    }

    /// Lets time pass for those that are alive; `false` when it cannot.
    fn pass(&self, seconds: i64, alive: &[&Person]) -> bool {
        let Some(clock) = &self.clock else { return false };
        clock.advance(seconds * 1000);
        for person in alive {
            person.engine.heartbeat().expect("a heartbeat is written");
        }
        true
    }
}

/// The clock of a place cannot be moved.
const NO_CLOCK: Verdict = Verdict::NotApplicable("a clock that a test may move");

impl Person {
    fn ask(&self, command: Command, key: Option<&str>) -> Result<Answer, Error> {
        let key = key.map(|key| Key::new(key).expect("a key of the suite is valid"));
        let (caller, list) = (self.name.clone(), Some(self.list.clone()));
        self.engine.execute(&Request { caller, list, command, key })
    }

    #[track_caller]
    fn create(&self, draft: Draft) -> TaskView {
        match self.ask(Command::Create(Box::new(draft)), None) {
            Ok(Answer::Created(task)) => *task,
            other => panic!("a task is made: {other:?}"),
        }
    }

    #[track_caller]
    fn add(&self, subject: &str) -> TaskId {
        self.create(draft(subject)).id
    }

    #[track_caller]
    fn add_waiting(&self, subject: &str, blocked_by: &[&TaskId]) -> TaskId {
        let blocked_by = blocked_by.iter().map(|id| (*id).clone()).collect();
        self.create(Draft { blocked_by, ..draft(subject) }).id
    }

    fn update(&self, id: &TaskId, patch: Patch) -> Result<Written, Error> {
        match self.ask(Command::Update(id.clone(), Box::new(patch)), None)? {
            Answer::Written(written) => Ok(*written),
            other => panic!("an update answers with what was written: {other:?}"),
        }
    }

    fn claim(&self, id: &TaskId) -> Result<Written, Error> {
        self.update(id, Patch::claim(self.name.clone(), None))
    }

    fn lease(&self, id: &TaskId, seconds: u64) -> Result<Written, Error> {
        self.update(id, Patch::claim(self.name.clone(), Some(LeaseAsk::Seconds(seconds))))
    }

    fn complete(&self, id: &TaskId) -> Result<Written, Error> {
        self.update(id, Patch::complete(None))
    }

    #[track_caller]
    fn next(&self) -> Taken {
        match self.ask(Command::Next(Box::default()), None) {
            Ok(Answer::Next(taken)) => *taken,
            other => panic!("next answers with a task or why there is none: {other:?}"),
        }
    }

    fn get(&self, id: &TaskId) -> Result<Got, Error> {
        self.engine.get(Some(&self.name), id, true)
    }

    #[track_caller]
    fn task(&self, id: &TaskId) -> TaskView {
        self.get(id).expect("the task is there").task
    }

    #[track_caller]
    fn order(&self) -> Vec<TaskId> {
        let ask = ListAsk { limit: Some(200), ..ListAsk::default() };
        let page = self.engine.list(Some(&self.name), &self.list, &ask).expect("the list can be read");
        page.tasks.into_iter().map(|task| task.id).collect()
    }

    /// Everything that can be seen of the list, to compare.
    #[track_caller]
    fn everything(&self) -> BTreeMap<TaskId, Got> {
        let all = self.order();
        all.into_iter().map(|id| (id.clone(), self.get(&id).expect("a listed task is there"))).collect()
    }
}

fn draft(subject: &str) -> Draft {
    Draft::new(Line::new(subject).expect("a subject of the suite is valid"))
}

fn to(status: Status) -> Patch {
    Patch { status: Some(status), ..Patch::default() }
}

/// The conflict that a call ended in.
#[track_caller]
fn conflict<T: std::fmt::Debug>(result: Result<T, Error>) -> Conflict {
    match result {
        Err(Error::Refused(Refusal::Conflict(conflict))) => conflict,
        other => panic!("a conflict was expected: {other:?}"),
    }
}

#[track_caller]
fn is_missing<T: std::fmt::Debug>(result: &Result<T, Error>) {
    assert!(matches!(result, Err(Error::Refused(Refusal::NotFound(_)))), "not_found was expected: {result:?}");
}
