//! Runs scenario scripts on an engine: each person has an engine of their own over one store, as if in a process of
//! their own, and a clock that the script moves.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use taskbus_core::command::{Command, Draft, Finish, LeaseAsk, Next, Patch, Place, Planned};
use taskbus_core::glob::PathGlob;
use taskbus_core::id::TaskId;
use taskbus_core::name::{Identity, Key, Label, ListName};
use taskbus_core::neighbourhood::ListRules;
use taskbus_core::refusal::Refusal;
use taskbus_core::task::Status;
use taskbus_core::text::{Body, Note, Subject};

use crate::answer::Answer;
use crate::engine::{Engine, Error, Limits, ListAsk, Registration, Request};
use crate::store::{ManualClock, Store, View};

/// A driver over one fresh list of a store.
pub struct EngineDriver {
    store: Arc<dyn Store>,
    clock: Arc<ManualClock>,
    list: ListName,
    rules: ListRules,
    people: BTreeMap<String, Engine>,
}

impl EngineDriver {
    /// A driver over a store that reads this clock.
    ///
    /// # Panics
    /// When the constant list name is refused.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, clock: Arc<ManualClock>) -> Self {
        let list = ListName::from_short("scenario").expect("BUG: a constant name is valid");
        Self::on_list(store, clock, list, ListRules { max_reclaims: 2, ..ListRules::default() })
    }

    /// A driver over a list that a store of one list has.
    #[must_use]
    pub fn on_list(store: Arc<dyn Store>, clock: Arc<ManualClock>, list: ListName, rules: ListRules) -> Self {
        Self { store, clock, list, rules, people: BTreeMap::new() }
    }

    /// Ends every session and goes on with this store, as after a restart of everything.
    ///
    /// # Panics
    /// When a session cannot be ended.
    pub fn restart(&mut self, store: Arc<dyn Store>) {
        for engine in std::mem::take(&mut self.people).into_values() {
            engine.close().expect("a session ends");
        }
        self.store = store;
    }

    fn engine(&mut self, actor: &str) -> Result<&Engine, Error> {
        if !self.people.contains_key(actor) {
            let engine = Engine::new(Arc::clone(&self.store), Limits::default());
            let name = engine.register(&Registration { name: actor.to_owned(), ..Registration::default() })?.name;
            engine.create_list(&name, &self.list, self.rules)?;
            self.people.insert(actor.to_owned(), engine);
        }
        Ok(&self.people[actor])
    }

    fn answer(&mut self, actor: &str, tool: &str, arguments: &Map<String, Value>) -> Result<Value, Error> {
        let (list, caller) = (self.list.clone(), Identity::new(actor).expect("an actor's name is valid"));
        let engine = self.engine(actor)?;
        let asked = Arguments(arguments);
        let command = match tool {
            "task_get" => return Ok(json!(engine.get(Some(&caller), &asked.need("task_id"), false)?)),
            "task_list" => return Ok(json!(engine.list(Some(&caller), &list, &asked.page())?)),
            "task_create" => Command::Create(Box::new(asked.draft())),
            "task_plan" => Command::Plan(asked.plan()),
            "task_next" => Command::Next(Box::new(asked.next())),
            "task_claim" => Command::Update(
                asked.need("task_id"),
                Box::new(Patch { fence: asked.get("fence"), ..Patch::claim(caller.clone(), asked.lease()) }),
            ),
            "task_release" => Command::Update(
                asked.need("task_id"),
                Box::new(Patch { fence: asked.get("fence"), ..Patch::release() }),
            ),
            "task_update" if asked.text("delete").as_deref() == Some("false") => {
                Command::Restore(asked.need("task_id"))
            }
            "task_update" => Command::Update(asked.need("task_id"), Box::new(asked.patch())),
            _ => panic!("no tool {tool}"),
        };
        let request =
            Request { caller, list: Some(list), command, key: asked.get::<KeyText>("idempotency_key").map(|k| k.0) };
        engine.execute(&request).map(|answer| as_result(&answer))
    }
}

impl super::Driver for EngineDriver {
    fn call(&mut self, actor: &str, tool: &str, arguments: &Map<String, Value>) -> Result<Value, Value> {
        self.answer(actor, tool, arguments).map_err(|error| match error {
            Error::Refused(refusal) => as_refusal(&refusal),
            Error::Store(error) => json!({"code": "internal", "message": error.to_string()}),
        })
    }

    fn pass(&mut self, seconds: u64) -> bool {
        self.clock.advance(i64::try_from(seconds).expect("a script's seconds fit") * 1000);
        self.people.values().all(|engine| engine.heartbeat().is_ok())
    }

    fn kill(&mut self, actor: &str) -> bool {
        self.people.remove(actor);
        self.store.abilities().liveness
    }
}

fn as_result(answer: &Answer) -> Value {
    match answer {
        Answer::Created(task) | Answer::Restored(task) => json!({"task": task}),
        Answer::Planned(tasks) => json!({"tasks": tasks}),
        Answer::Written(written) => json!(written),
        Answer::Next(taken) => json!(taken),
    }
}

fn as_refusal(refusal: &Refusal) -> Value {
    let mut object = refusal.facts();
    object.insert("code".to_owned(), refusal.code().into());
    object.insert("message".to_owned(), refusal.to_string().into());
    Value::Object(object)
}

/// The arguments of a script's call, which are text, typed.
struct Arguments<'a>(&'a Map<String, Value>);

