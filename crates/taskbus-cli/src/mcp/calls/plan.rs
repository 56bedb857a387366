//! `task_plan`.

use taskbus::answer::Answer;
use taskbus_core::command::{Command, Planned};

use super::{Act, write};
use crate::mcp::args::Args;
use crate::mcp::desk::{Asked, BUDGET, Desk, Reply};
use crate::wire::error::Failure;
use crate::wire::{answer, fit};

/// Makes a whole graph.
pub(crate) fn plan(desk: &Desk, args: &mut Args, asked: &Asked<'_>) -> Result<Reply, Failure> {
    let list = desk.list(args)?;
    let tasks = args.items("tasks").into_iter().enumerate();
    let tasks = tasks.map(|(at, args)| planned(args).map_err(|failure| failure.within("tasks", at)));
    let tasks = tasks.collect::<Result<Vec<_>, _>>()?;
    let act = Act::begin(desk, args, asked)?;
    let planned = act.run(Some(list), Command::Plan(tasks))?;
    let Answer::Planned(made) = planned else { unreachable!("BUG: a plan answers what it made") };
    let mut facts = answer::planned(&made);
    facts.insert("total".to_owned(), made.len().into());
    act.sign(&mut facts);
    if fit::records(&mut facts, "tasks", 1, BUDGET - 32) > 0 {
        facts.insert("truncated".to_owned(), true.into());
    }
    Ok(facts.into())
}

fn planned(mut args: Args) -> Result<Planned, Failure> {
    let planned = Planned {
        key: args.text("key"),
        draft: write::draft(&mut args)?,
        parent: args.text("parent").filter(|parent| parent != "0"),
        blocked_by: args.texts("blocked_by").unwrap_or_default(),
        done: false,
    };
    debug_assert!(args.left().is_empty(), "BUG: nobody takes {:?}", args.left());
    Ok(planned)
}
