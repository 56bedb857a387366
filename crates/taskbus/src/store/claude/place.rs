//! Which directory Claude Code keeps a task list in. The environment is an argument: nothing is read here.

use std::path::PathBuf;

/// What the choice depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// `CLAUDE_CONFIG_DIR`.
    pub config_dir: Option<PathBuf>,
    /// The home directory.
    pub home: Option<PathBuf>,
    /// `CLAUDE_CODE_TASK_LIST_ID`.
    pub list_id: Option<String>,
    /// `CLAUDE_CODE_SESSION_ID`, or the session that somebody named.
    pub session_id: Option<String>,
    /// Whether agent teams are on (`CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS`): then a session's list is its team's.
    pub has_teams: bool,
}

/// Why there is no such directory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// Nothing names a list.
    #[error(
        "no Claude Code list is named: set CLAUDE_CODE_TASK_LIST_ID, run inside a Claude Code session, or name the directory, claude:DIR"
    )]
    NoList,
    /// Nothing says where Claude Code keeps its files.
    #[error("neither CLAUDE_CONFIG_DIR nor HOME is set; name the directory, claude:DIR")]
    NoHome,
    /// A name that is none: it could lead out of the directory of lists.
    #[error("{given:?} is no name of a list: use letters, digits, '_' and '-'")]
    Name {
        /// What was given.
        given: String,
    },
}

/// Letters of a session's id that name its team.
const TEAM_LETTERS: usize = 8;

/// The directory of the list that Claude Code would use: the named one, else the session's team's, else the session's.
///
/// # Errors
/// [`PlaceError`].
pub fn list_directory(around: &Surroundings) -> Result<PathBuf, PlaceError> {
    let name = list_id(around)?;
    let config = match (&around.config_dir, &around.home) {
        (Some(dir), _) if !dir.as_os_str().is_empty() => dir.clone(),
        (_, Some(home)) if !home.as_os_str().is_empty() => home.join(".claude"),
        _ => return Err(PlaceError::NoHome),
    };
    Ok(config.join("tasks").join(name))
}

fn list_id(around: &Surroundings) -> Result<String, PlaceError> {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    if let Some(id) = given(&around.list_id) {
        return checked(id);
    }
    let session = checked(given(&around.session_id).ok_or(PlaceError::NoList)?)?;
    if around.has_teams {
        let letters: String = session.chars().take(TEAM_LETTERS).collect();
        return Ok(format!("session-{letters}"));
    }
    Ok(session)
}

fn checked(given: String) -> Result<String, PlaceError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if given.bytes().all(is_plain) { Ok(given) } else { Err(PlaceError::Name { given }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(list_id: &str, session_id: &str) -> Surroundings {
        let some = |text: &str| Some(text.to_owned());
        Surroundings {
            home: Some(PathBuf::from("/home/zed")),
            list_id: some(list_id),
            session_id: some(session_id),
            ..Surroundings::default()
        }
    }

    #[track_caller]
    fn check(around: &Surroundings, expected: &str) {
        assert_eq!(list_directory(around), Ok(PathBuf::from(expected)));
    }

    #[test]
    fn the_list_is_the_named_one_else_the_teams_else_the_sessions() {
        let session = "0a1b2c3d-1111-2222-3333-444455556666";
        check(&around("sprint_1", session), "/home/zed/.claude/tasks/sprint_1");
        check(&around("", session), &format!("/home/zed/.claude/tasks/{session}"));
        let team = Surroundings { has_teams: true, ..around("", session) };
        check(&team, "/home/zed/.claude/tasks/session-0a1b2c3d");
        check(&Surroundings { list_id: Some("named".to_owned()), ..team }, "/home/zed/.claude/tasks/named");
        let elsewhere = Surroundings { config_dir: Some("/etc/claude".into()), ..around("a", "") };
        check(&elsewhere, "/etc/claude/tasks/a");
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for bad in ["..", "a/b", "/etc", "a b", "a\0", "é", "a.b"] {
            let named = PlaceError::Name { given: bad.to_owned() };
            assert_eq!(list_directory(&around(bad, "")), Err(named.clone()), "{bad:?}");
            assert_eq!(list_directory(&around("", bad)), Err(named), "{bad:?}");
        }
    }

    #[test]
    fn what_is_missing_is_said() {
        assert_eq!(list_directory(&around("", "")), Err(PlaceError::NoList));
        let homeless = Surroundings { home: None, ..around("a", "") };
        assert_eq!(list_directory(&homeless), Err(PlaceError::NoHome));
    }
}
