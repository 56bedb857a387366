//! Every mutant fails in the subjects that it breaks and in no other, so that a report says what to look at.

use std::collections::BTreeSet;

use taskbus::conformance::suite::run;
use taskbus::conformance::{Report, RowPlace, StorePlace, Subject, rows, stores};

use crate::broken_rows::{BrokenPlace, Fault};
use crate::broken_store::{BrokenStorePlace, Lie};

/// What is wrong with the report on a mutant; none when it fails exactly as it should.
fn complaint(report: &Report, expected: &[Subject]) -> Option<String> {
    let expected: BTreeSet<Subject> = expected.iter().copied().collect();
    println!("{:<40} fails in {:?}", report.title, report.failed());
    (report.failed() != expected).then(|| format!("expected to fail in {expected:?}:\n{report}"))
}

/// Runs something that panics many times on purpose.
fn quietly<T>(f: impl FnOnce() -> T) -> T {
    std::panic::set_hook(Box::new(|_| {}));
    let result = f();
    drop(std::panic::take_hook());
    result
}

#[test]
fn every_broken_store_of_rows_is_caught_in_what_it_breaks() {
    let mutants: [(Fault, &[Subject]); 23] = [
        (Fault::None, &[]),
        (Fault::IdFromMax, &[Subject::Ids, Subject::Reopen]),
        (Fault::IdFromHandle, &[Subject::Reopen]),
        (Fault::IdIgnoresRows, &[Subject::Ids]),
        (Fault::TrimsText, &[Subject::Values]),
        (Fault::MergesMetadata, &[Subject::Values]),
        (Fault::RoundsNumbers, &[Subject::Values]),
        (Fault::OrderOfWriting, &[Subject::Order]),
        (Fault::OrderOfText, &[Subject::Order]),
        (Fault::WantsLists, &[Subject::Shapes]),
        (Fault::UnreadableIsNone, &[Subject::Shapes]),
        (Fault::KeepsRefused, &[Subject::Transactions]),
        (Fault::KeepsPanicked, &[Subject::Transactions]),
        (Fault::DirtyReads, &[Subject::Transactions]),
        (Fault::BlindToItself, &[Subject::Transactions]),
        (Fault::AlwaysChanges, &[Subject::Transactions]),
        (Fault::SilentDelete, &[Subject::Durable]),
        (Fault::DeleteSaysYes, &[Subject::Deletes]),
        (Fault::DeleteTakesWaiting, &[Subject::Deletes]),
        (Fault::FirstWordsLast, &[Subject::Deletes]),
        (Fault::NoTurns, &[Subject::Races]),
        (Fault::VersionsRepeat, &[Subject::Durable]),
        (Fault::LosesTheLast, &[Subject::Durable, Subject::Reopen]),
    ];
    let test = |(fault, expected): (Fault, &[Subject])| {
        let fresh = || -> Box<dyn RowPlace> { Box::new(BrokenPlace::new(fault)) };
        complaint(&run::<dyn RowPlace>(&format!("rows, {fault:?}"), rows::CHECKS, &fresh), expected)
    };
    let complaints: Vec<String> = quietly(|| mutants.into_iter().filter_map(test).collect());
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn every_store_that_lies_is_caught_in_what_it_lies_about() {
    use Subject::{
        Channels, Claims, Deletes, Durable, Graph, Ids, Leases, Memories, Messages, Order, Races, Search, Siblings,
        Transactions, Upkeep, Values,
    };
    let mutants: [(Lie, &[Subject]); 26] = [
        (Lie::None, &[]),
        (Lie::EverybodyIsAlive, &[Leases]),
        (Lie::NoLeases, &[Leases]),
        (Lie::NoWayLeadsAnywhere, &[Transactions, Graph, Races]),
        (Lie::NothingIsOpen, &[Values, Claims, Graph]),
        (Lie::NobodyWaits, &[Claims, Graph]),
        (Lie::NothingWasDeleted, &[Ids, Deletes, Search]),
        (Lie::NobodyHasChildren, &[Graph, Deletes]),
        (Lie::NothingBefore, &[Siblings]),
        (Lie::NothingAfter, &[Siblings]),
        (Lie::NoReceipts, &[Claims, Deletes]),
        (Lie::OnlyTheNewestRevision, &[Values, Transactions, Messages]),
        (Lie::PagesSkipARow, &[Order]),
        (Lie::NothingEverChanges, &[Durable]),
        (Lie::RefusedIsKept, &[Transactions, Messages]),
        (Lie::TasksOfYesterday, &[Races]),
        (Lie::NobodyIsSubscribed, &[Channels]),
        (Lie::ChannelsAreNeverEmpty, &[Channels]),
        (Lie::MessagesOfEverybody, &[Messages]),
        (Lie::OnlyTheNewestMessages, &[Messages]),
        (Lie::MemoriesLiveForEver, &[Memories]),
        (Lie::VectorsOfEveryModel, &[Memories]),
        (Lie::FindsOneOnly, &[Search]),
        (Lie::SearchesEverywhere, &[Search]),
        (Lie::EvictsTheNewest, &[Upkeep]),
        (Lie::ForgetsTheLease, &[Upkeep]),
    ];
    let test = |(lie, expected): (Lie, &[Subject])| {
        let fresh = || -> Box<dyn StorePlace> { Box::new(BrokenStorePlace::new(lie)) };
        complaint(&run::<dyn StorePlace>(&format!("store, {lie:?}"), stores::CHECKS, &fresh), expected)
    };
    let complaints: Vec<String> = quietly(|| mutants.into_iter().filter_map(test).collect());
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
