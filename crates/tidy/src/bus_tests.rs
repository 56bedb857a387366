//! The table of the tests of the bus: it names whatever its model tests, each name once, and nothing that is not there.

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::repo::{root, text};

    const TABLE: &str = "docs/bus-tests.md";
    /// How many traps there are.
    const TRAPS: usize = 25;
    /// What the model's own tests are called.
    const MODEL: [&str; 118] = [
        "TestTaskChannelNameRules",
        "TestTaskCreateGetRoundTrip",
        "TestTaskCreateValidation",
        "TestTaskCreateRechecksChannelInsideTransaction",
        "TestTaskListTreeOrderSurvivesInsertsAndDeletes",
        "TestTaskBlockedIsDerived",
        "TestPlainWritesRefusedOnTaskChannels",
        "TestLoadTasksSkipsForeignRows",
        "TestTaskCreateIdempotentReplay",
        "TestPlaceRankUsesEffectiveParentForOrphans",
        "TestTaskCreateReplaySurvivesChannelDeletion",
        "TestEmbedderSkipsTaskRows",
        "TestClaimSetsOwnerAndStatus",
        "TestRacingClaimsHaveOneWinner",
        "TestClaimAndRawUpdateAreEquivalent",
        "TestOwnerGuard",
        "TestForceOverridesOwnerGuardAndIsRecorded",
        "TestForceDoesNotBypassBlockingOrChildren",
        "TestReleaseClearsOwnerAndLease",
        "TestStatusTransitions",
        "TestUnknownOwnerIsNotFound",
        "TestLeaseValidation",
        "TestBlockedTaskCannotStart",
        "TestDependencyCycleRejected",
        "TestParentRules",
        "TestBlockedByCapAndDedupe",
        "TestOrphanedParentStaysUpdatable",
        "TestDeleteRefusedWithChildren",
        "TestMoveWithBeforeAfter",
        "TestNoopPatchWritesNothing",
        "TestTaskUpdateIdempotentReplayAfterDelete",
        "TestDeleteCombinedWithChangesIsValidation",
        "TestClaimOfTaskWithDeadOwnerSucceeds",
        "TestClaimOfTaskWithExpiredLeaseSucceeds",
        "TestGetFixesUpAbandonedTask",
        "TestListFixesUpAbandonedTasks",
        "TestReadsDoNotWriteWhenNothingIsAbandoned",
        "TestTickReclaimsWithEmptySender",
        "TestReclaimIsNotRateCharged",
        "TestAnyoneCanReleaseAbandonedTask",
        "TestLiveOwnerWithoutLeaseIsNeverAbandoned",
        "TestKeyedClaimOverDeadOwnerIsIdempotent",
        "TestGetAndListReturnSnapshotWhenFixUpFails",
        "TestTickTakesNoWriteTxWhenNothingAbandoned",
        "TestTaskListReclaimsOnlyAbandonedAmongMixedOwners",
        "TestRankCollisionStillHonorsBefore",
        "TestReceiveAckRedeliver",
        "TestReceiveExcludesOwnAndMergesBySeq",
        "TestReceiveGapAndExpiry",
        "TestReceiveCountAndByteLimits",
        "TestReceiveWaitsThenReturnsEmpty",
        "TestReceiveWaitSecondsOverCapRejected",
        "TestReceiveEmptyLongPollsTripPollingGuard",
        "TestReceiveLongPollPreservesAckIgnored",
        "TestReceiveRedeliveryIgnoresCountAndByteLimits",
        "TestReceivePendingBypassesChannelsFilter",
        "TestReceiveAckOfOutOfFilterPendingDoesNotLeakIntoNewSelection",
        "TestReceiveRedeliveryPreservesOriginalIncludeOwn",
        "TestReceivePendingBatchDoesNotBlockAChannelTrimmedOutOfItEntirely",
        "TestReceiveRedeliveryReStampsPendingEndSeqWhenAMessageIsTombstoned",
        "TestReceiveResultNeverExceedsLimitWithManyExpiredChannels",
        "TestReceiveBoundsExpiredNoticesPerCall",
        "TestReceiveDefersDeliveryWhileGapsExceedCap",
        "TestRegisterAllocatesSuffixesAcrossProcessesOnly",
        "TestRegisterRejectsBadNames",
        "TestStaleOwnerLosesName",
        "TestMutationsRejectAfterOwnerTakeover",
        "TestRegisterReportsResumeAndPending",
        "TestRegisterResumePurgesExpiredSubscriptions",
        "TestDiscoverListsLiveSessions",
        "TestDiscoverTrimsToWholeRecordPrefix",
        "TestRegisterReportsOtherLiveIdentities",
        "TestEndSessionsFreesOwnNamesImmediately",
        "TestDMOwner",
        "TestRegisterCreatesInboxIdempotently",
        "TestDMDeliveryAndQueueWhileOffline",
        "TestDMToUnknownIdentityIsNotFound",
        "TestChannelNameDMIsReserved",
        "TestWaitReturnsUndeliveredWithoutAdvancingCursor",
        "TestWaitMatchSkipsRejectedMessages",
        "TestStopHookUsesSessionFromItsHarness",
        "TestSubagentHookParentIsSessionFromItsHarness",
        "TestWaitIdentityUsesSessionFromItsHarness",
        "TestNormalizeTags",
        "TestNormalizeTagPatterns",
        "TestMatchTag",
        "TestSendStoresTagsAndHistorySearchFilter",
        "TestEditMemoryTagsKeepAndClear",
        "TestSendTagsAreIdempotentAndCascadeOnDelete",
        "TestTagSubscriptionAndMatching",
        "TestUnsubscribeRejectsTagSource",
        "TestTagSourceExcludesDirectDMTaskAndMemory",
        "TestTagSubscriptionsResumeFalseAndExpiry",
        "TestSubscribeTagsRefreshesStaleRow",
        "TestTagRowSurvivesSweeps",
        "TestTagCondUsesTagSeqIndex",
        "TestEmbedRejectedRowIsSkippedNotBlocking",
        "TestEmbedFailureIsReportedAndClears",
        "TestEmbedEndpointRejectingEverythingIsAnErrorNotRejections",
        "TestEmbedRowRetryKeepsProgressOnLaterFailure",
        "TestTwoProcessesShareNamesAndMessages",
        "TestDeadProcessHoldsNameUntilExpiry",
        "TestHookRunsInSendingProcess",
        "TestResetWhileLive",
        "TestMemoryEditVisibleAcrossProcesses",
        "TestStdoutCarriesOnlyProtocol",
        "TestConcurrentRegistrationDisambiguatesAcrossProcesses",
        "TestGapAfterAgeEvictionUnderConcurrentSends",
        "TestTickDeadlineBoundsBlockedEmbeddingStep",
        "TestEmbeddingImmediatePassAndTickDrain",
        "TestLeaseContentionBetweenProcesses",
        "TestSearchFallsBackWhenEmbeddingEndpointFails",
        "TestRegisterRejectsOversizedContext",
        "TestRegisterRejectsOversizedOrControlParent",
        "TestMatchTags",
        "TestMatchTagsGoAndSQLAgree",
        "TestReceiveResultMetadataOnlyWhenReserveExceedsSoftLimit",
        "TestReceiveResultKeepsFirstOversizedRecordWithinHardCeiling",
    ];

    /// One line of the table: what is held, where, and by what.
    #[derive(Debug)]
    struct Row<'a> {
        held: &'a str,
        path: &'a str,
        name: &'a str,
    }

    fn rows(table: &str) -> Vec<Row<'_>> {
        let lines = table.lines().filter(|line| line.starts_with("| ") && line.contains(" | `crates/"));
        let row = |line| match cells(line).as_slice() {
            [held, path, name] => Row { held, path: path.trim_matches('`'), name: name.trim_matches('`') },
            _ => panic!("{TABLE}: {line}"),
        };
        lines.map(row).collect()
    }

    fn cells(line: &str) -> Vec<&str> {
        line.trim_matches('|').split(" | ").map(str::trim).collect()
    }

    /// What is wrong with a row; a test may be one of a macro that runs it on every store, or a check of the suite.
    fn wrong(row: &Row<'_>) -> Option<String> {
        let Ok(text) = std::fs::read_to_string(root().join(row.path)) else {
            return Some(format!("{}: there is no {}", row.held, row.path));
        };
        let is_there = if row.path.ends_with(".rs") {
            let runs = ["#[test]", "on_every_store!"].iter().any(|mark| text.contains(mark));
            let named = ["(", "<"].iter().any(|behind| text.contains(&format!("fn {}{behind}", row.name)));
            named && (runs || row.path.contains("/conformance/"))
        } else {
            text.lines().any(|line| line == format!("# {}", row.name))
        };
        (!is_there).then(|| format!("{}: {} has no {}", row.held, row.path, row.name))
    }

    fn missing(rows: &[Row<'_>]) -> Vec<String> {
        let held: BTreeSet<&str> = rows.iter().map(|row| row.held).collect();
        let traps: BTreeSet<&str> = held.iter().filter_map(|held| Some(held.split_once(": ")?.0)).collect();
        let tests = MODEL.iter().map(|name| format!("`{name}`")).filter(|name| !held.contains(name.as_str()));
        let traps = (1..=TRAPS).map(|n| n.to_string()).filter(|n| !traps.contains(n.as_str()));
        tests.chain(traps.map(|n| format!("trap {n}"))).collect()
    }

    #[test]
    fn every_test_of_the_model_and_every_trap_has_a_test_here() {
        let table = text(TABLE);
        let rows = rows(&table);
        println!("{} rows for {} tests and {TRAPS} traps", rows.len(), MODEL.len());
        assert_eq!(missing(&rows), Vec::<String>::new());
        assert_eq!(rows.iter().filter_map(wrong).collect::<Vec<_>>(), Vec::<String>::new());
    }

    #[test]
    fn the_check_finds_what_is_missing_and_what_is_not_there() {
        let table = "| `TestOwnerGuard` | `crates/tidy/src/bus_tests.rs` | `no_such_test` |\n\
            | 3: x | `crates/nowhere.rs` | `x` |\n| 4: y | `crates/taskbus/scenarios/order.txt` | no such remark |\n";
        let rows = rows(table);
        assert_eq!((rows.len(), rows.iter().filter_map(wrong).count()), (3, 3), "{rows:?}");
        let missing = missing(&rows);
        assert_eq!(missing.len(), MODEL.len() - 1 + TRAPS - 2, "{missing:?}");
    }
}
