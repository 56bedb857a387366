//! Reads the arguments of a call by the table: leniently in the spelling, strictly in the meaning (docs/rules.md 9).
//! What comes out is typed; the limits on texts, names and numbers of items are the core's.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use taskbus_core::id::TaskId;
use taskbus_core::refusal::{Invalid, Refusal};
use taskbus_core::time::Timestamp;

use super::field::{Field, Kind};
use super::near::nearest;
use crate::wire::error::Failure;
use crate::wire::lenient::{self, Unlike};

/// Arguments that some clients add to every call for their own use, and send along.
const CLIENTS_OWN: [&str; 1] = ["wait_for_previous"];

/// The arguments that were given, by field.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Args(BTreeMap<&'static str, Arg>);

/// One argument.
#[derive(Clone, Debug, PartialEq)]
enum Arg {
    Text(String),
    Word(&'static str),
    Flag(bool),
    Integer(i64),
    Id(Option<TaskId>),
    Seq(Option<u64>),
    Time(Option<Timestamp>),
    Ids(Vec<TaskId>),
    Texts(Vec<String>),
    Pairs(Vec<(String, String)>),
    Data(Map<String, Value>),
    Items(Vec<Args>),
}

/// Reads the arguments of a tool with these fields.
pub(super) fn read(fields: &'static [Field], mut given: Map<String, Value>) -> Result<Args, Failure> {
    given.retain(|name, _| !CLIENTS_OWN.contains(&name.as_str()));
    for field in fields {
        unalias(field, &mut given)?;
    }
    known(fields, &given)?;
    let mut args = Args::default();
    for field in fields {
        match given.get(field.name).filter(|value| !is_nothing(field, value)) {
            Some(value) => {
                args.0.insert(field.name, argument(field, value)?);
            }
            None if field.required => return Err(missing(field)),
            None => {}
        }
    }
    Ok(args)
}

/// Puts what was given under another spelling of a field's name under the name. Two values are not chosen from.
fn unalias(field: &Field, given: &mut Map<String, Value>) -> Result<(), Failure> {
    for alias in field.aliases {
        let Some(value) = given.shift_remove(*alias).filter(|value| !is_nothing(field, value)) else { continue };
        if given.get(field.name).is_some_and(|own| !is_nothing(field, own) && *own != value) {
            let both = format!("{} and {alias} are the same field and differ; send {} alone", field.name, field.name);
            return Err(Failure::shape(field.name, both));
        }
        given.insert(field.name.to_owned(), value);
    }
    Ok(())
}

fn is_nothing(field: &Field, value: &Value) -> bool {
    lenient::is_nothing(value, !matches!(field.kind, Kind::Clearable))
}

fn known(fields: &'static [Field], given: &Map<String, Value>) -> Result<(), Failure> {
    let Some(unknown) = given.keys().find(|name| fields.iter().all(|field| field.name != name.as_str())) else {
        return Ok(());
    };
    let names = || fields.iter().map(|field| field.name);
    let shown = crate::wire::error::cut(unknown, NAME_BYTES_SHOWN);
    let hint = match nearest(unknown, names()) {
        Some(near) => format!("did you mean {near:?}?"),
        None => format!("the fields are {}", names().collect::<Vec<_>>().join(", ")),
    };
    let mut failure = Failure::shape(&shown, format!("there is no field {shown:?}; {hint}"));
    failure.facts.extend(nearest(unknown, names()).map(|near| ("nearest".to_owned(), near.into())));
    Err(failure)
}

const NAME_BYTES_SHOWN: usize = 64;

fn missing(field: &Field) -> Failure {
    let hint = if field.doc.is_empty() { String::new() } else { format!(" ({})", field.doc) };
    Failure::shape(field.name, format!("{} is required{hint}; send it and call again", field.name))
}

fn argument(field: &Field, value: &Value) -> Result<Arg, Failure> {
    let unlike = |unlike: Unlike| Failure::shape(field.name, format!("{} {unlike}", field.name));
    match field.kind {
        Kind::Text | Kind::Clearable => Ok(Arg::Text(lenient::text(value).map_err(unlike)?.to_owned())),
        Kind::Word(words) => one_of(field, words, value),
        Kind::Flag => lenient::flag(value).map(Arg::Flag).map_err(unlike),
        Kind::Integer { min, max } => integer(field.name, value, min, max).map(Arg::Integer),
        Kind::Id | Kind::IdText => match lenient::id(value).map_err(unlike)? {
            Some(id) => Ok(Arg::Id(Some(id))),
            None => Err(unlike(Unlike::new("the id of a task", value))),
        },
        Kind::IdOrNone => lenient::id(value).map(Arg::Id).map_err(unlike),
        Kind::Seq => lenient::seq(value).map(Arg::Seq).map_err(unlike),
        Kind::Millis | Kind::Date => lenient::time(value).map(Arg::Time).map_err(unlike),
        Kind::Ids | Kind::IdTexts => ids(field, value).map(Arg::Ids),
        Kind::Words => texts(field, value, true).map(Arg::Texts),
        Kind::Texts => texts(field, value, false).map(Arg::Texts),
        Kind::Reference => reference(value).map(Arg::Text).map_err(unlike),
        Kind::References => references(field, value).map(Arg::Texts),
        Kind::Metadata => pairs(field, value).map(Arg::Pairs),
        Kind::Data => lenient::object(value).map(Arg::Data).map_err(unlike),
        Kind::Items(fields) => items(field, fields, value).map(Arg::Items),
    }
}

fn one_of(field: &Field, words: &'static [&'static str], value: &Value) -> Result<Arg, Failure> {
    let given = value.as_str().map(str::trim);
    match words.iter().find(|word| Some(**word) == given) {
        Some(word) => Ok(Arg::Word(word)),
        None => {
            let unlike = Unlike::new("one of these words", value);
            let words = words.join(", ");
            Err(Failure::shape(field.name, format!("{} must be one of {words}, not {}", field.name, unlike.given)))
        }
    }
}

