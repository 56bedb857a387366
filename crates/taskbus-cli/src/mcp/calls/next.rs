//! `task_next`.

use serde_json::{Map, Value};
use taskbus::answer::{Answer, Taken, TaskView};
use taskbus_core::command::{Command, Finish, Next, Patch};
use taskbus_core::name::Label;

use super::write::note;
use super::{Act, lease, texts};
use crate::mcp::args::Args;
use crate::mcp::desk::{Asked, BUDGET, Desk, Reply};
use crate::wire::error::Failure;
use crate::wire::{answer, fit};

/// Takes the next ready task, and waits for one if asked to.
pub(crate) fn next(desk: &Desk, args: &mut Args, asked: &Asked<'_>) -> Result<Reply, Failure> {
    let list = desk.list(args)?;
    let wait = super::wait(args, asked);
    let next = wish(args)?;
    let count = next.count;
    let act = Act::begin(desk, args, asked)?;
    let request = act.request(Some(list), Command::Next(Box::new(next)));
    let answered = act.engine.next_waiting(&request, wait, asked.hurry)?;
    let Answer::Next(taken) = answered else { unreachable!("BUG: a next answers what it took") };
    if (asked.cancelled)() {
        give_back(&act, &taken);
    }
    let mut facts = answer::taken(&taken, count);
    act.sign(&mut facts);
    fit_tasks(&mut facts);
    Ok(facts.into())
}

fn wish(args: &mut Args) -> Result<Next, Failure> {
    let (result, fence) = (note(args, "result")?, args.count("fence"));
    let complete = args.id("complete");
    if complete.is_none() && (result.is_some() || fence.is_some()) {
        return Err(Failure::shape("complete", NOTHING_FINISHED));
    }
    Ok(Next {
        labels: texts("labels", args.texts("labels").unwrap_or_default(), Label::new)?,
        parent: args.id("parent"),
        count: args.count("count").map_or(1, |count| usize::try_from(count).unwrap_or(usize::MAX)),
        lease: lease(args)?,
        complete: complete.map(|id| Finish { id, result, fence }),
    })
}

const NOTHING_FINISHED: &str = "result and fence belong to a finished task; name it in complete, or leave them out";

/// Nobody will see this answer, so nobody would work on what it hands out. A failure leaves the tasks to the end of
/// the session or lease, like any that is not given back.
fn give_back(act: &Act, taken: &Taken) {
    for task in &taken.tasks {
        let release = |task: &TaskView| Patch { fence: Some(task.fence), ..Patch::release() };
        let command = Command::Update(task.id.clone(), Box::new(release(task)));
        let request = taskbus::engine::Request { key: None, ..act.request(None, command) };
        if let Err(error) = act.engine.execute(&request) {
            tracing::warn!(task = %task.id, %error, "a cancelled call kept its task");
        }
    }
}

/// One task is given whole, because its holder needs all of it; several share the budget.
fn fit_tasks(facts: &mut Map<String, Value>) {
    let Some(Value::Array(tasks)) = facts.get_mut("tasks") else { return };
    let share = (BUDGET - 512) / tasks.len().max(1);
    for task in tasks {
        if let Value::Object(task) = task {
            fit::task(task, share);
        }
    }
}
