//! Embeddings: what text of a memory is turned into a vector, what an answer of the server must look like, and whose
//! fault a refusal is. Pure; who asks the server is the engine.

use serde::Deserialize;

use crate::bus::message::Message;

/// The text of a memory that is turned into a vector: its summary, an empty line, its content.
#[must_use]
pub fn text_of(message: &Message) -> String {
    match &message.subject {
        Some(subject) => format!("{}\n\n{}", subject.as_str(), message.content),
        None => message.content.clone(),
    }
}

/// What is wrong with the answer of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAnswer {
    /// It is no JSON of the known form.
    #[error("is not the JSON that was expected: {0}")]
    Form(String),
    /// It has too few or too many vectors.
    #[error("has {actual} vectors for {expected} texts")]
    Count {
        /// What was asked for.
        expected: usize,
        /// What came.
        actual: usize,
    },
    /// A vector says that it belongs to a text that was not sent, or that has one already.
    #[error("has a vector for text {index}, which was not sent or has one already")]
    Index {
        /// Which.
        index: u64,
    },
    /// A vector is empty, of length zero, or has what is no number.
    #[error("has a vector for text {index} that points nowhere")]
    Empty {
        /// Which.
        index: usize,
    },
    /// Its vectors are not of one dimension.
    #[error("has vectors of {one} and of {other} dimensions")]
    Dimension {
        /// One of them.
        one: usize,
        /// Another.
        other: usize,
    },
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    index: u64,
    embedding: Vec<f32>,
}

/// Reads the answer to a request of `expected` texts: their vectors, in order, each of length 1.
///
/// # Errors
/// [`BadAnswer`]; nothing of such an answer is used.
pub fn read_answer(body: &[u8], expected: usize) -> Result<Vec<Vec<f32>>, BadAnswer> {
    let answer: Answer = serde_json::from_slice(body).map_err(|error| BadAnswer::Form(error.to_string()))?;
    let actual = answer.data.len();
    if actual != expected {
        return Err(BadAnswer::Count { expected, actual });
    }
    let mut vectors: Vec<Option<Vec<f32>>> = vec![None; expected];
    for Item { index, embedding } in answer.data {
        let place = usize::try_from(index).ok().and_then(|at| vectors.get_mut(at)).filter(|place| place.is_none());
        let place = place.ok_or(BadAnswer::Index { index })?;
        *place = Some(embedding);
    }
    let vectors: Vec<Vec<f32>> = vectors.into_iter().flatten().collect();
    let one = vectors.first().map_or(0, Vec::len);
    if let Some(other) = vectors.iter().map(Vec::len).find(|other| *other != one) {
        return Err(BadAnswer::Dimension { one, other });
    }
    let of_length_one = |(index, vector)| normalized(vector).ok_or(BadAnswer::Empty { index });
    vectors.into_iter().enumerate().map(of_length_one).collect()
}

/// The vector of length 1 in the same direction; none when it has no direction.
fn normalized(mut vector: Vec<f32>) -> Option<Vec<f32>> {
    let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    if !length.is_finite() || length <= 0.0 {
        return None;
    }
    for x in &mut vector {
        #[expect(clippy::cast_possible_truncation, reason = "what is at most 1 loses only digits")]
        let part = (f64::from(*x) / length) as f32;
        *x = part;
    }
    Some(vector)
}

/// Whether a status may mean that a text, and not the server or the key, is what is wrong.
#[must_use]
pub fn may_be_the_texts_fault(status: u16) -> bool {
    matches!(status, 400 | 413 | 422)
}

/// Whether texts that were refused one by one are to blame for it. A server that has taken none, now or ever, refuses
/// everything: then nothing may be held against a text.
#[must_use]
pub fn are_texts_to_blame(taken_now: usize, taken_before: u64) -> bool {
    taken_now > 0 || taken_before > 0
}

/// How the refusal of a server is told to people: its status, its words as far as they may be shown, and for a key
/// that did not fit which settings name one. The words of a 422 are left out, since they repeat what was sent.
#[must_use]
pub fn refusal_words(status: u16, body: &str, had_key: bool) -> String {
    let said = match status {
        422 => String::new(),
        _ => shortened(body),
    };
    let mut text = format!("the embedding server answered {status}");
    if !said.is_empty() {
        text.push_str(&format!(": {said}"));
    }
    if matches!(status, 401 | 403) {
        let sent = if had_key { "the key that was sent does not fit" } else { "no key was sent" };
        text.push_str(&format!("; {sent}: set embedding_api_key_env or embedding_api_key_file"));
    }
    text
}

/// Bytes of a server's words that are shown.
const WORDS_BYTES_MAX: usize = 300;

