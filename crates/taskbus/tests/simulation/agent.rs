//! An agent: a process with an engine of its own and a name, which takes tasks, works, falls asleep, and repeats under the
//! same key whatever it was not answered.

use std::sync::Arc;

use taskbus::answer::Answer;
use taskbus::core::bus::channel::ChannelName;
use taskbus::core::bus::message::{self, Content};
use taskbus::core::command::{Command, Draft, Finish, LeaseAsk, Next, Patch};
use taskbus::core::id::TaskId;
use taskbus::core::name::{Identity, Key};
use taskbus::core::text::{Note, Subject};
use taskbus::engine::{Engine, Error, Request};

use crate::world::{Dice, list};

/// Somebody's claim, as the agent knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hand {
    pub(crate) id: TaskId,
    pub(crate) fence: u64,
}

/// What an agent asks for.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    Create { subject: String, blockers: Vec<TaskId> },
    Take { seconds: Option<u64>, finish: Option<Hand> },
    Complete(Hand),
    Renew(Hand, u64),
    Release(Hand),
    Tell(String),
}

impl Deed {
    /// The claim that it goes by.
    pub(crate) fn hand(&self) -> Option<&Hand> {
        match self {
            Deed::Complete(hand) | Deed::Renew(hand, _) | Deed::Release(hand) => Some(hand),
            Deed::Take { finish, .. } => finish.as_ref(),
            Deed::Create { .. } | Deed::Tell(_) => None,
        }
    }
}

/// A call that was not answered yet.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    pub(crate) deed: Deed,
    pub(crate) key: Key,
    /// Whether it was committed, and wrote something, although nobody heard of it.
    pub(crate) wrote: bool,
}

pub(crate) struct Agent {
    pub(crate) engine: Engine,
    pub(crate) name: Identity,
    pub(crate) hand: Option<Hand>,
    pub(crate) open: Option<Open>,
    pub(crate) asleep: usize,
    pub(crate) wish: &'static str,
}

/// What came of a call.
#[derive(Clone, Debug)]
pub(crate) enum Came {
    Answered(Box<Answer>),
    Sent(u64),
    Failed(Arc<Error>),
}

impl Agent {
    /// What it does next, by its state and the dice. `made` are tasks that may be named as blockers, `number` makes what it
    /// asks for its own.
    pub(crate) fn choose(&self, dice: &mut Dice, made: &[TaskId], number: u64) -> Deed {
        match &self.hand {
            Some(hand) => match dice.below(10) {
                0..=3 => Deed::Complete(hand.clone()),
                4 | 5 => Deed::Take { seconds: lease(dice), finish: Some(hand.clone()) },
                6 | 7 => Deed::Renew(hand.clone(), 5 + dice.below(40) as u64),
                8 => Deed::Tell(format!("letter {number}")),
                _ => Deed::Release(hand.clone()),
            },
            None if dice.below(3) == 0 => {
                let blockers = (0..dice.below(3)).filter_map(|_| made.get(dice.below(made.len()))).cloned().collect();
                Deed::Create { subject: format!("task {number}"), blockers }
            }
            None => Deed::Take { seconds: lease(dice), finish: None },
        }
    }

    /// Sends a call.
    pub(crate) fn send(&self, open: &Open) -> Came {
        if let Deed::Tell(text) = &open.deed {
            let draft = message::Draft { content: Content::new(text.clone()).unwrap(), ..letter() };
            let sent = self.engine.send(&self.name, &boss(), &draft, Some(&open.key));
            return sent.map_or_else(|error| Came::Failed(Arc::new(error)), |sent| Came::Sent(sent.seq));
        }
        let command = command(&open.deed);
        let list = (!matches!(command, Command::Update(..))).then(list);
        let request = Request { caller: self.name.clone(), list, command, key: Some(open.key.clone()) };
        match self.engine.execute(&request) {
            Ok(answer) => Came::Answered(Box::new(answer)),
            Err(error) => Came::Failed(Arc::new(error)),
        }
    }
}

fn lease(dice: &mut Dice) -> Option<u64> {
    (dice.below(2) == 0).then(|| 3 + dice.below(30) as u64)
}

fn command(deed: &Deed) -> Command {
    let by = |hand: &Hand, patch: Patch| {
        Command::Update(hand.id.clone(), Box::new(Patch { fence: Some(hand.fence), ..patch }))
    };
    match deed {
        Deed::Create { subject, blockers } => {
            let draft = Draft::new(Subject::new(subject.clone()).unwrap());
            Command::Create(Box::new(Draft { blocked_by: blockers.clone(), ..draft }))
        }
        Deed::Take { seconds, finish } => Command::Next(Box::new(Next {
            lease: seconds.map(LeaseAsk::Seconds),
            complete: finish.as_ref().map(|hand| Finish { id: hand.id.clone(), result: None, fence: Some(hand.fence) }),
            ..Next::default()
        })),
        Deed::Complete(hand) => by(hand, Patch::complete(Note::new("done").ok())),
        Deed::Renew(hand, seconds) => by(hand, Patch { lease: Some(LeaseAsk::Seconds(*seconds)), ..Patch::default() }),
        Deed::Release(hand) => by(hand, Patch::release()),
        Deed::Tell(_) => unreachable!("a letter is no command"),
    }
}

/// The inbox of the one who reads.
pub(crate) fn boss() -> ChannelName {
    ChannelName::new("dm/Roo").unwrap()
}

fn letter() -> message::Draft {
    message::Draft {
        content: Content::new("x").unwrap(),
        sort: message::Sort::default(),
        subject: None,
        reply_to: None,
        metadata: None,
        tags: Vec::new(),
    }
}
