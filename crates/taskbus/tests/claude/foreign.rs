//! Two of ours and two of the other program, each its own process, on one directory: nobody loses anything.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use taskbus::core::id::TaskId;
use taskbus::store::rows::RowStore as _;

use crate::claude_code;
use crate::crew::{Crew, Dice, Orders, orders, path_of, say};
use crate::support::{Place, create, open, write};

const OPERATIONS: u64 = 60;
const PATIENCE: Duration = Duration::from_secs(120);

/// One process of the crew; those with odd numbers are the other program.
#[test]
fn a_writer() {
    let own = tempfile::tempdir().unwrap();
    let orders =
        orders().unwrap_or(Orders { dir: own.path().join("list"), worker: 2, first: 0, last: 20, locks: true });
    let mut dice = Dice::new(orders.worker + 40);
    let mut mine = Vec::new();
    for number in orders.first..orders.last {
        let kind = if mine.len() < 3 { 0 } else { dice.below(6) };
        let at = usize::try_from(dice.below(mine.len() as u64)).unwrap();
        let line = if orders.worker % 2 == 1 {
            other_program(&orders, number, kind, &mut mine, at)
        } else {
            ours(&orders, number, kind, &mut mine, at)
        };
        say(&line);
    }
}

/// What was done, as a line: `id` and the key and value that must be found there, or that it is gone.
fn other_program(orders: &Orders, number: u64, kind: u64, mine: &mut Vec<u64>, at: usize) -> Value {
    let (dir, key) = (&orders.dir, format!("w{}", orders.worker));
    std::fs::create_dir_all(dir).unwrap();
    match kind {
        0 => {
            let id = claude_code::create(dir, &format!("{key} {number}")).expect("the list's lock is had in time");
            mine.push(id);
            json!({"id": id})
        }
        1 => {
            let id = mine.swap_remove(at);
            json!({"gone": claude_code::delete(dir, id).map(|()| id)})
        }
        2 => {
            let (id, blocker) = (mine[at], mine[(at + 1) % mine.len()]);
            json!({"id": id, "edge": claude_code::add_blocker(dir, id, blocker).map(|()| blocker)})
        }
        _ => {
            // Another's task, as often as not.
            let id = mine[at].saturating_sub(number % 3).max(1);
            let set = claude_code::update(dir, id, |task| {
                let metadata = task.entry("metadata").or_insert_with(|| json!({}));
                metadata[&key] = json!(number);
            });
            json!({"id": id, "key": set.map(|()| key), "value": number})
        }
    }
}

fn ours(orders: &Orders, number: u64, kind: u64, mine: &mut Vec<u64>, at: usize) -> Value {
    let (store, key) = (open(&orders.dir), format!("w{}", orders.worker));
    let known = |id: u64| store.snapshot().unwrap().live.iter().any(|task| task.id == TaskId::Number(id));
    match kind {
        0 | 2 => {
            let blockers: Vec<u64> = mine.get(at).copied().into_iter().filter(|id| known(*id)).collect();
            let id = write(&store, |rows| create(rows, &format!("{key} {number}"), &blockers)).unwrap();
            mine.push(id);
            json!({"id": id})
        }
        1 => {
            let id = mine.swap_remove(at);
            json!({"gone": write(&store, |rows| Ok(rows.delete(&TaskId::Number(id))?)).unwrap().then_some(id)})
        }
        _ => {
            let id = mine[at].saturating_sub(number % 3).max(1);
            let set = write(&store, |rows| {
                let Some(mut task) = rows.get(&TaskId::Number(id))? else { return Ok(false) };
                task.metadata.insert(key.clone(), json!(number));
                rows.set(&task)?;
                Ok(true)
            });
            json!({"id": id, "key": set.unwrap().then_some(key), "value": number})
        }
    }
}

#[test]
fn two_programs_lose_nothing_of_each_other() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("list");
    let mut crew = Crew::new("foreign::a_writer");
    (0..4).for_each(|worker| crew.start(&Orders { dir: dir.clone(), worker, first: 0, last: OPERATIONS, locks: true }));
    let mut values: BTreeMap<(u64, String), u64> = BTreeMap::new();
    let (mut made, mut gone) = (BTreeMap::new(), Vec::new());
    while !crew.workers().is_empty() {
        let said = crew.heard.recv_timeout(PATIENCE).expect("the crew ends in time");
        let Some(line) = said.line else {
            assert!(crew.ended(said.worker), "worker {} failed", said.worker);
            continue;
        };
        let id = line["id"].as_u64();
        match (id, line["key"].as_str(), line.get("gone")) {
            (_, _, Some(id)) => gone.extend(id.as_u64()),
            (Some(id), Some(key), _) => drop(values.insert((id, key.to_owned()), line["value"].as_u64().unwrap())),
            (Some(id), None, _) if line.get("value").is_none() && line.get("edge").is_none() => {
                let twice = made.insert(id, said.worker);
                assert_eq!(twice, None, "id {id} was given twice");
            }
            _ => {}
        }
    }
    let read =
        |id: u64| std::fs::read(path_of(&dir, id)).ok().map(|bytes| serde_json::from_slice::<Value>(&bytes).unwrap());
    for id in made.keys() {
        assert_eq!(read(*id).is_none(), gone.contains(id), "task {id}");
    }
    for ((id, key), value) in values.iter().filter(|((id, _), _)| !gone.contains(id)) {
        assert_eq!(read(*id).unwrap()["metadata"][key], json!(value), "task {id} {key}");
    }
    assert!(values.len() > 20 && made.len() > 40 && !gone.is_empty());
    let unreadable = open(&dir).snapshot().unwrap().unreadable;
    assert!(unreadable.is_empty(), "{unreadable:?}");
}

#[test]
fn the_other_program_waits_for_us_and_keeps_what_we_keep() {
    let place = Place::new();
    place.create("a", &[]);
    place.create("b", &[1]);
    place.change(2, |task| (task.revision, task.fence, task.parked) = (5, 2, true));
    claude_code::update(&place.path(), 2, |task| task["subject"] = "by the other".into()).unwrap();
    let task = place.task(2);
    assert_eq!((task.revision, task.fence, task.parked, task.subject.as_str()), (6, 2, true, "by the other"));
    claude_code::delete(&place.path(), 1).unwrap();
    assert_eq!((place.live(), place.json(2)["blockedBy"].clone()), (vec![2], json!([])));
    assert_eq!((claude_code::create(&place.path(), "c"), place.create("d", &[])), (Some(3), 4));
    assert_eq!(place.problems(), ["task 1 (a) is gone: its file was removed by another program"]);
}
