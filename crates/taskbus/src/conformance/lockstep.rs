//! Random calls, sent to two drivers in lockstep: every answer must be the same, to the letter.
//!
//! The memory store is the model; whatever else keeps tasks must answer as it does, order, ties, refusals and
//! sequence numbers included.

use serde_json::{Map, Value, json};

use super::Driver;

/// A stream of random numbers that one seed decides (SplitMix64, Steele, Lea and Flood 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.draw() % bound.max(1) as u64).unwrap_or(0)
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// What one lockstep run has seen, so that a test can ask for enough of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Calls answered.
    pub done: usize,
    /// Calls refused.
    pub refused: usize,
}

/// Sends one random call to both drivers and compares. `ids` are the ids given out so far; new ones are added.
///
/// # Panics
/// When the answers differ.
pub fn step(random: &mut Random, ids: &mut Vec<Value>, seen: &mut Seen, left: &mut dyn Driver, right: &mut dyn Driver) {
    if random.one_in(20) {
        let seconds = *random.pick(&[1, 10, 29, 31, 60]);
        assert!(left.pass(seconds) && right.pass(seconds), "both drivers have a clock that can be moved");
    }
    if random.one_in(40) {
        let actor = random.pick(&ACTORS);
        assert!(left.kill(actor) && right.kill(actor), "both drivers can end a process");
        assert!(left.pass(31) && right.pass(31), "its name is free after 30 s");
    }
    let actor = random.pick(&ACTORS);
    let (tool, arguments) = call(random, ids);
    let (ours, theirs) = (left.call(actor, tool, &arguments), right.call(actor, tool, &arguments));
    assert_eq!(ours, theirs, "{actor} {tool} {}", Value::Object(arguments));
    match ours {
        Ok(answer) => {
            seen.done += 1;
            remember(ids, tool, &answer);
        }
        Err(_) => seen.refused += 1,
    }
}

const ACTORS: [&str; 3] = ["zed", "amp", "jan"];

fn remember(ids: &mut Vec<Value>, tool: &str, answer: &Value) {
    match tool {
        "task_create" => ids.push(answer["task"]["id"].clone()),
        "task_plan" => ids.extend(answer["tasks"].as_array().into_iter().flatten().map(|task| task["id"].clone())),
        _ => {}
    }
}

fn call(random: &mut Random, ids: &[Value]) -> (&'static str, Map<String, Value>) {
    let id = |random: &mut Random| if ids.is_empty() { json!(1) } else { random.pick(ids).clone() };
    let (tool, arguments) = match random.below(20) {
        0..=3 => ("task_create", draft(random, ids)),
        4 => ("task_plan", plan(random)),
        5..=7 => ("task_claim", json!({"task_id": id(random), "lease_seconds": random.pick(&["", "5", "60"])})),
        8 => ("task_release", json!({"task_id": id(random)})),
        9..=11 => ("task_update", json!({"task_id": id(random), "status": "completed"})),
        12 | 13 => ("task_next", json!({"count": random.pick(&["1", "3"]), "lease_seconds": random.pick(&["", "5"])})),
        14 => ("task_update", json!({"task_id": id(random), "delete": random.pick(&["true", "true", "false"])})),
        15 => ("task_get", json!({"task_id": id(random)})),
        16 => ("task_list", page(random)),
        _ => ("task_update", patch(random, ids)),
    };
    let Value::Object(arguments) = arguments else { unreachable!("a call's arguments are an object") };
    (tool, arguments)
}

fn draft(random: &mut Random, ids: &[Value]) -> Value {
    let mut draft = json!({"subject": random.pick(&["port", "Port", "pört", "\u{1F980} work"])});
    links(&mut draft, random, ids, "blocked_by");
    if random.one_in(6) {
        draft["labels"] = json!(["rust"]);
    }
    if random.one_in(6) {
        draft["paths"] = json!([random.pick(&["src/**", "src/lib.rs", "docs/*"])]);
    }
    if random.one_in(10) {
        draft["idempotency_key"] = (*random.pick(&["k1", "k2", "k3"])).into();
    }
    draft
}

fn links(object: &mut Value, random: &mut Random, ids: &[Value], blockers: &str) {
    if ids.is_empty() {
        return;
    }
    if random.one_in(3) {
        object["parent"] = random.pick(ids).clone();
    }
    if random.one_in(3) {
        object[*random.pick(&["before", "after"])] = random.pick(ids).clone();
    }
    if random.one_in(2) {
        object[blockers] = json!([random.pick(ids), random.pick(ids)]);
    }
}

fn plan(random: &mut Random) -> Value {
    let tasks = (0..1 + random.below(4)).map(|at| {
        let blockers = if at > 0 && random.one_in(2) { json!([format!("p{}", at - 1)]) } else { json!([]) };
        let mut task = json!({"key": format!("p{at}"), "subject": "planned", "blocked_by": blockers});
        if at > 0 && random.one_in(3) {
            task["parent"] = "p0".into();
        }
        task
    });
    json!({"tasks": tasks.collect::<Vec<_>>()})
}

fn patch(random: &mut Random, ids: &[Value]) -> Value {
    let mut patch = json!({"task_id": if ids.is_empty() { json!(1) } else { random.pick(ids).clone() }});
    links(&mut patch, random, ids, "add_blocked_by");
    if random.one_in(4) && !ids.is_empty() {
        patch["remove_blocked_by"] = json!([random.pick(ids)]);
    }
    for (key, values) in FIELDS {
        if random.one_in(6) {
            patch[key] = (*random.pick(values)).into();
        }
    }
    if random.one_in(6) {
        patch["metadata"] = json!({*random.pick(&["a", "b"]): random.pick(&["", "1", "2"])});
    }
    patch
}

const FIELDS: [(&str, &[&str]); 8] = [
    ("status", &["pending", "in_progress", "completed"]),
    ("owner", &["", "zed", "amp", "nobody-ever"]),
    ("description", &["", "long"]),
    ("parent", &["0"]),
    ("lease_seconds", &["5", "60"]),
    ("force", &["true"]),
    ("note", &["seen"]),
    ("fence", &["0", "1", "2"]),
];

fn page(random: &mut Random) -> Value {
    let mut page = json!({"limit": random.pick(&["1", "3", "50"])});
    if random.one_in(3) {
        page["view"] = (*random.pick(&["ready", "blocked"])).into();
    }
    if random.one_in(3) {
        page["status"] = (*random.pick(&["pending", "in_progress", "completed"])).into();
    }
    if random.one_in(4) {
        page["owner"] = (*random.pick(&ACTORS)).into();
    }
    page
}
