//! Rust source, taken apart just far enough for the checks: code without comments and literals, the string literals,
//! and where the tests begin. Not a parser.

/// A source text taken apart. Both parts are as long as the whole, so that positions hold.
pub(crate) struct Source {
    /// The code; comments and the contents of literals are blank.
    pub(crate) code: String,
    /// The contents of string literals; everything else is blank.
    pub(crate) strings: String,
}

/// Takes a source text apart.
pub(crate) fn take_apart(text: &str) -> Source {
    let mut parts = Source { code: String::new(), strings: String::new() };
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let (piece, kind) = next_piece(rest, next);
        parts.push(piece, kind);
        rest = &rest[piece.len()..];
    }
    parts
}

/// The part of a source text that ships: without the modules marked `#[cfg(test)]`, which end a file.
pub(crate) fn without_tests(text: &str) -> &str {
    let mark = text.find("\n#[cfg(test)]\nmod tests {").map_or(text.len(), |at| at + 1);
    &text[..mark]
}

/// The part of a source text that only tests see.
pub(crate) fn only_tests(text: &str) -> &str {
    &text[without_tests(text).len()..]
}

/// Whether a file holds tests and nothing that ships: integration tests, the tests of a long file, and the suite that
/// other crates run on their stores.
pub(crate) fn is_tests(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("tests.rs") || path.contains("/conformance/")
}

/// The line of a byte position, from 1.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Whether a word stands at this position, not as a part of a longer one.
pub(crate) fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |&at| !text[..at].ends_with(inside) && !text[at + word.len()..].starts_with(inside))
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Code,
    Comment,
    Text,
}

impl Source {
    fn push(&mut self, piece: &str, kind: Kind) {
        let blank: String = piece.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect();
        self.code.push_str(if kind == Kind::Code { piece } else { &blank });
        self.strings.push_str(if kind == Kind::Text { piece } else { &blank });
    }
}

fn next_piece(rest: &str, next: char) -> (&str, Kind) {
    if rest.starts_with("//") {
        return (&rest[..rest.find('\n').unwrap_or(rest.len())], Kind::Comment);
    }
    if rest.starts_with("/*") {
        return (&rest[..rest.find("*/").map_or(rest.len(), |at| at + 2)], Kind::Comment);
    }
    if let Some(length) = raw_string(rest) {
        return (&rest[..length], Kind::Text);
    }
    if next == '"' {
        return (&rest[..quoted(rest, '"')], Kind::Text);
    }
    if next == '\'' && is_char_literal(rest) {
        return (&rest[..quoted(rest, '\'')], Kind::Comment);
    }
    let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    (&rest[..word.max(next.len_utf8())], Kind::Code)
}

fn raw_string(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let body = after[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = body.find(&end).map_or(body.len(), |at| at + end.len());
    Some(rest.len() - body.len() + length)
}

/// The length of a literal that starts with a quote, both quotes included.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if c == quote && !escaped {
            return at + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    rest.len()
}

/// A lifetime has no closing quote behind one character.
fn is_char_literal(rest: &str) -> bool {
    let mut chars = rest.chars().skip(1);
    match chars.next() {
        Some('\\') => true,
        Some(_) => chars.next() == Some('\''),
        None => false,
    }
}

mod tests {
    use super::*;

    #[test]
    fn code_and_strings_come_apart() {
        let source =
            take_apart("let a = \"b \\\" c\"; // d\nfn e<'f>(g: &'f str) { h('i', r#\"j \"k\" l\"#) } /* m */");
        let code: Vec<&str> = source.code.split_whitespace().collect();
        assert_eq!(code.join(" "), "let a = ; fn e<'f>(g: &'f str) { h( , ) }");
        let strings: Vec<&str> = source.strings.split_whitespace().collect();
        assert_eq!(strings.join(" "), "\"b \\\" c\" r#\"j \"k\" l\"#");
        let text = "a /* … */ \"é\" b\n";
        assert!([take_apart(text).code.len(), take_apart(text).strings.len()] == [text.len(); 2], "positions hold");
    }

    #[test]
    fn tests_are_told_from_what_ships() {
        let text = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n";
        assert_eq!(without_tests(text), "fn a() {}\n\n");
        assert!(only_tests(text).contains("fn b") && only_tests("fn a() {}").is_empty());
    }

    #[test]
    fn words_are_whole() {
        assert_eq!(words("rmcp xrmcp rmcp_y rmcp::z", "rmcp").collect::<Vec<_>>(), [0, 18]);
        assert_eq!(line_of("a\nb\nc", 4), 3);
    }
}
