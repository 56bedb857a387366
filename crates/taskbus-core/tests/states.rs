//! Every state that a few people can bring a few tasks into, found by trying everything in each state: what must hold
//! is looked at after every step, from nothing but the state before and the state after. The rules are the real ones;
//! the states are cut down to what the protocol of claims, leases and dependencies is about, so that there is an end.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::{HashSet, VecDeque};

use taskbus_core::board::Board;
use taskbus_core::change::{Change, Kind};
use taskbus_core::command::{Command, LeaseAsk, Patch};
use taskbus_core::decide::{self, Facts, Stop};
use taskbus_core::id::TaskId;
use taskbus_core::name::Identity;
use taskbus_core::rank::Rank;
use taskbus_core::task::{Stamp, State as Standing, Task};
use taskbus_core::text::Subject;
use taskbus_core::time::Timestamp;

const PEOPLE: [&str; 3] = ["Zed", "Amp", "Jan"];
/// The time of every step.
const NOW: Timestamp = Timestamp::from_millis(1_796_054_400_000);
/// The fence of every task before a step, and the one that a stale claim was given.
const FENCE: u64 = 10;
const STALE: u64 = 9;

/// When a hold ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Lease {
    None,
    Runs,
    Over,
}

/// How a task stands, and with whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stand {
    Waits(Option<u8>),
    Held(u8, Lease),
    Done(Option<u8>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Item {
    gone: bool,
    stand: Stand,
    /// One bit for each task that it names.
    blockers: u8,
    parent: Option<u8>,
}

/// What somebody was told of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Token {
    Never,
    Valid,
    Outdated,
}

/// `T` tasks and `P` people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct State<const T: usize, const P: usize> {
    items: [Item; T],
    alive: [bool; P],
    tokens: [[Token; T]; P],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Claim { lease: bool, force: bool },
    Complete,
    CompleteWithToken,
    Renew,
    Release,
    Assign(usize),
    Reopen,
    Block(usize),
    Unblock(usize),
    Under(Option<usize>),
    Delete { force: bool },
    Restore,
    Next,
}

/// Something that happens: somebody asks for something, or the world goes on.
#[derive(Clone, Copy, Debug)]
enum Step {
    Ask {
        who: usize,
        task: usize,
        verb: Verb,
    },
    Die(usize),
    Return(usize),
    /// Every lease that runs is over.
    Pass,
    /// The maintenance takes back what is abandoned.
    Tick,
}

/// A rule that is left out, to see that it is missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    None,
    IgnoresFences,
    PassesEveryGuard,
    StartsTheBlocked,
    ForgetsTheFence,
    ReclaimsTheLiving,
}

fn person(at: usize) -> Identity {
    Identity::new(PEOPLE[at]).unwrap()
}

fn number(who: &Identity) -> u8 {
    u8::try_from(PEOPLE.iter().position(|name| *name == who.as_str()).unwrap()).unwrap()
}

fn id(at: usize) -> TaskId {
    TaskId::Number(at as u64 + 1)
}

fn index(id: &TaskId) -> usize {
    usize::try_from(id.as_number().unwrap()).unwrap() - 1
}

impl<const T: usize, const P: usize> State<T, P> {
    fn first() -> Self {
        let item = Item { gone: false, stand: Stand::Waits(None), blockers: 0, parent: None };
        Self { items: [item; T], alive: [true; P], tokens: [[Token::Never; T]; P] }
    }

    fn board(&self) -> Board {
        let mut board = Board::default();
        for who in 0..P {
            board.set_alive(person(who), if self.alive[who] { NOW.plus_millis(1) } else { NOW });
        }
        for (at, item) in self.items.iter().enumerate() {
            board.put(&Change { kind: Kind::Created, note: None, task: task(at, item) });
        }
        for (at, item) in self.items.iter().enumerate().filter(|(_, item)| item.gone) {
            board.put(&Change { kind: Kind::Deleted, note: None, task: task(at, item) });
        }
        board
    }

