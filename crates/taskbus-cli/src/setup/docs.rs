//! `docs/clients.md`, written from the table. A test holds the file to it; `UPDATE_GOLDEN=1` writes it anew.

use std::fmt::Write as _;

use super::apply::Way;
use super::clients::{CLIENTS, Client, Home, Program};
use super::edit::Edit;

const HEAD: &str = "\
# The clients

Written from the table in `crates/taskbus-cli/src/setup/clients.rs` by the test `clients_are_documented`; change the table,
then run `UPDATE_GOLDEN=1 cargo test -p taskbus-cli clients_are`.

`taskbus setup CLIENT` puts into a client's own configuration what is shown here, and says what it changed. Run it twice
and the second time changes nothing. Everything else in the file stays, with its order and its comments, and a copy of
what was there stands beside it as `.bak`. `--dry-run` only says what it would do. `--undo` brings back what was there,
byte for byte, or, if the file has changed since, takes out what is ours. A file that cannot be read as what it should be
is left alone. Without a client, `taskbus setup` says how far each one is; `taskbus setup --all` and `taskbus init
--global` do all that are found.

An entry that somebody wrote by hand stays as it is as long as it starts `taskbus mcp`; only what is missing is added.

## What a repository says of its agents

`taskbus init` writes `.local/taskbus.json` and keeps it out of the repository's history. It holds for the directories below
it, up to the one with `.git`; neither `/` nor the home directory ever has one. Keys that are not in this table stay as they
are when taskbus rewrites it.

| Key | Holds |
|---|---|
| `identity` | The name that agents ask for here. `init` takes the name of the directory. |
| `channels` | What they follow from their registration on. Left out: `general` and `memory`. A list without anything: nothing. |
| `tag_subscriptions` | Sets of tags that they follow: `[[\"bug\", \"db*\"]]` are the messages that have `bug` and a tag that begins with `db`. |
| `tags` | The tags that are approved here; advice, not a rule. |
| `mirror_tasks` | `true`: tasks that Claude Code keeps for itself are shown on the project's list. |

`taskbus subscribe CHANNEL`, `subscribe --tags bug,db*` and `unsubscribe` edit it. `taskbus identity` prints the name and how
agents work together.

## What the hooks do

A hook never stands in an agent's way: whatever goes wrong, it prints nothing, ends with 0, and leaves a line in
`taskbus/hook.log` in the user's directory for state. It makes no store, and it never repeats what agents wrote.

| Hook | When | What it says |
|---|---|---|
| `session-start` | A session begins or goes on, in a repository with `.local/taskbus.json` | The name to register as, and how the project's list stands. |
| `stop` | The agent wants to stop | How many messages it has not seen, and in which channels; once, and not again until it has gone on and stopped anew. |
| `subagent-start` | A subagent begins whose parent is at work on the bus | The name it acts under. |
| `pre-tool-use` | A subagent calls a tool of taskbus without `as` | Fills `as` in. Subagents of one session share a connection, so nothing else tells them apart. The server takes such a name below the parent's without `register`. |
| `task-created`, `task-completed` | Claude Code made or completed a task of its own, in a repository whose `.local/taskbus.json` says `\"mirror_tasks\": true` | Nothing; the task stands on the project's list too, assigned, so that nobody else takes it. |
";

fn section(text: &mut String, client: &Client) -> std::fmt::Result {
    let home = Home { home: "~".into(), config: "~/.config".into(), claude: None, codex: None };
    writeln!(text, "\n## {}: `taskbus setup {}`\n", client.title, client.name)?;
    client.notes.iter().try_for_each(|note| writeln!(text, "{note}"))?;
    for work in client.works(&home, &Program("taskbus".to_owned())) {
        let path = work.path.display();
        if let [Edit::Whole(_)] = work.edits[..] {
            writeln!(text, "\n`{path}`: the skill `using-taskbus`.")?;
            continue;
        }
        let empty = super::apply::plan(&super::clients::Work { path: "/nowhere/at/all".into(), ..work }, Way::Setup);
        let lines: String =
            empty.unwrap().lines.iter().map(|line| format!("{}\n", line.trim_start_matches("+ "))).collect();
        let language = if path.to_string().ends_with(".toml") { "toml" } else { "json" };
        writeln!(text, "\n`{path}`:\n\n```{language}\n{}```", lines.replace("+\n", "\n"))?;
    }
    Ok(())
}

fn document() -> String {
    let mut text = HEAD.to_owned();
    CLIENTS.iter().try_for_each(|client| section(&mut text, client)).unwrap();
    text
}

#[test]
fn clients_are_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/clients.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, document()).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), document(), "see the head of docs/clients.md");
}
