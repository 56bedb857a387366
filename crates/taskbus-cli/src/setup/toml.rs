//! The entry for the server in a TOML file: `[mcp_servers.taskbus]`, as Codex keeps it. The rest of the file stays, with
//! its comments.

use serde_json::{Map, Value};
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, value};

use super::edit::{Refused, merged};

const SERVERS: &str = "mcp_servers";
const NAME: &str = "taskbus";

/// The file with the entry.
pub(super) fn set(text: &str, fields: &Map<String, Value>) -> Result<String, Refused> {
    let mut document = read(text)?;
    let servers = servers(&mut document)?;
    let found = match servers.get(NAME) {
        None => None,
        Some(item) => Some(to_json(item.as_table_like().ok_or_else(no_place)?)),
    };
    let wanted = merged(found.as_ref(), &Value::Object(fields.clone()));
    if found.as_ref() == Some(&wanted) {
        return Ok(text.to_owned());
    }
    let entry = servers.entry(NAME).or_insert_with(|| Item::Table(Table::new()));
    let entry = entry.as_table_like_mut().ok_or_else(no_place)?;
    for (key, wanted) in wanted.as_object().into_iter().flatten() {
        if found.as_ref().and_then(|found| found.get(key)) != Some(wanted) {
            entry.insert(key, to_item(wanted));
        }
    }
    Ok(with_lines_like(text, &document))
}

/// The document with the line ends of the text that it came from.
fn with_lines_like(text: &str, document: &DocumentMut) -> String {
    let new = document.to_string();
    if text.contains("\r\n") { new.replace("\r\n", "\n").replace('\n', "\r\n") } else { new }
}

/// The file without it.
pub(super) fn unset(text: &str) -> Result<String, Refused> {
    let mut document = read(text)?;
    let Some(servers) = document.get_mut(SERVERS).and_then(Item::as_table_like_mut) else { return Ok(text.to_owned()) };
    if servers.remove(NAME).is_none() {
        return Ok(text.to_owned());
    }
    if servers.is_empty() {
        document.remove(SERVERS);
    }
    Ok(with_lines_like(text, &document))
}

fn read(text: &str) -> Result<DocumentMut, Refused> {
    text.parse::<DocumentMut>().map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        Refused::NoToml(format!("line {line}: {}", error.message().lines().next().unwrap_or_default()))
    })
}

/// The table of servers; a new one gets no heading of its own.
fn servers(document: &mut DocumentMut) -> Result<&mut dyn TableLike, Refused> {
    let implicit = || {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    };
    document.entry(SERVERS).or_insert_with(implicit).as_table_like_mut().ok_or_else(no_place)
}

fn no_place() -> Refused {
    Refused::NoPlace(SERVERS.to_owned())
}

fn to_item(json: &Value) -> Item {
    match json {
        Value::Bool(flag) => value(*flag),
        Value::Number(number) => value(number.as_i64().expect("BUG: an entry has whole numbers only")),
        Value::Array(words) => value(words.iter().filter_map(Value::as_str).collect::<Array>()),
        Value::String(text) => value(text.as_str()),
        Value::Null | Value::Object(_) => unreachable!("an entry has no nulls and no tables of ours"),
    }
}

/// What an entry says, as far as it can be compared with ours; a table within it is only known to be there.
fn to_json(table: &dyn TableLike) -> Value {
    let pairs = table.iter().map(|(key, item)| (key.to_owned(), item_to_json(item)));
    Value::Object(pairs.collect())
}

fn item_to_json(item: &Item) -> Value {
    let Some(value) = item.as_value() else { return Value::Null };
    match value {
        toml_edit::Value::String(text) => Value::String(text.value().clone()),
        toml_edit::Value::Integer(number) => Value::from(*number.value()),
        toml_edit::Value::Boolean(flag) => Value::from(*flag.value()),
        toml_edit::Value::Array(array) => array.iter().map(|word| Value::from(word.as_str())).collect(),
        toml_edit::Value::Float(_) | toml_edit::Value::Datetime(_) | toml_edit::Value::InlineTable(_) => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fields() -> Map<String, Value> {
        let fields = json!({"command": "/opt/taskbus", "args": ["mcp"], "tool_timeout_sec": 120});
        fields.as_object().unwrap().clone()
    }

    const ENTRY: &str = "[mcp_servers.taskbus]\ncommand = \"/opt/taskbus\"\nargs = [\"mcp\"]\ntool_timeout_sec = 120\n";

    #[test]
    fn the_rest_of_the_file_stays() {
        let before =
            "# mine\nmodel = \"m\" # this one\n\n[mcp_servers.other]\ncommand = \"x\"\n\n[tui]\ntheme = 'dark'\n";
        let text = set(before, &fields()).unwrap();
        for part in [
            "# mine\nmodel = \"m\" # this one\n",
            "[mcp_servers.other]\ncommand = \"x\"\n",
            ENTRY,
            "[tui]\ntheme = 'dark'\n",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(set(&text, &fields()).unwrap(), text, "twice changes nothing");
        assert_eq!(unset(&text).unwrap(), before);
    }

    #[test]
    fn windows_lines_stay() {
        let before = "a = 1 # one\r\n\r\n[tui]\r\nb = 2\r\n";
        let text = set(before, &fields()).unwrap();
        assert!(!text.replace("\r\n", "").contains('\n'), "{text:?}");
        assert!(text.contains("a = 1 # one\r\n\r\n[tui]\r\nb = 2\r\n"), "{text:?}");
        assert_eq!(unset(&text).unwrap(), before);
    }

    #[test]
    fn an_empty_file_becomes_a_whole_one() {
        assert_eq!(set("", &fields()).unwrap(), ENTRY);
        assert_eq!(unset(ENTRY).unwrap(), "");
        assert_eq!(unset("a = 1\n").unwrap(), "a = 1\n");
    }

    #[test]
    fn what_somebody_wrote_by_hand_stays() {
        let theirs = "[mcp_servers.taskbus]\ncommand = \"taskbus\" # by name\nargs = [\"mcp\", \"--tools\", \"full\"]\n\n[mcp_servers.taskbus.env]\nA = \"b\"\n";
        let text = set(theirs, &fields()).unwrap();
        assert!(
            text.contains(
                "command = \"taskbus\" # by name\nargs = [\"mcp\", \"--tools\", \"full\"]\ntool_timeout_sec = 120\n"
            ),
            "{text}"
        );
        assert!(text.contains("[mcp_servers.taskbus.env]\nA = \"b\"\n"), "{text}");
        let inline = "mcp_servers = { taskbus = { command = \"/nowhere/taskbus\", args = [\"mcp\"] } }\n";
        assert!(set(inline, &fields()).unwrap().contains("command = \"/opt/taskbus\""));
    }

    #[test]
    fn what_is_no_place_for_it_is_refused() {
        assert_eq!(set("mcp_servers = 5\n", &fields()), Err(no_place()));
        assert_eq!(set("[[mcp_servers]]\na = 1\n", &fields()), Err(no_place()));
        assert_eq!(set("[mcp_servers]\ntaskbus = 5\n", &fields()), Err(no_place()));
        assert!(matches!(set("a = 1\nb ==\n", &fields()), Err(Refused::NoToml(what)) if what.starts_with("line 2")));
    }
}
