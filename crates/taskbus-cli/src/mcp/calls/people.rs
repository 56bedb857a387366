//! `register` and `create_channel`.

use taskbus::engine::Registration;
use taskbus_core::name::ListName;
use taskbus_core::neighbourhood::ListRules;
use taskbus_core::policy::Policy;

use super::Act;
use crate::mcp::args::Args;
use crate::mcp::desk::{Asked, BUDGET, Desk, Reply};
use crate::mcp::people::client_line;
use crate::mcp::typed;
use crate::wire::error::Failure;
use crate::wire::{answer, fit};

/// Takes a name.
pub(crate) fn register(desk: &Desk, args: &mut Args, asked: &Asked<'_>) -> Result<Reply, Failure> {
    let wish = Registration {
        name: args.required_text("name"),
        parent: args.text("parent"),
        context: args.text("context").unwrap_or_else(|| desk.people.context()),
        client: client_line(asked),
        harness: desk.people.harness(),
        ..Registration::default()
    };
    let registered = desk.engine()?.register(&wish)?;
    desk.people.remember(&registered.name, asked);
    let mut facts = answer::registered(&registered);
    for list in ["others", "lists"] {
        let dropped = fit::records(&mut facts, list, 0, BUDGET - 64);
        if dropped > 0 {
            facts.insert(format!("{list}_left_out"), dropped.into());
        }
    }
    Ok(facts.into())
}

/// Makes a list.
pub(crate) fn create_channel(desk: &Desk, args: &mut Args, asked: &Asked<'_>) -> Result<Reply, Failure> {
    // The only kind there is so far; the table lets nothing else through.
    let _ = args.word("kind");
    let name = typed("name", args.required_text("name"), ListName::new)?;
    let max_reclaims = args.count("max_reclaims").and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
    let act = Act::begin(desk, args, asked)?;
    let list = act.engine.create_list(&act.who.name, &name, ListRules { policy: Policy::Strict, max_reclaims })?;
    let mut facts = answer::channel(&list);
    act.sign(&mut facts);
    Ok(facts.into())
}