    /// The state that a board is in; who holds which token is carried over from before.
    fn read(self, board: &Board) -> Self {
        let items = std::array::from_fn(|at| {
            let live = board.get(&id(at));
            item(live.or(board.get_tombstone(&id(at))).unwrap(), live.is_none())
        });
        Self { items, ..self }
    }

    /// Where the fence has risen, what was told before is outdated; who took the task was told the new one.
    fn tell(&mut self, board: &Board, takes: Option<usize>, flaw: Flaw) {
        for at in (0..T).filter(|at| fence(board, *at) > FENCE) {
            for (who, tokens) in self.tokens.iter_mut().enumerate() {
                tokens[at] = match tokens[at] {
                    _ if takes == Some(who) => Token::Valid,
                    Token::Valid if flaw != Flaw::ForgetsTheFence => Token::Outdated,
                    other => other,
                };
            }
        }
    }

    fn is_open(&self, at: usize) -> bool {
        !self.items[at].gone && !matches!(self.items[at].stand, Stand::Done(_))
    }

    fn is_blocked(&self, at: usize) -> bool {
        bits::<T>(self.items[at].blockers).any(|blocker| self.is_open(blocker))
    }

    fn is_abandoned(&self, at: usize) -> bool {
        match self.items[at].stand {
            Stand::Held(who, lease) if !self.items[at].gone => lease == Lease::Over || !self.alive[usize::from(who)],
            _ => false,
        }
    }

    /// Everything that can happen.
    fn steps(&self) -> Vec<Step> {
        let mut steps = vec![Step::Pass, Step::Tick];
        for who in 0..P {
            if !self.alive[who] {
                steps.push(Step::Return(who));
                continue;
            }
            steps.push(Step::Die(who));
            steps.push(Step::Ask { who, task: 0, verb: Verb::Next });
            for task in 0..T {
                steps.extend(verbs::<T, P>(task).into_iter().map(|verb| Step::Ask { who, task, verb }));
            }
        }
        steps
    }
}

fn verbs<const T: usize, const P: usize>(task: usize) -> Vec<Verb> {
    let claims = [(false, false), (true, false), (true, true)].map(|(lease, force)| Verb::Claim { lease, force });
    let others = (0..T).filter(|other| *other != task);
    let links = others.flat_map(|other| [Verb::Block(other), Verb::Unblock(other), Verb::Under(Some(other))]);
    let plain = [Verb::Complete, Verb::CompleteWithToken, Verb::Renew, Verb::Release, Verb::Reopen, Verb::Under(None)];
    let ends = [Verb::Delete { force: false }, Verb::Delete { force: true }, Verb::Restore];
    claims.into_iter().chain(plain).chain(ends).chain((0..P).map(Verb::Assign)).chain(links).collect()
}

fn bits<const T: usize>(set: u8) -> impl Iterator<Item = usize> {
    (0..T).filter(move |at| set & (1 << at) != 0)
}

fn task(at: usize, item: &Item) -> Task {
    let stamp = Stamp { at: NOW, by: Some(person(0)) };
    let who = |who: Option<u8>| who.map(|who| person(usize::from(who)));
    let state = match item.stand {
        Stand::Waits(assignee) => Standing::Pending { assignee: who(assignee) },
        Stand::Held(owner, lease) => Standing::InProgress { owner: who(Some(owner)), lease: ends(lease) },
        Stand::Done(by) => Standing::Completed { by: who(by), at: NOW },
    };
    Task {
        id: id(at),
        subject: Subject::new("work").unwrap(),
        description: None,
        active_form: None,
        state,
        parent: item.parent.map(|parent| id(usize::from(parent))),
        rank: Rank::nth(at as u64),
        blocked_by: bits::<8>(item.blockers).map(id).collect(),
        not_before: None,
        labels: std::collections::BTreeSet::default(),
        paths: std::collections::BTreeSet::default(),
        metadata: serde_json::Map::default(),
        result: None,
        created: stamp.clone(),
        updated: stamp,
        revision: 1,
        fence: FENCE,
        reclaims: 0,
        parked: false,
        extra: serde_json::Map::default(),
    }
}

