//! The plan alone, on two sides that are only maps: random changes on both, a list that refuses some of them, files
//! that vanish. After each round the mirror comes to rest, both sides agree as far as they can, and a second look finds
//! nothing to do.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Map, json};
use taskbus::core::id::TaskId;
use taskbus::core::name::Identity;
use taskbus::core::task::Status;
use taskbus::core::text::Subject;
use taskbus::core::time::Timestamp;
use taskbus::mirror::{Action, Fields, Hold, Memory, Notice, OtherHalf, SideTask, SideView, Texts, plan_step};

const SUBJECTS: [&str; 4] = ["a", "b", "c", "never"];

#[derive(Default)]
struct World {
    shared: SideView,
    files: SideView,
    memory: Memory,
    minted: u64,
    clock: i64,
    /// Every shared task that there ever was and nobody deleted.
    alive: BTreeSet<TaskId>,
    notices: Vec<Notice>,
}

#[derive(Clone, Debug)]
enum Act {
    Make { on_list: bool, subject: usize },
    Subject { on_list: bool, at: usize, subject: usize },
    Move { on_list: bool, at: usize, status: usize, owner: Option<usize> },
    Edge { on_list: bool, at: usize, blocker: usize },
    Metadata { on_list: bool, at: usize, key: usize, value: Option<u8> },
    DeleteTask(usize),
    Vanish(usize),
    Tear(usize),
    Mend,
    Rest,
}

fn acts() -> impl Strategy<Value = Act> {
    let at = || 0..8_usize;
    prop_oneof![
        4 => (any::<bool>(), 0..4_usize).prop_map(|(on_list, subject)| Act::Make { on_list, subject }),
        4 => (any::<bool>(), at(), 0..4_usize).prop_map(|(on_list, at, subject)| Act::Subject { on_list, at, subject }),
        6 => (any::<bool>(), at(), 0..3_usize, prop::option::of(0..3_usize))
            .prop_map(|(on_list, at, status, owner)| Act::Move { on_list, at, status, owner }),
        4 => (any::<bool>(), at(), at()).prop_map(|(on_list, at, blocker)| Act::Edge { on_list, at, blocker }),
        3 => (any::<bool>(), at(), 0..2_usize, prop::option::of(0..3_u8))
            .prop_map(|(on_list, at, key, value)| Act::Metadata { on_list, at, key, value }),
        1 => at().prop_map(Act::DeleteTask),
        1 => at().prop_map(Act::Vanish),
        1 => at().prop_map(Act::Tear),
        1 => Just(Act::Mend),
        4 => Just(Act::Rest),
    ]
}

fn fields(subject: usize) -> Fields {
    Fields {
        subject: Subject::new(SUBJECTS[subject]).unwrap(),
        description: None,
        active_form: None,
        hold: Hold { status: Status::Pending, owner: None },
        metadata: Map::new(),
        blockers: Vec::new(),
    }
}

fn owner(at: usize) -> Identity {
    Identity::new(format!("worker{at}")).unwrap()
}

impl World {
    fn side(&mut self, on_list: bool) -> &mut SideView {
        if on_list { &mut self.shared } else { &mut self.files }
    }

    fn add(&mut self, on_list: bool, half: OtherHalf, fields: Fields) -> TaskId {
        self.minted += 1;
        let id = TaskId::Number(self.minted);
        let updated = Timestamp::from_millis(self.clock);
        let task = SideTask { id: id.clone(), half, revision: 1, updated, fields };
        self.side(on_list).tasks.insert(id.clone(), task);
        if on_list {
            self.alive.insert(id.clone());
        }
        id
    }

    fn nth(&mut self, on_list: bool, at: usize) -> Option<TaskId> {
        let side = self.side(on_list);
        side.tasks.keys().nth(at % side.tasks.len().max(1)).cloned()
    }

    fn edit(&mut self, on_list: bool, id: &TaskId, change: impl FnOnce(&mut SideTask)) {
        let updated = Timestamp::from_millis(self.clock);
        if let Some(task) = self.side(on_list).tasks.get_mut(id) {
            change(task);
            task.revision += 1;
            task.updated = updated;
        }
    }

