//! What went wrong in a task directory, as the seam says it.

use std::io;

use crate::store::StoreError;

/// A failed file operation.
pub(super) fn failed(store: &str, error: io::Error) -> StoreError {
    let store = store.to_owned();
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            StoreError::ReadOnly { store, reason: error.to_string() }
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            StoreError::Full { store, reason: error.to_string() }
        }
        _ => StoreError::Failed { store, source: Box::new(error) },
    }
}

/// A directory that cannot even be looked at.
pub(super) fn unavailable(store: &str, error: &io::Error) -> StoreError {
    let next = match error.kind() {
        io::ErrorKind::NotADirectory => "name the directory of a task list, such as ~/.claude/tasks/LIST",
        io::ErrorKind::PermissionDenied => "make the directory readable for this user",
        _ => "check that the directory exists and can be read",
    };
    StoreError::Unavailable { store: store.to_owned(), reason: error.to_string(), next }
}