fn ends(lease: Lease) -> Option<Timestamp> {
    match lease {
        Lease::None => None,
        Lease::Runs => Some(NOW.plus_millis(1)),
        Lease::Over => Some(NOW),
    }
}

fn item(task: &Task, gone: bool) -> Item {
    let who = |who: &Option<Identity>| who.as_ref().map(number);
    let stand = match &task.state {
        Standing::Pending { assignee } => Stand::Waits(who(assignee)),
        Standing::InProgress { owner, lease } => {
            let lease = lease.map_or(Lease::None, |end| if end > NOW { Lease::Runs } else { Lease::Over });
            Stand::Held(who(owner).unwrap(), lease)
        }
        Standing::Completed { by, .. } => Stand::Done(who(by)),
    };
    let blockers = task.blocked_by.iter().map(|blocker| 1 << index(blocker)).sum();
    Item { gone, stand, blockers, parent: task.parent.as_ref().map(|parent| u8::try_from(index(parent)).unwrap()) }
}

/// What is asked for; none if this person has nothing to ask it with.
fn command<const T: usize, const P: usize>(state: &State<T, P>, who: usize, at: usize, verb: Verb) -> Option<Command> {
    let token = match state.tokens[who][at] {
        Token::Never => None,
        Token::Valid => Some(FENCE),
        Token::Outdated => Some(STALE),
    };
    let patch = match verb {
        Verb::Claim { lease, force } => {
            let lease = lease.then_some(LeaseAsk::Seconds(60));
            Patch { force, ..Patch::claim(person(who), lease) }
        }
        Verb::Complete => Patch::complete(None),
        Verb::CompleteWithToken => Patch { fence: Some(token?), ..Patch::complete(None) },
        Verb::Renew => Patch { fence: Some(token?), lease: Some(LeaseAsk::Seconds(60)), ..Patch::default() },
        Verb::Release => Patch::release(),
        Verb::Assign(to) => Patch { owner: Some(Some(person(to))), ..Patch::default() },
        Verb::Reopen => Patch { status: Some(taskbus_core::task::Status::Pending), ..Patch::default() },
        Verb::Block(other) => Patch { add_blocked_by: vec![id(other)], ..Patch::default() },
        Verb::Unblock(other) => Patch { remove_blocked_by: vec![id(other)], ..Patch::default() },
        Verb::Under(parent) => Patch { parent: Some(parent.map(id)), ..Patch::default() },
        Verb::Delete { force } => Patch { force, ..Patch::delete() },
        Verb::Restore => return Some(Command::Restore(id(at))),
        Verb::Next => return Some(Command::Next(Box::default())),
    };
    Some(Command::Update(id(at), Box::new(patch)))
}

/// The state after a step; none if it is refused or nothing happens.
fn after<const T: usize, const P: usize>(before: &State<T, P>, step: Step, flaw: Flaw) -> Option<(State<T, P>, Board)> {
    let mut state = *before;
    match step {
        Step::Die(who) => state.alive[who] = false,
        Step::Return(who) => state.alive[who] = true,
        Step::Pass => state.items.iter_mut().for_each(|item| {
            if let Stand::Held(who, Lease::Runs) = item.stand {
                item.stand = Stand::Held(who, Lease::Over);
            }
        }),
        Step::Tick => return ticked(before, flaw),
        Step::Ask { who, task, verb } => return asked(before, who, task, verb, flaw),
    }
    let board = state.board();
    Some((state, board))
}

