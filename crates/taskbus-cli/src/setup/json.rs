//! Changes of a JSON text that leave everything else in it as it is: order, indentation, comments. What comes out is
//! read again before it is believed.

use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Map, Value, json};

use super::edit::Refused;
use super::tree::{Kind, Node, comma_after, parse};

/// A step down: a key of an object, or a place in an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// A key.
    Key(&'a str),
    /// A place.
    At(usize),
}

/// Reads a text that holds an object; an empty text is an empty object.
pub(super) fn read(text: &str) -> Result<Node, Refused> {
    let root =
        parse(if text.trim().is_empty() { "{}" } else { text }).map_err(|error| Refused::NoJson(error.to_string()))?;
    if matches!(root.kind, Kind::Object(_)) { Ok(root) } else { Err(Refused::NoJson("it is no object".to_owned())) }
}

/// The value at the end of the steps.
pub(super) fn find<'a>(root: &'a Node, steps: &[Step<'_>]) -> Option<&'a Node> {
    steps.iter().try_fold(root, |node, step| match step {
        Step::Key(key) => node.member(key),
        Step::At(at) => node.elements().get(*at),
    })
}

/// Puts a value under a path of keys, making the objects on the way.
pub(super) fn set(text: &str, keys: &[&str], value: &Value) -> Result<String, Refused> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let root = read(text)?;
    let mut node = &root;
    for (depth, key) in keys.iter().enumerate() {
        if !matches!(node.kind, Kind::Object(_)) {
            return Err(Refused::NoPlace(keys[..depth].join(".")));
        }
        match node.member(key) {
            Some(found) => node = found,
            None => {
                let inside = keys[depth + 1..].iter().rev().fold(value.clone(), |inner, key| json!({*key: inner}));
                return checked(insert(text, node, Some(key), &inside), &set_value(&root.to_value(), keys, value));
            }
        }
    }
    let shown = render(value, line_indent(text, node.start), unit(text), newline(text), is_inline(text));
    checked(splice(text, node.start, node.end, &shown), &set_value(&root.to_value(), keys, value))
}

/// Puts a value at the end of the array under a path of keys; makes it if it is not there.
pub(super) fn push(text: &str, keys: &[&str], value: &Value) -> Result<String, Refused> {
    let root = read(text)?;
    let steps: Vec<Step<'_>> = keys.iter().map(|key| Step::Key(key)).collect();
    let Some(array) = find(&root, &steps) else { return set(text, keys, &json!([value])) };
    let Kind::Array(nodes) = &array.kind else { return Err(Refused::NoPlace(keys.join("."))) };
    let mut whole: Vec<Value> = nodes.iter().map(Node::to_value).collect();
    whole.push(value.clone());
    checked(insert(text, array, None, value), &set_value(&root.to_value(), keys, &json!(whole)))
}

