//! Removing a channel, a task list, everything. Numbers and ids are not given again: they come from a counter that
//! stays.

use taskbus_core::bus::channel::ChannelName;
use taskbus_core::name::ListName;

use super::super::error::Answer;
use super::super::scope::Scope;

const OF_CHANNEL: &str = "SELECT seq, memory_id FROM posts INDEXED BY posts_by_channel WHERE channel = ?1";
const FORGET_READS: &str = "DELETE FROM memory_reads WHERE memory_id = ?1";
const DROP_CHANNEL: &str = "DELETE FROM channels WHERE id = ?1";
const UNSUBSCRIBE_ALL: &str = "DELETE FROM subscriptions WHERE source = ?1";

const LIST_ID: &str = "SELECT id FROM lists WHERE name = ?1";
const TASKS: &str = "
    SELECT id FROM tasks WHERE list = ?1
    UNION ALL SELECT id FROM tombstones INDEXED BY tombstones_by_list WHERE list = ?1";
const DROP_EDGES: &str = "DELETE FROM edges WHERE task = ?1";
const DROP_LABELS: &str = "DELETE FROM task_labels WHERE list = ?1";
const DROP_TASKS: &str = "DELETE FROM tasks WHERE list = ?1";
const DROP_TOMBSTONES: &str = "DELETE FROM tombstones WHERE list = ?1";
const DROP_REVISIONS: &str = "DELETE FROM messages WHERE list = ?1";
const DISCOUNT: &str = "
    UPDATE counters SET
        ready = ready - (SELECT ready FROM counters WHERE id = ?1),
        blocked = blocked - (SELECT blocked FROM counters WHERE id = ?1),
        parked = parked - (SELECT parked FROM counters WHERE id = ?1),
        deferred = deferred - (SELECT deferred FROM counters WHERE id = ?1),
        in_progress = in_progress - (SELECT in_progress FROM counters WHERE id = ?1),
        completed = completed - (SELECT completed FROM counters WHERE id = ?1),
        ords = (ords - (SELECT ords FROM counters WHERE id = ?1)) & 4611686018427387903
    WHERE id = 0";
const DROP_COUNTERS: &str = "DELETE FROM counters WHERE id = ?1";
const DROP_LIST: &str = "DELETE FROM lists WHERE id = ?1";

/// Removes all that is in a store. The sequence stays.
const EVERYTHING: [&str; 23] = [
    "DELETE FROM tasks",
    "DELETE FROM edges",
    "DELETE FROM task_labels",
    "DELETE FROM tombstones",
    // Whoever follows the links begins here from now on.
    "INSERT INTO removed (seq, link) SELECT seq, link FROM messages ORDER BY seq DESC LIMIT 1",
    "DELETE FROM removed WHERE seq < (SELECT max(seq) FROM removed)",
    "DELETE FROM messages",
    "DELETE FROM lists",
    "DELETE FROM counters WHERE id <> 0",
    "DELETE FROM sessions",
    "DELETE FROM names",
    "DELETE FROM receipts",
    "DELETE FROM channels",
    "DELETE FROM posts",
    "DELETE FROM message_tags",
    "DELETE FROM subscriptions",
    "DELETE FROM tag_sets",
    "DELETE FROM memory_reads",
    "DELETE FROM embeddings",
    "DELETE FROM notices",
    "INSERT INTO texts (texts) VALUES ('delete-all')",
    "UPDATE counters SET ready = 0, blocked = 0, parked = 0, deferred = 0, in_progress = 0, completed = 0, ords = 0",
    "UPDATE upkeep SET who = NULL, until = NULL, indexed = (SELECT seq FROM counters WHERE id = 0)",
];

impl Scope<'_> {
    pub(super) fn remove_channel(&self, name: &ChannelName) -> Answer<()> {
        match name.list() {
            Some(list) => self.remove_list(&list)?,
            None => self.remove_plain(name)?,
        }
        self.run(UNSUBSCRIBE_ALL, [name.as_str()])?;
        Ok(())
    }

    fn remove_plain(&self, name: &ChannelName) -> Answer<()> {
        let Some(id) = self.channel_id(name)? else { return Ok(()) };
        for (seq, memory) in self.all(OF_CHANNEL, [id], |row| Ok((row.get(0)?, row.get::<_, Option<u64>>(1)?)))? {
            self.remove_posts(&[seq])?;
            if let Some(memory) = memory {
                self.run(FORGET_READS, [memory])?;
            }
        }
        self.run(DROP_CHANNEL, [id])?;
        Ok(())
    }

    fn remove_list(&self, name: &ListName) -> Answer<()> {
        self.flush()?;
        let Some(list) = self.one(LIST_ID, [name.as_str()], |row| row.get::<_, i64>(0))? else { return Ok(()) };
        for id in self.all(TASKS, [list], |row| row.get::<_, u64>(0))? {
            self.run(DROP_EDGES, [id])?;
            self.unindex(id)?;
        }
        self.keep_links(list)?;
        for sql in [DROP_LABELS, DROP_TASKS, DROP_TOMBSTONES, DROP_REVISIONS, DISCOUNT, DROP_COUNTERS, DROP_LIST] {
            self.run(sql, [list])?;
        }
        self.drop_needless_links()?;
        self.forget_list(list);
        Ok(())
    }

    pub(super) fn remove_everything(&self) -> Answer<()> {
        self.flush()?;
        for sql in EVERYTHING {
            self.connection.execute_batch(sql)?;
        }
        self.forget_scope();
        self.forget_names();
        Ok(())
    }
}
