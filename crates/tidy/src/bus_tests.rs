//! The table of the tests of the bus: it names whatever its model tests, each name once, and nothing that is not there.

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::proofs::{Row, rows, wrong};
    use crate::repo::text;

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
