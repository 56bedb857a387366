//! Reads the envelope of a message byte by byte as it passes: the `id` and `method` beside the rest, wherever they
//! stand. Clients put the id last, so the beginning of a line that is too long would not do.

use serde_json::Value;

/// What is known of a message.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Envelope {
    /// Its id.
    pub(super) id: Option<Value>,
    /// Its method.
    pub(super) method: Option<String>,
}

/// The longest key or value of interest, in bytes.
const TOKEN_BYTES_MAX: usize = 256;

/// The state between two bytes.
#[derive(Debug, Default)]
pub(super) struct Scan {
    depth: u64,
    in_text: bool,
    escaped: bool,
    token: Vec<u8>,
    key: Option<String>,
    id: Option<Value>,
    method: Option<Value>,
}

impl Scan {
    /// The next byte.
    pub(super) fn push(&mut self, byte: u8) {
        if self.in_text {
            return self.push_text(byte);
        }
        match byte {
            b'"' => {
                self.in_text = true;
                self.keep(byte);
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.end_value();
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => self.key = self.taken().and_then(|key| key.as_str().map(str::to_owned)),
            b',' => self.end_value(),
            _ => self.keep(byte),
        }
    }

    fn push_text(&mut self, byte: u8) {
        self.keep(byte);
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' => self.escaped = true,
            b'"' => self.in_text = false,
            _ => {}
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.token.len() <= TOKEN_BYTES_MAX {
            self.token.push(byte);
        }
    }

    fn taken(&mut self) -> Option<Value> {
        let token = std::mem::take(&mut self.token);
        serde_json::from_slice(&token).ok()
    }

    fn end_value(&mut self) {
        if self.depth != 1 {
            return;
        }
        let value = self.taken();
        match self.key.take().as_deref() {
            Some("id") => self.id = value,
            Some("method") => self.method = value,
            _ => {}
        }
    }

    /// What was found.
    pub(super) fn envelope(self) -> Envelope {
        let id = self.id.filter(super::is_id);
        Envelope { id, method: self.method.and_then(|method| method.as_str().map(str::to_owned)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(text: &str, id: Value, method: Value) {
        let mut scan = Scan::default();
        text.bytes().for_each(|byte| scan.push(byte));
        let found = scan.envelope();
        assert_eq!((json!(found.id), json!(found.method)), (id, method), "{text}");
    }

    #[test]
    fn the_envelope_is_found_wherever_it_stands() {
        check(r#"{"id":5,"method":"tools/call","params":{"id":6}}"#, json!(5), json!("tools/call"));
        check(
            r#"{"method":"a","params":{"id":[1,{"id":"}"}]},"jsonrpc":"2.0","id": "x\"y" }"#,
            json!("x\"y"),
            json!("a"),
        );
        check(r#"{"params":"\\\"id\":9,","id":7"#, json!(null), json!(null));
        check(r#"{"params":"{\"id\":9}","id":7}"#, json!(7), json!(null));
    }

    #[test]
    fn what_is_no_id_is_none() {
        check(r#"{"id":{"a":1}}"#, json!(null), json!(null));
        check(r#"{"id":null}"#, json!(null), json!(null));
        check(r#"[{"id":5}]"#, json!(null), json!(null));
        check(&format!(r#"{{"id":"{}"}}"#, "x".repeat(300)), json!(null), json!(null));
        check("}}}}{\"id\":1}", json!(1), json!(null));
    }
}
