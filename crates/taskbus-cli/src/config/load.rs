//! Where values come from: which file, which variables, and what is wrong with them.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;
use toml::{Table, Value};

use super::error::ConfigError;
use super::kind::{parsed, text_of};
use super::table::{KEYS, Key};
use super::{Config, Entry, Origin};

/// The directory of the data, under a name that is shorter to type.
const DATA_DIR: &str = "TASKBUS_DATA_DIR";

/// The value of a variable of the environment.
pub(super) type Lookup = Box<dyn Fn(&str) -> Option<OsString>>;

/// What a configuration depends on.
pub(super) struct Around {
    /// `--config` or `TASKBUS_CONFIG`.
    pub(super) given: Option<PathBuf>,
    /// Reads a variable of the environment.
    pub(super) variable: Lookup,
    /// The current directory.
    pub(super) cwd: Option<PathBuf>,
    /// The home directory.
    pub(super) home: Option<PathBuf>,
    /// Where the user's configuration and data are kept.
    pub(super) bases: Option<(PathBuf, PathBuf)>,
}

impl Around {
    /// This process.
    pub(super) fn here(given: Option<PathBuf>) -> Self {
        let xdg = etcetera::base_strategy::Xdg::new().ok();
        let bases = xdg.map(|xdg| (xdg.config_dir(), xdg.data_dir()));
        let whole = |dir: &PathBuf| dir.is_absolute() && dir.parent().is_some();
        Self {
            given: given.filter(|file| !file.as_os_str().is_empty()),
            variable: Box::new(|name| std::env::var_os(name)),
            cwd: std::env::current_dir().ok(),
            home: etcetera::home_dir().ok(),
            bases: bases.filter(|(config, data)| whole(config) && whole(data)),
        }
    }

    fn file(&self) -> Option<PathBuf> {
        match (&self.given, &self.bases) {
            (Some(given), _) => Some(self.cwd.as_deref().unwrap_or(Path::new("")).join(given)),
            (None, Some((config, _))) => Some(config.join("taskbus").join("config.toml")),
            (None, None) => None,
        }
    }

    /// An empty variable is none.
    fn text(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.is_empty()).map(|value| value.to_string_lossy().into_owned())
    }
}

/// The values in force.
pub(super) fn load(around: &Around) -> Result<Config, ConfigError> {
    let file = around.file();
    let table = file.as_deref().map(read).transpose()?.flatten();
    let found = table.is_some();
    let mut config = Config {
        found,
        cwd: around.cwd.clone(),
        home: around.home.clone(),
        data_home: around.bases.as_ref().map(|(_, data)| data.clone()),
        entries: Vec::with_capacity(KEYS.len()),
        warnings: Vec::new(),
        file,
    };
    config.fill(&table.unwrap_or_default(), around)?;
    config.check_together()?;
    Ok(config)
}

/// The file's keys; none when there is no such file.
fn read(file: &Path) -> Result<Option<Table>, ConfigError> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(ConfigError::unreadable(file.to_owned(), &error)),
    };
    let table = text.strip_prefix('\u{feff}').unwrap_or(&text).parse::<Table>();
    let table =
        table.map_err(|error| ConfigError::Malformed { file: file.to_owned(), error: in_one_line(&text, &error) })?;
    match table.keys().find(|key| KEYS.iter().all(|known| known.name != *key)) {
        Some(key) => Err(ConfigError::Unknown { file: file.to_owned(), key: key.clone() }),
        None => Ok(Some(table)),
    }
}

/// Where the error is, and what it is.
fn in_one_line(text: &str, error: &toml::de::Error) -> String {
    let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    let what = error.message().lines().collect::<Vec<_>>().join(", ");
    line.map_or(what.clone(), |line| format!("line {line}: {what}"))
}

impl Config {
    fn fill(&mut self, table: &Table, around: &Around) -> Result<(), ConfigError> {
        for key in &KEYS {
            // What the file says is checked even where it has no say.
            let written =
                table.get(key.name).map(|value| self.checked(key, value.clone(), Origin::File)).transpose()?;
            let said = self.said_by_variable(key, around)?.or(written.flatten());
            self.entries.push(said.unwrap_or_else(|| key.unset()));
        }
        Ok(())
    }

    fn said_by_variable(&mut self, key: &'static Key, around: &Around) -> Result<Option<Entry>, ConfigError> {
        let own = format!("TASKBUS_{}", key.name.to_uppercase());
        let short = (key.name == "data_directory").then(|| DATA_DIR.to_owned());
        let mut names = short.into_iter().chain([own]);
        let Some((name, text)) = names.find_map(|name| Some((name.clone(), around.text(&name)?))) else {
            return Ok(None);
        };
        self.checked(key, key.kind.read_variable(&text), Origin::Variable(name))
    }

    /// A value of the right kind; none for a wrong one that is only a matter of looks.
    fn checked(&mut self, key: &'static Key, value: Value, origin: Origin) -> Result<Option<Entry>, ConfigError> {
        if key.kind.takes(&value) {
            return Ok(Some(Entry { key, value, origin }));
        }
        let place = match &origin {
            Origin::Variable(name) => name.clone(),
            Origin::Default | Origin::File => format!("{}: {}", self.place(), key.name),
        };
        let error = ConfigError::Bad { place, value: value.to_string(), wanted: key.kind.words() };
        if !key.is_looks {
            return Err(error);
        }
        self.warnings.push(error.to_string());
        Ok(None)
    }

    fn place(&self) -> String {
        self.file.as_ref().map_or_else(|| "the configuration".to_owned(), |file| file.display().to_string())
    }

    fn check_together(&self) -> Result<(), ConfigError> {
        let wrong = |what: String| Err(ConfigError::Together { place: self.place(), what });
        let (usual, most) = (self.whole("receive_default_count"), self.whole("receive_max_count"));
        if usual > most {
            return wrong(format!(
                "receive_default_count is {usual}, more than receive_max_count, which is {most}; lower the first or raise the second"
            ));
        }
        let [endpoint, model] = ["embedding_endpoint", "embedding_model"].map(|name| self.text(name));
        if !endpoint.is_empty() && model.is_empty() {
            return wrong(format!("embedding_endpoint is {endpoint:?} without embedding_model; set that too"));
        }
        let keys = ["embedding_api_key_file", "embedding_api_key_env"].map(|name| self.text(name));
        if keys.iter().all(|key| !key.is_empty()) {
            return wrong("embedding_api_key_file and embedding_api_key_env are both set; keep one".to_owned());
        }
        Ok(())
    }
}

impl Key {
    /// The value of a key that nobody set.
    fn unset(&'static self) -> Entry {
        let value = parsed(self.default).expect("BUG: a default is a value");
        Entry { key: self, value, origin: Origin::Default }
    }
}

/// Whether a value means that nothing is set.
pub(super) fn is_nothing(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
        || value.as_table().is_some_and(Table::is_empty)
        || (value.is_str() && text_of(value).is_empty())
}