fn integer(field: &'static str, value: &Value, min: i64, max: i64) -> Result<i64, Failure> {
    let given = lenient::integer(value).map_err(|unlike| Failure::shape(field, format!("{field} {unlike}")))?;
    if (min..=max).contains(&given) {
        return Ok(given);
    }
    Err(Refusal::Invalid(Invalid::OutOfRange { field, given, min, max }).into())
}

/// Reads a list whose items may each be refused; the error names the place.
fn each<T>(
    field: &Field,
    value: &Value,
    commas: bool,
    read: impl Fn(&Value) -> Result<T, Unlike>,
) -> Result<Vec<T>, Failure> {
    let named = |place: String, unlike: &Unlike| Failure::shape(field.name, format!("{place} {unlike}"));
    let list = lenient::list(value, commas).map_err(|unlike| named(field.name.to_owned(), &unlike))?;
    let read = list
        .iter()
        .enumerate()
        .map(|(at, item)| read(item).map_err(|unlike| named(format!("{}[{at}]", field.name), &unlike)));
    read.collect()
}

fn ids(field: &Field, value: &Value) -> Result<Vec<TaskId>, Failure> {
    each(field, value, true, |item| lenient::id(item)?.ok_or_else(|| Unlike::new("the id of a task", item)))
}

fn texts(field: &Field, value: &Value, commas: bool) -> Result<Vec<String>, Failure> {
    each(field, value, commas, |item| lenient::text(item).map(str::to_owned))
}

fn references(field: &Field, value: &Value) -> Result<Vec<String>, Failure> {
    each(field, value, false, reference)
}

/// A key stays as it is written; an id loses its spelling.
fn reference(value: &Value) -> Result<String, Unlike> {
    match (value, lenient::id(value)) {
        (Value::Number(_), Ok(Some(id))) => Ok(id.to_string()),
        _ => lenient::word(value),
    }
}

fn pairs(field: &Field, value: &Value) -> Result<Vec<(String, String)>, Failure> {
    let object =
        lenient::object(value).map_err(|unlike| Failure::shape(field.name, format!("{} {unlike}", field.name)))?;
    let text = |(key, value): (String, Value)| match value {
        Value::String(text) => Ok((key, text)),
        _ => Err(Refusal::Invalid(Invalid::Metadata { path: key, problem: NO_TEXT }).into()),
    };
    object.into_iter().map(text).collect()
}

const NO_TEXT: &str = "must be text (an empty one removes the key)";

fn items(field: &Field, fields: &'static [Field], value: &Value) -> Result<Vec<Args>, Failure> {
    let objects = each(field, value, false, lenient::object)?;
    let read = |(at, object)| read(fields, object).map_err(|failure| failure.within(field.name, at));
    objects.into_iter().enumerate().map(read).collect()
}

/// Taking arguments out. A field that the table does not have, or has with another kind, is a bug, and every
/// tool is called with every field by the tests.
impl Args {
    fn take<T>(&mut self, name: &'static str, read: impl FnOnce(Arg) -> Option<T>) -> Option<T> {
        let argument = self.0.remove(name)?;
        Some(read(argument).expect("BUG: a field has the kind that the table says"))
    }

