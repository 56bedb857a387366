//! `.local/taskbus.json`: what the agents of one repository have in common: the name they ask for, the channels and
//! tags they follow, the tags that are approved there. Whether a name is a good one is for the engine to say when an
//! agent registers; here the file is found, read, and rewritten with everything in it that is not ours.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use taskbus_core::bus::channel::ChannelName;
use taskbus_core::bus::tag::TagSet;
use taskbus_core::name::Identity;
use taskbus_core::text::TextError;

use crate::files;

/// Where it is, from the root of the repository.
pub(crate) const PLACE: &str = ".local/taskbus.json";

const IDENTITY: &str = "identity";
const CHANNELS: &str = "channels";
const TAG_SETS: &str = "tag_subscriptions";
const TAGS: &str = "tags";
const MIRROR: &str = "mirror_tasks";

/// What is wrong with it, or with the wish to change it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RepoFileError {
    /// It is there and cannot be read, or cannot be written.
    #[error("{} cannot be {doing}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// `read` or `written`.
        doing: &'static str,
        /// Why.
        error: io::Error,
    },
    /// It is not what it should be.
    #[error("{}: {what}; correct it by hand", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// Its identity is none.
    #[error("{}: the identity {name:?} {error}; write another one there", .path.display())]
    Identity {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
        /// What is wrong with it.
        error: TextError,
    },
    /// There is no repository to keep it in.
    #[error("{} is in no Git repository, so there is no place for {PLACE}; change into one", .0.display())]
    NoRepository(PathBuf),
    /// Inboxes are not followed: they are there.
    #[error("{0} is an inbox, which its owner always receives; only other channels stand in {PLACE}")]
    Inbox(String),
}

/// The file with all that is in it.
#[derive(Clone, Debug)]
pub(crate) struct RepoFile {
    path: PathBuf,
    json: Map<String, Value>,
}

/// The file that holds for `start`: in it or above it, up to the root of its repository. Neither `/` nor the home
/// directory ever has one.
pub(crate) fn find(start: &Path, home: Option<&Path>) -> Option<PathBuf> {
    dirs_of_repository(start, home).map(|dir| dir.join(PLACE)).find(|path| path.is_file())
}

/// Where the file of the repository around `start` is, or would be made.
pub(crate) fn place(start: &Path, home: Option<&Path>) -> Result<PathBuf, RepoFileError> {
    if let Some(path) = find(start, home) {
        return Ok(path);
    }
    let root = dirs_of_repository(start, home).find(|dir| dir.join(".git").exists());
    root.map(|root| root.join(PLACE)).ok_or_else(|| RepoFileError::NoRepository(start.to_owned()))
}

/// The directories from `start` up to the one that holds `.git`.
fn dirs_of_repository<'a>(start: &'a Path, home: Option<&'a Path>) -> impl Iterator<Item = &'a Path> {
    let mut over = false;
    let usable = move |dir: &&Path| dir.parent().is_some() && Some(*dir) != home;
    start.ancestors().take_while(usable).take_while(move |dir| {
        let inside = !over;
        over = dir.join(".git").exists();
        inside
    })
}

impl RepoFile {
    /// An empty file for the agents of this name; nothing is written yet.
    pub(crate) fn new(path: PathBuf, identity: &Identity) -> Self {
        Self { path, json: Map::from_iter([(IDENTITY.to_owned(), json!(identity.as_str()))]) }
    }