    fn outside(&mut self, act: &Act) {
        self.clock += 1;
        match act {
            Act::Make { on_list, subject } => drop(self.add(*on_list, OtherHalf::None, fields(*subject))),
            Act::Subject { on_list, at, subject } => {
                let Some(id) = self.nth(*on_list, *at) else { return };
                self.edit(*on_list, &id, |task| task.fields.subject = Subject::new(SUBJECTS[*subject]).unwrap());
            }
            Act::Move { on_list, at, status, owner: by } => {
                let Some(id) = self.nth(*on_list, *at) else { return };
                let hold = Hold { status: Status::ALL[*status], owner: by.map(owner) };
                self.edit(*on_list, &id, |task| task.fields.hold = hold);
            }
            Act::Edge { on_list, at, blocker } => {
                let (Some(id), Some(blocker)) = (self.nth(*on_list, *at), self.nth(*on_list, *blocker)) else { return };
                if *on_list && is_refused_edge(&id, &blocker) {
                    return;
                }
                self.edit(*on_list, &id, |task| {
                    match task.fields.blockers.iter().position(|other| *other == blocker) {
                        Some(at) => drop(task.fields.blockers.remove(at)),
                        None => task.fields.blockers.push(blocker),
                    }
                });
            }
            Act::Metadata { on_list, at, key, value } => {
                let Some(id) = self.nth(*on_list, *at) else { return };
                let key = format!("k{key}");
                self.edit(*on_list, &id, |task| match value {
                    Some(value) => drop(task.fields.metadata.insert(key, json!(value))),
                    None => drop(task.fields.metadata.shift_remove(&key)),
                });
            }
            Act::DeleteTask(at) => {
                let Some(id) = self.nth(true, *at) else { return };
                self.shared.tasks.remove(&id);
                self.shared.others.insert(id.clone());
                self.alive.remove(&id);
            }
            Act::Vanish(at) => {
                let Some(id) = self.nth(false, *at) else { return };
                self.files.tasks.remove(&id);
                for task in self.files.tasks.values_mut() {
                    task.fields.blockers.retain(|blocker| *blocker != id);
                }
            }
            Act::Tear(at) => {
                let Some(id) = self.nth(false, *at) else { return };
                self.files.tasks.remove(&id);
                self.files.others.insert(id);
            }
            // What was torn is gone for good, in this world.
            Act::Mend => self.files.others.clear(),
            Act::Rest => self.rest(),
        }
    }

    /// Steps until nothing is left to do.
    fn rest(&mut self) {
        let mut steps = 0;
        loop {
            let actions = plan_step(&self.shared, &self.files, &self.memory);
            if actions.is_empty() {
                break;
            }
            steps += 1;
            assert!(steps < 60, "no rest: {actions:#?}");
            self.clock += 1;
            actions.iter().for_each(|action| self.act(action));
        }
        self.check();
    }

    fn act(&mut self, action: &Action) {
        match action {
            Action::MakeFile { shared, fields, agreed } => {
                self.memory.agreed.insert(shared.clone(), (**agreed).clone());
                let file = self.add(false, OtherHalf::Here(shared.clone()), fields.clone());
                self.memory.removed.remove(shared);
                self.memory.files.insert(shared.clone(), file);
            }
            Action::MakeShared { file, fields } => {
                if fields.subject.as_str() == "never" {
                    self.memory.refused_files.insert(file.clone(), fields.clone());
                    return;
                }
                let hold = Hold { status: Status::Pending, owner: None };
                let agreed = Fields { hold, ..fields.clone() };
                let shared = self.add(true, OtherHalf::Here(file.clone()), agreed.clone());
                self.files.tasks.get_mut(file).unwrap().half = OtherHalf::Here(shared.clone());
                self.memory.agreed.insert(shared.clone(), agreed);
                self.memory.files.insert(shared, file.clone());
            }
            Action::LinkFile { file, shared } => {
                self.files.tasks.get_mut(file).unwrap().half = OtherHalf::Here(shared.clone());
            }
            Action::LinkShared { shared, file, revision, .. } => {
                if self.is_held(shared) {
                    self.memory.untold.insert(shared.clone(), *revision);
                } else {
                    self.edit(true, shared, |task| task.half = OtherHalf::Here(file.clone()));
                }
            }
            Action::WriteFile { file, shared, was, texts, hold, edges } => {
                assert_eq!(self.files.tasks[file].fields, **was);
                self.edit(false, file, |task| {
                    write(&mut task.fields, texts, hold.as_ref());
                    edges.iter().for_each(|(add, id, _)| edge(&mut task.fields, *add, id));
                });
                let edges: Vec<_> = edges.iter().map(|(add, _, id)| (*add, id.clone())).collect();
                self.memory.wrote(shared, texts, hold.as_ref(), &edges);
            }
            Action::RemoveFile { file, shared } => {
                self.files.tasks.remove(file);
                self.memory.removed.insert(shared.clone());
                self.memory.agreed.remove(shared);
            }
            Action::WriteShared { .. } | Action::MoveShared { .. } | Action::EdgeShared { .. } => {
                self.act_on_list(action);
            }
            Action::Agree { shared, file, fields } => {
                self.memory.files.insert(shared.clone(), file.clone());
                self.memory.agreed.insert(shared.clone(), (**fields).clone());
            }
            Action::Tell(notice) => {
                self.memory.told.insert(notice.clone());
                self.notices.push(notice.clone());
            }
        }
    }

