//! Ranking what a search found: by meaning, by text and meaning together, and which part of a ranking a page shows.
//! How well a text fits is said by the store; nothing here reads a message.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use crate::limits;
use crate::refusal::{Invalid, Refusal};

/// Which message was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Found {
    /// Its number.
    pub seq: u64,
    /// What it is known by however often it is revised: the id of its memory or task, else its own number.
    pub id: u64,
}

/// A message that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// Which.
    pub found: Found,
    /// How well it fits; higher is better.
    pub score: f64,
}

impl Hit {
    /// The order of a ranking: the best first, the oldest of the same worth first.
    #[must_use]
    pub fn order(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.found.cmp(&other.found))
    }
}

/// Two rankings as one, by reciprocal rank: each gives a message 1 / (60 + its place), and the sums decide, ties by
/// number. What one ranking lacks it gives nothing to.
#[must_use]
pub fn fuse(one: &[Hit], other: &[Hit]) -> Vec<Hit> {
    let mut sums = BTreeMap::new();
    for ranking in [one, other] {
        for (place, hit) in (1_u32..).zip(ranking) {
            *sums.entry(hit.found).or_insert(0.0) += 1.0 / (limits::FUSION_RANK + f64::from(place));
        }
    }
    let mut fused: Vec<Hit> = sums.into_iter().map(|(found, score)| Hit { found, score }).collect();
    fused.sort_by(Hit::order);
    fused.truncate(limits::SEARCH_CANDIDATES_MAX);
    fused
}

/// The messages nearest to a query, of all that it is shown. Keeps only the best, so that it does not matter how many
/// there are.
#[derive(Debug)]
pub struct Nearest {
    query: Vec<f32>,
    best: BinaryHeap<Worst>,
    limit: usize,
}

/// The worst on top of the heap.
#[derive(Debug)]
struct Worst(Hit);

impl Nearest {
    /// The `limit` nearest to this vector, which is of length 1, as those it is shown are.
    #[must_use]
    pub fn to(query: Vec<f32>, limit: usize) -> Self {
        Self { query, best: BinaryHeap::with_capacity(limit.saturating_add(1)), limit }
    }

    /// Looks at one; a vector of another dimension is of another model and does not count.
    pub fn see(&mut self, found: Found, vector: &[f32]) {
        if vector.len() != self.query.len() {
            return;
        }
        let hit = Hit { found, score: f64::from(dot(&self.query, vector)) };
        if self.best.len() < self.limit || self.best.peek().is_some_and(|worst| hit.order(&worst.0).is_lt()) {
            self.best.push(Worst(hit));
            if self.best.len() > self.limit {
                self.best.pop();
            }
        }
    }

    /// What is nearest, first.
    #[must_use]
    pub fn into_ranking(self) -> Vec<Hit> {
        self.best.into_sorted_vec().into_iter().map(|worst| worst.0).collect()
    }
}

impl Ord for Worst {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.order(&other.0)
    }
}

impl PartialOrd for Worst {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Worst {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Worst {}

/// Eight sums at once, which the compiler turns into vector instructions.
fn dot(one: &[f32], other: &[f32]) -> f32 {
    const LANES: usize = 8;
    let mut sums = [0.0_f32; LANES];
    let (heads, tails) = (one.chunks_exact(LANES), other.chunks_exact(LANES));
    let rest: f32 = heads.remainder().iter().zip(tails.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in heads.zip(tails) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum::<f32>() + rest
}

/// What the pages before this one showed: the cursor of a search.
///
/// A ranking is made anew for each page, and while others write it comes out anew: scores change with every message
/// that has the same words, and an edited memory is a message of another number. So a cursor is no place in a ranking.
/// It says which messages were shown, by what they are known by, and how far the store went when the first page was
/// made; what is shown already or began later is never on a later page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    up_to: u64,
    ids: BTreeSet<u64>,
}

/// One letter carries five bits of a number and says whether more follow.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const MORE: u64 = 32;

impl Shown {
    /// Nothing yet, in a store whose newest message has this number.
    #[must_use]
    pub fn nothing(up_to: u64) -> Self {
        Self { up_to, ids: BTreeSet::new() }
    }

