//! Memories: one is read, revised, deleted. They are made by `send` on a memory channel, and found by `search`.

use serde_json::{Value, json};
use taskbus_core::bus::memory::{self, Stamp};
use taskbus_core::bus::message::{MemoryRef, Message, Revision};
use taskbus_core::name::{Identity, Key};
use taskbus_core::refusal::{Missing, Refusal};

use super::{bus, bus_mut};
use crate::answer::memory::{Deleted, Edited};
use crate::engine::keyed::{About, Asked, Done, Inside};
use crate::engine::rate::Cost;
use crate::engine::read::Found;
use crate::engine::{Engine, Error};
use crate::store::bus::{BusTx, NewMessage, Place};
use crate::store::{Abort, Author, Snapshot, StoreError, Tx, read_with};

impl Engine {
    /// The live revision of a memory; of a task too, whose content is its document. Counts as reading it.
    ///
    /// # Errors
    /// [`Error`]: `not_found`. So for every call here.
    pub fn memory(&self, caller: &Identity, id: u64) -> Result<Message, Error> {
        let message = read_with(self.store(), None, |snapshot| {
            if let Err(refusal) = self.session(snapshot, caller)? {
                return Ok(Err(refusal));
            }
            Ok(bus(snapshot)?.memory(id)?.ok_or(Refusal::NotFound(Missing::Memory { id })))
        })??;
        if message.channel.list().is_none() {
            self.note_reads(&[id]);
        }
        Ok(message)
    }

    /// Gives a memory its next revision.
    ///
    /// # Errors
    /// [`Error`]: `not_found`, and `validation` for a task and for what is too large.
    pub fn edit_memory(
        &self,
        caller: &Identity,
        id: u64,
        change: &Revision,
        key: Option<&Key>,
    ) -> Result<Edited, Error> {
        let payload = || edit_payload(id, change);
        let asked = Asked::new(caller, key, payload).inspected("edit_memory", payload).growing();
        let mut check = |snapshot: &dyn Snapshot| {
            let session = match self.session(snapshot, caller)? {
                Ok(session) => session,
                Err(refusal) => return Ok(Err(refusal)),
            };
            let stamp = Stamp { sender: Some(caller), context: &session.context, at: self.store.now()? };
            let found = changeable(snapshot, id, "editing")?;
            Ok(found.and_then(|(live, of)| self.sized(&memory::revised(&live, of, change, stamp)).map(|_| ())))
        };
        let about = || Ok(About::Nothing);
        let edited = self.keyed(&asked, Some(&mut check), about, |tx, inside| self.edit(tx, inside, id, change))?;
        self.memory_was_written();
        Ok(edited)
    }

    /// Deletes a memory, and tells subscribers of its channel.
    ///
    /// # Errors
    /// [`Error`]: `not_found`, and `validation` for a task.
    pub fn delete_memory(&self, caller: &Identity, id: u64, key: Option<&Key>) -> Result<Deleted, Error> {
        let payload = || json!({"id": id});
        let asked = Asked::new(caller, key, payload).inspected("delete_memory", payload);
        let mut check = |snapshot: &dyn Snapshot| Ok(changeable(snapshot, id, "deleting")?.map(|_| ()));
        self.keyed(
            &asked,
            Some(&mut check),
            || Ok(About::Nothing),
            |tx, inside| {
                let (live, of) = changeable(tx, id, "deleting")??;
                let author = inside.author();
                bury_memory(bus_mut(tx)?, &live, of, stamp(inside, &author), &author)?;
                Ok(Done { answer: Deleted { deleted: id }, cost: Cost { ops: 1, bytes: 0 }, keep: true })
            },
        )
    }

    fn edit(&self, tx: &mut dyn Tx, inside: &Inside<'_>, id: u64, change: &Revision) -> Result<Done<Edited>, Abort> {
        let (live, of) = changeable(tx, id, "editing")??;
        let author = inside.author();
        let message = memory::revised(&live, of, change, stamp(inside, &author));
        let bytes = self.sized(&message)?;
        let next = message.memory.unwrap_or(of);
        let bus = bus_mut(tx)?;
        bus.bury(live.seq, inside.now)?;
        let seq = bus.post(&row(&message, &author, Place::Revision(next)))?;
        bus.touch_memories(&[id], Some(inside.now))?;
        let answer = Edited { seq, memory_id: id, revision: next.revision, replaced: live.seq };
        Ok(Done { answer, cost: Cost { ops: 1, bytes }, keep: true })
    }

    /// Has a memory that was just written embedded.
    pub(super) fn memory_was_written(&self) {
        if let Some(embedder) = &self.embedder {
            embedder.wake();
        }
    }

    /// How large a message is; refused when it is too large.
    pub(super) fn sized(&self, message: &Message) -> Result<usize, Refusal> {
        memory::check_size(message, self.limits.max_message_kib)
    }

    /// Notes that memories were read, so that they do not expire. That somebody could not note it is no reason to
    /// fail them.
    pub(super) fn note_reads(&self, ids: &[u64]) {
        let noted = self.store.now().map_err(Error::from).and_then(|now| self.reads.note(self.store(), ids, now));
        if let Err(error) = noted {
            tracing::warn!(%error, "the reading of memories was not noted");
        }
    }
}

/// A deletion: the memory is live no longer, and a message says so.
pub(super) fn bury_memory(
    bus: &mut dyn BusTx,
    live: &Message,
    of: MemoryRef,
    stamp: Stamp<'_>,
    author: &Author,
) -> Result<(), StoreError> {
    let note = memory::deletion(live, of, stamp);
    bus.bury(live.seq, stamp.at)?;
    bus.post(&row(&note, author, Place::Deletion(note.memory.unwrap_or(of))))?;
    bus.touch_memories(&[of.id], None)
}

/// A message as the store is told of it.
pub(super) fn row<'a>(message: &'a Message, author: &'a Author, place: Place) -> NewMessage<'a> {
    NewMessage {
        channel: &message.channel,
        sender: message.sender.as_ref(),
        author,
        at: message.created_at,
        sort: &message.sort,
        subject: message.subject.as_ref(),
        content: &message.content,
        reply_to: message.reply_to,
        metadata: message.metadata.as_ref(),
        tags: &message.tags,
        place,
    }
}

fn changeable(snapshot: &dyn Snapshot, id: u64, verb: &'static str) -> Found<(Message, MemoryRef)> {
    Ok(memory::changeable(id, bus(snapshot)?.memory(id)?, verb))
}

fn stamp<'a>(inside: &'a Inside<'_>, author: &'a Author) -> Stamp<'a> {
    Stamp { sender: Some(&inside.session.name), context: &author.context, at: inside.now }
}

/// What is omitted is not there; what is cleared is there and empty.
fn edit_payload(id: u64, change: &Revision) -> Value {
    let mut payload = json!({"id": id, "content": change.content, "type": change.sort});
    if let Some(subject) = &change.subject {
        payload["subject"] = json!(subject.as_ref().map_or("", |subject| subject.as_str()));
    }
    if let Some(metadata) = &change.metadata {
        payload["metadata"] = json!(metadata);
    }
    if let Some(tags) = &change.tags {
        payload["tags"] = json!(tags);
    }
    payload
}
