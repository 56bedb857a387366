//! Under which name a call acts. An agent that registered passes its name in `as`; one that never did still works,
//! under a name made from what is known of it: the thread that its client names, the environment, or the client
//! program and this process. A name never comes from text.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use taskbus::engine::{Engine, Registration};
use taskbus::store::Harness;
use taskbus_core::name::Identity;

use super::desk::Asked;
use super::typed;
use crate::agent_name;
use crate::wire::error::Failure;

/// Threads that are remembered; beyond that all are forgotten, and named again as they come.
const THREADS_MAX: usize = 1024;

/// Who is known to this process.
#[derive(Debug, Default)]
pub(super) struct People {
    /// What `--as`, `TASKBUS_AS` and the client's environment say.
    hints: Hints,
    known: Mutex<Known>,
}

/// What is known of the agent before it says anything.
#[derive(Clone, Debug, Default)]
pub(super) struct Hints {
    /// The name to act under: `--as` or `TASKBUS_AS`.
    pub(super) name: Option<String>,
    /// The id of the client's session: `CLAUDE_CODE_SESSION_ID`.
    pub(super) session: Option<String>,
    /// What the agents work on, unless they say otherwise: the name of the directory.
    pub(super) context: String,
    /// The program that the agents run in, by which its hooks find their sessions.
    pub(super) harness: Option<Harness>,
}

#[derive(Debug, Default)]
struct Known {
    /// Names that agents asked for.
    registered: BTreeSet<Identity>,
    /// The name of each thread.
    threads: BTreeMap<String, Identity>,
    /// The name of calls that come without a thread and without `as`.
    own: Option<Identity>,
    /// Names that were made here; answers say them.
    made: BTreeSet<Identity>,
    /// Subagents by the names that their hooks give them, and the names that they have.
    children: BTreeMap<Identity, Identity>,
}

/// A name to act under.
#[derive(Clone, Debug)]
pub(super) struct Acting {
    /// The name.
    pub(super) name: Identity,
    /// Whether the caller may not know it yet.
    pub(super) is_news: bool,
}