    /// Reads a cursor.
    ///
    /// # Errors
    /// [`Refusal`] when it is none that [`Shown::cursor`] gave.
    pub fn parse(cursor: &str) -> Result<Self, Refusal> {
        let refused = || Refusal::Invalid(Invalid::Cursor);
        let numbers = unwritten(cursor.trim()).ok_or_else(refused)?;
        let (up_to, steps) = numbers.split_first().ok_or_else(refused)?;
        let mut ids = BTreeSet::new();
        let mut last = 0_u64;
        for step in steps {
            last = last.checked_add(*step).filter(|id| *step > 0 && id <= up_to).ok_or_else(refused)?;
            ids.insert(last);
        }
        if ids.is_empty() || ids.len() >= limits::SEARCH_CANDIDATES_MAX {
            return Err(refused());
        }
        Ok(Self { up_to: *up_to, ids })
    }

    /// What a ranking still has to show, the best first.
    pub fn rest<'a>(&'a self, ranking: &'a [Hit]) -> impl Iterator<Item = &'a Hit> {
        let left = limits::SEARCH_CANDIDATES_MAX.saturating_sub(self.ids.len());
        ranking.iter().filter(|hit| hit.found.id <= self.up_to && !self.ids.contains(&hit.found.id)).take(left)
    }

    /// Notes that a page shows these too.
    pub fn add(&mut self, hits: impl IntoIterator<Item = Found>) {
        self.ids.extend(hits.into_iter().map(|found| found.id));
    }

    /// Takes one back that the page has no room for.
    pub fn take_back(&mut self, found: Found) {
        self.ids.remove(&found.id);
    }

