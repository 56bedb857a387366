//! The clients, each once: which files say what it starts, what goes into them, and what else its user should know.
//! `docs/clients.md` comes from here.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::edit::Edit;
use super::hooks::Hook;
use crate::protocol::SKILL;

/// What the server is called everywhere.
const NAME: &str = "taskbus";
/// Where it goes, in a client's directory of skills.
const SKILL_PLACE: &str = "skills/using-taskbus/SKILL.md";

/// What taskbus reads of the environment; Codex passes on nothing that is not named.
const VARIABLES: [&str; 9] = [
    "TASKBUS_STORE",
    "TASKBUS_CONFIG",
    "TASKBUS_DATA_DIR",
    "TASKBUS_AS",
    "TASKBUS_LIST",
    "TASKBUS_LOG",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
];
/// How long Codex waits for an answer, in seconds; no call of ours takes longer than 50.
const CODEX_TOOL_SECONDS: u64 = 120;
/// How long it waits for the start.
const CODEX_START_SECONDS: u64 = 20;
/// How long a client waits for a hook, in seconds.
const HOOK_SECONDS: u64 = 10;

/// A client.
pub(crate) struct Client {
    /// What it is called on the command line.
    pub(crate) name: &'static str,
    /// What it is called by its makers.
    pub(crate) title: &'static str,
    /// What else to know.
    pub(crate) notes: &'static [&'static str],
    /// Its own directory; where that is missing, so is the client.
    place: fn(&Home) -> PathBuf,
    works: fn(&Home, &Program) -> Vec<Work>,
}

/// A file, and what should be in it.
pub(super) struct Work {
    /// The file.
    pub(super) path: PathBuf,
    /// What should be in it.
    pub(super) edits: Vec<Edit>,
    /// The mode of a new file.
    pub(super) mode: u32,
}

/// The places of one user.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    /// The home directory.
    pub(crate) home: PathBuf,
    /// Where programs keep their configuration.
    pub(crate) config: PathBuf,
    /// `CLAUDE_CONFIG_DIR`.
    pub(crate) claude: Option<PathBuf>,
    /// `CODEX_HOME`.
    pub(crate) codex: Option<PathBuf>,
}

/// The program that the clients start.
#[derive(Clone, Debug)]
pub(crate) struct Program(pub(crate) String);

impl Client {
    /// Whether it seems to be on this machine.
    pub(crate) fn is_here(&self, home: &Home) -> bool {
        (self.place)(home).is_dir()
    }

    /// The files, and what should be in them.
    pub(super) fn works(&self, home: &Home, program: &Program) -> Vec<Work> {
        (self.works)(home, program)
    }
}

impl Home {
    fn claude_dir(&self) -> PathBuf {
        self.claude.clone().unwrap_or_else(|| self.home.join(".claude"))
    }

    fn codex_dir(&self) -> PathBuf {
        self.codex.clone().unwrap_or_else(|| self.home.join(".codex"))
    }

    fn vscode_dir(&self) -> PathBuf {
        let base =
            if cfg!(target_os = "macos") { self.home.join("Library/Application Support") } else { self.config.clone() };
        base.join("Code/User")
    }
}

impl Program {
    /// A command for a shell.
    fn hook(&self, verb: &str) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%:=,".contains(c);
        let program =
            if self.0.chars().all(plain) { self.0.clone() } else { format!("'{}'", self.0.replace('\'', "'\\''")) };
        format!("{program} hook {verb}")
    }

    fn entry(&self) -> Value {
        json!({"command": self.0, "args": ["mcp"]})
    }

    fn stdio(&self) -> Value {
        json!({"type": "stdio", "command": self.0, "args": ["mcp"]})
    }
}

/// All of them.
pub(crate) static CLIENTS: [Client; 8] = [
    Client {
        name: "claude-code",
        title: "Claude Code",
        notes: &["Restart running sessions, or reconnect with /mcp."],
        place: Home::claude_dir,
        works: claude_code,
    },
    Client {
        name: "codex",
        title: "Codex",
        notes: &[
            "Calls need no approval: default_tools_approval_mode is \"approve\" for this server, because Codex cancels every call that nobody can approve.",
            "Codex asks once whether the new hooks may run: say so with /hooks.",
        ],
        place: Home::codex_dir,
        works: codex,
    },
    Client {
        name: "gemini",
        title: "Gemini CLI",
        notes: &["Gemini CLI starts servers in trusted folders only, and drops variables whose names look secret."],
        place: |home| home.home.join(".gemini"),
        works: gemini,
    },
    Client {
        name: "cursor",
        title: "Cursor",
        notes: &["Written from its documentation; not tried with the program."],
        place: |home| home.home.join(".cursor"),
        works: cursor,
    },
    Client {
        name: "vscode",
        title: "VS Code",
        notes: &["Written from its documentation; not tried with the program."],
        place: Home::vscode_dir,
        works: vscode,
    },
    Client {
        name: "opencode",
        title: "opencode",
        notes: &["Written from its documentation; not tried with the program."],
        place: |home| home.config.join("opencode"),
        works: opencode,
    },
    Client {
        name: "windsurf",
        title: "Windsurf",
        notes: &["Written from its documentation; not tried with the program."],
        place: |home| home.home.join(".codeium/windsurf"),
        works: windsurf,
    },
    Client {
        name: "zed",
        title: "Zed",
        notes: &["Written from its documentation; not tried with the program."],
        place: |home| home.config.join("zed"),
        works: zed,
    },
];

