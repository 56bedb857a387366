//! A hand that speaks MCP to a server process of its own, as an agent's host does.

use std::ffi::OsStr;
use std::path::Path;

use rustix::process::Pid;
use serde_json::{Value, json};
use taskbus_core::id::TaskId;
use taskbus_core::name::Identity;
use taskbus_core::task::Status;

use super::{Gone, Hand, LIST};
use crate::client::{CallError, Client};
use crate::torture::deed::Deed;
use crate::torture::record::Number;
use crate::torture::told::Told;

/// A server, and the name that it gave.
pub(in crate::torture) struct Server {
    client: Client,
    caller: Identity,
}

impl Server {
    /// Starts a server on a store and takes a name; `started` is told its process as soon as there is one.
    pub(in crate::torture) fn start(store: &Path, name: &str, started: &dyn Fn(Pid)) -> Result<Self, Gone> {
        let mut url = std::ffi::OsString::from("sqlite:");
        url.push(store);
        let mut client = Client::start(OsStr::new(&url), "taskbus-torture").map_err(gone)?;
        started(client.server());
        let answer = client.call("register", &json!({"name": name, "context": "the torture"})).map_err(gone)?;
        let caller = answer.get("as").and_then(Value::as_str).unwrap_or(name);
        let caller = Identity::new(caller).map_err(|error| Gone(error.to_string()))?;
        Ok(Self { client, caller })
    }
}

impl Hand for Server {
    fn caller(&self) -> &Identity {
        &self.caller
    }

    fn act(&mut self, number: Number, deed: &Deed, key: Option<&str>) -> Result<Told, Gone> {
        let (tool, mut arguments) = deed.call(&self.caller, &number.mark());
        arguments.insert("as".to_owned(), json!(self.caller));
        if deed.names_list() {
            arguments.insert("channel".to_owned(), json!(LIST));
        }
        if let Some(key) = key {
            arguments.insert("idempotency_key".to_owned(), json!(key));
        }
        match self.client.call(tool, &Value::Object(arguments)) {
            Ok(answer) => Told::read(deed, &answer).map_err(Gone),
            Err(CallError::Refused(facts)) => Ok(Told::refused(&facts)),
            Err(error @ CallError::Broken(_)) => Err(gone(error)),
        }
    }

    fn look(&mut self, status: Status, limit: usize) -> Result<Vec<(TaskId, Option<Identity>)>, Gone> {
        let arguments = json!({"channel": LIST, "status": status, "limit": limit, "as": self.caller});
        let answer = self.client.call("task_list", &arguments).map_err(gone)?;
        let rows = answer.get("tasks").and_then(Value::as_array).into_iter().flatten();
        let row = |row: &Value| {
            let id = serde_json::from_value(row.get("id")?.clone()).ok()?;
            let owner = row.get("owner").and_then(Value::as_str).and_then(|owner| Identity::new(owner).ok());
            Some((id, owner))
        };
        Ok(rows.filter_map(row).collect())
    }
}

fn gone(error: impl Into<CallError>) -> Gone {
    Gone(error.into().to_string())
}
