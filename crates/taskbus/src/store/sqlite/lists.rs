//! Lists and their settings.

use rusqlite::Row as SqlRow;
use taskbus_core::name::ListName;
use taskbus_core::neighbourhood::ListRules;
use taskbus_core::policy::Policy;
use taskbus_core::time::Timestamp;

use super::error::{Answer, Fault};
use super::scope::{Scope, valid};
use crate::store::ListRow;

const RULES: &str = "SELECT policy, max_reclaims FROM lists WHERE id = ?1";
const LIST: &str = "
    SELECT l.name, l.policy, l.max_reclaims, l.created_at, c.seq,
           c.ready + c.blocked + c.parked + c.deferred + c.in_progress + c.completed
    FROM lists l JOIN counters c ON c.id = l.id WHERE l.name = ?1";
const LISTS: &str = "
    SELECT l.name, l.policy, l.max_reclaims, l.created_at, c.seq,
           c.ready + c.blocked + c.parked + c.deferred + c.in_progress + c.completed
    FROM lists l JOIN counters c ON c.id = l.id ORDER BY l.name";

/// A list as it is stored, its words not checked yet.
pub(super) struct Stored {
    pub(super) name: String,
    pub(super) policy: String,
    pub(super) max_reclaims: u32,
    pub(super) created_at: i64,
    pub(super) latest_seq: u64,
    pub(super) live: u64,
}

impl Scope<'_> {
    pub(super) fn rules_in_scope(&self) -> Answer<ListRules> {
        if let Some(row) = self.found.as_ref().filter(|_| self.is_list_known()) {
            return Ok(row.rules);
        }
        let found = self.one(RULES, [self.list()?], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))?;
        let (policy, max_reclaims) = found.ok_or_else(|| {
            let name = self.list_in_scope().map_or("", ListName::as_str);
            Fault::Misuse(format!("BUG: asked for the rules of {name}, which does not exist"))
        })?;
        Ok(ListRules { policy: policy_from(&policy)?, max_reclaims })
    }

    pub(super) fn list_row(&self, name: &ListName) -> Answer<Option<ListRow>> {
        if let Some(row) = self.found.as_ref().filter(|row| row.name == *name && !self.has_written()) {
            return Ok(Some(row.clone()));
        }
        self.flush()?;
        self.one(LIST, [name.as_str()], stored)?.map(checked).transpose()
    }

    pub(super) fn list_rows(&self) -> Answer<Vec<ListRow>> {
        self.flush()?;
        self.all(LISTS, [], stored)?.into_iter().map(checked).collect()
    }
}

fn stored(row: &SqlRow<'_>) -> rusqlite::Result<Stored> {
    Ok(Stored {
        name: row.get(0)?,
        policy: row.get(1)?,
        max_reclaims: row.get(2)?,
        created_at: row.get(3)?,
        latest_seq: row.get(4)?,
        live: row.get(5)?,
    })
}

/// The list, its words checked.
pub(super) fn checked(stored: Stored) -> Answer<ListRow> {
    let Stored { name, policy, max_reclaims, created_at, latest_seq, live } = stored;
    let rules = ListRules { policy: policy_from(&policy)?, max_reclaims };
    let (name, created_at) = (valid(ListName::new(name), "list")?, Timestamp::from_millis(created_at));
    Ok(ListRow { name, rules, created_at, live, latest_seq })
}

/// The word under which a policy is stored.
pub(super) fn policy_word(policy: Policy) -> &'static str {
    match policy {
        Policy::Strict => "strict",
        Policy::Claude => "claude",
        Policy::Kin => "kin",
    }
}

/// The policy of a word.
pub(super) fn policy_from(word: &str) -> Answer<Policy> {
    let known = [Policy::Strict, Policy::Claude, Policy::Kin];
    let found = known.into_iter().find(|policy| policy_word(*policy) == word);
    found.ok_or_else(|| Fault::Damaged(format!("a list has the unknown policy {word:?}")))
}
