//! `docs/config.md`, written from the table. A test holds the file to it; `UPDATE_GOLDEN=1` writes it anew.

use std::fmt::Write as _;

use super::table::{KEYS, Key};

const HEAD: &str = "\
# The configuration

Written from the table in `crates/taskbus-cli/src/config/table.rs` by the test `configuration_is_documented`; change the
table, then run `UPDATE_GOLDEN=1 cargo test -p taskbus-cli configuration_is`.

One TOML file: the one that `--config` names, else `TASKBUS_CONFIG`, else `taskbus/config.toml` in the user's
configuration directory (`$XDG_CONFIG_HOME`, usually `~/.config`). Nothing has to be there. It is read once, when a
process starts. `taskbus config` shows the values in force and where each comes from.

```toml
store = \"sqlite:/srv/agents/taskbus.db\"
receive_max_wait_seconds = 30
```

The environment goes before the file: each key is also a variable, `TASKBUS_` and the key in capitals, such as
`TASKBUS_LOG_LEVEL=debug`; what is no text is written as in the file, `TASKBUS_INSPECTION_COMMAND='[\"check\", \"-q\"]'`.
An empty variable is none. Flags of the command line go before both.

An unknown key, a value of the wrong type or out of its range is an error that names the file, the key, the value and
what it may be; nothing is put right by guessing. `taskbus mcp` still answers its client then, and says it in answer
to each call. `~/` is the home directory. A relative path starts from the directory of the file, one from the
environment from the current directory.

| Key | May be | Default | |
|---|---|---|---|
";

const TAIL: &str = "
`theme`, `themes`, `icons`, `icon_map`, `task_idle_hours` and those that begin with `tui_` are for the terminal interface. A
bad value of the first four is only warned of, by `taskbus config`.

Besides these, the environment knows `TASKBUS_AS` (the name to act under), `TASKBUS_LIST` (the list), `TASKBUS_CONFIG`
(the file), `TASKBUS_DATA_DIR` (the data directory) and `TASKBUS_LOG` (a filter for the log such as `taskbus=debug`).
";

fn row(key: &Key) -> String {
    let default = if key.default_words.is_empty() {
        format!("`{}`", key.default.trim_matches('"'))
    } else {
        key.default_words.to_owned()
    };
    format!("| `{}` | {} | {default} | {} |", key.name, key.kind.words(), key.about)
}

fn document() -> String {
    let mut text = HEAD.to_owned();
    for key in &KEYS {
        writeln!(text, "{}", row(key)).unwrap();
    }
    text + TAIL
}

#[test]
fn configuration_is_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/config.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, document()).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), document(), "see the head of docs/config.md");
}