fn ticked<const T: usize, const P: usize>(before: &State<T, P>, flaw: Flaw) -> Option<(State<T, P>, Board)> {
    let mut judged = *before;
    if flaw == Flaw::ReclaimsTheLiving {
        judged.alive = [false; P];
    }
    let mut board = judged.board();
    decide::reclaim_all(&mut board, &Facts { now: NOW, caller: None }, T).unwrap();
    let mut state = before.read(&board);
    state.tell(&board, None, flaw);
    Some((state, board))
}

fn asked<const T: usize, const P: usize>(
    before: &State<T, P>,
    who: usize,
    at: usize,
    verb: Verb,
    flaw: Flaw,
) -> Option<(State<T, P>, Board)> {
    let mut command = command(before, who, at, verb)?;
    let mut judged = *before;
    match (flaw, &mut command) {
        (Flaw::IgnoresFences, Command::Update(_, patch)) => patch.fence = None,
        (Flaw::PassesEveryGuard, Command::Update(_, patch)) => patch.force = true,
        (Flaw::StartsTheBlocked, Command::Update(_, patch)) if patch.add_blocked_by.is_empty() => {
            judged.items.iter_mut().for_each(|item| item.blockers = 0);
        }
        _ => {}
    }
    let mut board = judged.board();
    match decide::run(&command, &mut board, &Facts { now: NOW, caller: Some(person(who)) }) {
        Ok(_) => {}
        Err(Stop::Refused(_)) => return None,
        Err(Stop::Lookup(error)) => panic!("a board always answers: {error}"),
    }
    let mut state = before.read(&board);
    if judged != *before {
        state.items.iter_mut().zip(&before.items).for_each(|(item, old)| item.blockers = old.blockers);
    }
    let takes = matches!(verb, Verb::Claim { .. } | Verb::Next).then_some(who);
    state.tell(&board, takes, flaw);
    Some((state, board))
}

fn fence(board: &Board, at: usize) -> u64 {
    board.get(&id(at)).or(board.get_tombstone(&id(at))).unwrap().fence
}

/// What is wrong with a step, by the numbers of the invariants (I7 to I18 of the design).
fn wrong<const T: usize, const P: usize>(
    before: &State<T, P>,
    step: Step,
    after: &State<T, P>,
    board: &Board,
) -> Option<&'static str> {
    let asks = |at: usize| match step {
        Step::Ask { who, task, verb } if task == at || verb == Verb::Next => Some((who, verb)),
        _ => None,
    };
    for at in 0..T {
        let (old, new) = (&before.items[at], &after.items[at]);
        let (asker, verb) = asks(at).unzip();
        let force = matches!(verb, Some(Verb::Claim { force: true, .. } | Verb::Delete { force: true }));
        let fence = fence(board, at);
        if fence < FENCE {
            return Some("I9: a fence fell");
        }
        if let Stand::Held(owner, _) = new.stand
            && !new.gone
            && asker.is_some()
            && (old, FENCE) != (new, fence)
        {
            let held = matches!(old.stand, Stand::Held(..)) && !old.gone && !before.is_abandoned(at);
            let same = held && matches!(old.stand, Stand::Held(before, _) if before == owner);
            if !same && fence == FENCE {
                return Some("I9: a claim without a new fence");
            }
            if !held && after.is_blocked(at) {
                return Some("I16: what is blocked was started");
            }
        }
        if let Stand::Held(owner, _) = old.stand
            && !old.gone
            && (new.gone || !matches!(new.stand, Stand::Held(now, _) if now == owner))
        {
            let own = asker.is_some_and(|who| who == usize::from(owner));
            if !before.is_abandoned(at) && !own && !force {
                return Some("I7, I12: a live hold ended by somebody else");
            }
        }
        if matches!(old.stand, Stand::Done(_)) && !matches!(new.stand, Stand::Done(_)) && verb != Some(Verb::Reopen) {
            let release = verb == Some(Verb::Release);
            if !release {
                return Some("I14: what was completed is not");
            }
        }
        if let Step::Ask { who, task, verb: Verb::CompleteWithToken | Verb::Renew } = step
            && task == at
            && before.tokens[who][at] == Token::Outdated
            && old != new
        {
            return Some("I10: a stale owner changed something");
        }
        let others = |owner: u8| (0..P).filter(move |who| *who != usize::from(owner));
        if let Stand::Held(owner, _) = new.stand
            && others(owner).any(|who| !new.gone && after.tokens[who][at] == Token::Valid)
        {
            return Some("I10: what a former owner was told is still good");
        }
        let has_children =
            (0..T).any(|child| !before.items[child].gone && before.items[child].parent == Some(at as u8));
        if new.gone && !old.gone && has_children {
            return Some("I18: a parent was deleted");
        }
    }
    if has_circle(after, |item| item.blockers) || has_circle(after, |item| item.parent.map_or(0, |parent| 1 << parent))
    {
        return Some("I17, I18: a circle");
    }
    None
}

