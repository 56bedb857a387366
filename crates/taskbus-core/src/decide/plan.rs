//! Making a whole graph at once, all or nothing (docs/rules.md 7).
//!
//! References are keys of the plan or ids of the list. Nothing that exists can depend on a task that does not, so a
//! cycle can only lie inside the plan: it is looked for among the keys before anything is written.

use std::collections::{BTreeMap, BTreeSet};

use super::create::{check_shape, task_from};
use super::update::check_size;
use super::{Facts, Stop, World, links, place};
use crate::change::{Change, Kind};
use crate::command::{Draft, Planned};
use crate::id::TaskId;
use crate::limits;
use crate::neighbourhood::Neighbourhood;
use crate::refusal::Invalid;
use crate::task::State;
use crate::text::{TextError, no_control, within};

/// What a task of the plan refers to.
#[derive(Clone, PartialEq)]
enum Target {
    /// Another task of the plan, by position.
    Inside(usize),
    /// A live task of the list.
    Outside(TaskId),
}

/// A plan with its references looked up.
struct Graph {
    parents: Vec<Option<Target>>,
    blockers: Vec<Vec<Target>>,
}

pub(super) fn plan(
    tasks: &[Planned],
    world: &mut dyn World,
    facts: &Facts,
) -> Result<Vec<(Option<String>, TaskId)>, Stop> {
    check_plan(tasks)?;
    let graph = resolve(tasks, world)?;
    check_acyclic("blocked_by", tasks, |at| inside(&graph.blockers[at]))?;
    check_acyclic("parent", tasks, |at| inside(graph.parents[at].as_slice()))?;
    let order = parents_first(&graph);
    check_depths(&graph, &order, world)?;
    for parent in outside_parents(&graph) {
        place::make_room(parent.as_ref(), world, facts)?;
    }
    let ids = mint_in_order(&order, world)?;
    for &at in &order {
        create_one(at, &tasks[at], &graph, &ids, world, facts)?;
    }
    Ok(tasks.iter().zip(ids).map(|(task, id)| (task.key.clone(), id)).collect())
}

fn check_plan(tasks: &[Planned]) -> Result<(), Stop> {
    let (field, max, actual) = ("tasks", limits::PLAN_TASKS_MAX, tasks.len());
    if tasks.is_empty() {
        return Err(Invalid::Text { field, error: TextError::Empty }.into());
    }
    if actual > max {
        return Err(Invalid::TooMany { field, max, actual }.into());
    }
    let mut keys = BTreeSet::new();
    for task in tasks {
        check_shape(&task.draft)?;
        if let Some(key) = &task.key {
            check_key(key)?;
            if !keys.insert(key) {
                return Err(Invalid::PlanKeyTwice { key: key.clone() }.into());
            }
        }
    }
    Ok(())
}

fn check_key(key: &str) -> Result<(), Stop> {
    let sound = within(key, limits::PLAN_KEY_BYTES_MAX).and_then(|()| no_control(key));
    sound.map_err(|error| Invalid::Text { field: "key", error }.into())
}

fn resolve(tasks: &[Planned], list: &dyn Neighbourhood) -> Result<Graph, Stop> {
    let keys: BTreeMap<&str, usize> =
        tasks.iter().enumerate().filter_map(|(at, task)| Some((task.key.as_deref()?, at))).collect();
    let mut graph = Graph { parents: Vec::new(), blockers: Vec::new() };
    for task in tasks {
        let parent = task.parent.as_ref().map(|reference| target("parent", reference, &keys, list));
        graph.parents.push(parent.transpose()?);
        let mut blockers: Vec<Target> = Vec::new();
        for reference in &task.blocked_by {
            let blocker = target("blocked_by", reference, &keys, list)?;
            if !blockers.contains(&blocker) {
                blockers.push(blocker);
            }
        }
        let (field, max, actual) = ("blocked_by", limits::BLOCKERS_MAX, blockers.len());
        if actual > max {
            return Err(Invalid::TooMany { field, max, actual }.into());
        }
        graph.blockers.push(blockers);
    }
    Ok(graph)
}

/// A reference is a key, or the id of a live task; what is both is refused rather than guessed.
fn target(
    field: &'static str,
    reference: &str,
    keys: &BTreeMap<&str, usize>,
    list: &dyn Neighbourhood,
) -> Result<Target, Stop> {
    let live = match reference.parse::<TaskId>() {
        Ok(id) => list.live_of(&[id])?.pop(),
        Err(_) => None,
    };
    let reference = || reference.to_owned();
    match (keys.get(reference().as_str()), live) {
        (Some(_), Some(id)) => Err(Invalid::PlanAmbiguous { field, reference: reference(), id }.into()),
        (Some(at), None) => Ok(Target::Inside(*at)),
        (None, Some(id)) => Ok(Target::Outside(id)),
        (None, None) => Err(Invalid::PlanReference { field, reference: reference() }.into()),
    }
}

fn inside(targets: &[Target]) -> Vec<usize> {
    targets.iter().filter_map(|target| if let Target::Inside(at) = target { Some(*at) } else { None }).collect()
}

