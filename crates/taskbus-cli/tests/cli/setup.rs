//! `setup`, from outside, for every client: real files in a home of its own.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::{Place, Ran, program, run};

/// A client: its name, the file of its servers, and what such a file may hold already.
struct Case {
    name: &'static str,
    file: &'static str,
    before: &'static str,
}

const CASES: [Case; 8] = [
    Case {
        name: "claude-code",
        file: ".claude.json",
        before: "{\n  \"numStartups\": 7,\n  \"mcpServers\": {\n    \"other\": {\n      \"command\": \"x\"\n    }\n  },\n  \"zeta\": null,\n  \"alpha\": 1.50\n}",
    },
    Case {
        name: "codex",
        file: ".codex/config.toml",
        before: "# my settings\nmodel = \"m\"   # the one\n\n[mcp_servers.other]\ncommand = 'x'\n",
    },
    Case {
        name: "gemini",
        file: ".gemini/settings.json",
        before: "{\n    // mine\n    \"hooks\": {\"AfterAgent\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}]},\n    \"theme\": \"x\",\n}\n",
    },
    Case { name: "cursor", file: ".cursor/mcp.json", before: "{\"mcpServers\":{}}" },
    Case {
        name: "vscode",
        file: ".config/Code/User/mcp.json",
        before: "{\n\t// servers of mine\n\t\"servers\": {\n\t\t\"other\": { \"command\": \"x\" }, // last\n\t},\n\t\"inputs\": []\n}\n",
    },
    Case {
        name: "opencode",
        file: ".config/opencode/opencode.jsonc",
        before: "{\r\n  \"$schema\": \"https://opencode.ai/config.json\", /* the schema */\r\n  \"mcp\": {\r\n    \"other\": {}\r\n  }\r\n}\r\n",
    },
    Case { name: "windsurf", file: ".codeium/windsurf/mcp_config.json", before: "" },
    Case {
        name: "zed",
        file: ".config/zed/settings.json",
        before: "// Zed settings\n//\n// see the documentation\n{\n  \"ui_font_size\": 16,\n  \"theme\": {\n    \"mode\": \"system\", // or dark\n  },\n}\n",
    },
];

/// Every file below a directory, and what is in it.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.append(&mut files(&path));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            found.insert(path, bytes);
        }
    }
    found
}

struct Trial {
    place: Place,
}

impl Trial {
    fn new() -> Self {
        Self { place: Place::new() }
    }

    fn home(&self, name: &str) -> PathBuf {
        self.place.path("home").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.home(name).parent().unwrap()).unwrap();
        std::fs::write(self.home(name), text).unwrap();
    }

    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        files(&self.place.path("home"))
    }

    fn run(&self, args: &[&str]) -> Ran {
        run(&mut self.place.bare(args))
    }

    /// What a run with `--json` did to each file.
    #[track_caller]
    fn actions(&self, args: &[&str]) -> Vec<String> {
        let mut all = vec!["--json", "setup"];
        all.extend(args);
        let ran = self.run(&all);
        assert_eq!(ran.code, 0, "{ran:?}");
        let report = ran.value();
        let files =
            report["clients"].as_array().unwrap().iter().flat_map(|client| client["files"].as_array().unwrap().clone());
        files.map(|file| file["action"].as_str().unwrap().to_owned()).collect()
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.home(name)).unwrap()
    }
}

#[test]
fn a_client_without_a_configuration_gets_one_and_loses_it_again() {
    for case in &CASES {
        let trial = Trial::new();
        let actions = trial.actions(&[case.name]);
        assert!(actions.iter().all(|action| action == "created"), "{}: {actions:?}", case.name);
        let made = trial.files();
        assert!(!made.is_empty());
        let again = trial.actions(&[case.name]);
        assert!(again.iter().all(|action| action == "unchanged"), "{}: {again:?}", case.name);
        assert_eq!(trial.files(), made, "{}", case.name);
        trial.actions(&[case.name, "--undo"]);
        assert_eq!(std::fs::read_dir(trial.home("")).unwrap().count(), 0, "{}: nothing is left", case.name);
    }
}