    /// Held by somebody who is not the mirror's: nobody else changes it.
    fn is_held(&self, id: &TaskId) -> bool {
        let hold = &self.shared.tasks[id].fields.hold;
        hold.status == Status::InProgress && hold.owner == Some(owner(0))
    }

    fn act_on_list(&mut self, action: &Action) {
        match action {
            Action::WriteShared { shared, revision, texts, file_says, .. } if self.is_at(shared, *revision) => {
                if texts.subject.as_ref().is_some_and(|subject| subject.as_str() == "never") {
                    self.memory.refused.insert(shared.clone(), (**file_says).clone());
                    return;
                }
                if !self.is_held(shared) {
                    self.edit(true, shared, |task| write(&mut task.fields, texts, None));
                }
                self.memory.wrote(shared, texts, None, &[]);
            }
            Action::MoveShared { shared, revision, to, .. } if self.is_at(shared, *revision) => {
                if !self.is_held(shared) {
                    self.edit(true, shared, |task| task.fields.hold = to.clone());
                }
                self.memory.wrote(shared, &Texts::default(), Some(to), &[]);
            }
            Action::EdgeShared { shared, revision, blocker, add, .. } if self.is_at(shared, *revision) => {
                if *add && is_refused_edge(shared, blocker) {
                    self.memory.refused_edges.insert((shared.clone(), blocker.clone()));
                    return;
                }
                if !self.is_held(shared) {
                    self.edit(true, shared, |task| edge(&mut task.fields, *add, blocker));
                }
                self.memory.wrote(shared, &Texts::default(), None, &[(*add, blocker.clone())]);
            }
            _ => {}
        }
    }

    fn is_at(&self, id: &TaskId, revision: u64) -> bool {
        self.shared.tasks[id].revision == revision
    }

    /// Both sides agree, but for what the list never takes.
    fn check(&self) {
        assert!(self.alive.iter().all(|id| self.shared.tasks.contains_key(id)), "a shared task was lost");
        let pairs: BTreeMap<&TaskId, &TaskId> = self.files.tasks.values().filter_map(half).collect();
        for (file, shared) in &pairs {
            let Some(task) = self.shared.tasks.get(shared) else {
                panic!("{file} stands for {shared}, which is deleted");
            };
            let file = &self.files.tasks[*file];
            assert_eq!(file.fields.hold, task.fields.hold, "{file:?} {task:?}");
            let texts = |fields: &Fields| (fields.subject.clone(), fields.metadata.clone());
            if file.fields.subject.as_str() != "never" {
                assert_eq!(texts(&file.fields), texts(&task.fields));
            }
            let known = |id: &&TaskId| pairs.values().any(|shared| shared == id);
            let ours: BTreeSet<&TaskId> = task.fields.blockers.iter().filter(known).collect();
            let theirs = file.fields.blockers.iter().filter_map(|id| pairs.get(id).copied());
            let theirs: BTreeSet<&TaskId> = theirs.filter(|id| !is_refused_edge(shared, id)).collect();
            assert_eq!(ours, theirs);
        }
        for file in self.files.tasks.values().filter(|file| file.half == OtherHalf::None) {
            assert_eq!(file.fields.subject.as_str(), "never", "every file has its task");
        }
    }
}

fn half(task: &SideTask) -> Option<(&TaskId, &TaskId)> {
    match &task.half {
        OtherHalf::Here(other) => Some((&task.id, other)),
        OtherHalf::None | OtherHalf::Elsewhere(_) => None,
    }
}

/// What the list of this world takes for a circle.
fn is_refused_edge(waiting: &TaskId, blocker: &TaskId) -> bool {
    waiting <= blocker
}

fn write(fields: &mut Fields, texts: &Texts, hold: Option<&Hold>) {
    fields.subject = texts.subject.clone().unwrap_or_else(|| fields.subject.clone());
    for (key, value) in texts.metadata.clone() {
        match value {
            Some(value) => drop(fields.metadata.insert(key, value)),
            None => drop(fields.metadata.shift_remove(&key)),
        }
    }
    fields.hold = hold.cloned().unwrap_or_else(|| fields.hold.clone());
}