/// Depth-first with an explicit stack: a task that is reached again while still open closes a cycle.
fn check_acyclic(field: &'static str, tasks: &[Planned], next: impl Fn(usize) -> Vec<usize>) -> Result<(), Stop> {
    let mut done = vec![false; tasks.len()];
    for start in 0..tasks.len() {
        let mut stack = vec![(start, next(start))];
        let mut open = vec![start];
        while let Some((at, rest)) = stack.last_mut() {
            match rest.pop() {
                Some(to) if open.contains(&to) => return Err(cycle(field, tasks, &open, to)),
                Some(to) if done[to] => {}
                Some(to) => {
                    open.push(to);
                    stack.push((to, next(to)));
                }
                None => {
                    done[*at] = true;
                    open.pop();
                    stack.pop();
                }
            }
        }
    }
    Ok(())
}

fn cycle(field: &'static str, tasks: &[Planned], open: &[usize], to: usize) -> Stop {
    let from = open.iter().position(|at| *at == to).unwrap_or(0);
    let name = |at: &usize| tasks[*at].key.clone().unwrap_or_else(|| format!("task {}", at + 1));
    let path = open[from..].iter().chain([&to]).map(name).collect();
    Invalid::PlanCycle { field, path }.into()
}

/// The positions of the plan, each parent before its children, else as given.
fn parents_first(graph: &Graph) -> Vec<usize> {
    let mut order = Vec::with_capacity(graph.parents.len());
    let mut placed = vec![false; graph.parents.len()];
    for start in 0..graph.parents.len() {
        let up = |at: &usize| inside(graph.parents[*at].as_slice()).pop();
        let chain: Vec<usize> = std::iter::successors(Some(start), up).take_while(|at| !placed[*at]).collect();
        for at in chain.into_iter().rev() {
            placed[at] = true;
            order.push(at);
        }
    }
    order
}

fn check_depths(graph: &Graph, order: &[usize], list: &dyn Neighbourhood) -> Result<(), Stop> {
    let mut levels = vec![1; order.len()];
    for &at in order {
        levels[at] = match &graph.parents[at] {
            None => 1,
            Some(Target::Inside(parent)) => levels[*parent] + 1,
            Some(Target::Outside(parent)) => list.depth(parent)? + 2,
        };
        if levels[at] > limits::TREE_DEPTH_MAX {
            let (field, max) = ("parent", limits::TREE_DEPTH_MAX);
            return Err(Invalid::TooMany { field, max, actual: levels[at] }.into());
        }
    }
    Ok(())
}

/// The sibling groups outside the plan to which tasks are added, each once.
fn outside_parents(graph: &Graph) -> BTreeSet<Option<TaskId>> {
    let parent = |target: &Option<Target>| match target {
        None => Some(None),
        Some(Target::Outside(id)) => Some(Some(id.clone())),
        Some(Target::Inside(_)) => None,
    };
    graph.parents.iter().filter_map(parent).collect()
}

/// Ids by position in the plan, minted in the order in which the tasks will be written.
fn mint_in_order(order: &[usize], world: &mut dyn World) -> Result<Vec<TaskId>, Stop> {
    let minted = world.mint(order.len())?;
    let mut by_position: Vec<(usize, TaskId)> = order.iter().copied().zip(minted).collect();
    by_position.sort_by_key(|(at, _)| *at);
    Ok(by_position.into_iter().map(|(_, id)| id).collect())
}

fn create_one(
    at: usize,
    planned: &Planned,
    graph: &Graph,
    ids: &[TaskId],
    world: &mut dyn World,
    facts: &Facts,
) -> Result<(), Stop> {
    let id_of = |target: &Target| match target {
        Target::Inside(at) => ids[*at].clone(),
        Target::Outside(id) => id.clone(),
    };
    let parent = graph.parents[at].as_ref().map(id_of);
    let rank = place::rank_at(None, None, parent.as_ref(), world, facts)?;
    let blocked_by = links::deduplicated(graph.blockers[at].iter().map(id_of));
    let draft = Draft { parent, ..planned.draft.clone() };
    let mut task = task_from(&draft, ids[at].clone(), rank, blocked_by, facts);
    if planned.done {
        task.state = State::Completed { by: facts.caller.clone(), at: facts.now };
    }
    check_size(&task)?;
    world.apply(Change { kind: Kind::Created, task, note: None })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::Board;
    use crate::name::Identity;
    use crate::neighbourhood::ListRules;
    use crate::task::Status;
    use crate::text::Subject;
    use crate::time::Timestamp;

    fn planned(key: &str, blocked_by: &[&str], done: bool) -> Planned {
        let draft = Draft::new(Subject::new(key).unwrap());
        let blocked_by = blocked_by.iter().map(ToString::to_string).collect();
        Planned { key: Some(key.to_owned()), draft, parent: None, blocked_by, done }
    }

    #[test]
    fn what_is_done_already_blocks_nothing() {
        let mut board = Board::new(ListRules::default());
        let caller = Identity::new("Zed").unwrap();
        let facts = Facts { now: Timestamp::from_millis(5), caller: Some(caller.clone()) };
        let tasks =
            [planned("late", &["early", "mid"], false), planned("early", &[], true), planned("mid", &["early"], false)];
        let ids = plan(&tasks, &mut board, &facts).unwrap();
        let task = |at: usize| board.get(&ids[at].1).unwrap();
        assert_eq!((task(1).status(), task(1).owner(), task(1).revision), (Status::Completed, Some(&caller), 1));
        assert_eq!(task(2).status(), Status::Pending);
        assert_eq!((board.open_blockers(task(0)), board.open_blockers(task(2))), (vec![ids[2].1.clone()], vec![]));
    }
}
