//! Puts a stand-in where a text is JSON by the grammar but cannot be held: half a surrogate pair, bytes that are no
//! UTF-8, a number beyond any float. Only so that the refusal can name the request; nothing mended is ever used.

use super::json::Fault;

/// The mended text and what was wrong; none if nothing of this kind was.
pub(super) fn mend(text: &[u8]) -> Option<(String, Fault)> {
    let lossy = String::from_utf8_lossy(text);
    let mut mender = Mender { rest: &lossy, mended: String::with_capacity(lossy.len()), fault: None };
    if lossy.len() != text.len() || lossy.as_bytes() != text {
        mender.fault = Some(Fault::BrokenText);
    }
    while !mender.rest.is_empty() {
        mender.step();
    }
    mender.fault.map(|fault| (mender.mended, fault))
}

struct Mender<'a> {
    rest: &'a str,
    mended: String,
    fault: Option<Fault>,
}

impl Mender<'_> {
    /// One text, one number, or one other character.
    fn step(&mut self) {
        match self.rest.as_bytes() {
            [b'"', ..] => self.text(),
            [b'-' | b'0'..=b'9', ..] => self.number(),
            _ => self.copy(self.rest.chars().next().map_or(0, char::len_utf8)),
        }
    }

    fn copy(&mut self, bytes: usize) {
        let (part, rest) = self.rest.split_at(bytes);
        self.mended.push_str(part);
        self.rest = rest;
    }

    fn replace(&mut self, bytes: usize, with: &str, fault: Fault) {
        self.mended.push_str(with);
        self.rest = &self.rest[bytes..];
        self.fault.get_or_insert(fault);
    }

    fn text(&mut self) {
        self.copy(1);
        while let Some(at) = self.rest.find(['"', '\\']) {
            self.copy(at);
            if self.rest.starts_with('"') {
                return self.copy(1);
            }
            self.escape();
        }
        self.copy(self.rest.len());
    }

    fn escape(&mut self) {
        match unit(self.rest) {
            Some(0xD800..=0xDBFF) if matches!(self.rest.get(6..).and_then(unit), Some(0xDC00..=0xDFFF)) => {
                self.copy(12);
            }
            Some(0xD800..=0xDFFF) => self.replace(6, "\u{fffd}", Fault::BrokenText),
            Some(_) => self.copy(6),
            None => {
                let escaped = self.rest.chars().take(2).map(char::len_utf8).sum();
                self.copy(escaped);
            }
        }
    }

    fn number(&mut self) {
        let end = self.rest.find(|c: char| !matches!(c, '-' | '+' | '.' | 'e' | 'E' | '0'..='9'));
        let end = end.unwrap_or(self.rest.len());
        match self.rest[..end].parse::<f64>() {
            Ok(number) if number.is_infinite() => self.replace(end, "0", Fault::HugeNumber),
            _ => self.copy(end),
        }
    }
}

/// The code unit of a `\uXXXX` at the front.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok().filter(|_| digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &[u8], expected: Option<(&str, Fault)>) {
        assert_eq!(mend(text), expected.map(|(text, fault)| (text.to_owned(), fault)));
    }

    #[test]
    fn halves_are_replaced_and_pairs_kept() {
        check(br#"["\ud83d\ude00"]"#, None);
        check(br#"["\ud83d\ude00\ud83d"]"#, Some(("[\"\\ud83d\\ude00\u{fffd}\"]", Fault::BrokenText)));
        check(br#"["\ude00\ud83d x"]"#, Some(("[\"\u{fffd}\u{fffd} x\"]", Fault::BrokenText)));
        check(br#"["\\ud83d"]"#, None);
        check(br#"["\ud83d\u0041"]"#, Some(("[\"\u{fffd}\\u0041\"]", Fault::BrokenText)));
        check(b"[\"a\xff\"]", Some(("[\"a\u{fffd}\"]", Fault::BrokenText)));
    }

    #[test]
    fn numbers_only_count_outside_texts() {
        check(b"[1e400,-1e999]", Some(("[0,0]", Fault::HugeNumber)));
        check(br#"["1e400",1e3]"#, None);
    }

    #[test]
    fn anything_can_be_scanned_to_its_end() {
        for text in [&b"\"\\"[..], b"\"\\u", b"\"\\ud8", b"\\", b"\"\xc3", b"-", b"\"\\\xc3\xa9"] {
            let _ = mend(text);
        }
    }
}
