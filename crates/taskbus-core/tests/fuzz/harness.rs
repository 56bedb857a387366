//! A small fuzzer that runs as a plain test: inputs that are checked in, and changes of them that one seed decides. Knows
//! nothing of what it feeds. A target takes any bytes, and panics when something is not as it must be.
//!
//! It has no view of the code that runs; instead, an input that was taken for good joins those that are changed further.
//! `TASKBUS_TEST_TIMES` makes it as many times longer, `TASKBUS_SEED` chooses other changes.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};

/// What a target makes of an input: whether it was taken for good, or refused as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    /// Something was made of it.
    Taken,
    /// It is not what the target reads.
    Refused,
}

impl Made {
    /// Whether something was made of it.
    pub(crate) fn of(taken: bool) -> Self {
        if taken { Self::Taken } else { Self::Refused }
    }
}

/// What is fed, to whom.
pub(crate) struct Target {
    /// Its name, which is the name of its file of inputs too.
    pub(crate) name: &'static str,
    /// The inputs, one a line, as `slice::escape_ascii` writes them; other characters stand for themselves.
    pub(crate) corpus: &'static str,
    /// Pieces that inputs are made of.
    pub(crate) words: &'static [&'static str],
    /// Who takes them.
    pub(crate) take: fn(&[u8]) -> Made,
}

/// How many inputs came to what.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Count {
    pub(crate) taken: u64,
    pub(crate) refused: u64,
}

const POOL_MAX: usize = 256;
const INPUT_BYTES_MAX: usize = 16 * 1024;
const SHRINKS_MAX: usize = 400;

impl Target {
    /// Feeds every input that is checked in, and `rounds` changed ones.
    ///
    /// # Panics
    /// When the target panics; says by which input, made as short as can be, in the form of a line for its file.
    pub(crate) fn hunt(&self, rounds: u64) -> Count {
        let mut pool: Vec<Vec<u8>> = self.corpus.lines().map(unescaped).collect();
        assert!(!pool.is_empty(), "{}: there are no inputs to begin with", self.name);
        let seed = number("TASKBUS_SEED").unwrap_or(1);
        let (mut dice, mut count) = (Dice(seed), Count::default());
        for input in &pool {
            count.add(self.feed(input, "as it is checked in"));
        }
        for round in 0..rounds * number("TASKBUS_TEST_TIMES").unwrap_or(1) {
            let input = dice.changed(&pool, self.words);
            let made = self.feed(&input, &format!("in round {round} of TASKBUS_SEED={seed}"));
            count.add(made);
            if made == Made::Taken && dice.one_in(4) {
                keep(&mut pool, input, &mut dice);
            }
        }
        count
    }

    /// The same, and both kinds of answers must have come up often.
    pub(crate) fn hunt_both(&self, rounds: u64) {
        let count = self.hunt(rounds);
        assert!(count.taken > 20 && count.refused > 20, "{} shows too little: {count:?}", self.name);
    }

    fn feed(&self, input: &[u8], when: &str) -> Made {
        self.try_feed(input).unwrap_or_else(|()| {
            let short = self.shrunk(input.to_vec());
            panic!(
                "{} went wrong {when}; add this line to its inputs once it is mended:\n{}",
                self.name,
                escaped(&short)
            )
        })
    }

    fn try_feed(&self, input: &[u8]) -> Result<Made, ()> {
        catch_unwind(AssertUnwindSafe(|| (self.take)(input))).map_err(drop)
    }

    /// Leaves out whatever is not needed to go wrong, in ever smaller pieces.
    fn shrunk(&self, mut input: Vec<u8>) -> Vec<u8> {
        let hook = take_hook();
        set_hook(Box::new(|_| {}));
        let (mut piece, mut tries) = (input.len().div_ceil(2), 0);
        while piece > 0 && tries < SHRINKS_MAX {
            let mut at = 0;
            while at < input.len() && tries < SHRINKS_MAX {
                let mut shorter = input.clone();
                shorter.drain(at..(at + piece).min(input.len()));
                tries += 1;
                if self.try_feed(&shorter).is_err() { input = shorter } else { at += piece }
            }
            piece /= 2;
        }
        set_hook(hook);
        input
    }
}