/// Takes away what leads nowhere, again and again; what is left is a circle.
fn has_circle<const T: usize, const P: usize>(state: &State<T, P>, next: impl Fn(&Item) -> u8) -> bool {
    let mut left: u8 = (0..T).filter(|at| !state.items[*at].gone).map(|at| 1 << at).sum();
    loop {
        let stays = bits::<T>(left).filter(|at| next(&state.items[*at]) & left != 0).map(|at| 1 << at).sum();
        if stays == left {
            return left != 0;
        }
        left = stays;
    }
}

/// What was found.
#[derive(Debug, Default)]
struct Found {
    states: usize,
    steps: usize,
    /// Whether nothing is left to try.
    whole: bool,
    wrong: Option<String>,
}

/// Tries everything from the first state on, nearest states first, until there are so many.
fn explore<const T: usize, const P: usize>(states_max: usize, flaw: Flaw) -> Found {
    let mut seen = HashSet::from([State::<T, P>::first()]);
    let mut todo = VecDeque::from([State::<T, P>::first()]);
    let mut found = Found::default();
    while let Some(before) = todo.pop_front() {
        if seen.len() >= states_max {
            found.states = seen.len();
            return found;
        }
        for step in before.steps() {
            let Some((after, board)) = after(&before, step, flaw) else { continue };
            found.steps += 1;
            if let Some(what) = wrong(&before, step, &after, &board) {
                found.wrong = Some(format!("{what}: {step:?}\n  from {before:?}\n  to   {after:?}"));
                return found;
            }
            if seen.insert(after) {
                todo.push_back(after);
            }
        }
    }
    Found { states: seen.len(), whole: true, ..found }
}

#[test]
fn two_people_and_two_tasks_reach_no_bad_state() {
    let found = explore::<2, 2>(usize::MAX, Flaw::None);
    println!("{} states, {} steps", found.states, found.steps);
    assert_eq!(found.wrong, None);
    assert!(found.whole && found.states > 650_000, "{found:?}");
}

/// The nearest of a space that has no end in sight.
#[test]
fn the_nearest_states_of_three_people_and_three_tasks_hold() {
    let found = explore::<3, 3>(350_000, Flaw::None);
    println!("{} states, {} steps", found.states, found.steps);
    assert_eq!(found.wrong, None);
    assert!(found.states >= 350_000, "{found:?}");
}

#[test]
fn a_rule_that_is_left_out_is_missed() {
    for flaw in [
        Flaw::IgnoresFences,
        Flaw::PassesEveryGuard,
        Flaw::StartsTheBlocked,
        Flaw::ForgetsTheFence,
        Flaw::ReclaimsTheLiving,
    ] {
        let found = explore::<2, 2>(100_000, flaw);
        assert!(found.wrong.is_some(), "{flaw:?}: {found:?}");
        println!("{flaw:?}: {}", found.wrong.unwrap());
    }
}
