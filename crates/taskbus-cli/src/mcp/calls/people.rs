//! `register`.

use taskbus::engine::Registration;

use crate::mcp::args::Args;
use crate::mcp::desk::{Asked, BUDGET, Desk, Reply};
use crate::mcp::people::client_line;
use crate::repo_file;
use crate::wire::error::Failure;
use crate::wire::{answer, fit};

/// Takes a name.
pub(crate) fn register(desk: &Desk, args: &mut Args, asked: &Asked<'_>) -> Result<Reply, Failure> {
    let (repo, unread) = desk.repository.wishes();
    let wish = Registration {
        name: args.required_text("name"),
        parent: args.text("parent"),
        context: args.text("context").unwrap_or_else(|| desk.people.context()),
        client: client_line(asked),
        harness: desk.people.harness(),
        resume: args.flag_or("resume", true),
        repo: Some(repo),
        ..Registration::default()
    };
    let mut registered = desk.engine()?.register(&wish)?;
    registered.subscribe_failed.extend(unread.map(|why| (repo_file::PLACE.to_owned(), why)));
    desk.people.remember(&registered.name, asked);
    let mut facts = answer::registered(&registered);
    for list in ["others", "lists", "pending"] {
        let dropped = fit::records(&mut facts, list, 0, BUDGET - 64);
        if dropped > 0 {
            facts.insert(format!("{list}_left_out"), dropped.into());
        }
    }
    Ok(facts.into())
}
