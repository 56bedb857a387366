//! Every command: its JSON, its exit code, and what it does.

use serde_json::{Value, json};

use crate::common::Place;

/// A place with three tasks: 2 waits for 1, 3 is a part of 1.
fn three() -> Place {
    let place = Place::new();
    place.ok(&["add", "first"]);
    place.ok(&["add", "second", "--blocked-by", "1", "--label", "rust"]);
    place.ok(&["add", "third", "--parent", "1"]);
    place
}

#[test]
fn add_answers_with_the_task() {
    let place = Place::new();
    let added = place.ok(&[
        "add",
        "subject",
        "--description",
        "long",
        "--active-form",
        "Doing",
        "--label",
        "a,b",
        "--label",
        "c",
        "--path",
        "src/**",
        "--meta",
        "k=v=w",
    ]);
    let task = &added["task"];
    assert_eq!(task["id"], 1);
    assert_eq!(
        (&task["channel"], &task["status"], &task["created_by"]),
        (&json!("tasks/demo"), &json!("pending"), &json!("zed"))
    );
    assert_eq!((&task["labels"], &task["paths"]), (&json!(["a", "b", "c"]), &json!(["src/**"])));
    assert_eq!(task["metadata"], json!({"k": "v=w"}));
    for list in ["open_blockers", "blocked_by", "blocks"] {
        assert_eq!(task[list], json!([]), "{list} is never missing");
    }
}

#[test]
fn the_way_of_a_task() {
    let place = three();
    let claimed = place.ok(&["claim", "#001", "--lease", "30m"]);
    assert_eq!((&claimed["task"]["owner"], &claimed["task"]["fence"]), (&json!("zed"), &json!(1)));
    assert_eq!((&claimed["unblocked"], &claimed["warnings"]), (&json!([]), &json!([])));
    let refusal = place.refused(&["claim", "1", "--as", "amp"]);
    assert_eq!(
        (&refusal["code"], &refusal["reason"], &refusal["owner"]),
        (&json!("conflict"), &json!("held"), &json!("zed"))
    );
    assert_eq!(place.refused(&["done", "1", "--fence", "7"])["reason"], "lease_lost");
    let done = place.ok(&["done", "1", "--result", "all of it", "--fence", "1"]);
    assert_eq!((&done["task"]["status"], &done["task"]["result"]), (&json!("completed"), &json!("all of it")));
    assert_eq!((&done["unblocked"], &done["open_children"]), (&json!([2]), &json!([3])));
    let shown = place.ok(&["show", "1", "--history"]);
    assert_eq!(shown["task"]["history"].as_array().unwrap().len(), 3);
    assert_eq!(place.ok(&["log", "1"])["history"], shown["task"]["history"]);
}

#[test]
fn next_takes_completes_and_says_why_not() {
    let place = three();
    let first = place.ok(&["next"]);
    assert_eq!(first["task"]["id"], 1);
    let second = place.ok(&["next", "--complete", "1", "--result", "r", "--label", "rust"]);
    assert_eq!((&second["completed"]["task"]["status"], &second["task"]["id"]), (&json!("completed"), &json!(3)));
    let both = place.ok(&["next", "--count", "5", "--label", "rust", "--as", "amp"]);
    assert_eq!(both["tasks"][0]["id"], 2);
    let none = place.ok(&["next", "--as", "amy"]);
    assert_eq!((&none["idle"]["advice"], none.get("task")), (&json!("wait"), None));
    let none = place.ok(&["next", "--as", "amy", "--count", "2"]);
    assert_eq!(none["tasks"], json!([]));
    let (code, late) = place.json(&["next", "--as", "amy", "--wait", "1s"]);
    assert_eq!((code, &late["idle"]["in_progress"]), (4, &json!(2)));
}

