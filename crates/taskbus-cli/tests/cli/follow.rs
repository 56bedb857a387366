//! `subscribe` and `unsubscribe`: the file of a repository, from outside.

use crate::common::{Place, git, run};

#[test]
fn what_a_repository_follows_is_kept_in_its_file() {
    let place = Place::new();
    let repo = place.path("widget");
    git(&place.path("work"), &["init", "-q", repo.to_str().unwrap()]);
    std::fs::create_dir(repo.join("src")).unwrap();
    let file = repo.join(".local/taskbus.json");
    let call = |args: &[&str]| {
        let mut all = vec!["--json"];
        all.extend(args);
        run(place.bare(&all).current_dir(repo.join("src")))
    };
    assert_eq!(call(&["subscribe", "general/widget"]).value()["changed"], true);
    let first = std::fs::read_to_string(&file).unwrap();
    assert!(first.contains("\"identity\": \"widget\"") && first.contains("\"general/widget\""), "{first}");
    assert_eq!(call(&["subscribe", "general/widget"]).value()["changed"], false);
    assert_eq!(call(&["subscribe", "--tags", "bug,db*"]).value()["tag_subscriptions"][0][1], "db*");
    assert_eq!(call(&["unsubscribe", "--tags", "DB*,bug"]).value()["changed"], true);
    assert_eq!(call(&["unsubscribe", "general/widget"]).value()["channels"].as_array().unwrap().len(), 2);
    let words = run(place.bare(&["subscribe", "memory/widget"]).current_dir(&repo));
    assert!(words.out.contains("follow general, memory, memory/widget from their next"), "{words:?}");
}

#[test]
fn a_file_that_is_wrong_is_left_alone() {
    let place = Place::new();
    let repo = place.path("widget");
    git(&place.path("work"), &["init", "-q", repo.to_str().unwrap()]);
    std::fs::create_dir(repo.join(".local")).unwrap();
    let file = repo.join(".local/taskbus.json");
    let call = |args: &[&str]| run(place.bare(args).current_dir(&repo));
    for text in ["{\"identity\": ", "{\"identity\": \"\"}", "{\"channels\": []}"] {
        std::fs::write(&file, text).unwrap();
        let ran = call(&["subscribe", "general/widget"]);
        assert!(ran.code == 2 && ran.err.contains(".local/taskbus.json"), "{text}: {ran:?}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    }
    std::fs::remove_file(&file).unwrap();
    for channel in ["dm/Zed", "a/b", "", "tasks"] {
        let ran = call(&["subscribe", channel]);
        assert!(ran.code != 0 && !file.exists(), "{channel}: {ran:?}");
    }
    let outside = run(&mut place.bare(&["subscribe", "general/x"]));
    assert!(outside.code == 2 && outside.err.contains("no Git repository"), "{outside:?}");
}
