//! Runs scenario scripts against anything that answers tool calls: an engine over a store, an MCP server, the
//! command line. The expected answers are the same everywhere.

use std::collections::BTreeMap;
use std::fmt;

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
    ("orphans", include_str!("../../scenarios/orphans.txt")),
    ("plan", include_str!("../../scenarios/plan.txt")),
    ("sessions", include_str!("../../scenarios/sessions.txt")),
    ("shared", SHARED),
    ("status", include_str!("../../scenarios/status.txt")),
    ("taking", include_str!("../../scenarios/taking.txt")),
];

/// The script that every set of tools can say and every policy answers alike.
pub const SHARED: &str = include_str!("../../scenarios/shared.txt");

/// Something that answers tool calls on one fresh list.
pub trait Driver {
    /// Calls a tool as somebody, who is registered on first use. The result object, or the refusal object.
    ///
    /// # Errors
    /// The refusal: `{code, message, …facts}`.
    fn call(&mut self, actor: &str, tool: &str, arguments: &Map<String, Value>) -> Result<Value, Value>;

    /// Whether a call can be put in this driver's form at all. One that cannot is passed over if it was to change
    /// nothing; else the script ends there, for the rest builds on it.
    fn can(&self, _tool: &str, _arguments: &Map<String, Value>) -> bool {
        true
    }

    /// Whether an answer of a tool tells this field; one that is not told is not compared.
    fn tells(&self, _tool: &str, _field: &str) -> bool {
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

/// How a script went, when nothing was wrong. Whoever runs one should ask for enough steps and fields: a driver that
/// can do nothing passes too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// Steps that ran.
    pub steps: usize,
    /// Fields of answers and refusals that were compared, each refusal's code included.
    pub fields: usize,
    /// Calls that were passed over, because the driver has no form for them.
    pub skipped: usize,
    /// Why the script ended early, if it did.
    pub stopped: Option<Stopped>,
}

/// Where a script ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// The first line that was not run.
    pub line: usize,
    /// What the driver lacks.
    pub lacks: &'static str,
    /// How many steps were not run.
    pub left: usize,
}

impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} steps, {} fields compared, {} calls passed over", self.steps, self.fields, self.skipped)?;
        let Some(Stopped { line, lacks, left }) = &self.stopped else { return Ok(()) };
        write!(f, "; {left} steps from line {line} on were not run, for they need {lacks}")
    }
}

/// Runs a script.
///
/// # Panics
/// When an answer is not as expected, with the script's line.
#[track_caller]
pub fn run(name: &str, text: &str, driver: &mut dyn Driver) -> Ran {
    let (mut ran, mut names, steps) = (Ran::default(), BTreeMap::new(), parse(text));
    for (at, step) in steps.iter().enumerate() {
        let place = format!("{name}, line {}", step.line);
        match take(&place, &step.deed, &mut names, driver) {
            Ok(Some(fields)) => ran = Ran { steps: ran.steps + 1, fields: ran.fields + fields, ..ran },
            Ok(None) => ran.skipped += 1,
            Err(lacks) => {
                ran.stopped = Some(Stopped { line: step.line, lacks, left: steps.len() - at });
                break;
            }
        }
    }
    ran
}

/// Does one step: how many fields were compared, none if it was passed over, or what the driver lacks to go on.
#[track_caller]
fn take(
    place: &str,
    deed: &Deed,
    names: &mut BTreeMap<String, Value>,
    driver: &mut dyn Driver,
) -> Result<Option<usize>, &'static str> {
    match deed {
        Deed::Clock(seconds) if !driver.pass(*seconds) => Err("a clock that can be moved"),
        Deed::Dies(actor) if !driver.kill(actor) => Err("processes that can be killed"),
        Deed::Clock(_) | Deed::Dies(_) => Ok(Some(0)),
        Deed::Call { tool, arguments, expected, .. } if !driver.can(tool, arguments) => {
            if expected.is_change(tool) {
                Err("a form for this call")
            } else {
                Ok(None)
            }
        }
        Deed::Call { actor, tool, arguments, binds, expected } => {
            let answer = driver.call(actor, tool, &resolved(arguments, names));
            bind(names, binds.as_deref(), answer.as_ref().ok());
            Ok(Some(check(&format!("{place}: {actor} {tool}"), tool, expected, &answer, names, driver)))
        }
    }
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

/// Compares an answer with what is expected; how many fields that were.
#[track_caller]
fn check(
    place: &str,
    tool: &str,
    expected: &Expected,
    answer: &Result<Value, Value>,
    names: &BTreeMap<String, Value>,
    driver: &dyn Driver,
) -> usize {
    let (object, code) = match (answer, &expected.refusal) {
        (Ok(result), None) => (result, 0),
        (Err(refusal), Some(code)) if refusal["code"] == **code => (refusal, 1),
        (answer, wanted) => panic!("{place}: expected {wanted:?}, got {answer:?}"),
    };
    let told = |key: &str| if answer.is_ok() { driver.tells(tool, key) } else { driver.has_facts(tool) };
    let mut compared = code;
    for (key, wanted) in expected.fields.iter().filter(|(key, _)| told(key)) {
        let known = |word: &str| names.get(word).filter(|_| !TEXTS.contains(&key.as_str()));
        let wanted: Vec<String> = wanted.split(',').map(|word| plain(known(word), word)).collect();
        let got = shown(object, key);
        assert_eq!(got.join(","), wanted.join(","), "{place}: {key} of {object}");
        compared += 1;
    }
    compared
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