#[test]
fn what_was_there_stays_and_comes_back_byte_for_byte() {
    for case in &CASES {
        let trial = Trial::new();
        trial.write(case.file, case.before);
        let before = trial.files();
        let mode = std::fs::Permissions::from_mode(0o640);
        std::fs::set_permissions(trial.home(case.file), mode).unwrap();
        assert!(trial.actions(&[case.name]).contains(&"changed".to_owned()), "{}", case.name);
        let now = trial.text(case.file);
        assert!(now.contains(program().to_str().unwrap()), "{}: {now}", case.name);
        for line in case.before.lines().filter(|line| line.contains("//") || line.contains('#')) {
            assert!(now.contains(line.trim_end()), "{}: {line} is gone from {now}", case.name);
        }
        let backup = PathBuf::from(format!("{}.bak", trial.home(case.file).display()));
        assert_eq!(std::fs::read_to_string(&backup).unwrap(), case.before, "{}", case.name);
        for path in [&trial.home(case.file), &backup] {
            assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o640, "{}", path.display());
        }
        let made = trial.files();
        assert!(trial.actions(&[case.name]).iter().all(|action| action == "unchanged"), "{}", case.name);
        assert_eq!(trial.files(), made, "{}", case.name);
        assert!(trial.actions(&[case.name, "--undo"]).contains(&"restored".to_owned()), "{}", case.name);
        assert_eq!(trial.files(), before, "{}", case.name);
        assert!(trial.actions(&[case.name, "--undo"]).iter().all(|action| action == "unchanged"), "{}", case.name);
    }
}

#[test]
fn undo_takes_out_ours_alone_when_the_file_has_changed_since() {
    for case in CASES.iter().filter(|case| case.before.len() > 20) {
        let trial = Trial::new();
        trial.write(case.file, case.before);
        trial.actions(&[case.name]);
        let changed = std::fs::read_to_string(trial.home(case.file)).unwrap();
        let mark = if case.file.ends_with(".toml") { "# later\n" } else { "\n// later\n" };
        trial.write(case.file, &format!("{changed}{mark}"));
        assert!(trial.actions(&[case.name, "--undo"]).contains(&"changed".to_owned()), "{}", case.name);
        let left = std::fs::read_to_string(trial.home(case.file)).unwrap();
        assert!(left.ends_with(mark) && !left.contains("taskbus"), "{}: {left}", case.name);
        assert_eq!(left, format!("{}{mark}", case.before), "{}", case.name);
    }
}

#[test]
fn a_dry_run_says_everything_and_writes_nothing() {
    for case in &CASES {
        let trial = Trial::new();
        trial.write(case.file, case.before);
        let before = trial.files();
        let ran = trial.run(&["setup", case.name, "--dry-run"]);
        assert!(ran.code == 0 && ran.out.contains("would be changed") && ran.out.contains("+ "), "{ran:?}");
        assert_eq!(trial.files(), before, "{}", case.name);
        trial.actions(&[case.name]);
        let made = trial.files();
        let undone = trial.run(&["setup", case.name, "--dry-run", "--undo"]);
        assert!(undone.out.contains("would be restored"), "{undone:?}");
        assert_eq!(trial.files(), made, "{}", case.name);
    }
}

#[test]
fn a_malformed_file_is_refused_and_left_alone() {
    for case in &CASES {
        for broken in ["{\"a\": ", "[[[", "= 5", "\u{0}"] {
            let trial = Trial::new();
            trial.write(case.file, broken);
            let before = trial.files();
            for args in [vec!["setup", case.name], vec!["setup", case.name, "--undo"]] {
                let ran = trial.run(&args);
                assert_eq!(ran.code, 2, "{}: {ran:?}", case.name);
                assert!(ran.err.contains(case.file) && ran.err.contains("Nothing was changed"), "{ran:?}");
                assert_eq!(trial.files(), before, "{}", case.name);
            }
            let told = trial.run(&["setup", case.name]).err;
            assert!(told.contains("by hand") && told.contains("\"mcp\""), "{told}");
        }
        let trial = Trial::new();
        std::fs::create_dir_all(trial.home(case.file).parent().unwrap()).unwrap();
        std::fs::write(trial.home(case.file), b"\xff\xfe").unwrap();
        assert!(trial.run(&["setup", case.name]).err.contains("no text"));
    }
}

