//! Text of strangers on a terminal: whatever could move the cursor, hide text or turn it around is shown escaped.
//! Every human sink, standard error too, goes through here. Stored text is not changed.

use std::borrow::Cow;

/// One line: line breaks and tabs are escaped too.
pub(crate) fn display_safe(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_unsafe(c) || matches!(c, '\n' | '\t'))
}

/// Several lines: line breaks and tabs stay.
pub(crate) fn display_safe_lines(text: &str) -> Cow<'_, str> {
    escaped(text, is_unsafe)
}

fn escaped(text: &str, bad: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&bad) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if bad(c) { safe.extend(c.escape_default()) } else { safe.push(c) }
    }
    Cow::Owned(safe)
}

/// Control characters, bidirectional marks, and characters of no width. Variation selectors and combining marks
/// stay: they belong to letters and emoji.
fn is_unsafe(c: char) -> bool {
    if matches!(c, '\n' | '\t') {
        return false;
    }
    c.is_control()
        || matches!(u32::from(c),
            0x00AD | 0x034F | 0x061C | 0x115F | 0x1160 | 0x17B4 | 0x17B5 | 0x180E
            | 0x200B..=0x200F | 0x2028..=0x202E | 0x2060..=0x206F | 0x3164 | 0xFEFF | 0xFFA0
            | 0xFFF9..=0xFFFB | 0xE0000..=0xE01EF | 0xE000..=0xF8FF)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(display_safe(text), expected, "{text:?}");
    }

    #[test]
    fn what_drives_a_terminal_is_escaped() {
        check("\u{1b}[2Jx", "\\u{1b}[2Jx");
        check("\u{1b}]8;;http://x\u{7}y", "\\u{1b}]8;;http://x\\u{7}y");
        check("a\r\nb\tc", "a\\r\\nb\\tc");
        check("\u{9b}31m", "\\u{9b}31m");
        check("x\u{7f}", "x\\u{7f}");
    }

    #[test]
    fn what_hides_or_turns_text_is_escaped() {
        check("abc\u{202e}fed", "abc\\u{202e}fed");
        check("a\u{200b}b\u{feff}", "a\\u{200b}b\\u{feff}");
        check("\u{2066}x\u{2069}", "\\u{2066}x\\u{2069}");
        check("\u{e0041}", "\\u{e0041}");
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        for text in ["plain", "日本語 テスト", "naïve – “quoted”", "❤\u{fe0f} 👍🏽", "שלום", "a\u{301}"]
        {
            check(text, text);
            assert!(matches!(display_safe(text), Cow::Borrowed(_)));
        }
        assert_eq!(display_safe_lines("a\n\tb\u{7}"), "a\n\tb\\u{7}");
    }

    proptest! {
        #[test]
        fn nothing_unsafe_comes_through(text in any::<String>()) {
            prop_assert!(!display_safe(&text).chars().any(|c| c.is_control() || is_unsafe(c)));
        }
    }
}
