//! Sending a message, or keeping a memory, which is a message on a channel of memories.

use serde_json::{Value, json};
use taskbus_core::bus::channel::{ChannelKind, ChannelName};
use taskbus_core::bus::memory::no_task_list;
use taskbus_core::bus::message::{Draft, MemoryRef, Message};
use taskbus_core::bus::rules::{is_visible, no_channel};
use taskbus_core::name::{Identity, Key};
use taskbus_core::refusal::{Missing, Refusal};
use taskbus_core::time::Timestamp;

use super::memory::row;
use super::{bus, bus_mut, channel, make};
use crate::answer::bus::Sent;
use crate::engine::keyed::{About, Asked, Done, Inside};
use crate::engine::rate::Cost;
use crate::engine::read::Found;
use crate::engine::{Engine, Error};
use crate::store::bus::Place;
use crate::store::{Abort, Snapshot, Tx};

/// A message on its way.
struct Letter<'a> {
    sender: &'a Identity,
    channel: &'a ChannelName,
    draft: &'a Draft,
}

impl Engine {
    /// Sends a message.
    ///
    /// # Errors
    /// [`Error`]: `validation` for a task list and for one that is too large, `not_found` for a channel or a message to
    /// answer that is not there, and what every keyed write is refused for.
    pub fn send(
        &self,
        caller: &Identity,
        channel: &ChannelName,
        draft: &Draft,
        key: Option<&Key>,
    ) -> Result<Sent, Error> {
        let letter = Letter { sender: caller, channel, draft };
        let payload = || payload(channel, draft);
        let asked = Asked::new(caller, key, payload).inspected("send", payload).growing();
        let mut check = |snapshot: &dyn Snapshot| Ok(self.may_send(snapshot, &letter)?.map(|_| ()));
        let about = || Ok(About::Nothing);
        let sent = self.keyed(&asked, Some(&mut check), about, |tx, inside| self.post(tx, &letter, inside))?;
        if sent.memory_id.is_some() {
            self.memory_was_written();
        }
        Ok(sent)
    }

    /// The kind of channel it goes to, and how much it counts; or why it may not be sent.
    fn may_send(&self, snapshot: &dyn Snapshot, letter: &Letter<'_>) -> Found<(ChannelKind, usize)> {
        if let Err(refusal) = no_task_list(letter.channel, "sending") {
            return Ok(Err(refusal));
        }
        let Some(row) = channel(snapshot, letter.channel)? else { return Ok(Err(no_channel(letter.channel))) };
        if let Err(refusal) = self.may_reply(snapshot, letter)? {
            return Ok(Err(refusal));
        }
        let context = snapshot.session(letter.sender)?.map_or_else(String::new, |session| session.context);
        let sized = self.sized(&letter.message(context, row.kind, Timestamp::from_millis(0)));
        Ok(sized.map(|bytes| (row.kind, bytes)))
    }

    fn may_reply(&self, snapshot: &dyn Snapshot, letter: &Letter<'_>) -> Found<()> {
        let Some(seq) = letter.draft.reply_to else { return Ok(Ok(())) };
        let answered = bus(snapshot)?
            .message(seq)?
            .filter(|message| is_visible(&message.channel, message.sender.as_ref(), letter.sender));
        let missing = || Refusal::from(Missing::Message { field: "reply_to", seq });
        Ok(answered.map(|_| ()).ok_or_else(missing))
    }

    fn post(&self, tx: &mut dyn Tx, letter: &Letter<'_>, inside: &Inside<'_>) -> Result<Done<Sent>, Abort> {
        let (kind, bytes) = self.may_send(tx, letter)??;
        let author = inside.author();
        let bus = bus_mut(tx)?;
        make(bus, letter.channel, kind, inside.now)?;
        let is_memory = kind == ChannelKind::Memory;
        let message = letter.message(author.context.clone(), kind, inside.now);
        let place = if is_memory { Place::NewMemory } else { Place::Ordinary };
        let seq = bus.post(&row(&message, &author, place))?;
        if is_memory {
            bus.touch_memories(&[seq], Some(inside.now))?;
        }
        let answer = Sent { seq, memory_id: is_memory.then_some(seq) };
        Ok(Done { answer, cost: Cost { ops: 1, bytes }, keep: true })
    }
}

impl Letter<'_> {
    /// As it will be read, but for its number.
    fn message(&self, context: String, kind: ChannelKind, at: Timestamp) -> Message {
        let draft = self.draft.clone();
        Message {
            seq: 0,
            channel: self.channel.clone(),
            sender: Some(self.sender.clone()),
            context,
            created_at: at,
            sort: draft.sort,
            subject: draft.subject,
            content: draft.content.into(),
            reply_to: draft.reply_to,
            metadata: draft.metadata,
            memory: (kind == ChannelKind::Memory).then_some(MemoryRef { id: 0, revision: 1 }),
            tags: draft.tags,
            matched_tags: Vec::new(),
        }
    }
}

/// What is sent, in the names of the tool; what is not said is not there.
fn payload(channel: &ChannelName, draft: &Draft) -> Value {
    let mut payload = json!({"channel": channel, "content": draft.content});
    if !draft.sort.is_empty() {
        payload["type"] = json!(draft.sort);
    }
    for (name, value) in [
        ("subject", json!(draft.subject)),
        ("reply_to", json!(draft.reply_to)),
        ("metadata", json!(draft.metadata)),
        ("tags", json!(Some(&draft.tags).filter(|tags| !tags.is_empty()))),
    ] {
        if !value.is_null() {
            payload[name] = value;
        }
    }
    payload
}