fn shortened(body: &str) -> String {
    let body = body.trim();
    let end = body.floor_char_boundary(WORDS_BYTES_MAX);
    let kept = body[..end].chars().map(|c| if c.is_control() { ' ' } else { c });
    kept.chain((end < body.len()).then_some('…')).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::bus::channel::ChannelName;
    use crate::bus::message::{Headline, Sort};
    use crate::time::Timestamp;

    fn read(body: &Value, expected: usize) -> Result<Vec<Vec<f32>>, BadAnswer> {
        read_answer(body.to_string().as_bytes(), expected)
    }

    fn items(items: &[(i64, Value)]) -> Value {
        let data: Vec<Value> = items
            .iter()
            .map(|(index, vector)| json!({"object": "embedding", "index": index, "embedding": vector}))
            .collect();
        json!({"object": "list", "data": data, "model": "m", "usage": {}})
    }

    #[test]
    fn what_is_embedded_is_the_summary_and_the_content() {
        let mut message = Message {
            seq: 1,
            channel: ChannelName::memory(),
            sender: None,
            context: String::new(),
            created_at: Timestamp::from_millis(0),
            sort: Sort::default(),
            subject: Headline::new("About keys").unwrap(),
            content: "They turn.".to_owned(),
            reply_to: None,
            metadata: None,
            memory: None,
            tags: Vec::new(),
            matched_tags: Vec::new(),
        };
        assert_eq!(text_of(&message), "About keys\n\nThey turn.");
        message.subject = None;
        assert_eq!(text_of(&message), "They turn.");
    }

    #[test]
    fn vectors_come_in_order_and_of_length_one() {
        let answer = items(&[(1, json!([0, 2])), (0, json!([3, 4]))]);
        assert_eq!(read(&answer, 2), Ok(vec![vec![0.6, 0.8], vec![0.0, 1.0]]));
        assert_eq!(read(&items(&[]), 0), Ok(Vec::new()));
        let huge = read(&items(&[(0, json!([3e38, 3e38]))]), 1).unwrap();
        assert!((huge[0][0] - 0.5_f32.sqrt()).abs() < 1e-6);
    }

    #[test]
    fn an_answer_is_taken_whole_or_not_at_all() {
        let vector = json!([1.0]);
        let bad = |answer: &Value, expected| read(answer, expected).unwrap_err();
        assert!(matches!(read_answer(b"<html>", 1), Err(BadAnswer::Form(_))));
        assert!(matches!(bad(&json!({"data": [{"embedding": [1]}]}), 1), BadAnswer::Form(_)));
        assert!(matches!(bad(&json!({"data": [{"index": 0, "embedding": [null]}]}), 1), BadAnswer::Form(_)));
        assert!(matches!(bad(&items(&[(-1, vector.clone())]), 1), BadAnswer::Form(_)));
        let one = items(&[(0, vector.clone())]);
        assert_eq!(bad(&one, 2), BadAnswer::Count { expected: 2, actual: 1 });
        assert_eq!(bad(&items(&[(0, vector.clone()), (0, vector.clone())]), 2), BadAnswer::Index { index: 0 });
        assert_eq!(bad(&items(&[(0, vector.clone()), (2, vector.clone())]), 2), BadAnswer::Index { index: 2 });
        assert_eq!(bad(&items(&[(0, json!([]))]), 1), BadAnswer::Empty { index: 0 });
        assert_eq!(bad(&items(&[(0, json!([0, 0]))]), 1), BadAnswer::Empty { index: 0 });
        assert!(matches!(bad(&items(&[(0, json!([1e39]))]), 1), BadAnswer::Form(_)));
        let uneven = items(&[(0, vector), (1, json!([1, 0]))]);
        assert_eq!(bad(&uneven, 2), BadAnswer::Dimension { one: 1, other: 2 });
    }

    #[test]
    fn only_some_refusals_may_be_a_texts_fault_and_only_beside_a_text_that_was_taken() {
        let blamed: Vec<u16> = (100..600).filter(|status| may_be_the_texts_fault(*status)).collect();
        assert_eq!(blamed, [400, 413, 422]);
        assert!(!are_texts_to_blame(0, 0) && are_texts_to_blame(1, 0) && are_texts_to_blame(0, 1));
    }

    #[test]
    fn a_refusal_is_told_in_short_and_says_which_key_was_meant() {
        let keyless = refusal_words(401, " no entry ", false);
        assert!(keyless.contains("401: no entry; no key was sent") && keyless.contains("embedding_api_key_file"));
        assert!(refusal_words(403, "", true).contains("the key that was sent does not fit"));
        assert_eq!(refusal_words(422, "your secret text", true), "the embedding server answered 422");
        let long = refusal_words(500, &format!("{}\n{}", "x".repeat(298), "ä".repeat(9)), true);
        assert!(long.ends_with("x …") && !long.contains('\n'), "{long}");
        assert!(!long.contains("embedding_api_key"));
    }
}
