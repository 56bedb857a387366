//! The server that turns texts into vectors, spoken to as OpenAI's is: one POST with the texts, and bearer's key if there
//! is one. What its answers mean is the core's to say.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use taskbus_core::bus::embedding::{read_answer, refusal_words};

use crate::engine::{ApiKey, EmbeddingAt};

/// Why there are no vectors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Trouble {
    /// The server refused.
    #[error("{words}")]
    Refused {
        /// The status of its answer.
        status: u16,
        /// What to tell people of it.
        words: String,
    },
    /// It could not be asked, or its answer could not be used.
    #[error("{0}")]
    Other(String),
}

/// The server.
pub(super) struct Server {
    at: EmbeddingAt,
    #[cfg(feature = "embeddings")]
    agent: ureq::Agent,
}

impl Server {
    pub(super) fn new(at: EmbeddingAt) -> Self {
        Self {
            #[cfg(feature = "embeddings")]
            agent: http::agent(&at.endpoint),
            at,
        }
    }

    pub(super) fn model(&self) -> &str {
        &self.at.model
    }

    pub(super) fn query_timeout(&self) -> Duration {
        self.at.query_timeout
    }

    /// The vectors of texts, in their order, each of length 1.
    pub(super) fn vectors(&self, texts: &[&str], timeout: Duration) -> Result<Vec<Vec<f32>>, Trouble> {
        let key = key(&self.at.api_key)?;
        let body = json!({"input": texts, "model": self.at.model}).to_string();
        let (status, answer) = self.ask(&body, key.as_deref(), timeout)?;
        if !(200..300).contains(&status) {
            let words = refusal_words(status, &String::from_utf8_lossy(&answer), key.is_some());
            return Err(Trouble::Refused { status, words });
        }
        let bad = |error| Trouble::Other(format!("the answer of the embedding server {error}"));
        read_answer(&answer, texts.len()).map_err(bad)
    }

    #[cfg(feature = "embeddings")]
    fn ask(&self, body: &str, key: Option<&str>, timeout: Duration) -> Result<(u16, Vec<u8>), Trouble> {
        let failed = |error: ureq::Error| {
            Trouble::Other(format!("the embedding server {} could not be asked: {error}", self.at.endpoint))
        };
        http::post(&self.agent, &self.at.endpoint, body, key, timeout).map_err(failed)
    }

    #[cfg(not(feature = "embeddings"))]
    fn ask(&self, _: &str, _: Option<&str>, _: Duration) -> Result<(u16, Vec<u8>), Trouble> {
        Err(Trouble::Other(format!(
            "{} cannot be asked: this taskbus was built without `embeddings`",
            self.at.endpoint
        )))
    }
}

#[cfg(feature = "embeddings")]
mod http {
    use std::time::Duration;

    use ureq::http::Uri;

    /// Largest answer that is read, in bytes: 64 vectors of many thousand dimensions.
    const ANSWER_BYTES_MAX: u64 = 64 * 1024 * 1024;

    /// A refusal has words that people want to read, and a redirect would send the key elsewhere. A server on this
    /// machine is not reached by way of another.
    pub(super) fn agent(endpoint: &str) -> ureq::Agent {
        let config = ureq::Agent::config_builder().http_status_as_error(false).max_redirects(0);
        let config = if is_here(endpoint) { config.proxy(None) } else { config };
        config.build().into()
    }

    pub(super) fn post(
        agent: &ureq::Agent,
        endpoint: &str,
        body: &str,
        key: Option<&str>,
        timeout: Duration,
    ) -> Result<(u16, Vec<u8>), ureq::Error> {
        let mut request = agent.post(endpoint).content_type("application/json");
        if let Some(key) = key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let mut answer = request.config().timeout_global(Some(timeout)).build().send(body)?;
        let status = answer.status().as_u16();
        Ok((status, answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec()?))
    }

    fn is_here(endpoint: &str) -> bool {
        let host = endpoint.parse::<Uri>().ok().and_then(|uri| uri.host().map(str::to_owned));
        host.is_some_and(|host| host == "localhost" || host == "[::1]" || host.starts_with("127."))
    }
}

/// The key, read anew each time: whoever mends it need not restart anything.
fn key(from: &ApiKey) -> Result<Option<String>, Trouble> {
    match from {
        ApiKey::None => Ok(None),
        ApiKey::Variable(name) => Ok(std::env::var(name).ok().filter(|key| !key.is_empty())),
        ApiKey::File(path) => read_key(path).map(Some),
    }
}

fn read_key(path: &Path) -> Result<String, Trouble> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Trouble::Other(format!("embedding_api_key_file {}: {error}", path.display())))?;
    key_in(&text).ok_or_else(|| Trouble::Other(format!("embedding_api_key_file {} has no key in it", path.display())))
}

/// The first line with something on it: the key alone, or `export NAME=key` as for a shell.
fn key_in(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let set = line.strip_prefix("export ").unwrap_or(line).trim_start();
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let value = set
        .split_once('=')
        .filter(|(name, value)| is_name(name) && !value.trim_matches('=').is_empty())
        .map_or(line, |(_, v)| v);
    let bare = ['"', '\''].iter().find_map(|mark| value.strip_prefix(*mark)?.strip_suffix(*mark)).unwrap_or(value);
    Some(bare.to_owned()).filter(|key| !key.is_empty() && !key.contains(|c: char| c.is_whitespace() || c.is_control()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stands_alone_or_in_a_line_for_a_shell() {
        for text in ["sk-1", " sk-1 \n", "\nexport OPENAI_API_KEY=sk-1\n", "KEY=\"sk-1\"", "export KEY='sk-1'"] {
            assert_eq!(key_in(text).as_deref(), Some("sk-1"), "{text:?}");
        }
        assert_eq!(key_in("c2stMQ==").as_deref(), Some("c2stMQ=="), "padding is no assignment");
        for text in ["", "\n \n", "KEY=\"\"", "two words", "export A=b c"] {
            assert_eq!(key_in(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let key = key(&ApiKey::File("/no/such/key".into())).unwrap_err();
        assert!(key.to_string().contains("embedding_api_key_file /no/such/key"), "{key}");
    }
}
