//! How strict a list is. The policy belongs to the list, not to the caller: every surface that opens one
//! shared list meets the same rules (docs/rules.md 8).

use serde::{Deserialize, Serialize};

use crate::limits;

/// The three policies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// The bus: owner guard, leases and liveness; a blocked task does not start.
    #[default]
    Strict,
    /// A Claude Code task directory: its other writer keeps no leases and refuses no blocked start.
    Claude,
    /// A Kin sidecar: one session, any status at any time.
    Kin,
}

impl Policy {
    /// Whether owners, leases and live sessions are kept.
    #[must_use]
    pub fn guards_owners(self) -> bool {
        self == Policy::Strict
    }

    /// Whether a task with open blockers may start, with a warning.
    #[must_use]
    pub fn blocked_may_start(self) -> bool {
        self != Policy::Strict
    }

    /// Whether a deleted task stays a row: others may name it as a blocker (an inactive one), a change of status
    /// brings it back, and cycles are looked for through it too.
    #[must_use]
    pub fn keeps_deleted(self) -> bool {
        self == Policy::Kin
    }

    /// How long a task may be in progress unchanged and still be so when the list is opened, in milliseconds; none:
    /// for ever.
    #[must_use]
    pub fn stale_after_ms(self) -> Option<i64> {
        (self == Policy::Kin).then_some(limits::KIN_STALE_MS)
    }

    /// Whether a completed task may go straight to in progress.
    #[must_use]
    pub fn may_restart_completed(self) -> bool {
        self != Policy::Strict
    }
}
