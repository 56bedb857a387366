//! Memories: how one is revised and deleted, and how large a message may be. What is written is a whole message; only
//! its number is the store's to say.

use crate::bus::channel::ChannelName;
use crate::bus::json_bytes;
use crate::bus::message::{MemoryRef, Message, Revision, Sort};
use crate::name::Identity;
use crate::refusal::{Invalid, Missing, Refusal};
use crate::time::Timestamp;

/// The `type` of the message that says that a memory was deleted.
pub const DELETED: &str = "deleted";

/// Who writes a message, and when.
#[derive(Clone, Copy, Debug)]
pub struct Stamp<'a> {
    /// Who; none for the maintenance tick.
    pub sender: Option<&'a Identity>,
    /// The sender's context.
    pub context: &'a str,
    /// When.
    pub at: Timestamp,
}

/// The memory with this id, if it may be changed as one: a task is changed by the tools for tasks.
///
/// # Errors
/// [`Refusal`] when there is none, or it is a task. `verb` says what was tried, as in "editing".
pub fn changeable(id: u64, live: Option<Message>, verb: &'static str) -> Result<(Message, MemoryRef), Refusal> {
    let live = live.and_then(|message| message.memory.map(|memory| (message, memory)));
    let (message, memory) = live.ok_or(Refusal::NotFound(Missing::Memory { id }))?;
    no_task_list(&message.channel, verb)?;
    Ok((message, memory))
}

/// Refuses to do with a task list what only channels of messages and memories know.
///
/// # Errors
/// [`Refusal`] when it is one.
pub fn no_task_list(channel: &ChannelName, verb: &'static str) -> Result<(), Refusal> {
    if channel.list().is_some() {
        return Err(Invalid::IsTaskList { channel: channel.clone(), verb }.into());
    }
    Ok(())
}

/// The next revision of a memory. What is omitted of its summary and tags stays, an empty one clears them; its type
/// and its free data are what is said now, and it answers no message any more.
#[must_use]
pub fn revised(live: &Message, memory: MemoryRef, change: &Revision, stamp: Stamp<'_>) -> Message {
    Message {
        sort: change.sort.clone(),
        subject: change.subject.clone().unwrap_or_else(|| live.subject.clone()),
        content: change.content.as_str().to_owned(),
        metadata: change.metadata.clone(),
        tags: change.tags.clone().unwrap_or_else(|| live.tags.clone()),
        ..behind(live, memory, stamp)
    }
}

/// What subscribers are told when a memory is deleted.
#[must_use]
pub fn deletion(live: &Message, memory: MemoryRef, stamp: Stamp<'_>) -> Message {
    Message { sort: Sort::new(DELETED).expect("BUG: a word is a sort"), ..behind(live, memory, stamp) }
}

/// An empty message of the same memory, one revision further.
fn behind(live: &Message, memory: MemoryRef, stamp: Stamp<'_>) -> Message {
    Message {
        seq: 0,
        channel: live.channel.clone(),
        sender: stamp.sender.cloned(),
        context: stamp.context.to_owned(),
        created_at: stamp.at,
        sort: Sort::default(),
        subject: None,
        content: String::new(),
        reply_to: None,
        metadata: None,
        memory: Some(MemoryRef { revision: memory.revision.saturating_add(1), ..memory }),
        tags: Vec::new(),
        matched_tags: Vec::new(),
    }
}

/// How large a message counts, in bytes: as JSON, with room for the longest numbers that the store may give it.
#[must_use]
pub fn size(message: &Message) -> usize {
    let longest = MemoryRef { id: u64::MAX, revision: u64::MAX };
    let memory = message.memory.map(|_| longest);
    let created_at = message.created_at.max(Timestamp::from_millis(1_000_000_000_000));
    json_bytes(&Message { seq: u64::MAX, created_at, memory, ..message.clone() })
}