    /// A text.
    pub(super) fn text(&mut self, name: &'static str) -> Option<String> {
        self.take(name, |arg| if let Arg::Text(text) = arg { Some(text) } else { None })
    }

    /// One of the field's words.
    pub(super) fn word(&mut self, name: &'static str) -> Option<&'static str> {
        self.take(name, |arg| if let Arg::Word(word) = arg { Some(word) } else { None })
    }

    /// Yes or no, if it was given. Looks only: the field can still be taken.
    pub(super) fn choice(&self, name: &'static str) -> Option<bool> {
        self.0.get(name).and_then(|arg| if let Arg::Flag(flag) = arg { Some(*flag) } else { None })
    }

    /// Yes or no; no when not given.
    pub(super) fn flag(&mut self, name: &'static str) -> bool {
        self.take(name, |arg| if let Arg::Flag(flag) = arg { Some(flag) } else { None }).unwrap_or(false)
    }

    /// Yes or no; this when not given.
    pub(super) fn flag_or(&mut self, name: &'static str, usual: bool) -> bool {
        self.take(name, |arg| if let Arg::Flag(flag) = arg { Some(flag) } else { None }).unwrap_or(usual)
    }

    /// A number that the table keeps from being negative.
    pub(super) fn count(&mut self, name: &'static str) -> Option<u64> {
        self.take(name, |arg| if let Arg::Integer(number) = arg { u64::try_from(number).ok() } else { None })
    }

    /// A task; `Some(None)` for 0.
    pub(super) fn id_or_none(&mut self, name: &'static str) -> Option<Option<TaskId>> {
        self.take(name, |arg| if let Arg::Id(id) = arg { Some(id) } else { None })
    }

    /// A task, where 0 is the same as nothing.
    pub(super) fn id(&mut self, name: &'static str) -> Option<TaskId> {
        self.id_or_none(name).flatten()
    }

    /// The task that a call is about; the table requires it.
    pub(super) fn required_id(&mut self, name: &'static str) -> TaskId {
        self.id(name).expect("BUG: the table requires this field")
    }

    /// The number of a message; 0 is the same as nothing.
    pub(super) fn seq(&mut self, name: &'static str) -> Option<u64> {
        self.take(name, |arg| if let Arg::Seq(seq) = arg { Some(seq) } else { None }).flatten()
    }

    /// The memory that a call is about; the table requires it. 0 is no memory.
    pub(super) fn required_seq(&mut self, name: &'static str) -> u64 {
        self.take(name, |arg| if let Arg::Seq(seq) = arg { Some(seq) } else { None })
            .expect("BUG: the table requires this field")
            .unwrap_or(0)
    }

    /// A text that the table requires.
    pub(super) fn required_text(&mut self, name: &'static str) -> String {
        self.text(name).expect("BUG: the table requires this field")
    }

    /// A time; `Some(None)` for 0.
    pub(super) fn time(&mut self, name: &'static str) -> Option<Option<Timestamp>> {
        self.take(name, |arg| if let Arg::Time(time) = arg { Some(time) } else { None })
    }

    /// Tasks.
    pub(super) fn ids(&mut self, name: &'static str) -> Option<Vec<TaskId>> {
        self.take(name, |arg| if let Arg::Ids(ids) = arg { Some(ids) } else { None })
    }

    /// Texts.
    pub(super) fn texts(&mut self, name: &'static str) -> Option<Vec<String>> {
        self.take(name, |arg| if let Arg::Texts(texts) = arg { Some(texts) } else { None })
    }

    /// Text values by name.
    pub(super) fn pairs(&mut self, name: &'static str) -> Vec<(String, String)> {
        self.take(name, |arg| if let Arg::Pairs(pairs) = arg { Some(pairs) } else { None }).unwrap_or_default()
    }

    /// Any values by name.
    pub(super) fn data(&mut self, name: &'static str) -> Map<String, Value> {
        self.take(name, |arg| if let Arg::Data(data) = arg { Some(data) } else { None }).unwrap_or_default()
    }

    /// Objects.
    pub(super) fn items(&mut self, name: &'static str) -> Vec<Args> {
        self.take(name, |arg| if let Arg::Items(items) = arg { Some(items) } else { None }).unwrap_or_default()
    }

    /// What nobody took: a field of the table that its tool does not know.
    pub(super) fn left(&self) -> Vec<&'static str> {
        self.0.keys().copied().collect()
    }
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