#[test]
fn release_update_rm_restore() {
    let place = three();
    place.ok(&["claim", "1"]);
    assert_eq!(place.ok(&["release", "1", "--note", "tired"])["task"]["status"], "pending");
    let again = place.ok(&["release", "1"]);
    assert!(again["warnings"][0].as_str().unwrap().contains("no change"), "{again}");
    let updated = place.ok(&[
        "update",
        "3",
        "--subject",
        "--third",
        "--parent",
        "none",
        "--before",
        "1",
        "--meta",
        "a=1",
        "--not-before",
        "2h",
    ]);
    assert_eq!((&updated["task"]["subject"], updated["task"].get("parent")), (&json!("--third"), None));
    let order: Vec<Value> = place.ok(&["list"])["tasks"].as_array().unwrap().iter().map(|t| t["id"].clone()).collect();
    assert_eq!(order, [3, 1, 2]);
    place.ok(&["update", "3", "--meta", "a=", "--label", "x", "--not-before", "none", "--description", "d"]);
    let task = place.ok(&["update", "3", "--label", "", "--description", ""])["task"].clone();
    assert_eq!((&task["labels"], task.get("metadata"), task.get("description")), (&json!([]), None, None));
    assert_eq!(place.refused(&["update", "3", "--subject", "x", "--if-revision", "1"])["reason"], "revision");
    assert_eq!(place.ok(&["rm", "3"])["deleted"], true);
    assert_eq!(place.refused(&["show", "3"])["code"], "not_found");
    assert_eq!(place.ok(&["restore", "3"])["task"]["id"], 3);
    assert_eq!(place.refused(&["restore", "99"])["code"], "not_found");
}

#[test]
fn owners_are_assigned_and_taken_away() {
    let place = three();
    assert_eq!(place.refused(&["update", "1", "--owner", "stranger"])["code"], "not_found");
    place.ok(&["next", "--as", "amp", "--parent", "3"]);
    assert_eq!(place.ok(&["update", "1", "--owner", "amp"])["task"]["owner"], "amp");
    assert_eq!(place.refused(&["claim", "1"])["reason"], "assigned");
    assert_eq!(place.ok(&["update", "1", "--owner", ""])["task"].get("owner"), None);
    assert_eq!(place.ok(&["list", "--owner", "amp"])["tasks"], json!([]));
}

