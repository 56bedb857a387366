//! `identity`: who the agents of this repository are, and how they work together.

use serde_json::{Map, Value, json};

use crate::protocol;
use crate::repo_file::{self, RepoFile};
use crate::repo_name;
use crate::term::failure::Failure;
use crate::term::report::Report;
use crate::term::safe::display_safe_lines;

/// Who to register as here, and the protocol of a session.
pub(crate) fn identity() -> Result<Box<dyn Report>, Failure> {
    let (cwd, home) = repo_name::surroundings()?;
    let Some(path) = repo_file::find(&cwd, home.as_deref()) else {
        return Err(Failure::usage(format!(
            "there is no {} in {} or above; taskbus init makes one",
            repo_file::PLACE,
            cwd.display()
        )));
    };
    Ok(Box::new(Who { file: RepoFile::read(&path)? }))
}

struct Who {
    file: RepoFile,
}

impl Who {
    fn text(&self) -> String {
        let name = self.file.identity().map(|name| protocol::register(&name)).unwrap_or_default();
        format!("{name}\n\n{}", protocol::how_to_work())
    }
}

impl Report for Who {
    fn json(&self) -> Map<String, Value> {
        let name = self.file.identity().map(|name| name.to_string()).unwrap_or_default();
        Map::from_iter([
            ("identity".to_owned(), json!(name)),
            ("file".to_owned(), json!(self.file.path().to_string_lossy())),
            ("text".to_owned(), json!(self.text())),
        ])
    }

    fn words(&self, _: Option<usize>) -> String {
        display_safe_lines(&self.text()).into_owned()
    }
}
