//! What the list in memory answers about one small list that has a bit of everything. The rules ask only some of these
//! questions; stores and their conformance suite ask all of them.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use taskbus_core::board::Board;
use taskbus_core::change::{Change, Kind};
use taskbus_core::decide::World;
use taskbus_core::document;
use taskbus_core::id::TaskId;
use taskbus_core::name::Identity;
use taskbus_core::neighbourhood::{ListRules, Neighbourhood, ReadyScan, Sibling, Tally};
use taskbus_core::policy::Policy;
use taskbus_core::rank::Rank;
use taskbus_core::task::{Stamp, Task};
use taskbus_core::time::Timestamp;

const NOW: i64 = 1_000;

fn id(number: u64) -> TaskId {
    TaskId::Number(number)
}

fn ids(numbers: &[u64]) -> Vec<TaskId> {
    numbers.iter().map(|number| id(*number)).collect()
}

fn who(name: &str) -> Identity {
    Identity::new(name).unwrap()
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// A pending task at this rank, with these fields besides.
fn task(number: u64, rank: &str, fields: &Value) -> Task {
    let mut all = json!({"subject": format!("task {number}"), "status": "pending", "rank": rank, "created_at": 1});
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    document::decode(id(number), 1, Stamp { at: at(1), by: None }, &all.to_string()).unwrap()
}

fn rank(text: &str) -> Rank {
    task(1, text, &json!({})).rank
}

fn put(board: &mut Board, kind: Kind, task: Task) {
    board.put(&Change { kind, task, note: None });
}

/// ```text
///  1
///  ├─ 2
///  └─ 3  blocked by 2, and by 9, which is not there
///     └─ 4  zed's until 1,010, with a path
///  5  amp's, without a lease; amp's session ends now
///  6  completed
///  7  deferred until 1,005; its parent 99 is not there
///  8  parked
/// 10  jan's
/// 11  deleted; it is blocked by 6
/// 13  blocked by 12, which is there and cannot be read
/// ```
fn board(policy: Policy) -> Board {
    let mut board = Board::new(ListRules { policy, ..ListRules::default() });
    board.set_alive(who("zed"), at(NOW + 1));
    board.set_alive(who("amp"), at(NOW));
    board.set_unreadable([id(12)]);
    let tasks = [
        task(1, "V1", &json!({})),
        task(2, "V1", &json!({"parent": 1})),
        task(3, "V2", &json!({"parent": 1, "blocked_by": [2, 9]})),
        task(
            4,
            "V1",
            &json!({"parent": 3, "status": "in_progress", "owner": "zed", "leased_until": NOW + 10,
            "paths": ["src/**"]}),
        ),
        task(5, "V2", &json!({"status": "in_progress", "owner": "amp"})),
        task(6, "V3", &json!({"status": "completed", "completed_at": 5})),
        task(7, "V4", &json!({"parent": 99, "not_before": NOW + 5})),
        task(8, "V5", &json!({"parked": true})),
        task(10, "V6", &json!({"owner": "jan"})),
        task(11, "V7", &json!({"blocked_by": [6]})),
        task(13, "V8", &json!({"blocked_by": [12]})),
    ];
    for task in tasks {
        put(&mut board, Kind::Created, task);
    }
    let gone = board.get(&id(11)).unwrap().clone();
    put(&mut board, Kind::Deleted, gone);
    board
}

fn strict() -> Board {
    board(Policy::Strict)
}

fn shape(board: &Board) -> Vec<(u64, usize)> {
    board.in_order().into_iter().map(|(task, depth)| (task.id.as_number().unwrap(), depth)).collect()
}

#[test]
fn the_tree_is_read_depth_first() {
    let board = strict();
    let all = [(1, 0), (2, 1), (3, 1), (4, 2), (5, 0), (6, 0), (7, 0), (8, 0), (10, 0), (13, 0)];
    assert_eq!(shape(&board), all);
    assert_eq!(board.below(Some(&id(3)), 7), [(board.get(&id(4)).unwrap(), 7)]);
    let (depths, heights) = ([(1, 0), (3, 1), (4, 2), (7, 0), (99, 0)], [(1, 2), (3, 1), (4, 0), (99, 0)]);
    assert!(depths.iter().all(|(number, depth)| board.depth(&id(*number)).unwrap() == *depth));
    assert!(heights.iter().all(|(number, height)| board.height(&id(*number)).unwrap() == *height));
    assert!(board.path(&id(3)) < board.path(&id(4)) && board.path(&id(4)) < board.path(&id(5)));
    assert_eq!((board.path(&id(11)), board.path(&id(12))), (None, None));
    assert_eq!(board.tasks().count(), all.len());
    assert_eq!(board.tombstones().map(|task| &task.id).collect::<Vec<_>>(), [&id(11)]);
}

#[test]
fn a_parent_that_comes_or_goes_takes_its_children_along() {
    let mut board = strict();
    put(&mut board, Kind::Created, task(99, "V9", &json!({})));
    assert!(shape(&board).ends_with(&[(99, 0), (7, 1)]), "{:?}", shape(&board));
    board.forget(&id(99));
    assert!(shape(&board).contains(&(7, 0)) && board.get_tombstone(&id(99)).is_none());
    let three = board.get(&id(3)).unwrap().clone();
    put(&mut board, Kind::Deleted, three.clone());
    assert_eq!(shape(&board)[..4], [(1, 0), (2, 1), (4, 0), (5, 0)], "4 goes by its own rank");
    put(&mut board, Kind::Restored, three);
    assert_eq!(shape(&board)[..4], [(1, 0), (2, 1), (3, 1), (4, 2)]);
    assert_eq!(board.get_tombstone(&id(3)), None);
    let mut moved = board.get(&id(2)).unwrap().clone();
    (moved.parent, moved.rank) = (None, rank("V35"));
    put(&mut board, Kind::Changed, moved);
    assert_eq!(shape(&board)[..6], [(1, 0), (3, 1), (4, 2), (5, 0), (6, 0), (2, 0)]);
}

#[test]
fn siblings_are_in_the_order_of_their_ranks() {
    let board = strict();
    let sibling = |number, place: &str| Sibling { rank: self::rank(place), id: id(number) };
    let under = id(1);
    assert_eq!(board.siblings(Some(&under)).unwrap(), [sibling(2, "V1"), sibling(3, "V2")]);
    assert_eq!(board.last_sibling(Some(&under)).unwrap(), Some(sibling(3, "V2")));
    assert_eq!(board.last_sibling(Some(&id(2))).unwrap(), None);
    assert_eq!(board.sibling_before(Some(&under), &sibling(3, "V2")).unwrap(), Some(sibling(2, "V1")));
    assert_eq!(board.sibling_before(Some(&under), &sibling(2, "V1")).unwrap(), None);
    assert_eq!(board.sibling_after(Some(&under), &sibling(2, "V1")).unwrap(), Some(sibling(3, "V2")));
    assert_eq!(board.sibling_after(None, &sibling(10, "V6")).unwrap(), Some(sibling(13, "V8")));
    assert_eq!(board.children(&under, false, 9).unwrap(), ids(&[2, 3]));
    assert_eq!(board.children(&under, false, 1).unwrap(), ids(&[2]));
    let mut board = board;
    let mut done = task(2, "V1", &json!({"parent": 1, "status": "completed", "completed_at": 9}));
    done.revision = 2;
    put(&mut board, Kind::Changed, done);
    assert_eq!(board.children(&under, true, 9).unwrap(), ids(&[3]));
}

#[test]
fn who_is_known_is_alive_until_their_session_ends() {
    let board = strict();
    let asked = ["zed", "amp", "jan"].map(who);
    assert_eq!(asked.each_ref().map(|name| board.is_known(name).unwrap()), [true, true, false]);
    assert_eq!(asked.each_ref().map(|name| board.is_alive(name, at(NOW)).unwrap()), [true, false, false]);
    assert!(!board.is_alive(&who("zed"), at(NOW + 1)).unwrap());
}

#[test]
fn a_hold_is_suspect_when_its_lease_or_its_holder_has_ended() {
    let board = strict();
    let suspects = |now, limit| board.suspects(at(now), limit).unwrap();
    assert_eq!(suspects(NOW - 1, 9), ids(&[]), "both live");
    assert_eq!(suspects(NOW, 9), ids(&[5]), "amp is gone");
    assert_eq!(suspects(NOW + 1, 9), ids(&[4, 5]), "so is zed, whose lease runs");
    assert_eq!(suspects(NOW + 1, 1), ids(&[4]));
    let mut board = board;
    board.set_alive(who("zed"), at(NOW * 9));
    board.set_alive(who("amp"), at(NOW * 9));
    assert_eq!(board.suspects(at(NOW + 9), 9).unwrap(), ids(&[]));
    assert_eq!(board.suspects(at(NOW + 10), 9).unwrap(), ids(&[4]), "the lease ends, the holder lives");
    let held = |limit| board.held(limit).unwrap().into_iter().map(|task| task.id).collect::<Vec<_>>();
    assert_eq!((held(9), held(1)), (ids(&[4, 5]), ids(&[4])), "those without a lease last");
    let paths = board.paths_in_use().unwrap();
    assert_eq!(paths.iter().map(|(id, paths)| (id, paths.len())).collect::<Vec<_>>(), [(&id(4), 1)]);
}

#[test]
fn what_cannot_be_read_counts_as_live_and_open() {
    let board = strict();
    let asked = ids(&[1, 6, 9, 11, 12]);
    assert_eq!(board.live_of(&asked).unwrap(), ids(&[1, 6, 12]));
    assert_eq!(board.open_of(&asked).unwrap(), ids(&[1, 12]));
    assert_eq!([1, 12].map(|number| board.is_unreadable(&id(number))), [false, true]);
    assert_eq!(board.open_blockers(board.get(&id(13)).unwrap()), ids(&[12]));
    assert_eq!(board.task(&id(12)).unwrap(), None);
    assert!(board.task(&id(1)).unwrap().is_some() && board.tombstone(&id(1)).unwrap().is_none());
    assert!(board.task(&id(11)).unwrap().is_none() && board.tombstone(&id(11)).unwrap().is_some());
}

#[test]
fn those_who_wait_are_told_with_what_else_keeps_them() {
    let board = strict();
    let told = board.dependents(&id(2)).unwrap();
    assert_eq!(
        told.iter().map(|one| (&one.id, one.open_blockers, one.parked)).collect::<Vec<_>>(),
        [(&id(3), 1, false)]
    );
    assert_eq!(board.dependents(&id(9)).unwrap().len(), 1, "also of what is not there");
    assert!(board.dependents(&id(6)).unwrap().is_empty(), "the deleted wait for nobody");
}

#[test]
fn a_way_leads_from_blocker_to_blocker() {
    let mut board = strict();
    put(&mut board, Kind::Changed, task(5, "V2", &json!({"blocked_by": [8, 3]})));
    put(&mut board, Kind::Changed, task(8, "V5", &json!({"blocked_by": [10]})));
    let way = |from, to| board.way(&id(from), &id(to)).unwrap();
    assert_eq!((way(5, 2), way(5, 10), way(5, 5)), (Some(ids(&[5, 3, 2])), Some(ids(&[5, 8, 10])), Some(ids(&[5]))));
    assert_eq!((way(2, 5), way(5, 13)), (None, None));
    assert_eq!(way(3, 9), Some(ids(&[3, 9])), "a link to what is not there is a link");
    // Where the deleted are kept, links lead through them.
    let (kept, dropped) =
        (board_with_a_way_through_the_deleted(Policy::Kin), board_with_a_way_through_the_deleted(Policy::Strict));
    assert_eq!(kept.way(&id(13), &id(6)).unwrap(), Some(ids(&[13, 11, 6])));
    assert_eq!(dropped.way(&id(13), &id(6)).unwrap(), None);
}

fn board_with_a_way_through_the_deleted(policy: Policy) -> Board {
    let mut board = board(policy);
    put(&mut board, Kind::Changed, task(13, "V8", &json!({"blocked_by": [11]})));
    board
}

#[test]
fn each_task_is_counted_once() {
    let tally = strict().tally(at(NOW)).unwrap();
    assert_eq!(tally, Tally { ready: 3, blocked: 2, deferred: 1, parked: 1, in_progress: 2, completed: 1 });
    assert_eq!((tally.total(), tally.pending()), (10, 7));
    let later = strict().tally(at(NOW + 5)).unwrap();
    assert_eq!((later.ready, later.deferred), (4, 0), "due at its time");
}

#[test]
fn the_ready_come_in_order_from_where_one_says() {
    let board = strict();
    let scan = ReadyScan { assigned_to: None, below: None, now: at(NOW), behind: None, limit: 9 };
    let found = |scan: &ReadyScan| board.ready(scan).unwrap().into_iter().map(|task| task.id).collect::<Vec<_>>();
    assert_eq!(found(&scan), ids(&[1, 2]));
    assert_eq!(found(&ReadyScan { now: at(NOW + 5), ..scan.clone() }), ids(&[1, 2, 7]));
    assert_eq!(found(&ReadyScan { limit: 1, ..scan.clone() }), ids(&[1]));
    assert_eq!(found(&ReadyScan { behind: Some(id(1)), ..scan.clone() }), ids(&[2]));
    assert_eq!(found(&ReadyScan { behind: Some(id(2)), ..scan.clone() }), ids(&[]));
    assert_eq!(found(&ReadyScan { below: Some(id(1)), ..scan.clone() }), ids(&[2]));
    assert_eq!(found(&ReadyScan { assigned_to: Some(who("jan")), ..scan }), ids(&[10]));
}

#[test]
fn ids_go_on_behind_the_largest_there_ever_was() {
    let mut board = strict();
    assert_eq!(board.mint(2).unwrap(), ids(&[14, 15]));
    put(&mut board, Kind::Deleted, task(20, "V1", &json!({})));
    board.forget(&id(20));
    assert_eq!(board.mint(1).unwrap(), ids(&[21]));
    let change = Change { kind: Kind::Created, task: task(30, "V1", &json!({})), note: None };
    board.apply(change).unwrap();
    assert!(board.get(&id(30)).is_some() && board.mint(1).unwrap() == ids(&[31]));
}
