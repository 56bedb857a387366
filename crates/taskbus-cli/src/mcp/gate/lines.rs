//! Cuts the input into lines without ever holding more than the longest allowed one. The rest of a longer line is
//! looked at as it passes, and forgotten, so that its answer can still name the request.

use super::scan::{Envelope, Scan};

/// What comes out.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    /// A line, without its end.
    Whole(Vec<u8>),
    /// A line that was too long to keep.
    TooLong {
        /// What could be read of its envelope.
        envelope: Envelope,
        /// How long it was, in bytes.
        bytes: u64,
    },
}

/// The state between two reads.
#[derive(Debug)]
pub(super) struct Lines {
    max: usize,
    held: Vec<u8>,
    passing: Option<Passing>,
}

/// A line that is too long, on its way past.
#[derive(Debug)]
struct Passing {
    scan: Scan,
    bytes: u64,
}

impl Lines {
    /// Keeps lines of up to `max` bytes.
    pub(super) fn new(max: usize) -> Self {
        Self { max, held: Vec::new(), passing: None }
    }

    /// Takes what was read and hands out every line that ends in it.
    pub(super) fn push(&mut self, mut read: &[u8], out: &mut Vec<Line>) {
        while let Some(end) = read.iter().position(|byte| *byte == b'\n') {
            self.keep(&read[..end]);
            out.extend(self.end());
            read = &read[end + 1..];
        }
        self.keep(read);
    }

    /// The last line, if the input ended without a line end.
    pub(super) fn end(&mut self) -> Option<Line> {
        if let Some(passing) = self.passing.take() {
            return Some(Line::TooLong { envelope: passing.scan.envelope(), bytes: passing.bytes });
        }
        let mut line = std::mem::take(&mut self.held);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        (!line.is_empty()).then_some(Line::Whole(line))
    }

    fn keep(&mut self, part: &[u8]) {
        // One more than the maximum is held, because a carriage return at the end is not counted.
        if self.passing.is_none() && self.held.len() + part.len() > self.max + 1 {
            self.let_pass();
        }
        match &mut self.passing {
            Some(passing) => passing.push(part),
            None => self.held.extend_from_slice(part),
        }
        if self.held.len() > self.max && self.held.last() != Some(&b'\r') {
            self.let_pass();
        }
    }

    fn let_pass(&mut self) {
        let mut passing = Passing { scan: Scan::default(), bytes: 0 };
        passing.push(&std::mem::take(&mut self.held));
        self.passing = Some(passing);
    }
}

impl Passing {
    fn push(&mut self, part: &[u8]) {
        self.bytes += part.len() as u64;
        for byte in part {
            self.scan.push(*byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(input: &[u8], max: usize, expected: &[Line]) {
        for step in [1, 2, 3, 7, input.len().max(1)] {
            let (mut lines, mut out) = (Lines::new(max), Vec::new());
            for part in input.chunks(step) {
                lines.push(part, &mut out);
            }
            out.extend(lines.end());
            assert_eq!(out, expected, "in steps of {step}");
        }
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.into())
    }

    fn too_long(bytes: u64) -> Line {
        Line::TooLong { envelope: Envelope::default(), bytes }
    }

    #[test]
    fn lines_end_at_line_ends_and_at_the_end() {
        check(b"a\nbc\r\n\n\r\nd", 10, &[whole("a"), whole("bc"), whole("d")]);
        check(b"", 10, &[]);
    }

    #[test]
    fn the_limit_is_on_the_line_without_its_end() {
        check(b"12345\n1234\n", 5, &[whole("12345"), whole("1234")]);
        check(b"12345\r\n", 5, &[whole("12345")]);
        check(b"123456\nab\n", 5, &[too_long(6), whole("ab")]);
        check(b"12345678901234567890", 5, &[too_long(20)]);
    }

    #[test]
    fn nothing_beyond_the_limit_is_held() {
        let (mut lines, mut out) = (Lines::new(100), Vec::new());
        for _ in 0..1000 {
            lines.push(&[b'x'; 64], &mut out);
            assert!(lines.held.len() <= 101 && lines.held.capacity() <= 256);
        }
        assert_eq!((lines.end(), out.len()), (Some(too_long(64_000)), 0));
    }
}
