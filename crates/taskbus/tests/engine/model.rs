//! The memory store is the model: random work by several people comes to the same answers on every store.

use proptest::prelude::*;
use taskbus::core::command::{Command, Draft, Finish, LeaseAsk, Next, Patch, Place as Spot};
use taskbus::core::glob::PathGlob;
use taskbus::core::id::TaskId;
use taskbus::core::name::{Identity, Label};
use taskbus::core::task::Status;
use taskbus::core::text::Subject;
use taskbus::engine::ListAsk;
use taskbus::store::View;

use crate::support::{Person, Place, memory, sqlite};

const PEOPLE: [&str; 3] = ["Sam", "Kim", "Lee"];

/// One step; numbers pick among what exists by then.
#[derive(Clone, Debug)]
enum Step {
    Create { who: usize, parent: Option<usize>, blockers: Vec<usize>, spot: Option<(bool, usize)>, extra: u8 },
    Update { who: usize, task: usize, edit: Edit },
    Next { who: usize, count: usize, complete: Option<usize>, below: Option<usize>, label: bool },
    Restore { who: usize, task: usize },
    Read { who: usize, task: usize },
    Pages { who: usize, below: Option<usize>, extra: u8 },
    Sleep { millis: i64, heartbeats: u8 },
    Tick { who: usize },
    Return { who: usize },
}

#[derive(Clone, Debug)]
enum Edit {
    Claim(Option<u64>),
    Release,
    Complete,
    Delete,
    Assign(usize),
    Reopen,
    Move(Option<usize>),
    Spot(bool, usize),
    Block(usize),
    Unblock(usize),
    Defer(Option<i64>),
    Force,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let who = || 0..PEOPLE.len();
    let task = || 0..12_usize;
    let edit = prop_oneof![
        4 => proptest::option::of(1_u64..40).prop_map(Edit::Claim),
        2 => Just(Edit::Release),
        3 => Just(Edit::Complete),
        2 => Just(Edit::Delete),
        1 => who().prop_map(Edit::Assign),
        1 => Just(Edit::Reopen),
        2 => proptest::option::of(task()).prop_map(Edit::Move),
        2 => (any::<bool>(), task()).prop_map(|(before, at)| Edit::Spot(before, at)),
        2 => task().prop_map(Edit::Block),
        1 => task().prop_map(Edit::Unblock),
        1 => proptest::option::of(1_i64..40_000).prop_map(Edit::Defer),
        1 => Just(Edit::Force),
    ];
    let parent = || proptest::option::weighted(0.4, task());
    let spot = proptest::option::weighted(0.3, (any::<bool>(), task()));
    let step = prop_oneof![
        6 => (who(), parent(), proptest::collection::vec(task(), 0..3), spot, any::<u8>())
            .prop_map(|(who, parent, blockers, spot, extra)| Step::Create { who, parent, blockers, spot, extra }),
        8 => (who(), task(), edit).prop_map(|(who, task, edit)| Step::Update { who, task, edit }),
        3 => (who(), 1..4_usize, proptest::option::weighted(0.3, task()), parent(), any::<bool>())
            .prop_map(|(who, count, complete, below, label)| Step::Next { who, count, complete, below, label }),
        1 => (who(), task()).prop_map(|(who, task)| Step::Restore { who, task }),
        1 => (who(), task()).prop_map(|(who, task)| Step::Read { who, task }),
        2 => (who(), parent(), any::<u8>()).prop_map(|(who, below, extra)| Step::Pages { who, below, extra }),
        2 => (1_i64..40_000, any::<u8>()).prop_map(|(millis, heartbeats)| Step::Sleep { millis, heartbeats }),
        1 => who().prop_map(|who| Step::Tick { who }),
        1 => who().prop_map(|who| Step::Return { who }),
    ];
    proptest::collection::vec(step, 1..60)
}

/// A store at work: its people, and the tasks made so far.
struct Run {
    place: Place,
    people: Vec<Person>,
    made: Vec<TaskId>,
}

impl Run {
    fn on(place: Place) -> Self {
        let people = PEOPLE.iter().map(|name| place.person(name)).collect();
        Self { place, people, made: Vec::new() }
    }

    /// Does one step; what came of it, as text.
    fn step(&mut self, step: &Step) -> String {
        match step {
            Step::Sleep { millis, heartbeats } => {
                self.place.clock.advance(*millis);
                let awake = self.people.iter().enumerate().filter(|(at, _)| heartbeats >> at & 1 == 1);
                awake.map(|(_, person)| format!("{:?}", person.engine.heartbeat())).collect()
            }
            Step::Tick { who } => format!("{:?}", self.people[*who].engine.tick()),
            Step::Return { who } => {
                self.people[*who] = self.place.person(PEOPLE[*who]);
                self.people[*who].name.to_string()
            }
            Step::Read { who, task } => {
                let person = &self.people[*who];
                format!("{:?}", person.engine.get(Some(&person.name), &self.task(*task), true))
            }
            Step::Pages { who, below, extra } => self.pages(*who, *below, *extra),
            Step::Create { .. } | Step::Update { .. } | Step::Next { .. } | Step::Restore { .. } => self.send(step),
        }
    }

    fn send(&mut self, step: &Step) -> String {
        let (who, command) = self.command(step);
        let answer = self.people[who].send(command, None);
        if let Ok(taskbus::answer::Answer::Created(task)) = &answer {
            self.made.push(task.id.clone());
        }
        format!("{answer:#?}")
    }