    /// The cursor of the next page, when there is more; a search shows 1,000 messages at most.
    #[must_use]
    pub fn cursor(&self, more: bool) -> Option<String> {
        if !more || self.ids.len() >= limits::SEARCH_CANDIDATES_MAX {
            return None;
        }
        let mut text = String::new();
        write_number(&mut text, self.up_to);
        let mut last = 0;
        for id in &self.ids {
            write_number(&mut text, id - last);
            last = *id;
        }
        Some(text)
    }
}

fn write_number(text: &mut String, mut number: u64) {
    loop {
        let more = if number >= MORE { MORE } else { 0 };
        let letter = usize::try_from(number % MORE + more).unwrap_or(0);
        text.push(char::from(LETTERS[letter]));
        number /= MORE;
        if more == 0 {
            return;
        }
    }
}

/// The numbers that a text was written of, each in its shortest form.
fn unwritten(text: &str) -> Option<Vec<u64>> {
    let (mut numbers, mut number, mut shift) = (Vec::new(), 0_u64, 0_u32);
    for byte in text.bytes() {
        let value = LETTERS.iter().position(|letter| *letter == byte)? as u64;
        let part = value % MORE;
        number |= part.checked_shl(shift).filter(|shifted| shifted >> shift == part)?;
        if value >= MORE {
            shift += 5;
            continue;
        }
        if shift > 0 && part == 0 {
            return None;
        }
        numbers.push(number);
        (number, shift) = (0, 0);
    }
    (shift == 0).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hit(seq: u64, score: f64) -> Hit {
        Hit { found: Found { seq, id: seq }, score }
    }

    fn seqs(ranking: &[Hit]) -> Vec<u64> {
        ranking.iter().map(|hit| hit.found.seq).collect()
    }

    #[test]
    fn places_are_summed_by_their_reciprocals() {
        let text = [hit(5, 9.0), hit(6, 8.0), hit(7, 7.0)];
        let meaning = [hit(7, 0.9), hit(8, 0.8)];
        let fused = fuse(&text, &meaning);
        assert_eq!(seqs(&fused), [7, 5, 6, 8]);
        let expected = 1.0 / (limits::FUSION_RANK + 3.0) + 1.0 / (limits::FUSION_RANK + 1.0);
        assert!((fused[0].score - expected).abs() < 1e-12);
        assert!((fused[1].score - 1.0 / 61.0).abs() < 1e-12);
    }

    #[test]
    fn of_the_same_worth_the_oldest_is_first() {
        assert_eq!(seqs(&fuse(&[hit(9, 1.0)], &[hit(4, 0.5)])), [4, 9]);
        let mut nearest = Nearest::to(vec![1.0, 0.0], 3);
        for seq in [7, 3, 9, 1] {
            nearest.see(Found { seq, id: seq }, &[0.6, 0.8]);
        }
        assert_eq!(seqs(&nearest.into_ranking()), [1, 3, 7]);
    }

    #[test]
    fn the_nearest_are_kept_and_other_dimensions_do_not_count() {
        let mut nearest = Nearest::to(vec![1.0, 0.0], 2);
        for (seq, vector) in [(1, vec![0.0, 1.0]), (2, vec![1.0, 0.0]), (3, vec![0.6, 0.8]), (4, vec![1.0])] {
            nearest.see(Found { seq, id: seq }, &vector);
        }
        assert_eq!(seqs(&nearest.into_ranking()), [2, 3]);
        let mut none = Nearest::to(vec![1.0], 0);
        none.see(Found { seq: 1, id: 1 }, &[1.0]);
        assert!(none.into_ranking().is_empty());
    }

    #[test]
    fn a_fused_ranking_ends_at_its_limit() {
        let long: Vec<Hit> =
            (1..=limits::SEARCH_CANDIDATES_MAX as u64 + 1).map(|seq| hit(seq, -(seq as f64))).collect();
        assert_eq!(fuse(&long, &[]).len(), limits::SEARCH_CANDIDATES_MAX);
    }

    #[test]
    fn a_cursor_ends_with_the_last_candidate() {
        let mut shown = Shown::nothing(5000);
        shown.add((1..limits::SEARCH_CANDIDATES_MAX as u64).map(|seq| Found { seq, id: seq }));
        assert_eq!(Shown::parse(&shown.cursor(true).unwrap()), Ok(shown.clone()));
        assert_eq!(shown.cursor(false), None);
        let ranking: Vec<Hit> = (1..=1005).map(|seq| hit(seq, 1.0)).collect();
        assert_eq!(seqs(&shown.rest(&ranking).copied().collect::<Vec<_>>()), [1000]);
        let last = Found { seq: 1000, id: 1000 };
        shown.add([last]);
        assert_eq!(shown.cursor(true), None);
        shown.take_back(last);
        assert!(shown.cursor(true).is_some());
        shown.add([last]);
        assert_eq!(shown.rest(&ranking).count(), 0);
    }

    #[test]
    fn what_no_page_gave_is_no_cursor() {
        for bad in ["", " ", "0", "-1", "A", "!", "J", "JA", "Jé", "gA", "JK", "gggggggggggggggB", "J_", "JB\0"] {
            assert_eq!(Shown::parse(bad), Err(Refusal::Invalid(Invalid::Cursor)), "{bad:?}");
        }
        assert!(Shown::parse("JB").is_ok());
    }

    /// A ranking of a store in which messages come, are edited and buried between two pages.
    #[derive(Clone, Copy, Debug)]
    enum Event {
        New(u32),
        Edit(usize, u32),
        Bury(usize),
        Rescore(usize, u32),
    }

    fn events() -> impl Strategy<Value = Vec<Event>> {
        let event = prop_oneof![
            (0..9_u32).prop_map(Event::New),
            (any::<usize>(), 0..9_u32).prop_map(|(at, score)| Event::Edit(at, score)),
            any::<usize>().prop_map(Event::Bury),
            (any::<usize>(), 0..9_u32).prop_map(|(at, score)| Event::Rescore(at, score)),
        ];
        prop::collection::vec(event, 0..6)
    }

    fn happen(event: Event, store: &mut Vec<Hit>, next: &mut u64) {
        let at = |at: usize, store: &Vec<Hit>| at % store.len().max(1);
        match event {
            Event::New(score) => store.push(hit(*next, score.into())),
            Event::Edit(n, score) if !store.is_empty() => {
                let n = at(n, store);
                store[n] = Hit { found: Found { seq: *next, ..store[n].found }, score: score.into() };
            }
            Event::Bury(n) if !store.is_empty() => drop(store.remove(at(n, store))),
            Event::Rescore(n, score) if !store.is_empty() => {
                let n = at(n, store);
                store[n].score = score.into();
            }
            Event::Edit(..) | Event::Bury(_) | Event::Rescore(..) => return,
        }
        *next += 1;
    }

    proptest! {
        #[test]
        fn pages_show_everything_once_whatever_is_written_between_them(
            scores in prop::collection::vec(0..9_u32, 0..30),
            between in prop::collection::vec(events(), 40),
            count in 1..7_usize,
        ) {
            let mut store: Vec<Hit> = (1..).zip(&scores).map(|(seq, score)| hit(seq, (*score).into())).collect();
            let mut next = store.len() as u64 + 1;
            let (mut shown, mut pages) = (Shown::nothing(next - 1), Vec::new());
            let first = store.clone();
            for events in between {
                store.sort_by(Hit::order);
                let rest: Vec<Hit> = shown.rest(&store).copied().collect();
                let page = &rest[..rest.len().min(count)];
                pages.extend(page.iter().map(|hit| hit.found.id));
                shown.add(page.iter().map(|hit| hit.found));
                let Some(cursor) = shown.cursor(rest.len() > page.len()) else { break };
                shown = Shown::parse(&cursor).unwrap();
                for event in events {
                    happen(event, &mut store, &mut next);
                }
            }
            let once: BTreeSet<u64> = pages.iter().copied().collect();
            prop_assert_eq!(once.len(), pages.len());
            let left: BTreeSet<u64> = store.iter().map(|hit| hit.found.id).collect();
            let stayed = first.iter().map(|hit| hit.found.id).filter(|id| left.contains(id));
            prop_assert!(stayed.into_iter().all(|id| once.contains(&id)));
        }

        #[test]
        fn a_cursor_is_read_as_it_was_written(up_to in 1..u64::MAX, ids in prop::collection::btree_set(any::<u64>(), 1..20)) {
            let mut shown = Shown::nothing(up_to);
            shown.add(ids.into_iter().map(|id| Found { seq: id, id: id % up_to + 1 }));
            prop_assert_eq!(Shown::parse(&shown.cursor(true).unwrap()), Ok(shown));
        }

        #[test]
        fn any_text_is_a_cursor_or_refused(text in "\\PC{0,20}") {
            prop_assert!(Shown::parse(&text).is_ok_and(|shown| shown.cursor(true).as_deref() == Some(text.trim())) || Shown::parse(&text).is_err());
        }

        #[test]
        fn the_nearest_are_those_a_sort_finds(vectors in prop::collection::vec(prop::array::uniform10(-4..4_i8), 0..20), limit in 0..6_usize) {
            let query = [1_i8, 2, 3, -1, 0, 2, 1, -2, 1, 3];
            let float = |vector: &[i8; 10]| vector.iter().map(|x| f32::from(*x)).collect::<Vec<f32>>();
            let mut nearest = Nearest::to(float(&query), limit);
            let mut all = Vec::new();
            for (seq, vector) in (1..).zip(&vectors) {
                nearest.see(Found { seq, id: seq }, &float(vector));
                let score: i32 = query.iter().zip(vector).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
                all.push(hit(seq, f64::from(score)));
            }
            all.sort_by(Hit::order);
            all.truncate(limit);
            prop_assert_eq!(nearest.into_ranking(), all);
        }
    }
}
