//! What may be done to channels: made, followed, sent to, read, deleted. Small rules, each asked where it is needed.

use serde::{Deserialize, Serialize};

use crate::bus::channel::{ChannelKind, ChannelName};
use crate::name::Identity;
use crate::refusal::{Conflict, Invalid, Missing, Refusal};

/// Where a new subscription begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// With what comes from now on.
    #[default]
    Now,
    /// With the oldest message there is.
    Oldest,
}

impl Start {
    /// Up to which number a new subscription has read already.
    #[must_use]
    pub fn cursor(self, latest_seq: u64, evicted_before: u64) -> u64 {
        match self {
            Start::Now => latest_seq,
            Start::Oldest => evicted_before.saturating_sub(1),
        }
    }
}

/// The kind that a channel is made with: the one its name implies, or else the one asked for.
///
/// # Errors
/// [`Refusal`] for an inbox, for a kind other than the implied one, and for no kind where none is implied.
pub fn kind_to_make(name: &ChannelName, asked: Option<ChannelKind>) -> Result<ChannelKind, Refusal> {
    if name.owner().is_some() {
        return Err(Invalid::IsInbox { channel: name.clone(), verb: "made" }.into());
    }
    let implied = name.implied_kind();
    match (implied, asked) {
        (Some(implied), None) => Ok(implied),
        (Some(implied), Some(asked)) if implied == asked => Ok(implied),
        (None, Some(asked)) => Ok(asked),
        (Some(_), Some(_)) | (None, None) => Err(Invalid::Kind { channel: name.clone(), implied }.into()),
    }
}

/// Making a channel that is there already changes nothing, and must mean the same kind.
///
/// # Errors
/// [`Refusal`] when it is of the other kind.
pub fn check_kind(name: &ChannelName, there: ChannelKind, wanted: ChannelKind) -> Result<(), Refusal> {
    if there == wanted {
        return Ok(());
    }
    Err(Conflict::ChannelExists { name: name.clone(), kind: there }.into())
}

/// Inboxes are followed by their owners, always, and by nobody else.
///
/// # Errors
/// [`Refusal`] for an inbox.
pub fn check_follow(name: &ChannelName, verb: &'static str) -> Result<(), Refusal> {
    if name.owner().is_some() {
        return Err(Invalid::IsInbox { channel: name.clone(), verb }.into());
    }
    Ok(())
}

/// The refusal for a channel that is not there. An inbox that is not the caller's gets the same one.
#[must_use]
pub fn no_channel(name: &ChannelName) -> Refusal {
    match name.owner() {
        Some(owner) => Missing::Inbox { name: name.clone(), owner }.into(),
        None => Missing::Channel { name: name.clone() }.into(),
    }
}

/// Whether an identity may read the channel; for an inbox of somebody else the refusal is that of a missing one.
///
/// # Errors
/// [`Refusal`] for an inbox of somebody else.
pub fn check_read(name: &ChannelName, who: &Identity) -> Result<(), Refusal> {
    if name.is_readable_by(who) { Ok(()) } else { Err(no_channel(name)) }
}

/// Whether an identity may see a message, to find it or to name it as the one it answers: one that it can read, or sent
/// itself.
#[must_use]
pub fn is_visible(channel: &ChannelName, sender: Option<&Identity>, who: &Identity) -> bool {
    channel.is_readable_by(who) || sender == Some(who)
}

/// What a channel must be to be deleted: none that every store has, no inbox, and read by nobody who lives.
///
/// # Errors
/// [`Refusal`] otherwise; `live_readers` are the other identities with a live session that are subscribed to it.
pub fn check_delete(name: &ChannelName, is_there: bool, live_readers: Vec<Identity>) -> Result<(), Refusal> {
    if name.is_default() {
        return Err(Invalid::IsDefault { channel: name.clone() }.into());
    }
    if name.owner().is_some() {
        return Err(Invalid::IsInbox { channel: name.clone(), verb: "deleted" }.into());
    }
    if !is_there {
        return Err(no_channel(name));
    }
    if !live_readers.is_empty() {
        return Err(Conflict::Subscribed { name: name.clone(), subscribers: live_readers }.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ChannelName {
        ChannelName::new(text).unwrap()
    }

    fn who(text: &str) -> Identity {
        Identity::new(text).unwrap()
    }

    #[test]
    fn a_channel_is_made_with_the_kind_of_its_name() {
        let (ordinary, memory) = (ChannelKind::Ordinary, ChannelKind::Memory);
        for (text, asked, made) in [
            ("general/app", None, Some(ordinary)),
            ("tasks/app", Some(memory), Some(memory)),
            ("tasks/app", Some(ordinary), None),
            ("plain", Some(ordinary), Some(ordinary)),
            ("plain", Some(memory), Some(memory)),
            ("plain", None, None),
            ("dm/Zed", Some(ordinary), None),
        ] {
            assert_eq!(kind_to_make(&name(text), asked).ok(), made, "{text} {asked:?}");
        }
        let refused = kind_to_make(&name("tasks/app"), Some(ordinary)).unwrap_err();
        assert!(refused.to_string().contains("kind memory"), "{refused}");
        assert!(check_kind(&name("plain"), memory, memory).is_ok());
        assert_eq!(check_kind(&name("plain"), memory, ordinary).unwrap_err().code(), "conflict");
    }

    #[test]
    fn only_a_channel_that_nobody_needs_is_deleted() {
        let check = |text, there, readers: &[&str]| {
            let readers = readers.iter().map(|reader| who(reader)).collect();
            check_delete(&name(text), there, readers).map_err(|refusal| refusal.code())
        };
        assert_eq!(check("general/app", true, &[]), Ok(()));
        assert_eq!(check("tasks/app", true, &[]), Ok(()));
        assert_eq!(check("general", true, &[]), Err("validation"));
        assert_eq!(check("dm/Zed", true, &[]), Err("validation"));
        assert_eq!(check("general/app", false, &[]), Err("not_found"));
        assert_eq!(check("general/app", true, &["Amp"]), Err("conflict"));
    }

    #[test]
    fn a_subscription_begins_at_the_end_or_at_what_survived() {
        assert_eq!([Start::Now.cursor(9, 4), Start::Oldest.cursor(9, 4), Start::Oldest.cursor(9, 0)], [9, 3, 0]);
    }

    #[test]
    fn a_foreign_inbox_looks_like_one_that_is_not_there() {
        let foreign = check_read(&name("dm/Amp"), &who("Zed")).unwrap_err();
        assert_eq!(foreign, no_channel(&name("dm/Amp")));
        assert!(check_read(&name("dm/Zed"), &who("Zed")).is_ok() && check_read(&name("x"), &who("Zed")).is_ok());
    }

    #[test]
    fn an_answer_is_to_what_one_can_know_of() {
        let zed = who("Zed");
        assert!(is_visible(&name("general"), Some(&who("Amp")), &zed));
        assert!(is_visible(&name("dm/Zed"), Some(&who("Amp")), &zed));
        assert!(is_visible(&name("dm/Amp"), Some(&who("Zed")), &zed));
        assert!(!is_visible(&name("dm/Amp"), Some(&who("Jan")), &zed));
    }
}