#[test]
fn lists_of_tasks_have_true_totals_and_cursors() {
    let place = three();
    let page = place.ok(&["list", "--limit", "2"]);
    assert_eq!(
        (&page["total"], &page["truncated"], page["tasks"].as_array().unwrap().len()),
        (&json!(3), &json!(true), 2)
    );
    let cursor = page["next"].as_str().unwrap();
    let rest = place.ok(&["list", "--limit", "2", "--cursor", cursor]);
    assert_eq!((&rest["tasks"][0]["id"], &rest["total"], &rest["truncated"]), (&json!(2), &json!(3), &json!(false)));
    assert_eq!(place.ok(&["tree", "--all"])["tasks"].as_array().unwrap().len(), 3);
    let ids = |args: &[&str]| -> Vec<u64> {
        place.ok(args)["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_u64().unwrap()).collect()
    };
    assert_eq!(ids(&["ready"]), [1, 3]);
    assert_eq!(ids(&["blocked"]), [2]);
    assert_eq!(ids(&["list", "--label", "rust"]), [2]);
    assert_eq!(ids(&["list", "--below", "1"]), [3]);
    assert_eq!(ids(&["list", "--status", "completed"]), [0; 0]);
    assert_eq!(place.refused(&["list", "--cursor", "nonsense"])["code"], "validation");
    assert_eq!(place.refused(&["list", "--limit", "201"])["code"], "validation");
    let words = place.run(&["tree"]).out;
    assert_eq!(words, "ID  TASK\n 1  ○ first\n 3    ○ third\n 2  ⊘ second   after #1, @rust\n");
}

#[test]
fn many_pages_come_as_one_with_all() {
    let place = Place::new();
    let tasks: Vec<Value> = (0..450).map(|number| json!({"subject": format!("task {number}")})).collect();
    assert_eq!(place.run_with_input(&["plan", "-", "--create"], json!(tasks).to_string().as_bytes()).code, 0);
    let all = place.ok(&["list", "--all"]);
    assert_eq!((all["tasks"].as_array().unwrap().len(), &all["total"], all.get("next")), (450, &json!(450), None));
    assert_eq!(place.ok(&["list"])["tasks"].as_array().unwrap().len(), 50);
}

#[test]
fn why_names_what_is_in_the_way() {
    let place = three();
    let why = place.ok(&["why", "2"]);
    assert_eq!(
        (&why["ready"], &why["blockers"][0]["id"], &why["blockers"][0]["ready"]),
        (&json!(false), &json!(1), &json!(true))
    );
    assert_eq!(why["reasons"].as_array().unwrap().len(), 1);
    let free = place.ok(&["why", "1"]);
    assert_eq!((&free["ready"], &free["reasons"], &free["blockers"]), (&json!(true), &json!([]), &json!([])));
}

#[test]
fn wait_ends_when_a_task_is_ready() {
    let place = Place::new();
    place.ok(&["add", "only"]);
    assert_eq!(place.ok(&["wait", "--ready", "--for", "1s"])["ready"], true);
    place.ok(&["claim", "1"]);
    let (code, late) = place.json(&["wait", "--ready", "--for", "1s"]);
    assert_eq!((code, &late["ready"], &late["tally"]["in_progress"]), (4, &json!(false), &json!(1)));
    let waiting = place
        .command(&["wait", "--ready", "--for", "5m", "--json"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    place.ok(&["release", "1"]);
    let output = waiting.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn who_lists_status_doctor() {
    let place = three();
    place.ok(&["claim", "1"]);
    let who = place.ok(&["who"]);
    assert_eq!((&who["total"], &who["sessions"][0]["name"]), (&json!(1), &json!("zed")));
    assert_eq!(place.ok(&["lists"])["lists"], json!([{"name": "tasks/demo", "tasks": 3, "latest_seq": 4}]));
    let status = place.ok(&["status"]);
    assert_eq!(
        (&status["as"], &status["channel"], &status["durable"]),
        (&json!("zed"), &json!("tasks/demo"), &json!(true))
    );
    assert_eq!((&status["tally"]["in_progress"], &status["tally"]["blocked"]), (&json!(1), &json!(1)));
    let doctor = place.ok(&["doctor"]);
    assert_eq!(doctor["ok"], true);
    assert!(doctor["checks"].as_array().unwrap().iter().all(|check| check["ok"] == true), "{doctor}");
}

#[test]
fn verify_tells_what_somebody_changed_behind_the_store() {
    let place = three();
    place.ok(&["claim", "1"]);
    let sound = place.ok(&["verify"]);
    assert_eq!((&sound["ok"], &sound["revisions"], &sound["tasks"]), (&json!(true), &json!(4), &json!(3)), "{sound}");
    assert_eq!((&sound["seq"], sound["head"].as_str().unwrap().len()), (&json!(4), 64));
    let file = sound["store"].as_str().unwrap().strip_prefix("sqlite:").unwrap();
    let raw = rusqlite::Connection::open(file).unwrap();
    raw.execute("UPDATE messages SET note = 'never said' WHERE seq = 2", []).unwrap();
    raw.execute("UPDATE tasks SET subject = 'other' WHERE id = 3", []).unwrap();
    let (code, found) = place.json(&["verify"]);
    assert_eq!((code, &found["ok"], &found["more"]), (1, &json!(false), &json!(0)), "{found}");
    let differences = found["differences"].as_array().unwrap();
    assert_eq!((&differences[0]["seq"], &differences[1]["task"]), (&json!(2), &json!(3)), "{found}");
    assert_eq!(differences[1]["column"], "subject");
    assert!(found["next"].as_str().unwrap().contains("somewhere else before anything else"), "{found}");
    let (code, doctor) = place.json(&["doctor"]);
    assert_eq!((code, &doctor["ok"]), (1, &json!(false)), "the doctor sees it too: {doctor}");
}

#[test]
fn a_store_that_was_put_back_is_used_again_when_somebody_says_so() {
    let place = three();
    let file = place.ok(&["verify"])["store"].as_str().unwrap().strip_prefix("sqlite:").unwrap().to_owned();
    rusqlite::Connection::open(&file).unwrap().execute("VACUUM INTO ?1", [format!("{file}.aside")]).unwrap();
    place.ok(&["add", "lost"]);
    std::fs::remove_file(format!("{file}-wal")).unwrap();
    std::fs::rename(format!("{file}.aside"), &file).unwrap();
    let (code, refused) = place.json(&["add", "another"]);
    assert_eq!((code, &refused["error"]["reason"]), (3, &json!("store_rolled_back")), "{refused}");
    assert_eq!(place.ok(&["list"])["total"], 3);
    let (code, doctor) = place.json(&["doctor"]);
    assert!(code == 3 && doctor["checks"].to_string().contains("acknowledged changes are missing"), "{doctor}");
    let doctor = place.ok(&["doctor", "--accept-rollback"])["checks"].to_string();
    assert!(doctor.contains("epoch 2 begins; changes after 3 are lost"), "{doctor}");
    place.ok(&["add", "another"]);
    assert!(place.ok(&["doctor", "--accept-rollback"])["checks"].to_string().contains("nothing is missing"));
}

#[test]
fn a_backup_is_made_and_comes_back() {
    let place = three();
    let made = place.ok(&["backup", "copy.db"]);
    assert_eq!((&made["tasks"], &made["seq"], &made["epoch"]), (&json!(3), &json!(3), &json!(1)), "{made}");
    let (code, there) = place.json(&["backup", "copy.db"]);
    assert!(code == 3 && there["error"]["message"].as_str().unwrap().contains("--force"), "{there}");
    place.ok(&["backup", "copy.db", "--force"]);
    place.ok(&["add", "later"]);
    let back = place.ok(&["restore-backup", "copy.db"]);
    assert_eq!((&back["kept"], &back["tasks"], &back["epoch"]), (&json!(3), &json!(3), &json!(2)), "{back}");
    assert!(std::fs::exists(back["replaced"].as_str().unwrap()).unwrap());
    assert_eq!(place.ok(&["list"])["total"], 3);
    assert!(place.ok(&["add", "after"])["task"]["id"].as_u64().unwrap() > 4);
    assert_eq!(place.ok(&["verify"])["ok"], true);
    let (code, _) = place.json(&["backup", "copy.db", "--store", "memory:"]);
    assert_eq!(code, 2);
}

#[test]
fn empty_stores_have_empty_lists() {
    let place = Place::new();
    assert_eq!(place.ok(&["lists"])["lists"], json!([]));
    assert_eq!(place.ok(&["who"])["sessions"], json!([]));
    for command in [&["list"][..], &["tree"], &["ready"], &["blocked"], &["next"], &["wait", "--ready"]] {
        let refusal = place.refused(command);
        assert_eq!((&refusal["code"], &refusal["channel"]), (&json!("not_found"), &json!("tasks/demo")), "{command:?}");
    }
    let status = place.ok(&["status"]);
    assert_eq!((&status["exists"], status.get("tally")), (&json!(false), None));
}

#[test]
fn a_store_that_cannot_be_used_is_exit_code_three() {
    let place = Place::new();
    let text = place.write("text.db", "this is no database, and it stays what it is\n");
    let store = format!("sqlite:{text}");
    for command in [&["list"][..], &["add", "x"], &["status"], &["doctor"], &["verify"]] {
        let mut args = vec!["--store", &store];
        args.extend(command);
        let (code, value) = place.json(&args);
        assert_eq!(code, 3, "{value}");
    }
    let (_, value) = place.json(&["--store", &store, "list"]);
    assert_eq!((&value["error"]["code"], &value["error"]["reason"]), (&json!("internal"), &json!("store_damaged")));
    assert_eq!(std::fs::read_to_string(text).unwrap(), "this is no database, and it stays what it is\n");
}

#[test]
fn a_repeated_key_answers_as_the_first_time() {
    let place = Place::new();
    let first = place.ok(&["add", "once", "--key", "k"]);
    assert_eq!(place.ok(&["add", "once", "--key", "k"]), first);
    assert_eq!(place.refused(&["add", "other", "--key", "k"])["reason"], "key_reused");
    assert_eq!(place.ok(&["list"])["total"], 1);
}

#[test]
fn force_is_on_record() {
    let place = three();
    place.ok(&["claim", "1"]);
    assert_eq!(place.refused(&["release", "1", "--as", "amp"])["reason"], "held");
    place.ok(&["release", "1", "--as", "amp", "--force"]);
    assert_eq!(place.ok(&["log", "1"])["history"][0]["kind"], "forced");
}

#[test]
fn scripts_and_pages_are_printed() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let ran = place.run(&["completions", shell]);
        assert!(ran.code == 0 && ran.out.contains("taskbus"), "{shell}");
    }
    assert!(place.ok(&["completions", "bash"])["script"].as_str().unwrap().contains("restore"));
    assert!(place.run(&["man"]).out.contains(".TH taskbus"));
    assert!(place.run(&["man", "plan"]).out.contains("checklist"));
    assert_eq!(place.run(&["man", "nonsense"]).code, 2);
    assert!(place.run(&["--help"]).out.contains("Exit codes"));
    assert!(place.run(&["--version"]).out.starts_with("taskbus "));
    let hidden = place.run(&["--help"]).out;
    assert!(!hidden.contains("demo-worker"), "{hidden}");
}
