//! The resources: a list as `taskbus://list/<name>` and a task as `taskbus://task/<id>`, as JSON, for people who add
//! them to a conversation and for clients that watch them. What they hold is what `task_list` and `task_get` answer.

use serde_json::{Map, Value, json};
use taskbus::answer::ListView;
use taskbus::engine::{Engine, Error, ListAsk};
use taskbus_core::id::TaskId;
use taskbus_core::name::ListName;
use taskbus_core::refusal::Refusal;

use super::calls::read;
use crate::wire;
use crate::wire::error::Failure;

/// The form of what they hold.
pub(super) const MIME_TYPE: &str = "application/json";
/// Resources on one page.
pub(super) const PAGE: usize = 100;

const LIST: &str = "taskbus://list/";
const TASK: &str = "taskbus://task/";

/// The two sorts, as templates of their addresses: address, name, description.
pub(super) const TEMPLATES: [(&str, &str, &str); 2] = [
    ("taskbus://list/{name}", "list", "A task list in tree order, as much as fits; the name without tasks/"),
    ("taskbus://task/{id}", "task", "One task whole"),
];

/// What an address names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Resource {
    /// A list.
    List(ListName),
    /// A task.
    Task(TaskId),
}

/// How a resource stands: whoever compares two knows whether it has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// It is not there.
    Absent,
    /// A list, by the number of its newest revision.
    List(u64),
    /// A task, by all that is said of it.
    Task(Map<String, Value>),
}

impl Resource {
    /// What an address names; none when it has another form than ours.
    pub(super) fn parse(address: &str) -> Option<Self> {
        if let Some(name) = address.strip_prefix(LIST) {
            return ListName::from_short(&decoded(name)?).ok().map(Self::List);
        }
        decoded(address.strip_prefix(TASK)?)?.parse().ok().map(Self::Task)
    }

    /// What it holds, as JSON; none when it is not there.
    pub(super) fn read(&self, engine: &Engine) -> Result<Option<String>, Failure> {
        let facts = match self {
            Self::List(name) => found(list(engine, name))?,
            Self::Task(id) => found(engine.get(None, id, false).map(|got| wire::answer::got(&got)))?,
        };
        Ok(facts.map(|facts| Value::Object(facts).to_string()))
    }

    /// How it stands.
    pub(super) fn mark(&self, engine: &Engine) -> Result<Mark, Failure> {
        let mark = match self {
            Self::List(name) => {
                let lists = engine.lists()?;
                lists.into_iter().find(|list| list.name == *name).map(|list| Mark::List(list.latest_seq))
            }
            Self::Task(id) => found(engine.get(None, id, false))?.map(|got| Mark::Task(wire::object(&got))),
        };
        Ok(mark.unwrap_or(Mark::Absent))
    }
}

fn list(engine: &Engine, name: &ListName) -> Result<Map<String, Value>, Error> {
    let page = read::page_that_fits(engine, None, name, ListAsk::default())?;
    let mut facts = Map::from_iter([("channel".to_owned(), json!(name))]);
    facts.extend(wire::answer::page(&page));
    Ok(facts)
}

/// What is not there is no failure.
fn found<T>(answer: Result<T, Error>) -> Result<Option<T>, Failure> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(Error::Refused(Refusal::NotFound(_))) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The address of a list.
pub(super) fn address(list: &ListName) -> String {
    format!("{LIST}{}", encoded(list.short()))
}

/// One page of all lists, behind `cursor`, and the cursor of the next one.
pub(super) fn lists(engine: &Engine, cursor: Option<&str>) -> Result<(Vec<ListView>, Option<String>), Failure> {
    let behind = |list: &ListView| cursor.is_none_or(|cursor| list.name.as_str() > cursor);
    let mut page: Vec<ListView> = engine.lists()?.into_iter().filter(behind).take(PAGE + 1).collect();
    let more = page.len() > PAGE;
    page.truncate(PAGE);
    let next = page.last().filter(|_| more).map(|list| list.name.as_str().to_owned());
    Ok((page, next))
}

