//! Why a command is refused: a closed list, each with a stable code and the facts a caller needs.
//!
//! A refusal is not a failure: nothing is wrong with the store, and nothing was written. The texts name the
//! value and the next step, never a destructive command (docs/rules.md 10).

use serde_json::{Map, Value, json};

use crate::id::TaskId;
use crate::limits;
use crate::name::Identity;

pub use self::conflict::Conflict;
pub use self::invalid::Invalid;
pub use self::missing::Missing;

mod conflict;
mod invalid;
mod missing;

/// A refusal. The order is the order of evaluation of a keyed write (docs/rules.md 2).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// This process does not hold the identity it acts as.
    #[error("{0}")]
    NotRegistered(NotRegistered),
    /// The request itself is wrong; the caller can mend it.
    #[error("{0}")]
    Invalid(Invalid),
    /// What it names does not exist.
    #[error("{0}")]
    NotFound(Missing),
    /// The state of the task refuses it.
    #[error("{0}")]
    Conflict(Conflict),
    /// Too many writes in too short a time.
    #[error("{who} writes faster than {limit}; wait {wait_ms} ms and send the same call again")]
    RateLimited {
        /// Who.
        who: Identity,
        /// The limit, in words.
        limit: String,
        /// How long until it would pass, in milliseconds.
        wait_ms: u64,
    },
    /// The store is full of what may not be evicted.
    #[error(
        "the store holds {used_mib} MiB of {budget_mib} and nothing in it may be evicted; raise sqlite_budget_mib, or \
         delete what is no longer needed"
    )]
    CapacityExhausted {
        /// What is in use, in MiB.
        used_mib: u64,
        /// What may be, in MiB.
        budget_mib: u64,
    },
    /// It asked for messages again and again while none came.
    #[error(
        "{waits} waited calls of receive in a row found nothing; end your turn, or run `taskbus wait` in the \
         background: it returns when a message comes"
    )]
    Polling {
        /// How many.
        waits: u32,
    },
    /// The operator's inspection command did not let it pass.
    #[error("{0}")]
    Inspection(Inspection),
}

/// What the inspection command of the operator said.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Inspection {
    /// No.
    #[error("the inspection command refused this: {reason}")]
    Rejected {
        /// In its words.
        reason: String,
    },
    /// Nothing usable.
    #[error("the inspection command gave no verdict: {reason}; nothing was written, send the same call again")]
    Unavailable {
        /// Why.
        reason: String,
    },
}

/// Why an identity may not act.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRegistered {
    /// It never did in this process.
    #[error("{name} is not registered by this process; call register first and use the name it returns")]
    Never {
        /// The name.
        name: Identity,
    },
    /// It was silent for too long and somebody else holds the name now.
    #[error("{name} is held by another process now; call register again and use the name it returns")]
    TakenOver {
        /// The name.
        name: Identity,
    },
}

impl Refusal {
    /// The stable code (docs/rules.md 10).
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::NotRegistered(_) => "not_registered",
            Refusal::Invalid(_) => "validation",
            Refusal::NotFound(_) => "not_found",
            Refusal::Conflict(_) => "conflict",
            Refusal::RateLimited { .. } => "rate_limited",
            Refusal::CapacityExhausted { .. } => "capacity_exhausted",
            Refusal::Polling { .. } => "polling",
            Refusal::Inspection(Inspection::Rejected { .. }) => "inspection_rejected",
            Refusal::Inspection(Inspection::Unavailable { .. }) => "inspection_unavailable",
        }
    }

    /// Whether the same call may pass later.
    #[must_use]
    pub fn retryable(&self) -> bool {
        matches!(self, Refusal::RateLimited { .. } | Refusal::Inspection(Inspection::Unavailable { .. }))
    }

    /// The facts as fields, beside code, message and `retryable`.
    #[must_use]
    pub fn facts(&self) -> Map<String, Value> {
        let facts = match self {
            Refusal::NotRegistered(NotRegistered::Never { name } | NotRegistered::TakenOver { name }) => {
                json!({"as": name})
            }
            Refusal::Invalid(invalid) => invalid.facts(),
            Refusal::NotFound(missing) => missing.facts(),
            Refusal::Conflict(conflict) => conflict.facts(),
            Refusal::RateLimited { wait_ms, .. } => json!({"wait_ms": wait_ms}),
            Refusal::CapacityExhausted { used_mib, budget_mib } => {
                json!({"used_mib": used_mib, "budget_mib": budget_mib})
            }
            Refusal::Polling { waits } => json!({"waits": waits}),
            Refusal::Inspection(Inspection::Rejected { reason } | Inspection::Unavailable { reason }) => {
                json!({"reason": reason})
            }
        };
        match facts {
            Value::Object(map) => map.into_iter().filter(|(_, value)| !value.is_null()).collect(),
            _ => Map::new(),
        }
    }
}

impl From<Invalid> for Refusal {
    fn from(invalid: Invalid) -> Self {
        Refusal::Invalid(invalid)
    }
}

impl From<Missing> for Refusal {
    fn from(missing: Missing) -> Self {
        Refusal::NotFound(missing)
    }
}

impl From<Conflict> for Refusal {
    fn from(conflict: Conflict) -> Self {
        Refusal::Conflict(conflict)
    }
}

pub(super) fn shown(ids: &[TaskId]) -> &[TaskId] {
    &ids[..ids.len().min(limits::IDS_SHOWN_MAX)]
}

pub(super) fn ids(ids: &[TaskId], joint: &str) -> String {
    // How many there are is not always known: who asks the store for them asks for one more than is shown.
    let mut text = shown(ids).iter().map(ToString::to_string).collect::<Vec<_>>().join(joint);
    if ids.len() > limits::IDS_SHOWN_MAX {
        text.push_str(joint);
        text.push_str("and more");
    }
    text
}
