//! The channel that is measured: filled with messages, read by fifty who are at different places of it.

use std::path::Path;
use std::time::{Duration, Instant};

use taskbus::engine::{Engine, Error, Follow, ReceiveAsk};
use taskbus_core::bus::channel::ChannelName;
use taskbus_core::bus::message::{Content, Draft, Sort};
use taskbus_core::bus::rules::Start;
use taskbus_core::name::Identity;

use super::field::{Mode, engine, register};
use crate::term::failure::Failure;

/// Who reads.
pub(super) const READERS: usize = 50;
/// Messages of one delivery.
const BATCH: usize = 100;

/// A filled channel, on an engine that does not wait for the disk.
pub(super) struct Mail {
    engine: Engine,
    readers: Vec<Identity>,
}

impl Mail {
    /// A channel of so many messages in a directory; `filled` hears how many there are.
    pub(super) fn fill(dir: &Path, messages: usize, filled: &dyn Fn(u64)) -> Result<Self, Failure> {
        let engine = engine(&dir.join("mail.db"), Mode::Relaxed, None)?;
        let sender = register(&engine, "sender")?;
        let mut mail = Self { engine, readers: Vec::new() };
        // The last reader still has a whole batch before it.
        let apart = (messages.saturating_sub(BATCH) / READERS).max(1);
        for number in 0..messages {
            if number % apart == 0 && mail.readers.len() < READERS {
                mail.add_reader()?;
            }
            mail.engine.send(&sender, &ChannelName::general(), &letter(number), None)?;
            filled(number as u64);
        }
        Ok(mail)
    }

    fn add_reader(&mut self) -> Result<(), Failure> {
        let reader = register(&self.engine, &format!("reader {}", self.readers.len()))?;
        self.engine.subscribe(&reader, &Follow::Channel(ChannelName::general()), Start::Now)?;
        self.readers.push(reader);
        Ok(())
    }

    /// How long the next batch of a reader takes, by the reader's number.
    pub(super) fn receive(&self, reader: usize) -> Result<Duration, Error> {
        let reader = &self.readers[reader % self.readers.len()];
        let ask = ReceiveAsk { count: i64::try_from(BATCH).ok(), ..ReceiveAsk::default() };
        let began = Instant::now();
        self.engine.receive(reader, &ask, &|| false)?;
        Ok(began.elapsed())
    }
}

fn letter(number: usize) -> Draft {
    let content = format!("message {number}, which says what a message says, in a line or so");
    Draft {
        content: Content::new(content).expect("BUG: a short line is a content"),
        sort: Sort::default(),
        subject: None,
        reply_to: None,
        metadata: None,
        tags: Vec::new(),
    }
}
