//! `get_memory`, `edit_memory` and `delete_memory`.

use taskbus_core::bus::message::{Content, Headline, Revision};
use taskbus_core::bus::tag;

use super::Act;
use super::messages::{metadata, sort};
use crate::mcp::args::Args;
use crate::mcp::desk::{Asked, Desk, Reply};
use crate::mcp::typed;
use crate::wire::error::Failure;
use crate::wire::object;

/// Shows one memory, whole.
pub(crate) fn get(desk: &Desk, args: &mut Args, asked: &Asked<'_>) -> Result<Reply, Failure> {
    let id = args.required_seq("id");
    let act = Act::begin(desk, args, asked)?;
    Ok(act.signed(object(&act.engine.memory(&act.who.name, id)?)))
}

/// Revises one.
pub(crate) fn edit(desk: &Desk, args: &mut Args, asked: &Asked<'_>) -> Result<Reply, Failure> {
    let (id, revision) = (args.required_seq("id"), revision(args)?);
    let act = Act::begin(desk, args, asked)?;
    let edited = act.engine.edit_memory(&act.who.name, id, &revision, act.key.as_ref())?;
    Ok(act.signed(object(&edited)))
}

fn revision(args: &mut Args) -> Result<Revision, Failure> {
    let subject = args.text("subject").map(|text| typed("subject", text, |text| Headline::new(&text)));
    let tags = args.texts("tags").map(|tags| tag::normalize(&tags));
    Ok(Revision {
        content: typed("content", args.required_text("content"), Content::new)?,
        sort: sort(args)?,
        subject: subject.transpose()?,
        metadata: metadata(args),
        tags: tags.transpose()?,
    })
}

/// Deletes one.
pub(crate) fn delete(desk: &Desk, args: &mut Args, asked: &Asked<'_>) -> Result<Reply, Failure> {
    let id = args.required_seq("id");
    let act = Act::begin(desk, args, asked)?;
    let deleted = act.engine.delete_memory(&act.who.name, id, act.key.as_ref())?;
    Ok(act.signed(object(&deleted)))
}