    /// Reads it.
    pub(crate) fn read(path: &Path) -> Result<Self, RepoFileError> {
        let found = files::read(path).and_then(|bytes| bytes.ok_or_else(|| io::ErrorKind::NotFound.into()));
        let bytes = found.map_err(|error| RepoFileError::Io { path: path.to_owned(), doing: "read", error })?;
        let malformed = |what: String| RepoFileError::Malformed { path: path.to_owned(), what };
        let json =
            serde_json::from_slice(&bytes).map_err(|error| malformed(format!("it is no JSON object: {error}")))?;
        let file = Self { path: path.to_owned(), json };
        file.identity()?;
        file.check_lists().map_err(malformed)?;
        Ok(file)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The name that the agents of this repository ask for.
    pub(crate) fn identity(&self) -> Result<Identity, RepoFileError> {
        let wrong = |what: &str| RepoFileError::Malformed { path: self.path.clone(), what: what.to_owned() };
        let name = self.json.get(IDENTITY).ok_or_else(|| wrong("it names no identity"))?;
        let name = name.as_str().ok_or_else(|| wrong("its identity is no text"))?;
        let bad = |error| RepoFileError::Identity { path: self.path.clone(), name: name.to_owned(), error };
        if name.contains('/') {
            return Err(wrong("its identity has a /, which only the names of children have"));
        }
        Identity::new(name).map_err(bad)
    }

    /// The channels to follow; none when nothing is said, and then the usual ones are meant.
    pub(crate) fn channels(&self) -> Option<Vec<String>> {
        self.json.get(CHANNELS).and_then(texts)
    }

    /// The sets of tags to follow; patterns are allowed.
    pub(crate) fn tag_sets(&self) -> Vec<Vec<String>> {
        let sets = self.json.get(TAG_SETS).and_then(Value::as_array);
        sets.into_iter().flatten().filter_map(texts).collect()
    }

    /// The tags that are approved in this repository.
    pub(crate) fn tags(&self) -> Vec<String> {
        self.json.get(TAGS).and_then(texts).unwrap_or_default()
    }

    /// Whether the tasks that agents keep for themselves are shown on the shared list.
    pub(crate) fn mirrors_tasks(&self) -> bool {
        self.json.get(MIRROR) == Some(&Value::Bool(true))
    }

    /// Follows a channel; says whether that is new.
    pub(crate) fn add_channel(&mut self, channel: &ChannelName) -> Result<bool, RepoFileError> {
        if channel.owner().is_some() {
            return Err(RepoFileError::Inbox(channel.as_str().to_owned()));
        }
        let mut channels = self.channels_or_usual();
        if channels.iter().any(|known| known == channel.as_str()) {
            return Ok(false);
        }
        channels.push(channel.as_str().to_owned());
        self.json.insert(CHANNELS.to_owned(), json!(channels));
        Ok(true)
    }

    /// Follows a channel no longer; says whether that is new.
    pub(crate) fn remove_channel(&mut self, channel: &ChannelName) -> bool {
        let mut channels = self.channels_or_usual();
        let before = channels.len();
        channels.retain(|known| known != channel.as_str());
        let is_news = channels.len() < before;
        if is_news {
            self.json.insert(CHANNELS.to_owned(), json!(channels));
        }
        is_news
    }

    /// Follows a set of tags; says whether that is new.
    pub(crate) fn add_tags(&mut self, set: &TagSet) -> bool {
        let mut sets = self.tag_sets();
        if sets.iter().any(|known| is_set(known, set)) {
            return false;
        }
        sets.push(set.patterns().map(|pattern| pattern.as_str().to_owned()).collect());
        self.json.insert(TAG_SETS.to_owned(), json!(sets));
        true
    }

    /// Follows a set of tags no longer; says whether that is new.
    pub(crate) fn remove_tags(&mut self, set: &TagSet) -> bool {
        let mut sets = self.tag_sets();
        let before = sets.len();
        sets.retain(|known| !is_set(known, set));
        let is_news = sets.len() < before;
        if is_news {
            self.json.insert(TAG_SETS.to_owned(), json!(sets));
        }
        is_news
    }

    /// Writes it, in one step.
    pub(crate) fn write(&self) -> Result<(), RepoFileError> {
        let failed = |error| RepoFileError::Io { path: self.path.clone(), doing: "written", error };
        files::replace(&self.path, self.text().as_bytes(), 0o644).map_err(failed)
    }

    /// What is written.
    pub(crate) fn text(&self) -> String {
        format!("{:#}\n", Value::Object(self.json.clone()))
    }

    fn channels_or_usual(&self) -> Vec<String> {
        let usual = || ChannelName::defaults().map(|(name, _)| name.as_str().to_owned()).to_vec();
        self.channels().unwrap_or_else(usual)
    }

    fn check_lists(&self) -> Result<(), String> {
        for name in [CHANNELS, TAGS] {
            if self.json.get(name).is_some_and(|value| texts(value).is_none()) {
                return Err(format!("{name} is no list of texts"));
            }
        }
        let sets = self.json.get(TAG_SETS);
        let is_list = |value: &Value| value.as_array().is_some_and(|sets| sets.iter().all(|set| texts(set).is_some()));
        if sets.is_some_and(|value| !is_list(value)) {
            return Err(format!("{TAG_SETS} is no list of lists of texts"));
        }
        Ok(())
    }
}

/// A list of texts, if it is one.
fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
}

