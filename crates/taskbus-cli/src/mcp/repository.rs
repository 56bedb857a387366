//! What the agents of the repository around this process have in common, as its file says: what `register` follows for
//! each of them, and what `subscribe` and `unsubscribe` with `persistent` write into it.

use std::path::PathBuf;

use taskbus::engine::Follow;
use taskbus_core::bus::wishes::RepoWishes;

use crate::repo_file::{self, RepoFile, RepoFileError};
use crate::repo_name;
use crate::wire::error::Failure;

/// Where to look.
#[derive(Clone, Debug, Default)]
pub(super) struct Repository {
    /// The directory of this process.
    pub(super) start: PathBuf,
    /// The home directory, which is no repository.
    pub(super) home: Option<PathBuf>,
}

impl Repository {
    /// The one around the directory of this process.
    pub(super) fn around_here() -> Self {
        let (start, home) = repo_name::surroundings().unwrap_or_default();
        Self { start, home }
    }

    /// What its file wishes for who registers; the usual things when there is no file, and the reason beside them when
    /// it cannot be read.
    pub(super) fn wishes(&self) -> (RepoWishes, Option<String>) {
        let Some(path) = repo_file::find(&self.start, self.home.as_deref()) else { return Default::default() };
        match RepoFile::read(&path) {
            Ok(file) => (RepoWishes { channels: file.channels(), tag_sets: file.tag_sets(), tags: file.tags() }, None),
            Err(error) => (RepoWishes::default(), Some(error.to_string())),
        }
    }

    /// Writes into the file that everybody follows this.
    pub(super) fn follow(&self, follow: &Follow) -> Result<(), Failure> {
        self.change(|file| match follow {
            Follow::Channel(channel) => file.add_channel(channel),
            Follow::Tags(set) => Ok(file.add_tags(set)),
        })
    }

    /// Takes it out of the file.
    pub(super) fn leave(&self, follow: &Follow) -> Result<(), Failure> {
        self.change(|file| match follow {
            Follow::Channel(channel) => Ok(file.remove_channel(channel)),
            Follow::Tags(set) => Ok(file.remove_tags(set)),
        })
    }

    fn change(&self, change: impl FnOnce(&mut RepoFile) -> Result<bool, RepoFileError>) -> Result<(), Failure> {
        let mut file = self.file()?;
        let changed = change(&mut file).map_err(|error| failure(&error))?;
        if changed { file.write().map_err(|error| failure(&error)) } else { Ok(()) }
    }

    /// The file, or a new one for this repository.
    fn file(&self) -> Result<RepoFile, Failure> {
        let path = repo_file::place(&self.start, self.home.as_deref()).map_err(|error| failure(&error))?;
        if path.exists() {
            return RepoFile::read(&path).map_err(|error| failure(&error));
        }
        let identity = repo_name::identity(&path).map_err(|failure| Failure::shape("persistent", failure.words()))?;
        Ok(RepoFile::new(path, &identity))
    }
}

fn failure(error: &RepoFileError) -> Failure {
    match error {
        RepoFileError::Io { .. } => Failure::internal("repository_file", error.to_string(), true),
        _ => Failure::shape("persistent", error.to_string()),
    }
}
