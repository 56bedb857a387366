//! `subscribe` and `unsubscribe`: what the agents of this repository follow from their next registration on. They edit
//! `.local/taskbus.json` and ask nobody.

use serde_json::{Map, Value, json};
use taskbus_core::bus::channel::ChannelName;
use taskbus_core::bus::tag::TagSet;

use super::args;
use crate::repo_file::{self, RepoFile};
use crate::repo_name;
use crate::term::failure::Failure;
use crate::term::report::Report;
use crate::term::safe::display_safe;

/// Follows a channel or a set of tags.
pub(crate) fn subscribe(args: &args::Follow) -> Result<Box<dyn Report>, Failure> {
    let mut file = here()?;
    let changed = match wish(args)? {
        Wish::Channel(channel) => file.add_channel(&channel)?,
        Wish::Tags(set) => file.add_tags(&set),
    };
    finish(file, changed)
}

/// Follows it no longer.
pub(crate) fn unsubscribe(args: &args::Follow) -> Result<Box<dyn Report>, Failure> {
    let mut file = here()?;
    let changed = match wish(args)? {
        Wish::Channel(channel) => file.remove_channel(&channel),
        Wish::Tags(set) => file.remove_tags(&set),
    };
    finish(file, changed)
}

enum Wish {
    Channel(ChannelName),
    Tags(TagSet),
}

fn wish(args: &args::Follow) -> Result<Wish, Failure> {
    match &args.channel {
        Some(name) => {
            let channel = ChannelName::new(name.as_str()).map_err(|error| Failure::text("channel", error))?;
            Ok(Wish::Channel(channel))
        }
        None => TagSet::new(&args.tags).map(Wish::Tags).map_err(Failure::usage),
    }
}

/// The file of the repository around the current directory, or a new one for it.
fn here() -> Result<RepoFile, Failure> {
    let (cwd, home) = repo_name::surroundings()?;
    let path = repo_file::place(&cwd, home.as_deref())?;
    if path.exists() {
        return Ok(RepoFile::read(&path)?);
    }
    let identity = repo_name::identity(&path)?;
    Ok(RepoFile::new(path, &identity))
}

fn finish(file: RepoFile, changed: bool) -> Result<Box<dyn Report>, Failure> {
    if changed {
        file.write()?;
    }
    Ok(Box::new(Followed { file, changed }))
}

struct Followed {
    file: RepoFile,
    changed: bool,
}

impl Report for Followed {
    fn json(&self) -> Map<String, Value> {
        Map::from_iter([
            ("file".to_owned(), json!(self.file.path().to_string_lossy())),
            ("changed".to_owned(), json!(self.changed)),
            ("channels".to_owned(), json!(self.file.channels())),
            ("tag_subscriptions".to_owned(), json!(self.file.tag_sets())),
            ("tags".to_owned(), json!(self.file.tags())),
        ])
    }

    fn words(&self, _: Option<usize>) -> String {
        let path = self.file.path().to_string_lossy();
        if !self.changed {
            return format!("{} says so already\n", display_safe(&path));
        }
        let channels = self.file.channels().map_or_else(|| "the usual ones".to_owned(), |names| names.join(", "));
        let sets = self.file.tag_sets().iter().map(|set| format!("; tags {}", set.join(" and "))).collect::<String>();
        let followed = format!("{channels}{sets}");
        format!("{}: agents follow {} from their next registration on\n", display_safe(&path), display_safe(&followed))
    }
}
