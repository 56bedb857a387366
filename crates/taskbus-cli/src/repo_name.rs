//! The name that the agents of a repository ask for when nobody has written one down: the name of its directory.

use std::io;
use std::path::{Path, PathBuf};

use taskbus_core::name::Identity;

use crate::term::failure::Failure;

/// The current directory and the home directory, with no links in them.
pub(crate) fn surroundings() -> Result<(PathBuf, Option<PathBuf>), Failure> {
    let cwd = std::env::current_dir().and_then(std::fs::canonicalize);
    let cwd = cwd.map_err(|error| Failure::usage(format!("the current directory cannot be found ({error})")))?;
    Ok((cwd, home()))
}

/// The home directory, with no links in it.
pub(crate) fn home() -> Option<PathBuf> {
    let home = etcetera::home_dir().ok().filter(|home| home.is_absolute())?;
    Some(std::fs::canonicalize(&home).unwrap_or(home))
}

/// The name for the repository of this `.local/taskbus.json`.
pub(crate) fn identity(file: &Path) -> Result<Identity, Failure> {
    let root = file.parent().and_then(Path::parent).and_then(Path::file_name);
    let name = root.ok_or_else(|| io::Error::other("no directory")).map_err(Failure::usage)?.to_string_lossy();
    Identity::new(name.as_ref()).map_err(|error| {
        Failure::usage(format!(
            "the directory's name {name:?} {error}, so it cannot be the name of agents; write {{\"identity\": \"NAME\"}} into {}",
            file.display()
        ))
    })
}
