//! The inspection: a program of the operator's that is asked before each write. It reads one JSON object and answers
//! one; whatever else it does is no verdict, and then nothing is written. One at a time in each process.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use serde_json::{Value, json};
use taskbus_core::limits::INSPECTION_BYTES_MAX;
use taskbus_core::name::Identity;
use taskbus_core::refusal::{Inspection, Refusal};

use crate::engine::InspectionAt;

/// How long the ends of what a program wrote are waited for once it is gone.
const PIPES: Duration = Duration::from_secs(1);
/// Between two looks whether a program that said everything is gone.
const LOOK: Duration = Duration::from_millis(2);
/// Characters of a program's words that are passed on.
const WORDS_MAX: usize = 300;

/// Who asks the program.
pub(in crate::engine) struct Inspector {
    at: InspectionAt,
    turn: Mutex<()>,
}

#[derive(Deserialize)]
struct Verdict {
    allow: bool,
    #[serde(default)]
    reason: Option<String>,
}

/// What came out of one of a program's two outputs, cut behind the limit.
type Output = Receiver<io::Result<Vec<u8>>>;

impl Inspector {
    pub(in crate::engine) fn new(at: InspectionAt) -> Self {
        Self { at, turn: Mutex::new(()) }
    }

    /// Asks whether a write may be made.
    pub(in crate::engine) fn inspect(
        &self,
        operation: &str,
        sender: &Identity,
        payload: &Value,
    ) -> Result<(), Refusal> {
        let question = json!({"operation": operation, "sender": sender, "payload": payload}).to_string();
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let verdict = self.ask(question).map_err(|reason| {
            tracing::warn!(reason, operation, "the inspection gave no verdict");
            Refusal::Inspection(Inspection::Unavailable { reason })
        })?;
        if verdict.allow {
            return Ok(());
        }
        let reason = verdict.reason.as_deref().map(shortened).filter(|reason| !reason.is_empty());
        Err(Refusal::Inspection(Inspection::Rejected { reason: reason.unwrap_or_else(|| "it says no".to_owned()) }))
    }

    fn ask(&self, question: String) -> Result<Verdict, String> {
        let deadline = Instant::now() + self.at.timeout;
        let mut child = self.start()?;
        let (said, complaints) = (read(child.stdout.take()), read(child.stderr.take()));
        if let Some(mut input) = child.stdin.take() {
            // A program may decide without reading, or never read: it is not waited for.
            std::thread::spawn(move || input.write_all(question.as_bytes()));
        }
        let ended = said_and_gone(&mut child, &said, deadline);
        end(&mut child);
        let Some((said, status)) = ended else {
            return Err(format!(
                "it took longer than {} s (inspection_timeout_seconds)",
                self.at.timeout.as_secs_f64()
            ));
        };
        if !status.success() {
            let complaints = complaints.recv_timeout(PIPES).ok().and_then(Result::ok).unwrap_or_default();
            let words = shortened(&String::from_utf8_lossy(&complaints));
            return Err(format!("it ended with {status}{}{words}", if words.is_empty() { "" } else { ": " }));
        }
        verdict(&said.map_err(|error| format!("its output could not be read: {error}"))?)
    }

    fn start(&self) -> Result<Child, String> {
        let Some((program, arguments)) = self.at.command.split_first() else {
            return Err("inspection_command names no program".to_owned());
        };
        let mut command = Command::new(program);
        // A group of its own, so that it ends with all that it started.
        command.args(arguments).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map_err(|error| format!("inspection_command {program} cannot be started: {error}"))
    }
}

/// Reads an output to its end in a thread, so that nobody waits for a program that waits for somebody to read.
fn read(output: Option<impl Read + Send + 'static>) -> Output {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let limit = INSPECTION_BYTES_MAX as u64 + 1;
        let end = output.map_or(Ok(0), |output| output.take(limit).read_to_end(&mut bytes));
        // Nobody may be there any more to hear it.
        let _ = tell.send(end.map(|_| bytes));
    });
    told
}

/// What a program said, and how it ended; none when it did not in time.
fn said_and_gone(child: &mut Child, said: &Output, deadline: Instant) -> Option<(io::Result<Vec<u8>>, ExitStatus)> {
    let said = said.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()?;
    if said.as_ref().is_ok_and(|bytes| bytes.len() > INSPECTION_BYTES_MAX) {
        return Some((said, ExitStatus::default()));
    }
    while Instant::now() < deadline {
        if let Ok(Some(status)) = child.try_wait() {
            return Some((said, status));
        }
        std::thread::sleep(LOOK);
    }
    None
}

/// Ends a program and what it started, if any of it is left.
fn end(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // There may be nobody left.
        let _ = kill_process_group(group, Signal::KILL);
    }
    if let Err(error) = child.wait() {
        tracing::warn!(%error, "an inspection was not waited for");
    }
}