/// Refuses a message that is larger than the limit; says how large it is.
///
/// # Errors
/// [`Refusal`].
pub fn check_size(message: &Message, max_kib: usize) -> Result<usize, Refusal> {
    let (actual, max) = (size(message), max_kib.saturating_mul(1024));
    if actual > max { Err(Invalid::TooLarge { what: "message", actual, max }.into()) } else { Ok(actual) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::message::{Content, Headline};
    use crate::bus::tag;
    use crate::limits;

    const MEMORY: MemoryRef = MemoryRef { id: 7, revision: 2 };

    fn live(channel: &str) -> Message {
        Message {
            seq: 9,
            channel: ChannelName::new(channel).unwrap(),
            sender: Some(Identity::new("Zed").unwrap()),
            context: "app".to_owned(),
            created_at: Timestamp::from_millis(1_796_000_000_000),
            sort: Sort::new("fact").unwrap(),
            subject: Headline::new("Keys").unwrap(),
            content: "They turn.".to_owned(),
            reply_to: Some(3),
            metadata: Some([("a".to_owned(), "b".to_owned())].into()),
            memory: Some(MEMORY),
            tags: tag::normalize(&["rust"]).unwrap(),
            matched_tags: Vec::new(),
        }
    }

    fn change() -> Revision {
        Revision {
            content: Content::new("They stick.").unwrap(),
            sort: Sort::default(),
            subject: None,
            metadata: None,
            tags: None,
        }
    }

    fn stamp(who: &Identity) -> Stamp<'_> {
        Stamp { sender: Some(who), context: "lib", at: Timestamp::from_millis(1_796_000_000_500) }
    }

    #[test]
    fn what_is_omitted_stays_and_what_is_empty_clears_but_type_and_data_are_replaced() {
        let (old, amp) = (live("memory"), Identity::new("Amp").unwrap());
        let kept = revised(&old, MEMORY, &change(), stamp(&amp));
        assert_eq!((&kept.subject, &kept.tags), (&old.subject, &old.tags));
        assert_eq!((&kept.sort, &kept.metadata, kept.reply_to), (&Sort::default(), &None, None));
        assert_eq!((kept.sender, kept.context.as_str()), (Some(amp.clone()), "lib"));
        assert_eq!(kept.memory, Some(MemoryRef { id: 7, revision: 3 }));
        let clear = Revision { subject: Some(None), tags: Some(Vec::new()), ..change() };
        let cleared = revised(&old, MEMORY, &clear, stamp(&amp));
        assert_eq!((cleared.subject, cleared.tags.len()), (None, 0));
    }

    #[test]
    fn a_deletion_is_told_without_content() {
        let zed = Identity::new("Zed").unwrap();
        let note = deletion(&live("memory"), MEMORY, stamp(&zed));
        assert_eq!((note.sort.as_str(), note.content.as_str(), note.subject), (DELETED, "", None));
        assert_eq!(note.memory, Some(MemoryRef { id: 7, revision: 3 }));
        let tick = Stamp { sender: None, ..stamp(&zed) };
        assert_eq!(deletion(&live("memory"), MEMORY, tick).sender, None);
    }

    #[test]
    fn a_task_is_no_memory_to_change_and_neither_is_what_is_gone() {
        assert!(changeable(7, Some(live("memory/app")), "editing").is_ok());
        let refused = changeable(7, Some(live("tasks/app")), "editing").unwrap_err();
        assert!(refused.to_string().contains("editing goes through task_create and task_update"), "{refused}");
        let gone = || Err(Refusal::NotFound(Missing::Memory { id: 7 }));
        assert_eq!(changeable(7, None, "editing"), gone());
        assert_eq!(changeable(7, Some(Message { memory: None, ..live("general") }), "editing"), gone());
    }

    #[test]
    fn a_message_is_measured_with_room_for_its_numbers() {
        let small = live("memory");
        let large =
            Message { seq: u64::MAX, memory: Some(MemoryRef { id: u64::MAX, revision: u64::MAX }), ..small.clone() };
        assert_eq!((size(&small), size(&small)), (json_bytes(&large), size(&large)));
        let early = Message { created_at: Timestamp::from_millis(0), ..small.clone() };
        assert_eq!(size(&early), size(&small));
        let max = limits::MESSAGE_KIB_MAX * 1024;
        let fits = "x".repeat(max - size(&Message { content: String::new(), ..small.clone() }));
        let full = Message { content: fits.clone(), ..small.clone() };
        assert_eq!(check_size(&full, limits::MESSAGE_KIB_MAX), Ok(max));
        let over = Message { content: fits + "x", ..small };
        let refused = check_size(&over, limits::MESSAGE_KIB_MAX).unwrap_err();
        assert_eq!(refused, Invalid::TooLarge { what: "message", actual: max + 1, max }.into());
    }
}