#[test]
fn something_else_where_ours_goes_is_refused() {
    let trial = Trial::new();
    trial.write(".claude.json", "{\"mcpServers\": []}");
    let before = trial.files();
    let ran = trial.run(&["setup", "claude-code"]);
    assert!(ran.code == 2 && ran.err.contains("mcpServers in it is not what"), "{ran:?}");
    assert_eq!(trial.files(), before, "not even the other files of the client were written");
}

#[test]
fn claude_code_gets_its_hooks_beside_those_of_others() {
    let trial = Trial::new();
    let mine = json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}, "model": "m"});
    trial.write(".claude/settings.json", &format!("{mine:#}\n"));
    trial.actions(&["claude-code"]);
    let settings: Value = serde_json::from_slice(&std::fs::read(trial.home(".claude/settings.json")).unwrap()).unwrap();
    let events: Vec<&String> = settings["hooks"].as_object().unwrap().keys().collect();
    assert_eq!(events, ["Stop", "SessionStart", "SubagentStart", "PreToolUse", "TaskCreated", "TaskCompleted"]);
    assert_eq!(settings["hooks"]["Stop"].as_array().unwrap().len(), 2);
    assert_eq!(settings["hooks"]["PreToolUse"][0]["matcher"], "mcp__taskbus__.*");
    let command = settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"].as_str().unwrap();
    assert_eq!(command, format!("{} hook pre-tool-use", program().display()));
    assert_eq!(settings["model"], "m");
}

#[test]
fn codex_gets_what_it_needs_to_call_tools_unasked() {
    let trial = Trial::new();
    trial.actions(&["codex"]);
    let config: toml::Table = trial.text(".codex/config.toml").parse().unwrap();
    let entry = serde_json::to_value(&config["mcp_servers"]["taskbus"]).unwrap();
    assert_eq!(entry["default_tools_approval_mode"], "approve");
    assert!(entry["tool_timeout_sec"].as_i64().unwrap() > 60);
    assert!(entry["env_vars"].as_array().unwrap().contains(&json!("TASKBUS_STORE")));
    assert!(trial.home(".agents/skills/using-taskbus/SKILL.md").is_file());
    let hooks: Value = serde_json::from_slice(&std::fs::read(trial.home(".codex/hooks.json")).unwrap()).unwrap();
    assert_eq!(hooks["hooks"]["SessionStart"][0]["matcher"], "startup|resume|clear");
}

#[test]
fn directories_of_the_environment_are_followed() {
    let trial = Trial::new();
    let set = |args: &[&str]| {
        let mut command = trial.place.bare(args);
        command.env("CLAUDE_CONFIG_DIR", trial.home("c")).env("CODEX_HOME", trial.home("x"));
        run(command.env("XDG_CONFIG_HOME", trial.home("cfg")))
    };
    for client in ["claude-code", "codex", "zed"] {
        assert_eq!(set(&["setup", client]).code, 0);
    }
    for file in [
        "c/.claude.json",
        "c/settings.json",
        "c/skills/using-taskbus/SKILL.md",
        "x/config.toml",
        "x/hooks.json",
        "cfg/zed/settings.json",
    ] {
        assert!(trial.home(file).is_file(), "{file}");
    }
    assert!(!trial.home(".claude").exists() && !trial.home(".claude.json").exists() && !trial.home(".codex").exists());
}

