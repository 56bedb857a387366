//! Where each value of a JSON text stands. Comments and trailing commas are taken as the clients take them. Only
//! positions are kept, so that a change touches its own place and nothing else in the text.

use serde_json::{Map, Value};

/// Deeper than any configuration.
const DEPTH_MAX: usize = 100;

/// A value and where it stands.
#[derive(Debug)]
pub(super) struct Node {
    /// Its first byte.
    pub(super) start: usize,
    /// The byte behind its last.
    pub(super) end: usize,
    /// What it is.
    pub(super) kind: Kind,
}

/// What a value is.
#[derive(Debug)]
pub(super) enum Kind {
    /// An object.
    Object(Vec<Member>),
    /// An array.
    Array(Vec<Node>),
    /// Anything else, as it is.
    Plain(Value),
}

/// A key and its value.
#[derive(Debug)]
pub(super) struct Member {
    /// The key.
    pub(super) key: String,
    /// Where it begins.
    pub(super) start: usize,
    /// The value.
    pub(super) node: Node,
}

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub(super) struct NoJson {
    line: usize,
    what: &'static str,
}

/// Reads a text that holds one value.
pub(super) fn parse(text: &str) -> Result<Node, NoJson> {
    let mut reader = Reader { text, at: usize::from(text.starts_with('\u{feff}')) * 3 };
    let node = reader.value(0)?;
    reader.skip()?;
    if reader.at < text.len() { Err(reader.wrong("something follows the end")) } else { Ok(node) }
}

/// The place of the comma behind `at`, if one is the next that counts.
pub(super) fn comma_after(text: &str, at: usize) -> Option<usize> {
    let mut reader = Reader { text, at };
    reader.skip().ok()?;
    (reader.peek() == Some(b',')).then_some(reader.at)
}

impl Node {
    /// The value with this key.
    pub(super) fn member(&self, key: &str) -> Option<&Node> {
        match &self.kind {
            Kind::Object(members) => members.iter().rev().find(|member| member.key == key).map(|member| &member.node),
            Kind::Array(_) | Kind::Plain(_) => None,
        }
    }

    /// The elements of an array.
    pub(super) fn elements(&self) -> &[Node] {
        match &self.kind {
            Kind::Array(nodes) => nodes,
            Kind::Object(_) | Kind::Plain(_) => &[],
        }
    }

    /// Where the things in it begin and end.
    pub(super) fn spans(&self) -> Vec<(usize, usize)> {
        match &self.kind {
            Kind::Object(members) => members.iter().map(|member| (member.start, member.node.end)).collect(),
            Kind::Array(nodes) => nodes.iter().map(|node| (node.start, node.end)).collect(),
            Kind::Plain(_) => Vec::new(),
        }
    }

    /// What it says.
    pub(super) fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Object(members) => {
                let pairs = members.iter().map(|member| (member.key.clone(), member.node.to_value()));
                Value::Object(pairs.collect::<Map<_, _>>())
            }
            Kind::Array(nodes) => nodes.iter().map(Node::to_value).collect(),
            Kind::Plain(value) => value.clone(),
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn wrong(&self, what: &'static str) -> NoJson {
        let before = &self.text.as_bytes()[..self.at.min(self.text.len())];
        NoJson { line: before.iter().filter(|byte| **byte == b'\n').count() + 1, what }
    }

    /// Over white space and comments.
    fn skip(&mut self) -> Result<(), NoJson> {
        loop {
            let rest = &self.text[self.at..];
            let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
            self.at += blank;
            let rest = &rest[blank..];
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                let end = rest.find("*/").ok_or_else(|| self.wrong("a comment does not end"))?;
                self.at += end + 2;
            } else {
                return Ok(());
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, NoJson> {
        self.skip()?;
        if depth > DEPTH_MAX {
            return Err(self.wrong("it is nested too deep"));
        }
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => Kind::Plain(Value::String(self.string()?)),
            Some(_) => Kind::Plain(self.word()?),
            None => return Err(self.wrong("a value is missing")),
        };
        Ok(Node { start, end: self.at, kind })
    }

    fn object(&mut self, depth: usize) -> Result<Kind, NoJson> {
        let mut members = Vec::new();
        self.at += 1;
        while !self.closes(b'}')? {
            let start = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.wrong("a key in quotes, or }, is missing"));
            }
            let key = self.string()?;
            self.skip()?;
            if self.peek() != Some(b':') {
                return Err(self.wrong("a : is missing behind a key"));
            }
            self.at += 1;
            let node = self.value(depth + 1)?;
            members.push(Member { key, start, node });
            self.separator(b'}')?;
        }
        Ok(Kind::Object(members))
    }

    fn array(&mut self, depth: usize) -> Result<Kind, NoJson> {
        let mut nodes = Vec::new();
        self.at += 1;
        while !self.closes(b']')? {
            nodes.push(self.value(depth + 1)?);
            self.separator(b']')?;
        }
        Ok(Kind::Array(nodes))
    }

    /// Whether the end comes next; steps over it.
    fn closes(&mut self, end: u8) -> Result<bool, NoJson> {
        self.skip()?;
        let closes = self.peek() == Some(end);
        self.at += usize::from(closes);
        Ok(closes)
    }

    /// Over a comma, which may be left out before the end.
    fn separator(&mut self, end: u8) -> Result<(), NoJson> {
        self.skip()?;
        match self.peek() {
            Some(b',') => self.at += 1,
            Some(found) if found == end => {}
            _ => return Err(self.wrong("a comma or the end of a list or an object is missing")),
        }
        Ok(())
    }

    fn string(&mut self) -> Result<String, NoJson> {
        let bytes = self.text.as_bytes();
        let mut end = self.at + 1;
        while bytes.get(end).is_some_and(|byte| *byte != b'"') {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        let raw = self.text.get(self.at..=end).ok_or_else(|| self.wrong("a text does not end"))?;
        let string = serde_json::from_str(raw).map_err(|_| self.wrong("a text is no JSON text"))?;
        self.at = end + 1;
        Ok(string)
    }

    /// A number, `true`, `false` or `null`.
    fn word(&mut self) -> Result<Value, NoJson> {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))).unwrap_or(rest.len());
        let value = serde_json::from_str(&rest[..end]).map_err(|_| self.wrong("a value is no JSON value"))?;
        self.at += end;
        Ok(value)
    }
}
