//! Files and environments, and the values or the errors that come of them.

use std::ffi::OsString;
use std::path::Path;

use taskbus::engine::ApiKey;
use taskbus_core::limits;
use tempfile::TempDir;

use super::kind::Kind;
use super::load::{Around, load};
use super::table::KEYS;
use super::{Config, ConfigError, Origin};

struct Trial {
    dir: TempDir,
    variables: Vec<(String, String)>,
}

impl Trial {
    fn new(file: &str) -> Self {
        let trial = Self { dir: tempfile::tempdir().unwrap(), variables: Vec::new() };
        std::fs::create_dir_all(trial.path("config/taskbus")).unwrap();
        std::fs::write(trial.path("config/taskbus/config.toml"), file).unwrap();
        trial
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    fn load(&self) -> Result<Config, ConfigError> {
        let variables = self.variables.clone();
        load(&Around {
            given: None,
            variable: Box::new(move |name| {
                variables.iter().find(|(known, _)| known == name).map(|(_, value)| OsString::from(value))
            }),
            cwd: Some(self.path("cwd")),
            home: Some(self.path("home")),
            bases: Some((self.path("config"), self.path("data"))),
        })
    }
}

#[track_caller]
fn refused(file: &str, words: &[&str]) {
    let error = Trial::new(file).load().map(|_| ()).unwrap_err().to_string();
    for word in words {
        assert!(error.contains(word), "{file}: {error}");
    }
}

#[track_caller]
fn accepted(file: &str) -> Config {
    Trial::new(file).load().unwrap_or_else(|error| panic!("{file}: {error}"))
}

#[test]
fn a_missing_file_means_defaults() {
    let trial = Trial::new("");
    std::fs::remove_file(trial.path("config/taskbus/config.toml")).unwrap();
    let config = trial.load().unwrap();
    assert!(!config.found && config.warnings.is_empty());
    assert!(config.entries.iter().all(|entry| entry.origin == Origin::Default));
    assert_eq!(config.data_directory(), Some(trial.path("data/taskbus")));
    assert_eq!(config.store(), None);
    assert!(accepted("# nothing yet\n").found);
}

#[test]
fn the_defaults_of_the_engine_and_of_the_table_are_the_same() {
    let (config, usual) = (accepted(""), taskbus::engine::Limits::default());
    assert_eq!(format!("{:?}", config.limits()), format!("{usual:?}"));
    for (key, limit) in [
        ("cursor_idle_hours", limits::CURSOR_IDLE_HOURS),
        ("message_retention_hours", limits::MESSAGE_RETENTION_HOURS),
        ("tombstone_min_hours", limits::TOMBSTONE_MIN_HOURS),
        ("memory_expiry_hours", limits::MEMORY_EXPIRY_HOURS),
        ("task_expiry_hours", limits::TASK_EXPIRY_HOURS),
        ("sqlite_budget_mib", i64::try_from(limits::STORE_BUDGET_MIB).unwrap()),
        ("cleanup_free_percent", i64::try_from(limits::CLEANUP_FREE_PERCENT).unwrap()),
        ("cleanup_interval_seconds", i64::try_from(limits::CLEANUP_INTERVAL_SECONDS).unwrap()),
        ("receive_default_count", i64::try_from(limits::RECEIVE_COUNT_DEFAULT).unwrap()),
        ("receive_max_count", i64::try_from(limits::RECEIVE_COUNT_MAX).unwrap()),
        ("receive_max_wait_seconds", i64::try_from(limits::WAIT_SECONDS_MAX).unwrap()),
        ("result_default_kib", i64::try_from(limits::RESULT_BYTES_DEFAULT / 1024).unwrap()),
        ("max_message_kib", i64::try_from(limits::MESSAGE_KIB_MAX).unwrap()),
    ] {
        assert_eq!(config.whole(key), limit, "{key}");
    }
    let options = taskbus::store::sqlite::SqliteOptions::default();
    assert_eq!((config.sqlite().durability, config.sqlite().journal), (options.durability, options.journal));
}

#[test]
fn the_engine_is_told_of_every_setting_that_is_its_own() {
    let limits = accepted(
        "receive_default_count = 7\ninspection_command = [\"check\", \"-q\"]\ninspection_timeout_seconds = 0.5\n\
         embedding_endpoint = \"http://localhost:1/v1/embeddings\"\nembedding_model = \"small\"\n\
         embedding_api_key_file = \"key\"\nembedding_query_timeout_seconds = 2\ndiscovery_enabled = false\n",
    )
    .limits();
    assert_eq!((limits.receive_default_count, limits.discovery_enabled), (7, false));
    let inspection = limits.inspection.unwrap();
    assert_eq!((inspection.command, inspection.timeout.as_millis()), (vec!["check".into(), "-q".into()], 500));
    let embedding = limits.embedding.unwrap();
    assert_eq!((embedding.model.as_str(), embedding.query_timeout.as_secs()), ("small", 2));
    let ApiKey::File(path) = embedding.api_key else { panic!("{:?}", embedding.api_key) };
    assert!(path.ends_with("config/taskbus/key"), "{path:?}");
    let named = accepted(
        "embedding_endpoint = \"http://h/\"\nembedding_model = \"m\"\n\
         embedding_api_key_env = \"KEY\"\n",
    );
    assert_eq!(named.limits().embedding.unwrap().api_key, ApiKey::Variable("KEY".to_owned()));
}

#[test]
fn every_number_is_taken_at_its_limits_and_refused_beyond() {
    for key in &KEYS {
        let Kind::Whole(min, max) = key.kind else { continue };
        let others =
            if key.name == "receive_max_count" { "receive_default_count = 1\n" } else { "receive_max_count = 10000\n" };
        let file = |value: i128| format!("{others}{} = {value}\n", key.name);
        accepted(&file(min.into()));
        accepted(&file(max.into()));
        let range = if max == i64::MAX { format!("from {min}") } else { format!("from {min} to {max}") };
        let mut beyond = vec![i128::from(min) - 1];
        beyond.extend((max != i64::MAX).then_some(i128::from(max) + 1));
        for value in beyond {
            refused(&file(value), &["config.toml", key.name, &value.to_string(), &range]);
        }
    }
    for (key, min, max) in [("inspection_timeout_seconds", 0.1, 60.0), ("embedding_query_timeout_seconds", 0.1, 120.0)]
    {
        accepted(&format!("{key} = {min}"));
        accepted(&format!("{key} = {max:.0}"));
        refused(&format!("{key} = 0.09"), &[key, "0.09", "from 0.1 to"]);
        refused(&format!("{key} = {}.5", max), &[key]);
        refused(&format!("{key} = nan"), &[key]);
    }
}

#[test]
fn a_value_of_the_wrong_type_is_named() {
    for key in &KEYS {
        let wrong = if matches!(key.kind, Kind::Flag) { "7" } else { "true" };
        let file = format!("{} = {wrong}", key.name);
        if key.is_looks {
            let config = accepted(&file);
            assert!(config.warnings[0].contains(key.name), "{:?}", config.warnings);
        } else {
            refused(&file, &["config.toml", key.name, wrong, "must be", &key.kind.words()]);
        }
    }
    refused("receive_max_count = \"100\"", &["receive_max_count", "\"100\"", "whole number"]);
    refused("receive_max_count = 1.0", &["receive_max_count", "1.0"]);
    refused("log_level = \"trace\"", &["debug, info, warn, error"]);
    refused("data_directory = \"\"", &["data_directory", "not empty"]);
    refused("store = \"sqlite:x.db\"", &["store", "path from /"]);
}

#[test]
fn a_file_that_is_none_is_explained() {
    refused("receive_max = 5", &["config.toml", "no key receive_max", "taskbus config"]);
    refused("log_level = \"info\"\nlog_level = \"warn\"", &["config.toml", "line 2", "duplicate"]);
    refused("{\"log_level\": \"info\"}", &["config.toml", "line 1"]);
    refused("[store]\nurl = \"memory:\"", &["store", "must be"]);
    let trial = Trial::new("");
    std::fs::remove_file(trial.path("config/taskbus/config.toml")).unwrap();
    std::fs::create_dir(trial.path("config/taskbus/config.toml")).unwrap();
    assert!(matches!(trial.load(), Err(ConfigError::Unreadable { .. })));
}

#[test]
fn values_that_do_not_go_together_are_refused() {
    refused("receive_max_count = 50", &["receive_default_count is 100", "which is 50"]);
    accepted("receive_max_count = 50\nreceive_default_count = 50");
    refused("embedding_endpoint = \"http://localhost:8080/v1\"", &["embedding_model"]);
    accepted("embedding_endpoint = \"http://localhost:8080/v1\"\nembedding_model = \"m\"");
    refused("embedding_api_key_file = \"k\"\nembedding_api_key_env = \"K\"", &["keep one"]);
    for address in ["localhost:8080", "http://", "http:///v1", "ftp://a", "http://:80", "http://a b"] {
        refused(&format!("embedding_endpoint = {address:?}\nembedding_model = \"m\""), &[address, "http://host"]);
    }
}

#[test]
fn a_command_is_bounded() {
    let list = |words: usize| format!("inspection_command = [{}]", vec!["\"w\""; words].join(","));
    accepted(&list(64));
    refused(&list(65), &["inspection_command", "at most 64"]);
    let long = |bytes: usize| format!("inspection_command = [\"{}\"]", "w".repeat(bytes));
    accepted(&long(32 * 1024 - 4));
    refused(&long(32 * 1024 - 3), &["32 KiB"]);
    refused("inspection_command = [\"check\", 5]", &["a list of texts"]);
    refused("inspection_command = \"check it\"", &["a list of texts"]);
}

#[test]
fn the_environment_goes_before_the_file() {
    let trial = Trial::new("log_level = \"warn\"\nreceive_max_count = 500\n")
        .with("TASKBUS_RECEIVE_MAX_COUNT", "600")
        .with("TASKBUS_DISCOVERY_ENABLED", "0")
        .with("TASKBUS_INSPECTION_COMMAND", "[\"check\", \"-q\"]")
        .with("TASKBUS_LOG_LEVEL", "");
    let config = trial.load().unwrap();
    assert_eq!((config.whole("receive_max_count"), config.log_level()), (600, "warn"));
    assert_eq!(config.entry("receive_max_count").origin, Origin::Variable("TASKBUS_RECEIVE_MAX_COUNT".to_owned()));
    assert_eq!(config.entry("discovery_enabled").value.as_bool(), Some(false));
    assert_eq!(config.entry("inspection_command").value.as_array().unwrap().len(), 2);
    for (name, value) in [("TASKBUS_RECEIVE_MAX_COUNT", "many"), ("TASKBUS_DISCOVERY_ENABLED", "yes")] {
        let error = Trial::new("").with(name, value).load().map(|_| ()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{name} is \"{value}\"")), "{error}");
    }
    let hidden = Trial::new("receive_max_count = 0").with("TASKBUS_RECEIVE_MAX_COUNT", "600");
    assert!(hidden.load().is_err(), "a wrong file is wrong even where it has no say");
}

