//! Tasks whose files somebody else removed: told, never brought back by themselves.

use std::fs;

use serde_json::json;
use taskbus::store::rows::RowStore as _;

use crate::support::{Place, numbers};

fn lost(place: &Place) -> Vec<u64> {
    numbers(place.store.vanished().unwrap().iter().map(|lost| &lost.task.id))
}

#[test]
fn a_cleared_list_is_noticed_and_its_last_state_is_kept() {
    let place = Place::new();
    for id in 1..=3 {
        place.put_task(id, &json!({"status": "completed", "owner": "worker"}));
    }
    assert_eq!(place.live().len(), 3);
    let seen = place.store.version().unwrap();
    // As Claude Code does, some seconds after the last task is completed.
    (1..=3).for_each(|id| fs::remove_file(place.file(&format!("{id}.json"))).unwrap());
    place.put(".highwatermark", "3");
    assert_ne!(place.store.version().unwrap(), seen);
    let vanished = place.store.vanished().unwrap();
    assert!(vanished.iter().all(|lost| lost.cleared));
    assert_eq!((lost(&place), vanished[2].task.owner().unwrap().as_str()), (vec![1, 2, 3], "worker"));
    assert_eq!(place.problems()[0], "task 1 (task 1) is gone: the list was cleared by another program");
    assert_eq!((place.create("next", &[]), place.live()), (4, vec![4]), "nothing comes back by itself");
    assert_eq!(lost(&place), [1, 2, 3]);
}

#[test]
fn a_single_file_that_goes_is_told_and_forgotten_when_it_returns() {
    let place = Place::new();
    place.put_task(1, &json!({}));
    place.put_task(2, &json!({}));
    assert_eq!(place.live(), [1, 2]);
    let text = place.text("2.json");
    fs::remove_file(place.file("2.json")).unwrap();
    assert_eq!((place.live(), lost(&place)), (vec![1], vec![2]));
    assert!(!place.store.vanished().unwrap()[0].cleared);
    place.put("2.json", &text);
    assert_eq!((place.live(), lost(&place)), (vec![1, 2], vec![]));
}

#[test]
fn a_directory_that_goes_is_a_cleared_list() {
    let place = Place::new();
    place.create("a", &[]);
    fs::remove_dir_all(place.path()).unwrap();
    assert_eq!((place.live(), lost(&place)), (vec![], vec![1]));
    assert_eq!(place.create("b", &[]), 2);
}

#[test]
fn what_we_delete_ourselves_has_not_vanished() {
    let place = Place::new();
    place.create("a", &[]);
    place.create("b", &[1]);
    assert!(place.delete(1) && place.delete(2));
    assert_eq!((place.live(), lost(&place)), (vec![], vec![]));
}