impl People {
    /// Nobody yet.
    pub(super) fn new(hints: Hints) -> Self {
        Self { hints, known: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What an agent works on when it does not say.
    pub(super) fn context(&self) -> String {
        self.hints.context.clone()
    }

    /// The program that the agents run in.
    pub(super) fn harness(&self) -> Option<Harness> {
        self.hints.harness
    }

    /// Remembers a name that an agent asked for.
    pub(super) fn remember(&self, name: &Identity, asked: &Asked<'_>) {
        let mut known = self.lock();
        known.registered.insert(name.clone());
        if let Some(thread) = asked.thread {
            known.bind(thread, name);
        }
    }

    /// The name to act under; takes one if there is none yet.
    pub(super) fn acting(&self, given: Option<String>, asked: &Asked<'_>, engine: &Engine) -> Result<Acting, Failure> {
        if let Some(given) = given {
            return self.given(typed("as", given, Identity::new)?, asked, engine);
        }
        let mut known = self.lock();
        let name = match known.of(asked.thread) {
            Some(name) => name,
            None => self.make(&mut known, asked, engine)?,
        };
        Ok(Acting { is_news: known.made.contains(&name), name })
    }

    /// A name that was given. Where no sessions are kept, nobody can register, and whoever gives a name has it.
    fn given(&self, name: Identity, asked: &Asked<'_>, engine: &Engine) -> Result<Acting, Failure> {
        if self.lock().registered.contains(&name) {
            return Ok(Acting { name, is_news: false });
        }
        if !engine.store().abilities().liveness {
            self.register(name.as_str(), asked, engine)?;
            self.remember(&name, asked);
            return Ok(Acting { name, is_news: false });
        }
        self.child(name, asked, engine)
    }

    /// A subagent of an agent of ours, whose hook has said under which name it acts: it need not register.
    fn child(&self, name: Identity, asked: &Asked<'_>, engine: &Engine) -> Result<Acting, Failure> {
        let mut known = self.lock();
        if let Some(own) = known.children.get(&name) {
            return Ok(Acting { is_news: *own != name, name: own.clone() });
        }
        let Some(parent) = name.parent() else { return Ok(Acting { name, is_news: false }) };
        let is_ours = known.registered.iter().chain(&known.made).any(|own| own.as_str() == parent);
        if !is_ours {
            if parent != self.wish(asked) || known.of(asked.thread).is_some() {
                return Ok(Acting { name, is_news: false });
            }
            self.make(&mut known, asked, engine)?;
        }
        let own = self.register(name.as_str(), asked, engine)?;
        known.children.insert(name.clone(), own.clone());
        Ok(Acting { is_news: own != name, name: own })
    }

    /// Forgets a name that is no longer ours; the next call takes another one.
    pub(super) fn forget(&self, name: &Identity) {
        let mut known = self.lock();
        known.registered.remove(name);
        known.children.retain(|_, own| own != name);
        known.threads.retain(|_, other| other != name);
        known.own.take_if(|own| own == name);
    }

    /// The name to read under, if there is one; reading needs none.
    pub(super) fn reading(
        &self,
        given: Option<String>,
        asked: &Asked<'_>,
        engine: &Engine,
    ) -> Result<Option<Identity>, Failure> {
        let Some(given) = given else { return Ok(self.lock().of(asked.thread)) };
        let name = typed("as", given, Identity::new)?;
        let is_known = engine.store().abilities().liveness || self.lock().registered.contains(&name);
        Ok(is_known.then_some(name))
    }

    fn make(&self, known: &mut Known, asked: &Asked<'_>, engine: &Engine) -> Result<Identity, Failure> {
        let wish = self.wish(asked);
        let name = self.register(&wish, asked, engine).map_err(|failure| unasked(failure, &wish))?;
        known.made.insert(name.clone());
        match asked.thread {
            Some(thread) => known.bind(thread, &name),
            None => known.own = Some(name.clone()),
        }
        Ok(name)
    }

    /// Takes a display name, or what it becomes when somebody else has it. A child's is `parent/name`.
    fn register(&self, name: &str, asked: &Asked<'_>, engine: &Engine) -> Result<Identity, Failure> {
        let (parent, name) = match name.rsplit_once('/') {
            Some((parent, name)) => (Some(parent.to_owned()), name.to_owned()),
            None => (None, name.to_owned()),
        };
        let (context, client) = (self.context(), client_line(asked));
        let harness = self.harness();
        let wish = Registration { name, parent, context, client, harness, ..Registration::default() };
        Ok(engine.register(&wish)?.name)
    }

    /// The name to ask for.
    fn wish(&self, asked: &Asked<'_>) -> String {
        if let Some(name) = self.hints.name.as_ref().filter(|_| asked.thread.is_none()) {
            return name.clone();
        }
        agent_name::of_client(asked.client, asked.thread.or(self.hints.session.as_deref()))
    }
}

impl Known {
    fn bind(&mut self, thread: &str, name: &Identity) {
        if self.threads.len() >= THREADS_MAX {
            self.threads.clear();
        }
        self.threads.insert(thread.to_owned(), name.clone());
    }

    /// The thread's own name; without a thread the only one that was asked for, or the one made before.
    fn of(&self, thread: Option<&str>) -> Option<Identity> {
        if let Some(thread) = thread {
            return self.threads.get(thread).cloned();
        }
        match self.registered.iter().collect::<Vec<_>>().as_slice() {
            [only] => Some((*only).clone()),
            _ => self.own.clone(),
        }
    }
}

/// A name that nobody typed into this call cannot be mended in it.
fn unasked(failure: Failure, name: &str) -> Failure {
    if failure.code != "validation" {
        return failure;
    }
    let message = format!("{}; it is {name:?} from --as or TASKBUS_AS: give another name there", failure.message);
    Failure { message, ..failure }
}

/// The client and its version, for people.
pub(super) fn client_line(asked: &Asked<'_>) -> String {
    format!("{} {}", asked.client, asked.version).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::trial::{Client, desk};

    #[track_caller]
    fn acting(people: &People, engine: &Engine, client: &Client, given: Option<&str>) -> (String, bool) {
        client.ask(|asked| {
            let acting = people.acting(given.map(str::to_owned), asked, engine).unwrap();
            (acting.name.to_string(), acting.is_news)
        })
    }

    fn people(name: Option<&str>, session: Option<&str>) -> People {
        let text = |text: Option<&str>| text.map(str::to_owned);
        People::new(Hints { name: text(name), session: text(session), context: "x".to_owned(), harness: None })
    }

    #[test]
    fn the_order_is_argument_thread_environment_client() {
        let engine = desk().engine().unwrap();
        let client = Client::named("Claude Code");
        let thread = Client { thread: Some("019ac-0000-77aa88bb"), ..client };
        let everything = people(Some("Roo"), Some("0a1b2c3d-9999"));
        assert_eq!(acting(&everything, &engine, &thread, Some("Amp")), ("Amp".to_owned(), false));
        assert_eq!(acting(&everything, &engine, &thread, None), ("claude-code-77aa88bb".to_owned(), true));
        assert_eq!(acting(&everything, &engine, &client, None), ("Roo".to_owned(), true));
        let session = people(None, Some("0a1b2c3d-9999"));
        assert_eq!(acting(&session, &engine, &client, None), ("claude-code-c3d-9999".to_owned(), true));
        let child = people(Some("Zed/impl"), None);
        assert_eq!(acting(&child, &engine, &client, None), ("Zed/impl".to_owned(), true));
        let bare = people(None, None);
        assert_eq!(acting(&bare, &engine, &Client::named("\u{1b}/"), None).0, format!("agent-{}", std::process::id()));
    }

    #[test]
    fn the_only_registered_name_is_meant() {
        let engine = desk().engine().unwrap();
        let (people, client) = (people(None, None), Client::named("c"));
        client.ask(|asked| people.remember(&Identity::new("Zed").unwrap(), asked));
        assert_eq!(acting(&people, &engine, &client, None), ("Zed".to_owned(), false));
        client.ask(|asked| people.remember(&Identity::new("Amp").unwrap(), asked));
        assert_eq!(acting(&people, &engine, &client, None), (format!("c-{}", std::process::id()), true));
    }

    #[test]
    fn a_subagent_acts_under_the_name_that_its_hook_gives() {
        let engine = desk().engine().unwrap();
        let (people, client) = (people(None, Some("0a1b2c3d-9999")), Client::named("claude-code"));
        let child = Some("claude-code-c3d-9999/explore-a1");
        let names =
            |engine: &Engine| engine.sessions().unwrap().into_iter().map(|s| s.name.to_string()).collect::<Vec<_>>();
        assert_eq!(acting(&people, &engine, &client, child), ("claude-code-c3d-9999/explore-a1".to_owned(), false));
        assert_eq!(names(&engine), ["claude-code-c3d-9999", "claude-code-c3d-9999/explore-a1"]);
        assert_eq!(acting(&people, &engine, &client, None), ("claude-code-c3d-9999".to_owned(), true));
        client.ask(|asked| people.remember(&engine_name(&engine, "Zed"), asked));
        assert_eq!(acting(&people, &engine, &client, Some("Zed/plan-b2")).0, "Zed/plan-b2");
        assert_eq!(
            acting(&people, &engine, &client, None).0,
            "Zed",
            "a subagent is not meant by a call without a name"
        );
        assert!(names(&engine).contains(&"Zed/plan-b2".to_owned()));
        for stranger in ["Amp/plan-b2", "Amp"] {
            acting(&people, &engine, &client, Some(stranger));
            assert!(!names(&engine).contains(&stranger.to_owned()), "{stranger} is nobody's child here");
        }
    }

    fn engine_name(engine: &Engine, name: &str) -> Identity {
        engine.register(&Registration { name: name.to_owned(), ..Registration::default() }).unwrap().name
    }

    #[test]
    fn threads_keep_their_names_apart() {
        let engine = desk().engine().unwrap();
        let people = people(Some("Roo"), None);
        let [a, b] = ["thread-a", "thread-b"].map(|thread| Client { thread: Some(thread), ..Client::named("codex") });
        a.ask(|asked| people.remember(&Identity::new("Zed").unwrap(), asked));
        assert_eq!(acting(&people, &engine, &a, None), ("Zed".to_owned(), false));
        assert_eq!(acting(&people, &engine, &b, None), ("codex-thread-b".to_owned(), true));
        assert_eq!(acting(&people, &engine, &b, None), ("codex-thread-b".to_owned(), true));
    }

    #[test]
    fn reading_takes_no_name() {
        let people = people(Some("Roo"), None);
        let engine = desk().engine().unwrap();
        Client::named("c").ask(|asked| {
            let reading = |given: Option<&str>| people.reading(given.map(str::to_owned), asked, &engine);
            assert_eq!(reading(None).unwrap(), None);
            assert_eq!(reading(Some("Amp")).unwrap().unwrap().as_str(), "Amp");
            assert!(reading(Some("a\nb")).is_err());
        });
    }
}