    fn pages(&self, who: usize, below: Option<usize>, extra: u8) -> String {
        let person = &self.people[who];
        let views = [View::Tree, View::Ready, View::Blocked];
        let mut ask = ListAsk {
            view: views[usize::from(extra) % 3],
            status: Status::ALL.get(usize::from(extra >> 2) % 8).copied(),
            owner: (extra & 0x40 != 0).then(|| person.name.clone()),
            label: (extra & 0x80 != 0).then(label),
            below: below.map(|at| self.task(at)),
            limit: Some(1 + usize::from(extra % 5)),
            cursor: None,
        };
        let mut told = String::new();
        loop {
            let page = person.engine.list(Some(&person.name), &crate::support::list(), &ask);
            told.push_str(&format!("{page:#?}"));
            match page.ok().and_then(|page| page.next) {
                Some(next) => ask.cursor = Some(next),
                None => return told,
            }
        }
    }

    fn command(&self, step: &Step) -> (usize, Command) {
        match step {
            Step::Create { who, parent, blockers, spot, extra } => {
                let draft = Draft {
                    parent: parent.map(|at| self.task(at)),
                    blocked_by: blockers.iter().map(|at| self.task(*at)).collect(),
                    place: spot.map(|(before, at)| self.spot(before, at)),
                    labels: (extra & 1 == 1).then(label).into_iter().collect(),
                    paths: paths(*extra).into_iter().collect(),
                    not_before: (extra & 6 == 6).then(|| self.place.now().plus_millis(5_000)),
                    ..Draft::new(Subject::new(format!("task {}", self.made.len())).unwrap())
                };
                (*who, Command::Create(Box::new(draft)))
            }
            Step::Update { who, task, edit } => {
                (*who, Command::Update(self.task(*task), Box::new(self.patch(*who, edit))))
            }
            Step::Next { who, count, complete, below, label: worker } => {
                let finish = |at: usize| Finish { id: self.task(at), result: None, fence: None };
                let next = Next {
                    count: *count,
                    complete: complete.map(finish),
                    parent: below.map(|at| self.task(at)),
                    labels: worker.then(label).into_iter().collect(),
                    lease: Some(LeaseAsk::Seconds(20)),
                };
                (*who, Command::Next(Box::new(next)))
            }
            Step::Restore { who, task } => (*who, Command::Restore(self.task(*task))),
            other => panic!("BUG: {other:?} is no command"),
        }
    }

    fn patch(&self, who: usize, edit: &Edit) -> Patch {
        let name = |at: usize| Identity::new(PEOPLE[at]).unwrap();
        let plain = Patch::default();
        match edit {
            Edit::Claim(lease) => Patch::claim(self.people[who].name.clone(), lease.map(LeaseAsk::Seconds)),
            Edit::Release => Patch::release(),
            Edit::Complete => Patch::complete(None),
            Edit::Delete => Patch::delete(),
            Edit::Assign(to) => Patch { owner: Some(Some(name(*to))), ..plain },
            Edit::Reopen => Patch { status: Some(Status::Pending), ..plain },
            Edit::Move(parent) => Patch { parent: Some(parent.map(|at| self.task(at))), ..plain },
            Edit::Spot(before, at) => Patch { place: Some(self.spot(*before, *at)), ..plain },
            Edit::Block(at) => Patch { add_blocked_by: vec![self.task(*at)], ..plain },
            Edit::Unblock(at) => Patch { remove_blocked_by: vec![self.task(*at)], ..plain },
            Edit::Defer(by) => {
                Patch { not_before: Some(by.map(|millis| self.place.now().plus_millis(millis))), ..plain }
            }
            Edit::Force => Patch { force: true, ..Patch::release() },
        }
    }

    fn spot(&self, before: bool, at: usize) -> Spot {
        if before { Spot::Before(self.task(at)) } else { Spot::After(self.task(at)) }
    }

    /// A task made so far, or an id that nobody made.
    fn task(&self, at: usize) -> TaskId {
        self.made.get(at % (self.made.len() + 1)).cloned().unwrap_or(TaskId::Number(1_000_000))
    }

    fn everything(&self) -> String {
        let tasks = self.made.iter().map(|id| format!("{:#?}", self.people[0].engine.get(None, id, true)));
        let sessions = self.people[0].engine.sessions();
        let lists = self.people[0].engine.lists();
        format!("{}{sessions:#?}{lists:#?}", tasks.collect::<String>())
    }
}

fn label() -> Label {
    Label::new("rust").unwrap()
}

fn paths(extra: u8) -> Option<PathGlob> {
    let pattern = match extra >> 4 & 3 {
        1 => "src/**",
        2 => "src/main.rs",
        3 => "docs/*.md",
        _ => return None,
    };
    Some(PathGlob::new(pattern).unwrap())
}

/// Compares a store with the model.
fn compare(make: fn() -> Place) {
    proptest!(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() }, |(steps in steps())| {
        let (mut model, mut real) = (Run::on(memory()), Run::on(make()));
        for step in &steps {
            prop_assert_eq!(model.step(step), real.step(step), "{:?}", step);
        }
        prop_assert_eq!(model.everything(), real.everything());
    });
}

#[test]
fn sqlite_answers_as_memory_does() {
    compare(sqlite);
}
