//! What the server counts, in the text form that Prometheus reads.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use axum::http::StatusCode;

/// What it is at this moment.
pub(super) struct Now {
    /// Open connections.
    pub(super) connections: usize,
    /// Requests without a whole answer.
    pub(super) in_flight: usize,
    /// Sessions, and names that were registered without one.
    pub(super) sessions: usize,
}

/// Answers so far, by path and status. A path that nobody serves counts as `other`, so that callers cannot make more
/// of them.
#[derive(Default)]
pub(super) struct Metrics(Mutex<BTreeMap<(&'static str, u16), u64>>);

impl Metrics {
    /// One more answer.
    pub(super) fn answered(&self, path: &'static str, status: StatusCode) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry((path, status.as_u16())).or_default() += 1;
    }

    /// All of it.
    pub(super) fn text(&self, now: &Now) -> String {
        let mut text = String::new();
        let gauges = [
            ("taskbus_http_connections", "Open connections.", now.connections),
            ("taskbus_http_requests_in_flight", "Requests whose answer is not sent.", now.in_flight),
            ("taskbus_mcp_sessions", "Sessions, and names registered without one.", now.sessions),
        ];
        for (name, help, value) in gauges {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}");
        }
        let _ = writeln!(text, "# HELP {REQUESTS} Requests that were answered.\n# TYPE {REQUESTS} counter");
        for ((path, status), count) in &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = writeln!(text, "{REQUESTS}{{path=\"{path}\",status=\"{status}\"}} {count}");
        }
        text
    }
}

const REQUESTS: &str = "taskbus_http_requests_total";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_counts_where_it_belongs() {
        let metrics = Metrics::default();
        metrics.answered("/mcp", StatusCode::OK);
        metrics.answered("/mcp", StatusCode::OK);
        metrics.answered("other", StatusCode::NOT_FOUND);
        let text = metrics.text(&Now { connections: 3, in_flight: 2, sessions: 1 });
        for line in [
            "taskbus_http_connections 3",
            "taskbus_http_requests_in_flight 2",
            "taskbus_mcp_sessions 1",
            "# TYPE taskbus_http_requests_total counter",
            "taskbus_http_requests_total{path=\"/mcp\",status=\"200\"} 2",
            "taskbus_http_requests_total{path=\"other\",status=\"404\"} 1",
        ] {
            assert!(text.lines().any(|own| own == line), "{line} in {text}");
        }
    }
}