/// However somebody spelled it.
fn is_set(written: &[String], set: &TagSet) -> bool {
    TagSet::new(written).is_ok_and(|written| written.key() == set.key())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    fn place_with(text: &str) -> (TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(PLACE);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        (dir, path)
    }

    fn channel(name: &str) -> ChannelName {
        ChannelName::new(name).unwrap()
    }

    fn set(tags: &[&str]) -> TagSet {
        TagSet::new(tags).unwrap()
    }

    #[track_caller]
    fn refused(text: &str, words: &str) {
        let (_dir, path) = place_with(text);
        let error = RepoFile::read(&path).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains(PLACE), "{text}: {error}");
    }

    #[test]
    fn the_nearest_file_of_the_repository_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (repo, deep) = (root.join("repo"), root.join("repo/a/b"));
        fs::create_dir_all(&deep).unwrap();
        fs::create_dir_all(root.join(".local")).unwrap();
        fs::write(root.join(PLACE), "{}").unwrap();
        assert_eq!(find(&deep, None), Some(root.join(PLACE)), "without a repository nothing ends the search");
        assert_eq!(find(&deep, Some(&root)), None, "the home directory has none");
        assert!(matches!(place(&deep, Some(&root)), Err(RepoFileError::NoRepository(_))));
        fs::create_dir(repo.join(".git")).unwrap();
        assert_eq!(find(&deep, None), None, "the search ends at the root of the repository");
        assert_eq!(place(&deep, None).unwrap(), repo.join(PLACE));
        fs::create_dir_all(repo.join("a/.local")).unwrap();
        fs::write(repo.join("a").join(PLACE), "{}").unwrap();
        assert_eq!(place(&deep, None).unwrap(), repo.join("a").join(PLACE));
    }

    #[test]
    fn what_is_read_is_what_stands_there() {
        let (_dir, path) = place_with(
            r#"{"identity": "Zed", "channels": ["general", "general/app"], "tag_subscriptions": [["db*", "bug"]], "tags": ["db"]}"#,
        );
        let file = RepoFile::read(&path).unwrap();
        assert_eq!(file.identity().unwrap().as_str(), "Zed");
        assert_eq!(file.channels().unwrap(), ["general", "general/app"]);
        assert_eq!(
            (file.tag_sets(), file.tags()),
            (vec![vec!["db*".to_owned(), "bug".to_owned()]], vec!["db".to_owned()])
        );
        let (_dir, path) = place_with(r#"{"identity": "Zed", "channels": []}"#);
        assert_eq!(RepoFile::read(&path).unwrap().channels(), Some(Vec::new()), "nothing is not the usual");
        let (_dir, path) = place_with(r#"{"identity": "Zed"}"#);
        assert_eq!(RepoFile::read(&path).unwrap().channels(), None);
    }

    #[test]
    fn what_is_wrong_is_named() {
        refused("{", "no JSON object");
        refused("[]", "no JSON object");
        refused("{}", "names no identity");
        refused(r#"{"identity": 5}"#, "identity is no text");
        refused(r#"{"identity": ""}"#, "identity");
        refused(r#"{"identity": "a/b"}"#, "has a /");
        refused(r#"{"identity": "Zed", "channels": "general"}"#, "channels is no list");
        refused(r#"{"identity": "Zed", "channels": [5]}"#, "channels is no list");
        refused(r#"{"identity": "Zed", "tag_subscriptions": ["a"]}"#, "no list of lists");
        refused(r#"{"identity": "Zed", "tags": null}"#, "tags is no list");
    }

    #[test]
    fn a_rewrite_keeps_what_is_not_ours_and_its_order() {
        let (_dir, path) = place_with(r#"{"$comment": {"z": 1, "a": [2]}, "identity": "Zed", "later": null}"#);
        let mut file = RepoFile::read(&path).unwrap();
        assert!(file.add_channel(&channel("general/app")).unwrap());
        assert!(!file.add_channel(&channel("general/app")).unwrap());
        assert!(file.add_tags(&set(&["bug", "DB*"])));
        assert!(!file.add_tags(&set(&["db*", "bug"])), "the same set in another spelling");
        file.write().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(
            text,
            "{\n  \"$comment\": {\n    \"z\": 1,\n    \"a\": [\n      2\n    ]\n  },\n  \"identity\": \"Zed\",\n  \"later\": null,\n  \
             \"channels\": [\n    \"general\",\n    \"memory\",\n    \"general/app\"\n  ],\n  \
             \"tag_subscriptions\": [\n    [\n      \"bug\",\n      \"db*\"\n    ]\n  ]\n}\n"
        );
        assert!(file.remove_tags(&set(&["DB*", "bug"])) && !file.remove_tags(&set(&["bug"])));
        assert!(file.remove_channel(&channel("general")) && !file.remove_channel(&channel("general")));
        assert_eq!(file.channels().unwrap(), ["memory", "general/app"]);
    }

    #[test]
    fn inboxes_are_not_followed() {
        let mut file = RepoFile::new(PathBuf::from(PLACE), &Identity::new("Zed").unwrap());
        let inbox = ChannelName::inbox(&Identity::new("Amp").unwrap());
        assert!(file.add_channel(&inbox).unwrap_err().to_string().contains("inbox"));
        assert_eq!(file.channels(), None);
        assert!(file.remove_channel(&channel("general")), "the usual ones are written out first");
        assert_eq!(file.channels().unwrap(), ["memory"]);
    }
}