/// Replaces the value at the end of the steps, which is there.
pub(super) fn replace(text: &str, steps: &[Step<'_>], value: &Value) -> Result<String, Refused> {
    let root = read(text)?;
    let Some(node) = find(&root, steps) else { return Ok(text.to_owned()) };
    let shown = render(value, line_indent(text, node.start), unit(text), newline(text), is_inline(text));
    let new = splice(text, node.start, node.end, &shown);
    read(&new)?;
    Ok(new)
}

/// Takes the thing at the end of the steps away, if it is there, and then what has become empty around it.
pub(super) fn remove(text: &str, steps: &[Step<'_>]) -> Result<String, Refused> {
    let root = read(text)?;
    let Some((last, above)) = steps.split_last() else { return Ok(text.to_owned()) };
    let Some(container) = find(&root, above) else { return Ok(text.to_owned()) };
    let Some(at) = place_in(container, *last) else { return Ok(text.to_owned()) };
    let new = cut(text, container, at);
    let left = read(&new)?;
    let around = find(&left, above);
    let is_empty = around.is_some_and(|node| new[node.start + 1..node.end - 1].trim().is_empty());
    if is_empty && !above.is_empty() { remove(&new, above) } else { Ok(new) }
}

fn place_in(container: &Node, step: Step<'_>) -> Option<usize> {
    match (&container.kind, step) {
        (Kind::Object(members), Step::Key(key)) => members.iter().rposition(|member| member.key == key),
        (Kind::Array(nodes), Step::At(at)) => (at < nodes.len()).then_some(at),
        _ => None,
    }
}

fn set_value(root: &Value, keys: &[&str], value: &Value) -> Value {
    let [key, rest @ ..] = keys else { return value.clone() };
    let mut object = root.as_object().cloned().unwrap_or_else(Map::new);
    let inner = object.get(*key).cloned().unwrap_or(json!({}));
    object.insert((*key).to_owned(), set_value(&inner, rest, value));
    Value::Object(object)
}

/// A text whose meaning is not what it should be is never written.
fn checked(new: String, expected: &Value) -> Result<String, Refused> {
    if read(&new)?.to_value() == *expected { Ok(new) } else { Err(Refused::Unsure) }
}

fn insert(text: &str, container: &Node, key: Option<&str>, value: &Value) -> String {
    let (open, close) = (container.start + 1, container.end - 1);
    let (newline, outer) = (newline(text), line_indent(text, container.start));
    let label = key.map_or(String::new(), |key| format!("{}: ", json!(key)));
    let Some(&(last_start, last_end)) = container.spans().last() else {
        if is_inline(text) {
            return splice(text, open, close, &format!("{label}{value}"));
        }
        let indent = format!("{outer}{}", unit(text));
        let item = format!("{label}{}", render(value, &indent, unit(text), newline, false));
        let kept = open + text[open..close].trim_end().len();
        return splice(text, kept, close, &format!("{newline}{indent}{item}{newline}{outer}"));
    };
    // Who ends a list with a comma wants it so.
    let trailing = comma_after(text, last_end);
    let (before, after) = if trailing.is_some() { ("", ",") } else { (",", "") };
    if !text[open..last_start].contains('\n') {
        let behind = trailing.map_or(last_end, |comma| comma + 1);
        return splice(text, behind, behind, &format!("{before} {label}{value}{after}"));
    }
    let indent = line_indent(text, last_start);
    let item = format!("{label}{}", render(value, indent, unit(text), newline, false));
    let kept = text[..close].trim_end().len();
    let head = format!("{}{before}{}", &text[..last_end], &text[last_end..kept]);
    format!("{head}{newline}{indent}{item}{after}{}", &text[kept..])
}

/// Takes the thing at this place away, and the comma that it no longer needs.
fn cut(text: &str, container: &Node, at: usize) -> String {
    let spans = container.spans();
    let (start, end) = spans[at];
    let from = text[..start].trim_end().len();
    let comma = comma_after(text, end);
    let alone = spans.len() == 1;
    if alone || at + 1 < spans.len() || comma.is_some() {
        let new = splice(text, from, comma.map_or(end, |comma| comma + 1), "");
        return if alone { closed_up(&new, container.start + 1) } else { new };
    }
    let before = comma_after(text, spans[at - 1].1).unwrap_or(from);
    let head = splice(&text[..from], before, before + 1, "");
    format!("{head}{}", &text[end..])
}

/// Without the white space between a bracket and the one that closes it.
fn closed_up(text: &str, open: usize) -> String {
    let rest = text[open..].trim_start();
    if rest.starts_with(['}', ']']) { format!("{}{rest}", &text[..open]) } else { text.to_owned() }
}

fn splice(text: &str, from: usize, to: usize, new: &str) -> String {
    format!("{}{new}{}", &text[..from], &text[to..])
}

/// The value in lines that fit in behind `indent`.
fn render(value: &Value, indent: &str, unit: &str, newline: &str, inline: bool) -> String {
    if inline {
        return value.to_string();
    }
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(unit.as_bytes()));
    serde::Serialize::serialize(value, &mut serializer).expect("BUG: a value can be written to memory");
    String::from_utf8_lossy(&bytes).replace('\n', &format!("{newline}{indent}"))
}

/// A text that is kept in one line.
fn is_inline(text: &str) -> bool {
    let text = text.trim();
    !text.contains('\n') && text.len() > 2
}

fn newline(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// The white space that the line of this place begins with.
fn line_indent(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text[start..at];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// What one level is indented by: as its first line says.
fn unit(text: &str) -> &str {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let indents = lines.map(|line| &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]);
    let first = indents.filter(|indent| !indent.is_empty()).min_by_key(|indent| indent.len());
    match first {
        Some(indent) if indent.starts_with('\t') => "\t",
        Some(indent) => indent,
        None => "  ",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PATH: [&str; 2] = ["mcpServers", "taskbus"];
    const STEPS: [Step<'_>; 2] = [Step::Key("mcpServers"), Step::Key("taskbus")];

    fn entry() -> Value {
        json!({"command": "taskbus", "args": ["mcp"]})
    }

    /// Setting changes to this, and taking away restores every byte.
    #[track_caller]
    fn check(before: &str, after: &str) {
        let set = set(before, &PATH, &entry()).unwrap();
        assert_eq!(set, after);
        assert_eq!(remove(&set, &STEPS).unwrap(), before);
        assert_eq!(super::set(&set, &PATH, &entry()).unwrap(), set, "twice changes nothing");
    }

    #[test]
    fn a_member_is_put_behind_the_others() {
        check(
            "{\n  \"mcpServers\": {\n    \"other\": {}\n  },\n  \"z\": 1\n}\n",
            "{\n  \"mcpServers\": {\n    \"other\": {},\n    \"taskbus\": {\n      \"command\": \"taskbus\",\n      \"args\": [\n        \"mcp\"\n      ]\n    }\n  },\n  \"z\": 1\n}\n",
        );
        check(
            "{\n\t\"z\": 1\n}",
            "{\n\t\"z\": 1,\n\t\"mcpServers\": {\n\t\t\"taskbus\": {\n\t\t\t\"command\": \"taskbus\",\n\t\t\t\"args\": [\n\t\t\t\t\"mcp\"\n\t\t\t]\n\t\t}\n\t}\n}",
        );
    }

    #[test]
    fn one_line_stays_one_line() {
        check("{\"z\":1}", "{\"z\":1, \"mcpServers\": {\"taskbus\":{\"command\":\"taskbus\",\"args\":[\"mcp\"]}}}");
        check(
            "{\"mcpServers\":{\"a\":{}},\"z\":1}\n",
            "{\"mcpServers\":{\"a\":{}, \"taskbus\": {\"command\":\"taskbus\",\"args\":[\"mcp\"]}},\"z\":1}\n",
        );
    }

    #[test]
    fn comments_and_trailing_commas_stay() {
        check(
            "// mine\n{\n  \"a\": 1, // one\n  \"b\": [1, 2,], /* two */\n  // the end\n}\n",
            "// mine\n{\n  \"a\": 1, // one\n  \"b\": [1, 2,], /* two */\n  // the end\n  \"mcpServers\": {\n    \"taskbus\": {\n      \"command\": \"taskbus\",\n      \"args\": [\n        \"mcp\"\n      ]\n    }\n  },\n}\n",
        );
        let commented = "{\n  \"a\": 1 // one, {\n}\n";
        let set = set(commented, &PATH, &entry()).unwrap();
        assert!(set.starts_with("{\n  \"a\": 1, // one, {\n  \"mcpServers\": {"), "{set}");
        assert_eq!(remove(&set, &STEPS).unwrap(), commented);
    }

    #[test]
    fn windows_lines_stay() {
        let before = "{\r\n  \"a\": 1\r\n}\r\n";
        let set = set(before, &PATH, &entry()).unwrap();
        assert!(!set.replace("\r\n", "").contains('\n'), "{set:?}");
        assert_eq!(remove(&set, &STEPS).unwrap(), before);
    }

    #[test]
    fn an_empty_text_becomes_a_whole_one() {
        let set = set("", &["a"], &json!(1)).unwrap();
        assert_eq!(set, "{\n  \"a\": 1\n}\n");
        assert_eq!(remove(&set, &[Step::Key("a")]).unwrap(), "{}\n");
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for text in [
            "[]",
            "5",
            "{",
            "{\"a\" 1}",
            "{\"a\": 1} x",
            "{\"a\": tru}",
            "{\"a\": \"b}",
            "/* x",
            "{'a': 1}",
            "{\"a\": 1 \"b\": 2}",
        ] {
            assert!(set(text, &PATH, &entry()).is_err(), "{text}");
        }
        for text in ["{\"mcpServers\": []}", "{\"mcpServers\": \"x\"}", "{\"mcpServers\": null}"] {
            assert_eq!(set(text, &PATH, &entry()), Err(Refused::NoPlace("mcpServers".to_owned())), "{text}");
        }
        let deep = format!("{{\"a\": {}1{}}}", "[".repeat(200), "]".repeat(200));
        assert!(set(&deep, &PATH, &entry()).is_err());
    }

    #[test]
    fn arrays_grow_and_shrink_at_their_end() {
        let before = "{\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"a\": 1\n      }\n    ]\n  }\n}\n";
        let pushed = push(before, &["hooks", "Stop"], &json!({"b": 2})).unwrap();
        assert_eq!(read(&pushed).unwrap().to_value()["hooks"]["Stop"], json!([{"a": 1}, {"b": 2}]));
        let steps = [Step::Key("hooks"), Step::Key("Stop"), Step::At(1)];
        assert_eq!(remove(&pushed, &steps).unwrap(), before);
        let fresh = push("{\n  \"x\": 1\n}\n", &["hooks", "Stop"], &json!({"b": 2})).unwrap();
        let first = [Step::Key("hooks"), Step::Key("Stop"), Step::At(0)];
        assert_eq!(remove(&fresh, &first).unwrap(), "{\n  \"x\": 1\n}\n", "what became empty goes with it");
        assert!(push("{\"hooks\": {\"Stop\": {}}}", &["hooks", "Stop"], &json!(1)).is_err());
    }

    proptest! {
        /// Any object in any of three spellings: the rest of it means the same, and what was added can be taken away.
        #[test]
        fn nothing_else_is_changed(object in objects(), spelling in 0..3usize) {
            let text = match spelling {
                0 => object.to_string(),
                1 => format!("{object:#}\n"),
                _ => format!("// head\n{}", format!("{object:#}").replace(",\n", ", // , {\n")),
            };
            let set = set(&text, &["new", "taskbus"], &entry()).unwrap();
            let mut expected = object.clone();
            expected["new"]["taskbus"] = entry();
            prop_assert_eq!(read(&set).unwrap().to_value(), expected);
            let left = remove(&set, &[Step::Key("new"), Step::Key("taskbus")]).unwrap();
            prop_assert_eq!(read(&left).unwrap().to_value(), object.clone());
            if object.as_object().is_some_and(|object| !object.is_empty()) {
                prop_assert_eq!(left, text);
            }
        }
    }

    proptest! {
        /// Whatever stands in a file, it is changed as it should be or left alone.
        #[test]
        fn no_text_is_too_odd(text in "[{}\\[\\],:\"\\\\/* \n\r\té0-9a-ntrue.+-]{0,40}") {
            if let Ok(set) = set(&text, &PATH, &entry()) {
                prop_assert_eq!(&read(&set).unwrap().to_value()["mcpServers"]["taskbus"], &entry());
            }
            let _left_alone = push(&text, &["hooks", "Stop"], &entry());
            let _left_alone = remove(&text, &STEPS);
        }
    }

    fn objects() -> impl Strategy<Value = Value> {
        let plain = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[ -~é\\\\\"/*,{}]{0,8}".prop_map(Value::from),
        ];
        let any = plain.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z\"]{1,4}", inner, 0..4).prop_map(|map| json!(map)),
            ]
        });
        prop::collection::btree_map("[a-m]{1,4}", any, 0..4).prop_map(|map| json!(map))
    }
}
