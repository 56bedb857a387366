//! Short sums beside what a row says. SQLite keeps checksums of its log and none of the pages of its file, so that a bit
//! that turns over on the disk would be read as it is. A row that does not fit its sum is damage, told at once and never
//! served (ADR 0030). Against accidents only: what somebody edits shows in the chain of revisions.

use super::error::{Answer, Fault};

/// Most rows fit into so many bytes.
const ROOM: usize = 256;

/// What is to be summed up, in one piece: that is faster than many small ones. A field is taken with its length, so that no
/// two rows sum up alike by a shift.
pub(super) struct Sum(Vec<u8>);

impl Sum {
    pub(super) fn new() -> Self {
        Self(Vec::with_capacity(ROOM))
    }

    pub(super) fn number(mut self, number: i64) -> Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    pub(super) fn optional_number(self, number: Option<i64>) -> Self {
        match number {
            Some(number) => self.number(1).number(number),
            None => self.number(0),
        }
    }

    pub(super) fn text(self, text: &str) -> Self {
        let mut longer = self.number(i64::try_from(text.len()).unwrap_or(i64::MAX));
        longer.0.extend_from_slice(text.as_bytes());
        longer
    }

    pub(super) fn optional_text(self, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.number(1).text(text),
            None => self.number(0),
        }
    }

    /// As it is stored.
    pub(super) fn end(self) -> i64 {
        crc32fast::hash(&self.0).into()
    }
}

/// Refuses a row that does not fit its sum.
pub(super) fn check(stored: i64, sum: Sum, what: impl FnOnce() -> String) -> Answer<()> {
    if stored == sum.end() {
        return Ok(());
    }
    Err(Fault::Damaged(format!("{} is not as it was written: it does not fit its sum", what())))
}

/// Two sums in one column: a task is read without what is only asked of its history.
pub(super) fn joined(document: Sum, rest: Sum) -> i64 {
    document.end() | (rest.end() << HALF)
}

/// The sums that [`joined`] put together: of the document, and of the rest.
pub(super) fn halves(stored: i64) -> (i64, i64) {
    let stored = stored.cast_unsigned();
    ((stored & u64::from(u32::MAX)).cast_signed(), (stored >> HALF).cast_signed())
}

const HALF: u32 = 32;

/// The sum of the revision of a task, as far as the task goes.
pub(super) fn of_document(id: i64, revision: u64, at: i64, sender: Option<&str>, content: &str) -> Sum {
    Sum::new().number(id).number(revision.cast_signed()).number(at).optional_text(sender).text(content)
}

/// What else a revision says.
#[derive(Clone, Copy)]
pub(super) struct Rest<'a> {
    pub(super) seq: u64,
    pub(super) kind: &'a str,
    pub(super) note: Option<&'a str>,
    pub(super) context: &'a str,
    pub(super) client: &'a str,
    pub(super) previous: u64,
}

impl Rest<'_> {
    pub(super) fn sum(&self) -> Sum {
        let sum = Sum::new().number(self.seq.cast_signed()).text(self.kind).optional_text(self.note);
        sum.text(self.context).text(self.client).number(self.previous.cast_signed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bit_and_each_border_counts() {
        let of = |a: &str, b: Option<&str>| Sum::new().number(7).text(a).optional_text(b).end();
        let all = [of("ab", Some("c")), of("a", Some("bc")), of("ab", None), of("ab", Some("")), of("aB", Some("c"))];
        for (at, sum) in all.iter().enumerate() {
            assert!(!all[..at].contains(sum), "{all:?}");
        }
        assert!(check(all[0], Sum::new().number(7).text("ab").optional_text(Some("c")), String::new).is_ok());
        let told = check(all[1], Sum::new().number(7), || "row 3".to_owned()).unwrap_err();
        assert!(told.to_string().contains("row 3 is not as it was written"), "{told}");
    }

    #[test]
    fn two_sums_are_found_again() {
        let (one, other) = (|| Sum::new().number(1), || Sum::new().text("other"));
        assert_eq!(halves(joined(one(), other())), (one().end(), other().end()));
        assert_eq!(halves(-1), (u32::MAX.into(), u32::MAX.into()));
    }
}
