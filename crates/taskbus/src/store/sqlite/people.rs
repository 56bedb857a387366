//! Names, sessions and receipts: who acts, whether they live, and what they were answered.

use rusqlite::{Row as SqlRow, params};
use taskbus_core::name::{Identity, Key};
use taskbus_core::time::Timestamp;

use super::error::{Answer, Fault};
use super::scope::{Scope, valid};
use super::tree::as_limit;
use crate::store::{Harness, ReceiptRow, SessionRow};

const REGISTERED: &str = "SELECT registered FROM names WHERE name = ?1";
const ALIVE: &str = "
    SELECT 1 FROM names n CROSS JOIN sessions s ON s.name = n.id WHERE n.name = ?1 AND s.alive_until > ?2";
const ADD_NAME: &str = "INSERT INTO names (name, registered) VALUES (?1, ?2)";
const REGISTER: &str = "UPDATE names SET registered = 1 WHERE id = ?1 AND registered = 0";
const PUT_SESSION: &str = "
    INSERT INTO sessions (name, token, alive_until, registered_at, context, client, pid, harness_pid, harness_start)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
    ON CONFLICT (name) DO UPDATE SET token = excluded.token, alive_until = excluded.alive_until,
        registered_at = excluded.registered_at, context = excluded.context, client = excluded.client,
        pid = excluded.pid, harness_pid = excluded.harness_pid, harness_start = excluded.harness_start";
const SESSION: &str = "
    SELECT n.name, s.token, s.alive_until, s.registered_at, s.context, s.client, s.pid,
           s.harness_pid, s.harness_start, n.id
    FROM names n CROSS JOIN sessions s ON s.name = n.id WHERE n.name = ?1";
const SESSIONS: &str = "
    SELECT n.name, s.token, s.alive_until, s.registered_at, s.context, s.client, s.pid,
           s.harness_pid, s.harness_start
    FROM sessions s INDEXED BY sessions_by_end CROSS JOIN names n ON n.id = s.name
    WHERE s.alive_until > ?1 ORDER BY n.name";
const OF_TOKEN: &str = "SELECT count(*) FROM sessions INDEXED BY sessions_by_token WHERE token = ?1";
const EXTEND: &str = "UPDATE sessions SET alive_until = ?2 WHERE token = ?1 AND alive_until < ?2";
const END: &str = "DELETE FROM sessions WHERE token = ?1";

const RECEIPT: &str = "
    SELECT fingerprint, answer, expires_at FROM receipts WHERE sender = ?1 AND key = ?2 AND expires_at > ?3";
