//! Reads a Markdown checklist as a plan.
//!
//! ```text
//! - [ ] Write the store @rust (id: store)
//!   Text below an item, indented, is its description.
//!   - [ ] Number the migrations (id: migrations)
//!   - [x] Choose the engine
//! - [ ] Ship it (after: store, migrations)
//! ```
//!
//! An item below another, indented deeper, is a part of it. What stands at the end of an item's line names it
//! (`(id: x)` or `{#x}`), says what must be done first (`(after: x, y)` or `after:x,y`; keys of the file or ids of
//! the list), and labels it (`@label`). A ticked item comes in as completed. Headings, prose and code that belong
//! to no item are not imported.

use super::{Item, PlanError};
use taskbus_core::name::Label;

/// Tab stops, in columns.
const TAB: usize = 4;

/// The items of a checklist, parents before their parts.
pub(super) fn parse(text: &str) -> Result<Vec<Item>, PlanError> {
    let mut reader = Reader::default();
    for (at, line) in text.lines().enumerate() {
        reader.line(at + 1, line)?;
    }
    reader.finish()
}

#[derive(Default)]
struct Reader {
    items: Vec<Item>,
    /// The item of the last line and those around it, with the columns they begin in.
    open: Vec<Open>,
    /// The code block that the line is in: where it began, and what ends it.
    fence: Option<(usize, &'static str)>,
    /// Whether the last line had text that an unindented line continues.
    continues: bool,
}

struct Open {
    column: usize,
    item: usize,
    text: Vec<String>,
}

impl Reader {
    fn line(&mut self, number: usize, line: &str) -> Result<(), PlanError> {
        let (column, content) = indentation(line);
        let toggles = self.toggle_fence(number, content);
        if toggles || self.fence.is_some() {
            self.text(column, line);
            return Ok(());
        }
        match item(content).map_err(|problem| PlanError::new(number, problem))? {
            Some((done, subject)) => self.item(number, column, done, subject),
            None => {
                self.text(column, line);
                Ok(())
            }
        }
    }

    fn toggle_fence(&mut self, number: usize, content: &str) -> bool {
        let mark = ["```", "~~~"].into_iter().find(|mark| content.starts_with(mark));
        match (mark, self.fence) {
            (Some(mark), None) => self.fence = Some((number, mark)),
            (Some(mark), Some((_, opened))) if mark == opened => self.fence = None,
            _ => return false,
        }
        true
    }

    fn item(&mut self, number: usize, column: usize, done: bool, subject: &str) -> Result<(), PlanError> {
        self.close_from(column);
        let parent = self.open.last().map(|open| open.item);
        let mut item = annotated(subject).map_err(|problem| PlanError::new(number, problem))?;
        (item.line, item.done, item.parent) = (number, done, parent);
        self.open.push(Open { column, item: self.items.len(), text: Vec::new() });
        self.items.push(item);
        self.continues = true;
        Ok(())
    }

    /// A line that is no item: of the innermost item it is indented under, or of the one it continues, or of none.
    fn text(&mut self, column: usize, line: &str) {
        if line.trim().is_empty() {
            self.continues = false;
            if let Some(open) = self.open.last_mut() {
                open.text.push(String::new());
            }
            return;
        }
        let is_outside = self.open.first().is_none_or(|open| open.column >= column);
        let is_continued = self.continues && self.fence.is_none() && !line.starts_with('#');
        if !(is_outside && is_continued) {
            self.close_from(column);
        }
        match self.open.last_mut() {
            Some(open) => open.text.push(line.to_owned()),
            None => self.continues = false,
        }
    }

    /// Ends the items that a line beginning in this column cannot belong to.
    fn close_from(&mut self, column: usize) {
        while self.open.last().is_some_and(|open| open.column >= column) {
            self.close_last();
        }
    }

    fn close_last(&mut self) {
        if let Some(open) = self.open.pop() {
            self.items[open.item].description = dedented(&open.text);
        }
    }