fn verdict(said: &[u8]) -> Result<Verdict, String> {
    if said.len() > INSPECTION_BYTES_MAX {
        return Err(format!("it wrote more than {} KiB", INSPECTION_BYTES_MAX / 1024));
    }
    serde_json::from_slice(said).map_err(|error| {
        let words = shortened(&String::from_utf8_lossy(said));
        format!("it wrote {words:?}, which is not {{\"allow\": …, \"reason\": …}}: {error}")
    })
}

fn shortened(text: &str) -> String {
    let mut words: String = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).take(WORDS_MAX).collect();
    if text.trim().chars().nth(WORDS_MAX).is_some() {
        words.push('…');
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inspector(script: &str, millis: u64) -> Inspector {
        let command = ["sh", "-c", script].map(str::to_owned).to_vec();
        Inspector::new(InspectionAt { command, timeout: Duration::from_millis(millis) })
    }

    fn ask(script: &str, payload: &Value) -> Result<(), Refusal> {
        inspector(script, 20_000).inspect("send", &Identity::new("Zed").unwrap(), payload)
    }

    fn unavailable(result: Result<(), Refusal>) -> String {
        match result {
            Err(Refusal::Inspection(Inspection::Unavailable { reason })) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_program_says_yes_or_no_and_why() {
        assert_eq!(ask(r#"cat >/dev/null; echo '{"allow": true}'"#, &json!({})), Ok(()));
        let no = ask(r#"printf '%s' '{"allow": false, "reason": "  no secrets\n"}'"#, &json!({}));
        assert_eq!(no, Err(Refusal::Inspection(Inspection::Rejected { reason: "no secrets".to_owned() })));
        let silent = ask(r#"echo '{"allow": false}'"#, &json!({}));
        assert!(matches!(silent, Err(Refusal::Inspection(Inspection::Rejected { .. }))), "{silent:?}");
    }

    #[test]
    fn a_program_is_told_what_who_and_how() {
        let script = r#"grep -q '^{"operation":"send","sender":"Zed","payload":{"content":"hi"}}$' \
            && echo '{"allow":true}' || echo '{"allow":false}'"#;
        assert_eq!(ask(script, &json!({"content": "hi"})), Ok(()));
        assert!(ask(script, &json!({"content": "ho"})).is_err());
    }

    #[test]
    fn what_is_no_verdict_refuses_and_may_be_tried_again() {
        for (script, words) in [
            ("echo broken >&2; exit 3", "exit status: 3: broken"),
            ("kill -9 $$", "signal: 9"),
            ("echo yes", "which is not"),
            ("true", "which is not"),
            ("echo '{\"allow\": \"yes\"}'", "which is not"),
            ("echo '{\"allow\": true}' '{}'", "which is not"),
        ] {
            let result = ask(script, &json!({}));
            assert!(result.as_ref().is_err_and(Refusal::retryable), "{script}");
            let reason = unavailable(result);
            assert!(reason.contains(words), "{script}: {reason}");
        }
        let nobody = Inspector::new(InspectionAt { command: vec!["/no/such".to_owned()], timeout: PIPES });
        let reason = unavailable(nobody.inspect("send", &Identity::new("Zed").unwrap(), &json!({})));
        assert!(reason.contains("/no/such cannot be started"), "{reason}");
    }

    #[test]
    fn it_may_say_so_much_and_no_more() {
        let says =
            |bytes: usize| format!(r#"head -c {} /dev/zero | tr '\0' ' '; printf '{{"allow":true}}'"#, bytes - 14);
        assert_eq!(ask(&says(INSPECTION_BYTES_MAX), &json!({})), Ok(()));
        let reason = unavailable(ask(&says(INSPECTION_BYTES_MAX + 1), &json!({})));
        assert!(reason.contains("more than 64 KiB"), "{reason}");
        let endless = unavailable(ask("yes", &json!({})));
        assert!(endless.contains("more than 64 KiB"), "{endless}");
        let loud = ask(r#"head -c 300000 /dev/zero >&2; echo '{"allow":true}'"#, &json!({}));
        assert!(loud.is_ok_and(|()| true), "nobody reads on behind the limit, and it may end all the same");
    }

    #[test]
    fn one_that_takes_too_long_is_ended_with_all_it_started() {
        let start = Instant::now();
        for script in ["sleep 30", "sleep 30 & sleep 30", "exec >&-; sleep 30", "echo '{\"allow\":true}'; sleep 30 &"] {
            let reason =
                unavailable(inspector(script, 200).inspect("send", &Identity::new("Zed").unwrap(), &json!({})));
            assert!(reason.contains("longer than 0.2 s"), "{script}: {reason}");
        }
        assert!(start.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_large_question_is_no_reason_to_wait_for_ever() {
        let payload = json!({"content": "x".repeat(1024 * 1024)});
        assert_eq!(ask("echo '{\"allow\":true}'", &payload), Ok(()));
        assert_eq!(ask("cat | wc -c | grep -q 1048 && echo '{\"allow\":true}'", &payload), Ok(()));
    }
}