fn edge(fields: &mut Fields, add: bool, blocker: &TaskId) {
    fields.blockers.retain(|id| id != blocker);
    fields.blockers.extend(add.then(|| blocker.clone()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn both_sides_come_to_rest_in_step(acts in prop::collection::vec(acts(), 1..40)) {
        let mut world = World::default();
        acts.iter().for_each(|act| world.outside(act));
        world.rest();
        prop_assert_eq!(plan_step(&world.shared, &world.files, &world.memory), vec![], "an echo");
    }

    /// A mirror that is started anew finds both sides in step, and one that was changed meanwhile is followed.
    #[test]
    fn a_new_mirror_goes_on_where_the_last_one_ended(
        acts in prop::collection::vec(acts(), 1..30),
        meanwhile in prop::collection::vec(acts(), 0..4),
    ) {
        let mut world = World::default();
        acts.iter().for_each(|act| world.outside(act));
        world.rest();
        world.memory = Memory::default();
        meanwhile.iter().filter(|act| !matches!(act, Act::Rest)).for_each(|act| world.outside(act));
        world.rest();
    }
}

proptest! {
    /// One change on either side, from rest, reaches the other and nothing else moves.
    #[test]
    fn a_change_reaches_the_other_side(
        acts in prop::collection::vec(acts(), 1..25),
        on_list in any::<bool>(),
        at in 0..8_usize,
        value in 10..20_u8,
    ) {
        let mut world = World::default();
        acts.iter().for_each(|act| world.outside(act));
        world.rest();
        let paired: Vec<(TaskId, TaskId)> = world.files.tasks.values().filter_map(half).map(|(f, s)| (f.clone(), s.clone())).collect();
        prop_assume!(!paired.is_empty());
        let (file, shared) = paired[at % paired.len()].clone();
        let stuck = world.is_held(&shared) || world.files.tasks[&file].fields.subject.as_str() == "never";
        prop_assume!(!stuck);
        let before = (world.shared.tasks.len(), world.files.tasks.len());
        let hold = Hold { status: Status::Completed, owner: Some(owner(2)) };
        world.edit(on_list, if on_list { &shared } else { &file }, |task| {
            task.fields.metadata.insert("new".to_owned(), json!(value));
            task.fields.hold = hold.clone();
        });
        world.rest();
        for fields in [&world.shared.tasks[&shared].fields, &world.files.tasks[&file].fields] {
            prop_assert_eq!((&fields.metadata["new"], &fields.hold), (&json!(value), &hold));
        }
        prop_assert_eq!((world.shared.tasks.len(), world.files.tasks.len()), before);
    }
}

#[test]
fn a_deleted_task_takes_its_file_along_and_brings_a_new_one_back() {
    let mut world = World::default();
    let shared = world.add(true, OtherHalf::None, fields(0));
    world.rest();
    let gone = world.shared.tasks.remove(&shared).unwrap();
    world.shared.others.insert(shared.clone());
    world.alive.clear();
    world.rest();
    assert!(world.files.tasks.is_empty());
    world.shared.others.clear();
    world.shared.tasks.insert(shared, gone);
    world.rest();
    assert_eq!((world.files.tasks.len(), world.notices.len()), (1, 0));
}

#[test]
fn a_vanished_file_is_told_once_and_never_comes_back() {
    let mut world = World::default();
    let shared = world.add(true, OtherHalf::None, fields(0));
    world.rest();
    let file = world.nth(false, 0).unwrap();
    world.files.tasks.clear();
    world.rest();
    world.edit(true, &shared, |task| task.fields.subject = Subject::new("b").unwrap());
    world.rest();
    assert_eq!(world.notices, [Notice::Vanished { shared, file }]);
    assert!(world.files.tasks.is_empty());
}

#[test]
fn of_two_changes_of_one_field_the_lists_wins_and_others_are_joined() {
    let mut world = World::default();
    let shared = world.add(true, OtherHalf::None, fields(0));
    world.rest();
    let file = world.nth(false, 0).unwrap();
    world.edit(true, &shared, |task| task.fields.subject = Subject::new("b").unwrap());
    world.edit(false, &file, |task| {
        task.fields.subject = Subject::new("c").unwrap();
        task.fields.hold.status = Status::Completed;
    });
    world.rest();
    assert_eq!(world.files.tasks[&file].fields.subject.as_str(), "b");
    assert_eq!(world.shared.tasks[&shared].fields.hold.status, Status::Completed);
    assert_eq!(world.notices, [Notice::BothChanged { shared, field: "subject" }]);
}

#[test]
fn what_belongs_elsewhere_is_left_alone() {
    let mut world = World::default();
    world.add(true, OtherHalf::Elsewhere("other/3".to_owned()), fields(0));
    world.add(false, OtherHalf::Elsewhere("tasks/other#3".to_owned()), fields(0));
    world.add(false, OtherHalf::Here(TaskId::Number(99)), fields(0));
    let mut internal = fields(0);
    internal.metadata.insert("_internal".to_owned(), json!(true));
    world.add(false, OtherHalf::None, internal);
    world.rest_without_check();
    assert_eq!((world.shared.tasks.len(), world.files.tasks.len(), world.notices.len()), (1, 3, 3));
}

impl World {
    fn rest_without_check(&mut self) {
        for action in plan_step(&self.shared, &self.files, &self.memory) {
            self.act(&action);
        }
        assert_eq!(plan_step(&self.shared, &self.files, &self.memory), []);
    }
}