    fn finish(mut self) -> Result<Vec<Item>, PlanError> {
        if let Some((number, mark)) = self.fence {
            return Err(PlanError::new(number, format!("the code block that begins here has no closing {mark}")));
        }
        self.close_from(0);
        Ok(self.items)
    }
}

/// The column a line's content begins in, and the content.
fn indentation(line: &str) -> (usize, &str) {
    let content = line.trim_start_matches([' ', '\t']);
    let blank = &line[..line.len() - content.len()];
    (blank.chars().fold(0, |column, c| if c == '\t' { (column / TAB + 1) * TAB } else { column + 1 }), content)
}

/// Whether an item is done, and its line behind the box; none if this is no checklist item.
fn item(content: &str) -> Result<Option<(bool, &str)>, String> {
    let Some(rest) = after_marker(content).and_then(|rest| rest.strip_prefix('[')) else { return Ok(None) };
    let Some((mark, rest)) = rest.split_once(']') else { return Ok(None) };
    let ends_box = rest.is_empty() || rest.starts_with([' ', '\t']);
    match mark {
        _ if !ends_box => Ok(None),
        " " => Ok(Some((false, rest.trim()))),
        "x" | "X" => Ok(Some((true, rest.trim()))),
        _ if mark.chars().count() <= 1 => Err(format!("the box [{mark}] is neither [ ] (open) nor [x] (done)")),
        _ => Ok(None),
    }
}

/// What follows `-`, `*`, `+`, `1.` or `1)` and white space.
fn after_marker(content: &str) -> Option<&str> {
    let digits = content.bytes().take_while(u8::is_ascii_digit).count();
    let marks: &[char] = if digits == 0 { &['-', '*', '+'] } else { &['.', ')'] };
    let rest = content[digits..].strip_prefix(marks)?;
    rest.starts_with([' ', '\t']).then(|| rest.trim_start())
}

/// An item's subject without the annotations at its end.
fn annotated(line: &str) -> Result<Item, String> {
    let mut item = Item::default();
    let mut rest = line.trim_end();
    while let Some((before, annotation)) = last_annotation(rest) {
        item.take(annotation)?;
        rest = before.trim_end();
    }
    if let Some(stray) = ["(id:", "(after:", "{#"].into_iter().find(|mark| rest.contains(mark)) {
        return Err(format!("{stray} must stand at the end of the line, with nothing but annotations behind it"));
    }
    rest.clone_into(&mut item.subject);
    Ok(item)
}

#[derive(Clone, Copy)]
enum Annotation<'a> {
    Key(&'a str),
    After(&'a str),
    Label(&'a str),
}

fn last_annotation(text: &str) -> Option<(&str, Annotation<'_>)> {
    if let Some((before, inner)) = text.strip_suffix(')').and_then(|text| text.rsplit_once('(')) {
        let (name, value) = inner.split_once(':')?;
        return match name.trim() {
            "id" => Some((before, Annotation::Key(value))),
            "after" => Some((before, Annotation::After(value))),
            _ => None,
        };
    }
    if let Some((before, key)) = text.strip_suffix('}').and_then(|text| text.rsplit_once("{#")) {
        return Some((before, Annotation::Key(key)));
    }
    let start = text.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let start = text.ceil_char_boundary(start);
    let (before, word) = text.split_at(start);
    if let Some(keys) = word.strip_prefix("after:") {
        return Some((before, Annotation::After(keys)));
    }
    let label = word.strip_prefix('@').filter(|label| Label::new(*label).is_ok())?;
    Some((before, Annotation::Label(label)))
}

impl Item {
    fn take(&mut self, annotation: Annotation<'_>) -> Result<(), String> {
        match annotation {
            Annotation::Label(label) => self.labels.insert(0, label.to_owned()),
            Annotation::After(keys) => {
                let keys: Vec<String> = keys.split(',').map(|key| key.trim().to_owned()).collect();
                if keys.iter().any(String::is_empty) {
                    return Err("after: names nothing; write (after: key, key)".to_owned());
                }
                self.blocked_by.splice(0..0, keys);
            }
            Annotation::Key(key) => {
                let key = key.trim();
                if key.is_empty() || key.contains(',') {
                    return Err("an id is one word; write (id: word)".to_owned());
                }
                if let Some(other) = self.key.replace(key.to_owned()) {
                    return Err(format!("the item has two ids, {key:?} and {other:?}"));
                }
            }
        }
        Ok(())
    }
}

/// The lines without the indentation that all of them have, and without empty lines around them.
fn dedented(lines: &[String]) -> String {
    let filled = lines.iter().filter(|line| !line.is_empty());
    let least = filled.map(|line| indentation(line).0).min().unwrap_or(0);
    let dedented: Vec<String> = lines.iter().map(|line| without_columns(line, least)).collect();
    dedented.join("\n").trim_matches('\n').to_owned()
}

fn without_columns(line: &str, columns: usize) -> String {
    let (column, content) = indentation(line);
    format!("{}{}", " ".repeat(column.saturating_sub(columns)), content.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Items as `depth? mark subject |key <blockers @labels "description"`.
    fn shown(text: &str) -> Result<Vec<String>, String> {
        let items = parse(text).map_err(|error| error.to_string())?;
        Ok(items.iter().map(|item| show(&items, item)).collect())
    }

    fn show(items: &[Item], item: &Item) -> String {
        let depth = std::iter::successors(item.parent, |at| items[*at].parent).count();
        let mut words = format!("{depth}{} {}", if item.done { "x" } else { "" }, item.subject);
        words.extend(item.key.iter().map(|key| format!(" |{key}")));
        words.extend(item.blocked_by.iter().map(|key| format!(" <{key}")));
        words.extend(item.labels.iter().map(|label| format!(" @{label}")));
        if !item.description.is_empty() {
            words.push_str(&format!(" {:?}", item.description));
        }
        words
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(shown(text).unwrap(), expected, "{text:?}");
    }

    #[track_caller]
    fn check_error(text: &str, line: usize, part: &str) {
        let error = shown(text).unwrap_err();
        assert!(error.starts_with(&format!("line {line}: ")) && error.contains(part), "{text:?}: {error}");
    }

    #[test]
    fn items_nest_by_indentation() {
        check("- [ ] a\n  - [ ] b\n    - [x] c\n- [ ] d\n", &["0 a", "1 b", "2x c", "0 d"]);
        check("- [ ] a\n\t- [ ] b\n\t\t- [ ] c", &["0 a", "1 b", "2 c"]);
        check("- [ ] a\n      - [ ] b\n   - [ ] c", &["0 a", "1 b", "1 c"]);
        check("* [ ] a\n+ [X] b\n1. [ ] c\n12) [ ] d", &["0 a", "0x b", "0 c", "0 d"]);
    }

    #[test]
    fn annotations_stand_at_the_end() {
        check("- [ ] a (id: x)", &["0 a |x"]);
        check("- [ ] a {#x}", &["0 a |x"]);
        check("- [ ] a (after: x, #7)", &["0 a <x <#7"]);
        check("- [ ] a after:x,y @rust (id: z) @env:prod", &["0 a |z <x <y @rust @env:prod"]);
        check("- [ ] mail me@example.org (see below)", &["0 mail me@example.org (see below)"]);
        check("- [ ] ask @Zed", &["0 ask @Zed"]);
        check("- [ ] @rust", &["0  @rust"]);
        check("- [ ] naïve\u{2003}@rust", &["0 naïve @rust"]);
    }

    #[test]
    fn text_below_is_the_description() {
        check("- [ ] a\n  one\n\n  two\n    three\n- [ ] b", &[r#"0 a "one\n\ntwo\n  three""#, "0 b"]);
        check("- [ ] a\n  - plain\n  - [ ] b\n    of b\n  of a", &[r#"0 a "- plain\nof a""#, r#"1 b "of b""#]);
        check("- [ ] a\ncontinued\n\nprose\n", &[r#"0 a "continued""#]);
        check("- [ ] a\n# Heading\nprose", &["0 a"]);
    }

    #[test]
    fn what_is_no_item_is_left_out() {
        check("# Plan\n\nprose - [ ] no\n\n- plain\n- [link](x)\n> - [ ] quoted\n", &[]);
        check("```\n- [ ] code\n```\n- [ ] a\n  ```\n  - [ ] code\n  ```\n", &["0 a \"```\\n- [ ] code\\n```\""]);
    }

    #[test]
    fn line_ends_do_not_matter() {
        check("- [ ] a\r\n  text\r\n  - [ ] b\r\n", &[r#"0 a "text""#, "1 b"]);
        check("- [ ] a", &["0 a"]);
        check("", &[]);
    }

    #[test]
    fn mistakes_name_their_line() {
        check_error("- [ ] a\n- [?] b", 2, "[?]");
        check_error("- [] b", 1, "[]");
        check_error("\n\n- [ ] a (after: )", 3, "after");
        check_error("- [ ] a (after: x,,y)", 1, "after");
        check_error("- [ ] a (id: )", 1, "id");
        check_error("- [ ] a (id: x) (id: y)", 1, "two ids");
        check_error("- [ ] a (after: x) and more", 1, "end of the line");
        check_error("- [ ] a\n```\n- [ ] b", 2, "code block");
    }
}
