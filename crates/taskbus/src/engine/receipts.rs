//! Receipts: a keyed call that comes again is answered as it was the first time.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use taskbus_core::limits;
use taskbus_core::name::{Identity, Key};
use taskbus_core::refusal::{Conflict, Refusal};
use taskbus_core::time::Timestamp;

use super::read::Found;
use crate::store::{ReceiptRow, Snapshot, StoreError};

/// What a call asks, as a hash. The kind of call is only told by what it asks, so that a claim and the update that
/// means the same are one.
pub(super) fn fingerprint(asked: Value) -> String {
    blake3::hash(canonical(asked).to_string().as_bytes()).to_hex().to_string()
}

/// The same value with the keys of every object in order.
fn canonical(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(String, Value)> =
                map.into_iter().map(|(key, value)| (key, canonical(value))).collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(entries.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(canonical).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

/// The answer that was given to this key before, if any; a refusal when it was given to another question.
pub(super) fn replay<T: DeserializeOwned>(
    snapshot: &dyn Snapshot,
    caller: &Identity,
    key: &Key,
    fingerprint: &str,
    now: Timestamp,
) -> Found<Option<T>> {
    let Some(receipt) = snapshot.receipt(caller, key, now)? else { return Ok(Ok(None)) };
    if receipt.fingerprint != fingerprint {
        return Ok(Err(Refusal::Conflict(Conflict::KeyReused { key: key.to_string() })));
    }
    serde_json::from_str(&receipt.answer).map(|answer| Ok(Some(answer))).map_err(unreadable)
}

/// The receipt of an answer.
pub(super) fn receipt(
    fingerprint: &str,
    answer: &impl Serialize,
    now: Timestamp,
    minutes: i64,
) -> Result<ReceiptRow, StoreError> {
    Ok(ReceiptRow {
        fingerprint: fingerprint.to_owned(),
        answer: serde_json::to_string(answer).map_err(unreadable)?,
        expires_at: now.plus_millis(minutes.clamp(1, limits::TIME_MS_MAX / 60_000) * 60_000),
    })
}

fn unreadable(error: serde_json::Error) -> StoreError {
    StoreError::Failed { store: "receipts".to_owned(), source: Box::new(error) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use taskbus_core::command::{Command, LeaseAsk, Patch};
    use taskbus_core::id::TaskId;
    use taskbus_core::task::Status;

    use super::*;

    fn update(patch: Patch) -> String {
        fingerprint(json!(Command::Update(TaskId::Number(1), Box::new(patch))))
    }

    #[test]
    fn a_claim_and_the_update_that_means_the_same_are_one_call() {
        let zed = Identity::new("Zed").unwrap();
        let raw = Patch { owner: Some(Some(zed.clone())), status: Some(Status::InProgress), ..Patch::default() };
        assert_eq!(update(Patch::claim(zed.clone(), None)), update(raw));
        assert_ne!(update(Patch::claim(zed.clone(), None)), update(Patch::claim(zed, Some(LeaseAsk::Seconds(5)))));
        assert_ne!(update(Patch::release()), update(Patch::delete()));
    }

    #[test]
    fn the_order_of_keys_in_free_data_does_not_matter() {
        let with = |text: &str| {
            let value = serde_json::from_str(text).unwrap();
            update(Patch { metadata: [("k".to_owned(), Some(value))].into(), ..Patch::default() })
        };
        assert_eq!(with(r#"{"a":1,"b":[{"x":1,"y":2}]}"#), with(r#"{"b":[{"y":2,"x":1}],"a":1}"#));
        assert_ne!(with(r#"{"a":1}"#), with(r#"{"a":2}"#));
        assert_ne!(with("[1,2]"), with("[2,1]"));
    }
}
