//! Ids of tasks: they ascend, in the order of making.

use taskbus_core::command::{Command, Patch, Planned};

use super::{Crew, StorePlace, Verdict, draft};
use crate::answer::Answer;

pub(super) fn tasks_get_ids_that_ascend(place: &dyn StorePlace) -> Verdict {
    let crew = Crew::at(place);
    let (sam, kim) = (crew.person("sam"), crew.person("kim"));
    let mut last = sam.add("first");
    for at in 0..20 {
        let id = if at % 2 == 0 { kim.add("next") } else { sam.add("next") };
        assert!(last < id, "{id} was given after {last}");
        last = id;
    }
    Verdict::Held
}

pub(super) fn a_plan_gets_ids_in_its_order(place: &dyn StorePlace) -> Verdict {
    let sam = Crew::at(place).person("sam");
    let planned = |at: usize| Planned {
        key: Some(format!("k{at}")),
        draft: draft("planned"),
        parent: None,
        blocked_by: if at > 0 { vec![format!("k{}", at - 1)] } else { Vec::new() },
        done: false,
    };
    let Ok(Answer::Planned(tasks)) = sam.ask(Command::Plan((0..10).map(planned).collect()), None) else {
        panic!("a plan is made")
    };
    assert!(tasks.is_sorted_by(|a, b| a.id < b.id), "{tasks:?}");
    assert_eq!(sam.task(&tasks[9].id).blocked_by, [tasks[8].id.clone()]);
    assert_eq!(sam.order().len(), 10);
    Verdict::Held
}

pub(super) fn a_restored_task_keeps_its_id_and_a_new_one_gets_another(place: &dyn StorePlace) -> Verdict {
    let sam = Crew::at(place).person("sam");
    let id = sam.add("short-lived");
    sam.update(&id, Patch::delete()).expect("a task can be deleted");
    let other = sam.add("another");
    assert!(id < other, "{other} was given after {id} was deleted");
    let Ok(Answer::Restored(task)) = sam.ask(Command::Restore(id.clone()), None) else { panic!("a task is restored") };
    assert_eq!(task.id, id);
    assert!(other < sam.add("a third"));
    Verdict::Held
}