impl Arguments<'_> {
    fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    fn text(&self, key: &str) -> Option<String> {
        self.0.get(key).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    }

    fn get<T: FromStr<Err: std::fmt::Debug>>(&self, key: &str) -> Option<T> {
        self.text(key).filter(|text| !text.is_empty()).map(|text| text.parse().expect("a script's value is valid"))
    }

    fn need<T: FromStr<Err: std::fmt::Debug>>(&self, key: &str) -> T {
        self.get(key).unwrap_or_else(|| panic!("a script's call needs {key}"))
    }

    fn each<T>(&self, key: &str, make: impl Fn(String) -> T) -> Vec<T> {
        let items = self.0.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
        items.iter().map(|item| make(item.as_str().map_or_else(|| item.to_string(), str::to_owned))).collect()
    }

    fn ids(&self, key: &str) -> Vec<TaskId> {
        self.each(key, |text| text.parse().expect("a script's id is valid"))
    }

    fn labels(&self) -> BTreeSet<Label> {
        self.each("labels", |text| Label::new(text).expect("a script's label is valid")).into_iter().collect()
    }

    fn paths(&self) -> BTreeSet<PathGlob> {
        self.each("paths", |text| PathGlob::new(text).expect("a script's path is valid")).into_iter().collect()
    }

    fn place(&self) -> Option<Place> {
        self.get("before").map(Place::Before).or_else(|| self.get("after").map(Place::After))
    }

    fn lease(&self) -> Option<LeaseAsk> {
        self.get::<u64>("lease_seconds").map(LeaseAsk::Seconds)
    }

    fn subject(&self) -> Option<Subject> {
        self.text("subject").map(|text| Subject::new(text).expect("a script's subject is valid"))
    }

    fn note(&self, key: &str) -> Option<Note> {
        self.text(key).map(|text| Note::new(text).expect("a script's note is valid"))
    }

    /// A field that the empty word clears.
    fn clearable<T>(&self, key: &str, clears: &str, make: impl Fn(String) -> T) -> Option<Option<T>> {
        self.text(key).map(|text| if text == clears || text.is_empty() { None } else { Some(make(text)) })
    }

    fn metadata(&self) -> Map<String, Value> {
        self.0.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default()
    }

    fn draft(&self) -> Draft {
        Draft {
            description: self.text("description").map(|text| Body::new(text).expect("a script's text is valid")),
            parent: self.get("parent"),
            place: self.place(),
            blocked_by: self.ids("blocked_by"),
            labels: self.labels(),
            paths: self.paths(),
            metadata: self.metadata().into_iter().collect(),
            ..Draft::new(self.subject().expect("a script's create has a subject"))
        }
    }

    fn patch(&self) -> Patch {
        let removes = |value: Value| (value != json!("")).then_some(value);
        Patch {
            status: self.text("status").map(|word| Status::from_word(&word).expect("a script's status is one")),
            owner: self.clearable("owner", "", |text| Identity::new(text).expect("a script's owner is valid")),
            subject: self.subject(),
            description: self.clearable("description", "", |text| Body::new(text).expect("valid")),
            parent: self.clearable("parent", "0", |text| text.parse().expect("a script's id is valid")),
            place: self.place(),
            add_blocked_by: self.ids("add_blocked_by"),
            remove_blocked_by: self.ids("remove_blocked_by"),
            lease: self.lease(),
            labels: self.has("labels").then(|| self.labels()),
            paths: self.has("paths").then(|| self.paths()),
            metadata: self.metadata().into_iter().map(|(key, value)| (key, removes(value))).collect(),
            result: self.note("result"),
            note: self.note("note"),
            delete: self.text("delete").is_some_and(|word| word == "true"),
            force: self.text("force").is_some_and(|word| word == "true"),
            fence: self.get("fence"),
            if_revision: self.get("if_revision"),
            ..Patch::default()
        }
    }

    fn next(&self) -> Next {
        let finish = |id| Finish { id, result: self.note("result"), fence: self.get("fence") };
        Next {
            labels: self.labels(),
            parent: self.get("parent"),
            count: self.get("count").unwrap_or(1),
            lease: self.lease(),
            complete: self.get("complete").map(finish),
        }
    }

    fn plan(&self) -> Vec<Planned> {
        let tasks = self.0.get("tasks").and_then(Value::as_array).cloned().unwrap_or_default();
        tasks.iter().filter_map(Value::as_object).map(|task| Arguments(task).planned()).collect()
    }

    fn planned(&self) -> Planned {
        Planned {
            key: self.text("key"),
            draft: Draft::new(self.subject().expect("a script's task has a subject")),
            done: self.text("done").is_some_and(|word| word == "true"),
            parent: self.text("parent"),
            blocked_by: self.each("blocked_by", |text| text),
        }
    }

    fn page(&self) -> ListAsk {
        let view = match self.text("view").as_deref() {
            Some("ready") => View::Ready,
            Some("blocked") => View::Blocked,
            _ => View::Tree,
        };
        ListAsk {
            view,
            status: self.text("status").map(|word| Status::from_word(&word).expect("a script's status is one")),
            owner: self.text("owner").map(|text| Identity::new(text).expect("a script's owner is valid")),
            below: self.get("parent"),
            limit: self.get("limit"),
            ..ListAsk::default()
        }
    }
}

struct KeyText(Key);

impl FromStr for KeyText {
    type Err = taskbus_core::text::TextError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Key::new(text).map(Self)
    }
}
