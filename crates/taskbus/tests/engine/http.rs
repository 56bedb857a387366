//! A small HTTP server that answers as an embedding server does, or as the test wants: real sockets, one thread for
//! each connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use taskbus::engine::{ApiKey, EmbeddingAt, Limits};

/// What a request asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) texts: Vec<String>,
    pub(crate) model: String,
    pub(crate) key: Option<String>,
}

type Answer = dyn Fn(&Asked) -> Option<(u16, String)> + Send + Sync;

/// A running server.
pub(crate) struct Server {
    pub(crate) endpoint: String,
    asked: Arc<(Mutex<Vec<Asked>>, Condvar)>,
    answer: Arc<Mutex<Arc<Answer>>>,
}

impl Server {
    /// Answers every text with its vector.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}/v1/embeddings", listener.local_addr().unwrap());
        let answer: Arc<Answer> = Arc::new(|asked: &Asked| Some(vectors(&asked.texts)));
        let server = Self { endpoint, asked: Arc::default(), answer: Arc::new(Mutex::new(answer)) };
        let (asked, answer) = (Arc::clone(&server.asked), Arc::clone(&server.answer));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (asked, answer) = (Arc::clone(&asked), Arc::clone(&answer));
                std::thread::spawn(move || serve(&stream.unwrap(), &asked, &answer));
            }
        });
        server
    }

    /// Answers so from now on; with nothing: never.
    pub(crate) fn answers(&self, answer: impl Fn(&Asked) -> Option<(u16, String)> + Send + Sync + 'static) {
        *self.answer.lock().unwrap() = Arc::new(answer);
    }

    /// What was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.0.lock().unwrap().clone()
    }

    /// Waits until so many requests have come.
    pub(crate) fn wait_for(&self, count: usize) {
        let (asked, bell) = &*self.asked;
        let few = |asked: &mut Vec<Asked>| asked.len() < count;
        let waited = bell.wait_timeout_while(asked.lock().unwrap(), Duration::from_secs(20), few).unwrap();
        assert!(waited.0.len() >= count, "the server was asked {} times", waited.0.len());
    }

    pub(crate) fn limits(&self) -> Limits {
        let embedding = EmbeddingAt {
            endpoint: self.endpoint.clone(),
            model: "small".to_owned(),
            api_key: ApiKey::None,
            query_timeout: Duration::from_secs(10),
        };
        Limits { embedding: Some(embedding), ..Limits::default() }
    }
}

/// The usual answer: what a text is about, counted in three directions, and a little of a fourth.
pub(crate) fn vectors(texts: &[String]) -> (u16, String) {
    let about = |text: &str, words: &[&str]| words.iter().map(|word| text.matches(word).count()).sum::<usize>();
    let vector = |text: &String| {
        let text = text.to_lowercase();
        let fruit = about(&text, &["apple", "pear", "plum", "fruit"]);
        let metal = about(&text, &["iron", "copper", "metal"]);
        let sea = about(&text, &["wave", "harbour", "sea"]);
        json!([10 * fruit, 10 * metal, 10 * sea, 1])
    };
    let data: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| json!({"object": "embedding", "index": index, "embedding": vector(text)}))
        .rev()
        .collect();
    (200, json!({"object": "list", "data": data, "model": "small"}).to_string())
}

fn serve(stream: &TcpStream, asked: &(Mutex<Vec<Asked>>, Condvar), answer: &Mutex<Arc<Answer>>) {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read(&mut reader) {
        asked.0.lock().unwrap().push(request.clone());
        asked.1.notify_all();
        let answer = Arc::clone(&answer.lock().unwrap());
        let Some((status, body)) = answer(&request) else {
            // Hangs until the client has enough of it.
            let _ = reader.read(&mut [0]);
            return;
        };
        let head = format!(
            "HTTP/1.1 {status} As asked\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let mut stream = stream;
        if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).is_err() {
            return;
        }
    }
}

fn read(reader: &mut impl BufRead) -> Option<Asked> {
    let (mut length, mut key) = (0, None);
    for number in 0.. {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim();
        assert!(number > 0 || line.starts_with("POST /v1/embeddings HTTP/1.1"), "{line}");
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        match name.to_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap(),
            "authorization" => key = Some(value.trim().to_owned()),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body: Value = serde_json::from_slice(&body).unwrap();
    let texts = body["input"].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect();
    Some(Asked { texts, model: body["model"].as_str().unwrap().to_owned(), key })
}