#[test]
fn paths_start_from_where_they_were_written() {
    let directory = |trial: &Trial| trial.load().unwrap().data_directory().unwrap();
    let trial = Trial::new("data_directory = \"~/bus\"");
    assert_eq!(directory(&trial), trial.path("home/bus"));
    let trial = Trial::new("data_directory = \"bus\"");
    assert_eq!(directory(&trial), trial.path("config/taskbus/bus"));
    let trial = Trial::new("data_directory = \"/srv/bus\"");
    assert_eq!(directory(&trial), Path::new("/srv/bus"));
    let trial = trial.with("TASKBUS_DATA_DIRECTORY", "there");
    assert_eq!(directory(&trial), trial.path("cwd/there"));
    let trial = trial.with("TASKBUS_DATA_DIR", "~/here");
    assert_eq!(directory(&trial), trial.path("home/here"));
}

#[test]
fn each_value_that_is_asked_for_has_a_key() {
    let config = accepted("store = \"memory:\"\nsqlite_journal = \"rollback\"\nsqlite_sync = \"relaxed\"");
    assert_eq!(config.store(), Some("memory:"));
    assert_eq!(config.sqlite().journal, taskbus::store::sqlite::Journal::Rollback);
    assert_eq!(config.sqlite().durability, taskbus::store::sqlite::Durability::Relaxed);
    assert_eq!(config.log_level(), "info");
}
