//! Parents that go round in a loop: nothing here writes such, but a file can be edited by hand, and a list whose
//! parents go round has tasks that no walk from the top meets.

use std::collections::{BTreeMap, BTreeSet};

use taskbus_core::id::TaskId;
use taskbus_core::task::Task;

/// Cuts each loop at its lowest id, which becomes a root; says which were cut.
pub(super) fn cut_loops(tasks: &mut [Task]) -> Vec<TaskId> {
    let cuts = loops(tasks);
    for task in tasks.iter_mut().filter(|task| cuts.contains(&task.id)) {
        task.parent = None;
    }
    cuts.into_iter().collect()
}

/// The lowest id of each loop.
fn loops(tasks: &[Task]) -> BTreeSet<TaskId> {
    let parents: BTreeMap<&TaskId, &TaskId> =
        tasks.iter().filter_map(|task| Some((&task.id, task.parent.as_ref()?))).collect();
    let mut cuts = BTreeSet::new();
    let mut done: BTreeSet<&TaskId> = BTreeSet::new();
    for start in parents.keys() {
        let mut way: Vec<&TaskId> = Vec::new();
        let mut on_way: BTreeSet<&TaskId> = BTreeSet::new();
        let mut at = Some(*start);
        while let Some(id) = at.filter(|id| !done.contains(id)) {
            if !on_way.insert(id) {
                let ring = way.iter().skip_while(|other| **other != id);
                cuts.extend(ring.min().map(|id| (*id).clone()));
                break;
            }
            way.push(id);
            at = parents.get(id).copied();
        }
        done.extend(way);
    }
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::claude::file::TaskFile;
    use taskbus_core::time::Timestamp;

    fn task(id: u64, parent: Option<u64>) -> Task {
        let parent = parent.map_or_else(String::new, |id| format!(r#","metadata":{{"taskbus":{{"parent":{id}}}}}"#));
        let text = format!(r#"{{"subject":"a","status":"pending"{parent}}}"#);
        TaskFile::read(&TaskId::Number(id), text.as_bytes(), Timestamp::from_millis(1)).unwrap().task
    }

    #[test]
    fn each_loop_is_cut_once_at_its_lowest_id() {
        let links = [
            (1, None),
            (2, Some(1)),
            (3, Some(5)),
            (4, Some(3)),
            (5, Some(4)),
            (6, Some(5)),
            (7, Some(7)),
            (8, Some(99)),
        ];
        let mut tasks: Vec<Task> = links.iter().map(|(id, parent)| task(*id, *parent)).collect();
        assert_eq!(cut_loops(&mut tasks), [TaskId::Number(3), TaskId::Number(7)]);
        let parents: Vec<Option<u64>> = tasks.iter().map(|task| task.parent.as_ref()?.as_number()).collect();
        assert_eq!(parents, [None, Some(1), None, Some(3), Some(4), Some(5), None, Some(99)]);
        assert_eq!(cut_loops(&mut tasks), []);
    }
}