/// A name as a part of an address: everything but the plainest characters is written as `%XX`.
fn encoded(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    name.bytes().map(|b| if is_plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

/// A part of an address as a name.
fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let [first, behind @ ..] = rest {
        if *first == b'%' {
            let digits = std::str::from_utf8(behind.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))?);
            rest = &behind[2..];
        } else {
            bytes.push(*first);
            rest = behind;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::trial::{Client, desk_with_list};

    fn list_named(name: &str) -> Resource {
        Resource::List(ListName::new(name).unwrap())
    }

    #[test]
    fn an_address_names_a_list_or_a_task() {
        assert_eq!(Resource::parse("taskbus://list/demo"), Some(list_named("tasks/demo")));
        assert_eq!(Resource::parse("taskbus://list/tasks%2Fdemo"), Some(list_named("tasks/demo")));
        assert_eq!(Resource::parse("taskbus://list/tasks/demo"), Some(list_named("tasks/demo")));
        assert_eq!(Resource::parse("taskbus://task/7"), Some(Resource::Task(TaskId::Number(7))));
        for bad in [
            "",
            "taskbus://",
            "taskbus://list/",
            "taskbus://list/a/b",
            "taskbus://list/%",
            "taskbus://list/%+1",
            "taskbus://list/%FF",
            "taskbus://task/",
            "taskbus://task/x y",
            "taskbus://tasks/7",
            "file:///etc/passwd",
        ] {
            assert_eq!(Resource::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_address_is_read_as_it_is_written() {
        for name in ["tasks/demo", "tasks/Größe 2", "tasks/a?b#c%41", "tasks/日本"] {
            let list = ListName::new(name).unwrap();
            let address = address(&list);
            assert!(address.is_ascii() && !address.contains(' '), "{address}");
            assert_eq!(Resource::parse(&address), Some(Resource::List(list)), "{name}");
        }
    }

    #[test]
    fn a_resource_holds_what_the_tools_answer_and_its_mark_changes_with_it() {
        let desk = desk_with_list();
        let (client, engine) = (Client::named("c"), desk.engine().unwrap());
        let list = list_named("tasks/t");
        let empty = list.mark(&engine).unwrap();
        let blocker = json!({"channel": "tasks/t", "subject": "first"});
        client.call(&desk, "task_create", &blocker).unwrap();
        client.call(&desk, "task_create", &json!({"channel": "tasks/t", "subject": "s", "blocked_by": [1]})).unwrap();
        assert_ne!(list.mark(&engine).unwrap(), empty);
        let held: Value = serde_json::from_str(&list.read(&engine).unwrap().unwrap()).unwrap();
        assert_eq!(
            (&held["channel"], &held["total"], &held["tasks"][1]["subject"]),
            (&json!("tasks/t"), &json!(2), &json!("s"))
        );
        let task = Resource::Task(TaskId::Number(2));
        let blocked = task.mark(&engine).unwrap();
        client.call(&desk, "task_next", &json!({"channel": "tasks/t"})).unwrap();
        assert_eq!(task.mark(&engine).unwrap(), blocked, "another task changed");
        client.call(&desk, "task_update", &json!({"task_id": 1, "status": "completed"})).unwrap();
        assert_ne!(task.mark(&engine).unwrap(), blocked, "its blocker is done");
        client.call(&desk, "task_update", &json!({"task_id": 2, "delete": true})).unwrap();
        assert_eq!((task.mark(&engine).unwrap(), task.read(&engine).unwrap()), (Mark::Absent, None));
        assert_eq!(list_named("tasks/none").read(&engine).unwrap(), None);
    }

    #[test]
    fn lists_come_page_by_page() {
        let desk = desk_with_list();
        let (client, engine) = (Client::named("c"), desk.engine().unwrap());
        for n in 0..PAGE {
            client.call(&desk, "create_channel", &json!({"name": format!("tasks/n{n:03}")})).unwrap();
        }
        let (first, next) = lists(&engine, None).unwrap();
        let (second, end) = lists(&engine, next.as_deref()).unwrap();
        assert_eq!((first.len(), second.len(), end), (PAGE, 1, None));
        assert_eq!(second[0].name.as_str(), "tasks/t");
    }
}
