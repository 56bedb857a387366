//! What the shim wrote down, read back.

use std::path::Path;

/// One call that changed something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// Which file, by its number; a new file at an old path has a new one.
    pub(crate) file: u32,
    /// What.
    pub(crate) what: What,
}

/// What a call did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// The file has this name; said when it is first seen.
    Opened(String),
    /// These bytes were written here.
    Wrote(u64, Vec<u8>),
    /// It has this size now.
    Cut(u64),
    /// It is on disk.
    Synced,
    /// The names in its directory are on disk.
    SyncedNames,
    /// Its name is gone.
    Unlinked,
}

/// Reads a record; what stands at its end may be cut.
pub(crate) fn read(path: &Path) -> Vec<Event> {
    let bytes = std::fs::read(path).unwrap();
    let (mut events, mut rest) = (Vec::new(), &bytes[..]);
    while let Some((event, left)) = next(rest) {
        events.push(event);
        rest = left;
    }
    events
}

fn next(bytes: &[u8]) -> Option<(Event, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<17>()?;
    let file = u32::from_le_bytes(*head[1..].first_chunk()?);
    let number = u64::from_le_bytes(*head[5..].first_chunk()?);
    let length = usize::try_from(u32::from_le_bytes(*head[13..].first_chunk()?)).ok()?;
    let (data, rest) = rest.split_at_checked(length)?;
    let name = || Path::new(std::str::from_utf8(data).unwrap()).file_name().unwrap().to_str().unwrap().to_owned();
    let what = match head[0] {
        b'O' => What::Opened(name()),
        b'W' => What::Wrote(number, data.to_vec()),
        b'T' => What::Cut(number),
        b'S' => What::Synced,
        b'D' => What::SyncedNames,
        b'U' => What::Unlinked,
        other => panic!("a record of kind {other}"),
    };
    Some((Event { file, what }, rest))
}
