//! `backup` and `restore-backup`: a copy of the store while others write, and one put back in its place.

use serde_json::{Map, Value, json};
use taskbus::store::sqlite::{BackedUp, Restored};

use super::args;
use super::desk::Desk;
use crate::term::failure::Failure;
use crate::term::report::Report;
use crate::term::safe::display_safe;

/// Writes a copy of the store.
pub(crate) fn backup(desk: &Desk, wish: &args::Backup) -> Result<Box<dyn Report>, Failure> {
    Ok(Box::new(Made(desk.backup(&wish.file, wish.force)?)))
}

/// Puts a copy in the place of the store.
pub(crate) fn restore(desk: &Desk, wish: &args::RestoreBackup) -> Result<Box<dyn Report>, Failure> {
    Ok(Box::new(Back(desk.restore_backup(&wish.file)?)))
}

/// A backup that was made.
struct Made(BackedUp);

impl Report for Made {
    fn json(&self) -> Map<String, Value> {
        let BackedUp { path, verdict } = &self.0;
        Map::from_iter([
            ("backup".to_owned(), json!(path.to_string_lossy())),
            ("seq".to_owned(), json!(verdict.seq)),
            ("epoch".to_owned(), json!(verdict.epoch)),
            ("head".to_owned(), json!(verdict.head)),
            ("revisions".to_owned(), json!(verdict.revisions)),
            ("tasks".to_owned(), json!(verdict.tasks)),
        ])
    }

    fn words(&self, _: Option<usize>) -> String {
        let BackedUp { path, verdict } = &self.0;
        let path = path.to_string_lossy();
        let (revisions, tasks) = (verdict.revisions, verdict.tasks);
        format!("{}: {revisions} revisions and {tasks} tasks, verified\n", display_safe(&path))
    }
}

/// A backup that is the store now.
struct Back(Restored);

impl Report for Back {
    fn json(&self) -> Map<String, Value> {
        let Restored { aside, kept, verdict } = &self.0;
        let aside = aside.as_ref().map(|aside| aside.to_string_lossy());
        Map::from_iter([
            ("kept".to_owned(), json!(kept)),
            ("replaced".to_owned(), json!(aside)),
            ("seq".to_owned(), json!(verdict.seq)),
            ("epoch".to_owned(), json!(verdict.epoch)),
            ("head".to_owned(), json!(verdict.head)),
            ("revisions".to_owned(), json!(verdict.revisions)),
            ("tasks".to_owned(), json!(verdict.tasks)),
        ])
    }

    fn words(&self, _: Option<usize>) -> String {
        let Restored { aside, kept, verdict } = &self.0;
        let mut words = format!(
            "restored up to number {kept}: {} revisions and {} tasks, verified; numbers go on above {}\n",
            verdict.revisions, verdict.tasks, verdict.seq
        );
        if let Some(aside) = aside {
            words += &format!("the file that was there is kept: {}\n", display_safe(&aside.to_string_lossy()));
        }
        words
    }
}
