//! `reset`: empties the store, after asking.

use serde_json::{Map, Value};
use taskbus::answer::status::Emptied;

use super::channels::confirm;
use crate::cli::desk::Desk;
use crate::term::failure::Failure;
use crate::term::report::Report;
use crate::wire;

/// Empties the store.
pub(crate) fn reset(desk: &Desk) -> Result<Box<dyn Report>, Failure> {
    let (store, live) = (desk.engine.store().describe(), desk.engine.sessions()?.len());
    let lost = format!(
        "{store}: every task, message, memory and name is lost for everybody, and {live} live sessions have to register \
         again. Type yes to go on:"
    );
    confirm(&lost, &["yes"])?;
    Ok(Box::new(Empty(desk.engine.reset()?)))
}

/// A store that was emptied.
struct Empty(Emptied);

impl Report for Empty {
    fn json(&self) -> Map<String, Value> {
        wire::object(&self.0)
    }

    fn words(&self, _: Option<usize>) -> String {
        let Emptied { sessions, channels, messages } = &self.0;
        format!("emptied: {channels} channels with {messages} messages, {} live sessions\n", sessions.len())
    }
}
