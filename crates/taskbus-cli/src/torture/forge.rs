//! Whether the checker can see at all: the true history of a run, forged in one place, must be found out. Each run forges
//! two kinds, which its seed chooses; what a build of the tests does beyond that is to run a store that is really
//! wrong.

use taskbus_core::change::Kind as Why;

use super::checker::{Act, History, check};
use super::deed::Deed;
use super::dice::Dice;
use super::told::Told;

/// A forgery; says whether the history had a place for it.
type Forgery = fn(&mut History, &mut Dice) -> bool;

/// Each by its name.
const FORGERIES: [(&str, Forgery); 8] = [
    ("an acknowledged change is missing", lose),
    ("a change is there twice", double),
    ("a task was taken from a living owner", rob),
    ("a fence did not rise", lower),
    ("a late write was accepted", accept),
    ("a repeated call was answered otherwise", contradict),
    ("a message is missing", mislay),
    ("a message came again after it was acknowledged", deliver_again),
];

/// How many of them a run tries.
pub(super) const TRIED: usize = 2;

/// Forges in two ways; says which were found out, and which were not.
pub(super) fn try_two(history: &History, seed: u64) -> Vec<(&'static str, bool)> {
    let mut dice = Dice::of(seed, u64::MAX - 1, 0);
    let first = usize::try_from(dice.below(FORGERIES.len() as u64)).unwrap_or(0);
    let mut tried = Vec::new();
    for ahead in 0..FORGERIES.len() {
        let (name, forge) = FORGERIES[(first + ahead) % FORGERIES.len()];
        let mut forged = history.clone();
        if tried.len() < TRIED && forge(&mut forged, &mut dice) {
            tried.push((name, !check(&forged).violations.is_empty()));
        }
    }
    tried
}

fn place(dice: &mut Dice, places: &[usize]) -> Option<usize> {
    dice.pick(places).copied()
}

fn rows(history: &History, fits: impl Fn(&History, usize) -> bool) -> Vec<usize> {
    (0..history.revisions.len()).filter(|at| fits(history, *at)).collect()
}

fn lose(history: &mut History, dice: &mut Dice) -> bool {
    let told = |seq: u64| history.revisions.iter().position(|row| row.seq == seq);
    let last = history.revisions.last().map_or(0, |row| row.seq);
    let places: Vec<usize> = (last.saturating_sub(200)..=last).filter_map(told).collect();
    let Some(at) = place(dice, &places) else { return false };
    history.revisions.remove(at);
    true
}

fn double(history: &mut History, dice: &mut Dice) -> bool {
    let Some(at) = place(dice, &rows(history, |_, _| true)) else { return false };
    let twin = history.revisions[at].clone();
    history.revisions.insert(at, twin);
    true
}

fn rob(history: &mut History, dice: &mut Dice) -> bool {
    let reclaims = rows(history, |history, at| history.revisions[at].kind == Why::Reclaimed);
    let Some(at) = place(dice, &reclaims) else { return false };
    let stamp = &mut history.revisions[at].task.updated;
    stamp.at = stamp.at.plus_millis(-600_000);
    true
}

fn lower(history: &mut History, dice: &mut Dice) -> bool {
    let raised = rows(history, |history, at| history.revisions[at].task.fence > 0);
    let Some(at) = place(dice, &raised) else { return false };
    history.revisions[at].task.fence -= 1;
    true
}

fn an_act(history: &History, dice: &mut Dice, fits: impl Fn(&Act) -> bool) -> Option<usize> {
    let places: Vec<usize> = (0..history.acts.len()).filter(|at| fits(&history.acts[*at])).collect();
    place(dice, &places)
}

fn accept(history: &mut History, dice: &mut Dice) -> bool {
    let Some(at) = an_act(history, dice, |act| act.begin.is_wrong && act.told().is_some()) else { return false };
    history.acts[at].answers[0].1 = Told::Wrote(Vec::new());
    true
}

fn contradict(history: &mut History, dice: &mut Dice) -> bool {
    let Some(at) = an_act(history, dice, |act| act.told().is_some_and(Told::wrote)) else { return false };
    let (time, _) = history.acts[at].answers[0];
    history.acts[at].answers.push((time, Told::Nothing(Vec::new())));
    true
}

fn mislay(history: &mut History, dice: &mut Dice) -> bool {
    let Some(at) = an_act(history, dice, |act| matches!(act.told(), Some(Told::Sent(_)))) else { return false };
    let Some(Told::Sent(seq)) = history.acts[at].told() else { return false };
    let seq = *seq;
    history.messages.retain(|message| message.seq != seq);
    true
}

/// The answer to an acknowledgement brings back what it acknowledged.
fn deliver_again(history: &mut History, dice: &mut Dice) -> bool {
    let acks = |act: &Act| match (&act.begin.deed, act.told()) {
        (Deed::Receive { ack: Some(ack) }, Some(Told::Received { ack_ignored: false, .. })) => Some(ack.clone()),
        _ => None,
    };
    let batch_of = |act: &Act| match act.told() {
        Some(Told::Received { seqs, batch: Some(batch), .. }) if !seqs.is_empty() => Some((batch.clone(), seqs[0])),
        _ => None,
    };
    let batches: std::collections::BTreeMap<String, u64> = history.acts.iter().filter_map(batch_of).collect();
    let known = |act: &Act| acks(act).is_some_and(|ack| batches.contains_key(&ack));
    let Some(at) = an_act(history, dice, known) else { return false };
    let Some(seq) = acks(&history.acts[at]).and_then(|ack| batches.get(&ack).copied()) else { return false };
    if let Some((_, Told::Received { seqs, .. })) = history.acts[at].answers.first_mut() {
        seqs.insert(0, seq);
    }
    true
}