/// The client with this name.
pub(crate) fn named(name: &str) -> Option<&'static Client> {
    CLIENTS.iter().find(|client| client.name == name)
}

fn claude_code(home: &Home, program: &Program) -> Vec<Work> {
    let dir = home.claude_dir();
    let state = home.claude.clone().unwrap_or_else(|| home.home.clone()).join(".claude.json");
    let hook = |event, matcher, verb| Hook { event, matcher, verb, command: program.hook(verb), timeout: HOOK_SECONDS };
    let hooks = vec![
        hook("SessionStart", None, "session-start"),
        hook("Stop", None, "stop"),
        hook("SubagentStart", None, "subagent-start"),
        hook("PreToolUse", Some("mcp__taskbus__.*"), "pre-tool-use"),
        hook("TaskCreated", None, "task-created"),
        hook("TaskCompleted", None, "task-completed"),
    ];
    vec![
        private(state, vec![Edit::Entry { keys: &["mcpServers", NAME], value: program.stdio() }]),
        open(dir.join("settings.json"), vec![Edit::Hooks(hooks)]),
        skill(&dir),
    ]
}

fn codex(home: &Home, program: &Program) -> Vec<Work> {
    let dir = home.codex_dir();
    let fields = json!({
        "command": program.0,
        "args": ["mcp"],
        "env_vars": VARIABLES,
        "default_tools_approval_mode": "approve",
        "startup_timeout_sec": CODEX_START_SECONDS,
        "tool_timeout_sec": CODEX_TOOL_SECONDS,
    });
    let hook = |event, matcher, verb| Hook { event, matcher, verb, command: program.hook(verb), timeout: HOOK_SECONDS };
    let hooks = vec![hook("SessionStart", Some("startup|resume|clear"), "session-start"), hook("Stop", None, "stop")];
    vec![
        private(dir.join("config.toml"), vec![Edit::Table(fields.as_object().cloned().unwrap_or_else(Map::new))]),
        open(dir.join("hooks.json"), vec![Edit::Hooks(hooks)]),
        skill(&home.home.join(".agents")),
    ]
}

fn gemini(home: &Home, program: &Program) -> Vec<Work> {
    let dir = home.home.join(".gemini");
    let hook =
        |event, verb| Hook { event, matcher: None, verb, command: program.hook(verb), timeout: HOOK_SECONDS * 1000 };
    let hooks = vec![hook("SessionStart", "session-start"), hook("AfterAgent", "stop")];
    let entry = Edit::Entry { keys: &["mcpServers", NAME], value: program.entry() };
    vec![open(dir.join("settings.json"), vec![entry, Edit::Hooks(hooks)]), skill(&dir)]
}

fn cursor(home: &Home, program: &Program) -> Vec<Work> {
    let dir = home.home.join(".cursor");
    let entry = Edit::Entry { keys: &["mcpServers", NAME], value: program.entry() };
    vec![open(dir.join("mcp.json"), vec![entry]), skill(&dir)]
}

fn vscode(home: &Home, program: &Program) -> Vec<Work> {
    let entry = Edit::Entry { keys: &["servers", NAME], value: program.stdio() };
    vec![open(home.vscode_dir().join("mcp.json"), vec![entry])]
}

fn opencode(home: &Home, program: &Program) -> Vec<Work> {
    let dir = home.config.join("opencode");
    let value = json!({"type": "local", "command": [program.0, "mcp"], "enabled": true, "timeout": 60_000});
    let commented = dir.join("opencode.jsonc");
    let file = if commented.exists() { commented } else { dir.join("opencode.json") };
    vec![open(file, vec![Edit::Entry { keys: &["mcp", NAME], value }]), skill(&dir)]
}

fn windsurf(home: &Home, program: &Program) -> Vec<Work> {
    let entry = Edit::Entry { keys: &["mcpServers", NAME], value: program.entry() };
    vec![open(home.home.join(".codeium/windsurf/mcp_config.json"), vec![entry])]
}

fn zed(home: &Home, program: &Program) -> Vec<Work> {
    let value = json!({"source": "custom", "command": program.0, "args": ["mcp"]});
    let entry = Edit::Entry { keys: &["context_servers", NAME], value };
    vec![open(home.config.join("zed/settings.json"), vec![entry])]
}

fn open(path: PathBuf, edits: Vec<Edit>) -> Work {
    Work { path, edits, mode: 0o644 }
}

/// For files that hold secrets of the client.
fn private(path: PathBuf, edits: Vec<Edit>) -> Work {
    Work { path, edits, mode: 0o600 }
}

fn skill(dir: &Path) -> Work {
    open(dir.join(SKILL_PLACE), vec![Edit::Whole(SKILL)])
}