#[test]
fn a_link_is_written_through_and_said() {
    let trial = Trial::new();
    std::fs::create_dir(trial.place.path("dotfiles")).unwrap();
    std::fs::write(trial.place.path("dotfiles/mcp.json"), "{}\n").unwrap();
    std::fs::create_dir(trial.home(".cursor")).unwrap();
    std::os::unix::fs::symlink(trial.place.path("dotfiles/mcp.json"), trial.home(".cursor/mcp.json")).unwrap();
    let ran = trial.run(&["setup", "cursor"]);
    assert!(ran.code == 0 && ran.out.contains("a link leads to") && ran.out.contains("dotfiles/mcp.json"), "{ran:?}");
    assert!(std::fs::symlink_metadata(trial.home(".cursor/mcp.json")).unwrap().is_symlink());
    assert!(std::fs::read_to_string(trial.place.path("dotfiles/mcp.json")).unwrap().contains("taskbus"));
    trial.run(&["setup", "cursor", "--undo"]);
    assert_eq!(std::fs::read_to_string(trial.place.path("dotfiles/mcp.json")).unwrap(), "{}\n");
    assert!(std::fs::symlink_metadata(trial.home(".cursor/mcp.json")).unwrap().is_symlink());
}

#[test]
fn without_a_client_each_one_is_listed() {
    let trial = Trial::new();
    let row = |trial: &Trial, name: &str| {
        let report = trial.run(&["--json", "setup"]).value();
        let rows = report["clients"].as_array().unwrap().clone();
        let row = rows.into_iter().find(|row| row["client"] == name).unwrap();
        (row["found"].clone(), row["set_up"].clone())
    };
    assert_eq!(row(&trial, "cursor"), (json!(false), json!("no")));
    assert_eq!(trial.run(&["setup", "--all"]).code, 2, "nothing is here");
    std::fs::create_dir(trial.home(".cursor")).unwrap();
    assert_eq!(row(&trial, "cursor"), (json!(true), json!("no")));
    assert_eq!(trial.actions(&["--all"]), ["created", "created"]);
    assert_eq!(row(&trial, "cursor"), (json!(true), json!("yes")));
    std::fs::remove_file(trial.home(".cursor/skills/using-taskbus/SKILL.md")).unwrap();
    assert_eq!(row(&trial, "cursor"), (json!(true), json!("in part")));
    assert!(trial.run(&["doctor"]).out.contains("set up in part: cursor"));
    trial.write(".cursor/mcp.json", "{");
    assert_eq!(row(&trial, "cursor").1, "a file of it cannot be read");
    let unknown = trial.run(&["setup", "emacs"]);
    assert!(unknown.code == 2 && unknown.err.contains("claude-code"), "{unknown:?}");
}

#[test]
fn undo_without_a_client_undoes_all() {
    let trial = Trial::new();
    for case in &CASES {
        trial.write(case.file, case.before);
    }
    let before = trial.files();
    for case in &CASES {
        trial.actions(&[case.name]);
    }
    trial.actions(&["--undo"]);
    assert_eq!(trial.files(), before);
    let again = trial.run(&["setup", "--undo"]);
    assert_eq!(again.out, "there is nothing to do\n");
}

#[test]
fn a_skill_that_somebody_changed_is_kept() {
    let trial = Trial::new();
    trial.actions(&["cursor"]);
    trial.write(".cursor/skills/using-taskbus/SKILL.md", "mine\n");
    trial.actions(&["cursor", "--undo"]);
    assert_eq!(std::fs::read_to_string(trial.home(".cursor/skills/using-taskbus/SKILL.md")).unwrap(), "mine\n");
    trial.actions(&["cursor"]);
    assert_eq!(std::fs::read_to_string(trial.home(".cursor/skills/using-taskbus/SKILL.md.bak")).unwrap(), "mine\n");
    trial.actions(&["cursor", "--undo"]);
    assert_eq!(std::fs::read_to_string(trial.home(".cursor/skills/using-taskbus/SKILL.md")).unwrap(), "mine\n");
}