impl Count {
    fn add(&mut self, made: Made) {
        match made {
            Made::Taken => self.taken += 1,
            Made::Refused => self.refused += 1,
        }
    }
}

fn keep(pool: &mut Vec<Vec<u8>>, input: Vec<u8>, dice: &mut Dice) {
    if pool.len() < POOL_MAX {
        pool.push(input);
    } else {
        let at = dice.below(pool.len());
        pool[at] = input;
    }
}

#[allow(clippy::disallowed_methods, reason = "the core reads no environment, its tests may")]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// Random numbers that one seed decides.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ (self.0 >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
        mixed ^ (mixed >> 29)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.draw() % end.max(1) as u64).unwrap_or(0)
    }

    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// An input of the pool, changed in up to eight places.
    fn changed(&mut self, pool: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
        let mut input = pool[self.below(pool.len())].clone();
        for _ in 0..=self.below(8).min(self.below(8)) {
            let other = &pool[self.below(pool.len())];
            self.change(&mut input, other, words);
        }
        input.truncate(INPUT_BYTES_MAX);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, other: &[u8], words: &[&str]) {
        let at = self.below(input.len() + 1);
        let length = 1 << self.below(8);
        let end = (at + 1 + self.below(length)).min(input.len());
        match self.below(10) {
            0 => input.truncate(at),
            1 => drop(input.drain(at..end.max(at))),
            2 => {
                let from = self.below(other.len());
                self.put(input, at, &other[from..]);
            }
            3 => {
                let again = input[at..end.max(at)].to_vec();
                self.put(input, at, &again);
            }
            4 if at < input.len() => input[at] ^= 1 << self.below(8),
            5 if at < input.len() => input[at] = ODD[self.below(ODD.len())],
            6 => {
                let number = NUMBERS[self.below(NUMBERS.len())];
                let digits = input[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                input.splice(at..at + digits, number.bytes());
            }
            7 => {
                let text = TEXTS[self.below(TEXTS.len())];
                self.put(input, at, text.as_bytes());
            }
            _ if words.is_empty() => input.insert(at, ODD[self.below(ODD.len())]),
            _ => {
                let word = words[self.below(words.len())];
                self.put(input, at, word.as_bytes());
            }
        }
    }

    /// Puts a piece in, or over what is there.
    fn put(&mut self, input: &mut Vec<u8>, at: usize, piece: &[u8]) {
        let over = if self.one_in(3) { piece.len().min(input.len() - at) } else { 0 };
        input.splice(at..at + over, piece.iter().copied());
    }
}

/// Bytes at the edges of things.
const ODD: [u8; 16] = [0, 1, 8, 9, 10, 13, 27, 32, 34, 47, 92, 127, 128, 192, 240, 255];
const NUMBERS: [&str; 14] = [
    "0",
    "1",
    "7",
    "-1",
    "31",
    "33",
    "255",
    "65536",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "1e400",
];
/// What letters can be.
const TEXTS: [&str; 14] = [
    "\u{0}",
    "é",
    "e\u{301}",
    "ß",
    "İ",
    "日本",
    "👩\u{200d}👧",
    "\u{202e}",
    "\u{200b}",
    "\u{feff}",
    "\u{2028}",
    "\u{e0041}",
    "../",
    "\r\n",
];

/// As a line of a file of inputs.
pub(crate) fn escaped(input: &[u8]) -> String {
    input.escape_ascii().to_string()
}

/// What such a line stands for.
pub(crate) fn unescaped(line: &str) -> Vec<u8> {
    let (mut input, mut rest) = (Vec::new(), line.as_bytes());
    while let [first, behind @ ..] = rest {
        let (byte, length) = match (first, behind) {
            (b'\\', [b'x', high, low, ..]) => (hex(*high) << 4 | hex(*low), 4),
            (b'\\', [b'n', ..]) => (b'\n', 2),
            (b'\\', [b't', ..]) => (b'\t', 2),
            (b'\\', [b'r', ..]) => (b'\r', 2),
            (b'\\', [other, ..]) => (*other, 2),
            (other, _) => (*other, 1),
        };
        input.push(byte);
        rest = &rest[length..];
    }
    input
}

fn hex(digit: u8) -> u8 {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok()).expect("a hexadecimal digit")
}
