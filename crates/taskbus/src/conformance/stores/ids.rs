//! Ids of tasks: they ascend, in the order of making.

use taskbus_core::command::{Command, Patch, Planned};

use super::{Crew, StorePlace, Verdict, draft};
use crate::answer::Answer;

pub(super) fn tasks_get_ids_that_ascend(place: &dyn StorePlace) -> Verdict {
    let crew = Crew::at(place);
    let (zed, amp) = (crew.person("zed"), crew.person("amp"));
    let mut last = zed.add("first");
    for at in 0..20 {
        let id = if at % 2 == 0 { amp.add("next") } else { zed.add("next") };
        assert!(last < id, "{id} was given after {last}");
        last = id;
    }
    Verdict::Held
}

pub(super) fn a_plan_gets_ids_in_its_order(place: &dyn StorePlace) -> Verdict {
    let zed = Crew::at(place).person("zed");
    let planned = |at: usize| Planned {
        key: Some(format!("k{at}")),
        draft: draft("planned"),
        parent: None,
        blocked_by: if at > 0 { vec![format!("k{}", at - 1)] } else { Vec::new() },
        done: false,
    };
    let Ok(Answer::Planned(tasks)) = zed.ask(Command::Plan((0..10).map(planned).collect()), None) else {
        panic!("a plan is made")
    };
    assert!(tasks.is_sorted_by(|a, b| a.id < b.id), "{tasks:?}");
    assert_eq!(zed.task(&tasks[9].id).blocked_by, [tasks[8].id.clone()]);
    assert_eq!(zed.order().len(), 10);
    Verdict::Held
}

pub(super) fn a_restored_task_keeps_its_id_and_a_new_one_gets_another(place: &dyn StorePlace) -> Verdict {
    let zed = Crew::at(place).person("zed");
    let id = zed.add("short-lived");
    zed.update(&id, Patch::delete()).expect("a task can be deleted");
    let other = zed.add("another");
    assert!(id < other, "{other} was given after {id} was deleted");
    let Ok(Answer::Restored(task)) = zed.ask(Command::Restore(id.clone()), None) else { panic!("a task is restored") };
    assert_eq!(task.id, id);
    assert!(other < zed.add("a third"));
    Verdict::Held
}
