//! Runs scenario scripts against anything that answers tool calls: an engine over a store, an MCP server, the
//! command line. The expected answers are the same everywhere.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::script::{Deed, Expected, parse};

/// Every script: its name and its text.
pub const ALL: &[(&str, &str)] = &[
    ("claims", include_str!("../../scenarios/claims.txt")),
    ("dependencies", include_str!("../../scenarios/dependencies.txt")),
    ("edits", include_str!("../../scenarios/edits.txt")),
    ("hierarchy", include_str!("../../scenarios/hierarchy.txt")),
    ("leases", include_str!("../../scenarios/leases.txt")),
    ("next", include_str!("../../scenarios/next.txt")),
    ("order", include_str!("../../scenarios/order.txt")),
    ("plan", include_str!("../../scenarios/plan.txt")),
    ("sessions", include_str!("../../scenarios/sessions.txt")),
    ("status", include_str!("../../scenarios/status.txt")),
];

/// Something that answers tool calls on one fresh list.
pub trait Driver {
    /// Calls a tool as somebody, who is registered on first use. The result object, or the refusal object.
    ///
    /// # Errors
    /// The refusal: `{code, message, …facts}`.
    fn call(&mut self, actor: &str, tool: &str, arguments: &Map<String, Value>) -> Result<Value, Value>;

    /// Whether a call can be put in this driver's form at all; one that cannot is passed over.
    fn can(&self, _tool: &str, _arguments: &Map<String, Value>) -> bool {
        true
    }

    /// Whether refusals of a tool carry the facts of the rules; if not, only their code is compared.
    fn has_facts(&self, _tool: &str) -> bool {
        true
    }

    /// Lets time pass; `false` when it cannot.
    fn pass(&mut self, seconds: u64) -> bool;

    /// Ends somebody's process without a goodbye; `false` when it cannot.
    fn kill(&mut self, actor: &str) -> bool;
}

/// How a script went, when nothing was wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ran {
    /// All steps, and how many.
    Whole(usize),
    /// Not run further than this line, because the driver lacks an ability.
    Stopped {
        /// The line.
        line: usize,
        /// The ability.
        lacks: &'static str,
    },
}

/// Runs a script.
///
/// # Panics
/// When an answer is not as expected, with the script's line.
#[track_caller]
pub fn run(name: &str, text: &str, driver: &mut dyn Driver) -> Ran {
    let mut names: BTreeMap<String, Value> = BTreeMap::new();
    let steps = parse(text);
    for step in &steps {
        let stopped = |lacks| Ran::Stopped { line: step.line, lacks };
        match &step.deed {
            Deed::Clock(seconds) if !driver.pass(*seconds) => return stopped("a clock that can be moved"),
            Deed::Dies(actor) if !driver.kill(actor) => return stopped("processes that can be killed"),
            Deed::Clock(_) | Deed::Dies(_) => {}
            Deed::Call { tool, arguments, .. } if !driver.can(tool, arguments) => {}
            Deed::Call { actor, tool, arguments, binds, expected } => {
                let answer = driver.call(actor, tool, &resolved(arguments, &names));
                bind(&mut names, binds.as_deref(), answer.as_ref().ok());
                let place = format!("{name}, line {}: {actor} {tool}", step.line);
                let bare = answer.is_err() && !driver.has_facts(tool);
                check(&place, expected, &answer, if bare { None } else { Some(&names) });
            }
        }
    }
    Ran::Whole(steps.len())
}

/// Puts ids where names stand.
fn resolved(arguments: &Map<String, Value>, names: &BTreeMap<String, Value>) -> Map<String, Value> {
    let replace = |(key, value): (&String, &Value)| (key.clone(), with_ids(key, value, names));
    arguments.iter().map(replace).collect()
}

/// Fields whose text is the caller's own and never an id.
const TEXTS: [&str; 4] = ["subject", "description", "key", "note"];

fn with_ids(key: &str, value: &Value, names: &BTreeMap<String, Value>) -> Value {
    match value {
        Value::String(text) if !TEXTS.contains(&key) => names.get(text).unwrap_or(value).clone(),
        Value::Array(items) => items.iter().map(|item| with_ids(key, item, names)).collect(),
        Value::Object(fields) => Value::Object(resolved(fields, names)),
        _ => value.clone(),
    }
}

fn bind(names: &mut BTreeMap<String, Value>, name: Option<&str>, answer: Option<&Value>) {
    let Some(answer) = answer else { return };
    if let Some(name) = name {
        names.insert(name.to_owned(), field(answer, "id").clone());
    }
    for task in answer["tasks"].as_array().into_iter().flatten() {
        if let Some(key) = task["key"].as_str() {
            names.insert(key.to_owned(), task["id"].clone());
        }
    }
}

#[track_caller]
fn check(place: &str, expected: &Expected, answer: &Result<Value, Value>, names: Option<&BTreeMap<String, Value>>) {
    let object = match (answer, &expected.refusal) {
        (Ok(result), None) => result,
        (Err(refusal), Some(code)) if refusal["code"] == **code => refusal,
        (answer, wanted) => panic!("{place}: expected {wanted:?}, got {answer:?}"),
    };
    let Some(names) = names else { return };
    for (key, wanted) in &expected.fields {
        let known = |word: &str| names.get(word).filter(|_| !TEXTS.contains(&key.as_str()));
        let wanted: Vec<String> = wanted.split(',').map(|word| plain(known(word), word)).collect();
        let got = shown(object, key);
        assert_eq!(got.join(","), wanted.join(","), "{place}: {key} of {object}");
    }
}

fn plain(id: Option<&Value>, word: &str) -> String {
    id.map_or_else(|| word.to_owned(), text)
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The values of a field as words; an absent one is the empty word.
fn shown(object: &Value, key: &str) -> Vec<String> {
    let ids = |tasks: &Value| -> Vec<String> {
        let tasks = tasks.as_array().cloned().unwrap_or_default();
        if tasks.is_empty() { vec![String::new()] } else { tasks.iter().map(|task| text(&task["id"])).collect() }
    };
    match key {
        "order" => ids(&object["tasks"]),
        "took" if object["task"].is_object() => vec![text(&object["task"]["id"])],
        "took" => ids(&object["tasks"]),
        "idle" => vec![text(&object["idle"]["advice"])],
        "depths" => object["tasks"].as_array().into_iter().flatten().map(|task| text(&task["depth"])).collect(),
        key => match field(object, key) {
            Value::Null => vec![String::new()],
            Value::Array(items) if items.is_empty() => vec![String::new()],
            Value::Array(items) => items.iter().map(text).collect(),
            value => vec![text(value)],
        },
    }
}

/// A field of the result itself, or of its task, or inside one of them (`metadata.k`).
fn field<'a>(object: &'a Value, key: &str) -> &'a Value {
    let at = |object: &'a Value| key.split('.').fold(object, |value, part| &value[part]);
    let own = at(object);
    if own.is_null() { at(&object["task"]) } else { own }
}