const PUT_RECEIPT: &str = "
    INSERT INTO receipts (sender, key, fingerprint, answer, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (sender, key) DO UPDATE SET fingerprint = excluded.fingerprint, answer = excluded.answer,
        expires_at = excluded.expires_at";
const EXPIRED: &str = "
    SELECT id FROM receipts INDEXED BY receipts_by_end WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2";
const DROP_RECEIPT: &str = "DELETE FROM receipts WHERE id = ?1";

impl Scope<'_> {
    pub(super) fn is_registered(&self, who: &Identity) -> Answer<bool> {
        Ok(self.one(REGISTERED, [who.as_str()], |row| row.get(0))?.unwrap_or(false))
    }

    pub(super) fn has_live_session(&self, who: &Identity, now: Timestamp) -> Answer<bool> {
        if let Some((_, until)) = self.alive.borrow().as_ref().filter(|(known, _)| known == who) {
            return Ok(*until > now);
        }
        let mut statement = self.connection.prepare_cached(ALIVE)?;
        Ok(statement.exists((who.as_str(), now.as_millis()))?)
    }

    /// The number of an identity; a new one if it was never seen.
    pub(super) fn name_id_or_new(&self, name: &Identity) -> Answer<i64> {
        if let Some(id) = self.name_id(name)? {
            return Ok(id);
        }
        self.run(ADD_NAME, (name.as_str(), false))?;
        self.name_id(name).map(|id| id.unwrap_or(0))
    }

    pub(super) fn keep_session(&self, session: &SessionRow) -> Answer<()> {
        self.alive.take();
        let name = self.name_id_or_new(&session.name)?;
        self.run(REGISTER, [name])?;
        let (alive, since) = (session.alive_until.as_millis(), session.registered_at.as_millis());
        let SessionRow { token, context, client, pid, .. } = session;
        // Start times may need all 64 bits, of which SQLite has a sign.
        let harness = session.harness.map(|harness| (harness.pid, harness.start.cast_signed())).unzip();
        self.run_fleeting(PUT_SESSION, params![name, token, alive, since, context, client, pid, harness.0, harness.1])
    }

    pub(super) fn session_of(&self, name: &Identity) -> Answer<Option<SessionRow>> {
        let found = self.one(SESSION, [name.as_str()], |row| Ok((session(row)?, row.get(9)?)))?;
        let Some((stored, id)) = found else { return Ok(None) };
        let session = checked(stored)?;
        self.know_name(&session.name, id);
        self.alive.replace(Some((session.name.clone(), session.alive_until)));
        Ok(Some(session))
    }

    pub(super) fn live_sessions(&self, now: Timestamp) -> Answer<Vec<SessionRow>> {
        let rows = self.all(SESSIONS, [now.as_millis()], session)?;
        rows.into_iter().map(checked).collect()
    }

    pub(super) fn extend(&self, token: &str, alive_until: Timestamp) -> Answer<usize> {
        self.alive.take();
        let count: i64 = self.one(OF_TOKEN, [token], |row| row.get(0))?.unwrap_or(0);
        self.run_quiet(EXTEND, (token, alive_until.as_millis()))?;
        usize::try_from(count).map_err(|_| Fault::Damaged("a negative count".to_owned()))
    }

    pub(super) fn end(&self, token: &str) -> Answer<()> {
        self.alive.take();
        self.run_fleeting(END, [token])
    }

    pub(super) fn receipt_of(&self, sender: &Identity, key: &Key, now: Timestamp) -> Answer<Option<ReceiptRow>> {
        let found = self.one(RECEIPT, (sender.as_str(), key.as_str(), now.as_millis()), |row| {
            let expires_at = Timestamp::from_millis(row.get(2)?);
            Ok(ReceiptRow { fingerprint: row.get(0)?, answer: row.get(1)?, expires_at })
        })?;
        if found.is_some() {
            self.note_replayed();
        }
        Ok(found)
    }

    pub(super) fn keep_receipt(&self, sender: &Identity, key: &Key, receipt: &ReceiptRow) -> Answer<()> {
        let ReceiptRow { fingerprint, answer, expires_at } = receipt;
        let values = params![sender.as_str(), key.as_str(), fingerprint, answer, expires_at.as_millis()];
        self.run(PUT_RECEIPT, values)?;
        Ok(())
    }

    pub(super) fn any_expired_receipt(&self, now: Timestamp) -> Answer<bool> {
        Ok(!self.expired(now, 1)?.is_empty())
    }

    pub(super) fn drop_expired(&self, now: Timestamp, limit: usize) -> Answer<usize> {
        let expired = self.expired(now, limit)?;
        for id in &expired {
            self.run(DROP_RECEIPT, [id])?;
        }
        Ok(expired.len())
    }

    fn expired(&self, now: Timestamp, limit: usize) -> Answer<Vec<i64>> {
        self.all(EXPIRED, (now.as_millis(), as_limit(limit)), |row| row.get(0))
    }
}

/// A session as it is stored, its name not checked yet.
struct Stored {
    name: String,
    token: String,
    alive_until: i64,
    registered_at: i64,
    context: String,
    client: String,
    pid: u32,
    harness: Option<Harness>,
}

fn session(row: &SqlRow<'_>) -> rusqlite::Result<Stored> {
    Ok(Stored {
        name: row.get(0)?,
        token: row.get(1)?,
        alive_until: row.get(2)?,
        registered_at: row.get(3)?,
        context: row.get(4)?,
        client: row.get(5)?,
        pid: row.get(6)?,
        harness: harness(row)?,
    })
}

fn harness(row: &SqlRow<'_>) -> rusqlite::Result<Option<Harness>> {
    let (pid, start): (Option<u32>, Option<i64>) = (row.get(7)?, row.get(8)?);
    Ok(pid.zip(start).map(|(pid, start)| Harness { pid, start: start.cast_unsigned() }))
}

fn checked(stored: Stored) -> Answer<SessionRow> {
    let Stored { name, token, alive_until, registered_at, context, client, pid, harness } = stored;
    Ok(SessionRow {
        name: valid(Identity::new(name), "identity")?,
        token,
        alive_until: Timestamp::from_millis(alive_until),
        registered_at: Timestamp::from_millis(registered_at),
        context,
        client,
        pid,
        harness,
    })
}
