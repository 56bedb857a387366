//! What the demo works on: the plan in `examples/`, cut or repeated to as many tasks as asked for.

use std::collections::BTreeSet;

use taskbus_core::command::Planned;
use taskbus_core::limits;
use taskbus_core::name::Label;

use crate::plan;

/// The plan of this very project.
const PLAN: &str = include_str!("../../../../examples/taskbus-plan.md");

/// The plans to import, one after the other: each within the limit of one import.
pub(super) fn plans(wanted: Option<usize>) -> Vec<Vec<Planned>> {
    let plan = plan::read(PLAN).expect("BUG: the plan in examples/ is a plan");
    let wanted = wanted.unwrap_or(plan.len());
    let at_once = limits::PLAN_TASKS_MAX / plan.len() * plan.len();
    let starts = (0..wanted).step_by(at_once);
    starts.map(|start| repeated(&plan, (wanted - start).min(at_once))).collect()
}

/// The labels that a worker needs for every task.
pub(super) fn labels(plans: &[Vec<Planned>]) -> Vec<String> {
    let labels: BTreeSet<&Label> = plans.iter().flatten().flat_map(|task| &task.draft.labels).collect();
    labels.into_iter().map(ToString::to_string).collect()
}

/// The first `count` tasks of the plan repeated for ever; links to what is cut off are left out.
fn repeated(plan: &[Planned], count: usize) -> Vec<Planned> {
    let copies = (0..).flat_map(|copy| plan.iter().map(move |task| numbered(task, copy)));
    let mut tasks: Vec<Planned> = copies.take(count).collect();
    let keys: BTreeSet<String> = tasks.iter().filter_map(|task| task.key.clone()).collect();
    for task in &mut tasks {
        task.blocked_by.retain(|key| keys.contains(key));
        task.parent = task.parent.take().filter(|key| keys.contains(key));
    }
    tasks
}

fn numbered(task: &Planned, copy: usize) -> Planned {
    let key = |key: &String| if copy == 0 { key.clone() } else { format!("{key}/{copy}") };
    Planned {
        key: task.key.as_ref().map(key),
        parent: task.parent.as_ref().map(key),
        blocked_by: task.blocked_by.iter().map(key).collect(),
        ..task.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_nests_depends_and_is_of_a_size() {
        let plan = &plans(None)[0];
        assert!((50..=80).contains(&plan.len()), "{}", plan.len());
        assert!(plan.iter().filter(|task| task.parent.is_some()).count() > 40);
        assert!(plan.iter().filter(|task| !task.blocked_by.is_empty()).count() > 40);
        assert!(plan.iter().all(|task| !task.done));
        assert!(!labels(&plans(None)).is_empty());
    }

    #[test]
    fn any_number_of_tasks_can_be_had() {
        for wanted in [1, 7, 57, 58, 1000, 2345] {
            let plans = plans(Some(wanted));
            assert_eq!(plans.iter().map(Vec::len).sum::<usize>(), wanted);
            assert!(plans.iter().all(|plan| plan.len() <= limits::PLAN_TASKS_MAX));
        }
    }
}
