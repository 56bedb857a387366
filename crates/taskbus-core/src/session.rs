//! Names of sessions: how a wished name becomes a display name that nobody else holds
//! (Zed, Zed2, Zed3; children P/x, P/x-2, P/x-3).

use crate::limits;
use crate::name::Identity;
use crate::text::{TextError, no_control, not_blank, visible, within};

/// The `attempt`-th display name (from 1) for a wished name under an optional parent.
///
/// # Errors
/// [`TextError`] when the name is empty, longer than 128 bytes, has control characters or a `/`, or when the
/// parent is longer than 512 bytes or has control characters.
pub fn display_name(name: &str, parent: Option<&str>, attempt: u32) -> Result<Identity, TextError> {
    not_blank(name)?;
    within(name, limits::IDENTITY_BYTES_MAX)?;
    no_control(name)?;
    visible(name)?;
    if name.contains('/') {
        return Err(TextError::Characters { rule: "has a '/': name the parent in `parent`" });
    }
    match parent {
        None => Identity::new(numbered(name, "", attempt)),
        Some(parent) => {
            within(parent, limits::PARENT_BYTES_MAX)?;
            no_control(parent)?;
            not_blank(parent)?;
            Identity::new(format!("{parent}/{}", numbered(name, "-", attempt)))
        }
    }
}

/// Whether a text can be the context of a session: what it works on, shown to others.
///
/// # Errors
/// [`TextError`] when it is longer than 1,024 bytes or has control characters.
pub fn check_context(context: &str) -> Result<(), TextError> {
    within(context, limits::CONTEXT_BYTES_MAX)?;
    no_control(context)
}

fn numbered(name: &str, joint: &str, attempt: u32) -> String {
    if attempt <= 1 { name.to_owned() } else { format!("{name}{joint}{attempt}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_up() {
        let name = |parent, attempt| display_name("Zed", parent, attempt).unwrap().to_string();
        assert_eq!([name(None, 1), name(None, 2)], ["Zed", "Zed2"]);
        assert_eq!([name(Some("P"), 1), name(Some("P"), 2)], ["P/Zed", "P/Zed-2"]);
    }

    #[test]
    fn a_context_is_one_line_with_a_limit() {
        assert_eq!(check_context(""), Ok(()));
        assert_eq!(check_context(&"x".repeat(limits::CONTEXT_BYTES_MAX)), Ok(()));
        for bad in ["a\0", "a\nb", "\u{1b}[2J", &"x".repeat(limits::CONTEXT_BYTES_MAX + 1)] {
            assert!(check_context(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn bad_names_are_refused() {
        for bad in ["", " ", "a/b", "a\nb", &"x".repeat(129)] {
            assert!(display_name(bad, None, 1).is_err(), "{bad:?}");
        }
        assert!(display_name("a", Some(&"p".repeat(513)), 1).is_err());
        assert!(display_name("a", Some("p\u{7}"), 1).is_err());
    }
}
