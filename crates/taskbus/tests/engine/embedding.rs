//! Vectors of memories, made by a real server on a socket, and search by meaning.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use taskbus::core::bus::message::{Content, Headline, Message, Revision, Sort};
use taskbus::core::bus::query::Mode;
use taskbus::core::limits::{EMBEDDING_BATCH, EMBEDDING_BATCHES_PER_TICK};
use taskbus::engine::{ApiKey, EmbeddingAt, Limits, SearchAsk};

use crate::http::{Asked, Server, vectors};
use crate::support::{Person, Place, on_every_store};

fn note(place: &Place, person: &Person, content: &str) -> u64 {
    place.remember(person, &place.draft("memory", content))
}

fn change(content: &str) -> Revision {
    let content = Content::new(content).unwrap();
    Revision { content, sort: Sort::default(), subject: None, metadata: None, tags: None }
}

fn by(mode: Mode, query: &str) -> SearchAsk {
    SearchAsk { query: query.to_owned(), mode: Some(mode), ..SearchAsk::default() }
}

/// The numbers of what is found, the best first; and whether only words could be looked for.
fn found(person: &Person, ask: &SearchAsk) -> (Vec<u64>, bool) {
    let found = person.engine.search(&person.name, ask).unwrap();
    (found.hits.iter().map(|hit| hit.message.seq).collect(), found.semantic_unavailable)
}

/// Embedded, waiting, rejected, and what went wrong last.
fn state(person: &Person) -> (u64, u64, u64, Option<String>) {
    let status = person.engine.bus_status().unwrap().embedding.unwrap();
    (status.embedded, status.backlog, status.rejected, status.last_error)
}

fn refuses(status: u16, part: &'static str) -> impl Fn(&Asked) -> Option<(u16, String)> + Send + Sync {
    move |asked| {
        let bad = asked.texts.iter().any(|text| text.contains(part));
        Some(if bad { (status, r#"{"error": "no"}"#.to_owned()) } else { vectors(&asked.texts) })
    }
}

on_every_store! {
    fn memories_are_found_by_what_they_mean(place) {
        let server = Server::start();
        let zed = place.person_with("Zed", server.limits());
        let titled = Message { subject: Headline::new("Pears").unwrap(), ..place.draft("memory", "are ripe in autumn") };
        let (pear, iron) = (place.remember(&zed, &titled), note(&place, &zed, "Iron rusts."));
        place.say(&zed, "general", "a plum is no memory");
        zed.create("An apple task is none either");
        assert_eq!(zed.engine.tick().unwrap().embedded, 2);
        let asked = server.asked();
        assert_eq!((asked.len(), asked[0].model.as_str(), &asked[0].key), (1, "small", &None));
        assert_eq!(asked[0].texts, ["Pears\n\nare ripe in autumn", "Iron rusts."]);
        assert_eq!(found(&zed, &by(Mode::Semantic, "fruit*")), (vec![pear, iron], false));
        assert_eq!(server.asked()[1].texts, ["fruit"], "without the star");
        assert_eq!(found(&zed, &by(Mode::Semantic, "metal")), (vec![iron, pear], false));
        assert_eq!(found(&zed, &by(Mode::Text, "fruit")), (vec![], false));
        assert_eq!(state(&zed), (2, 0, 0, None));
    }

    fn both_rankings_become_one_and_messages_come_in_by_their_words(place) {
        let server = Server::start();
        let zed = place.person_with("Zed", server.limits());
        let apple = note(&place, &zed, "An apple a day");
        let iron = note(&place, &zed, "Fruit of iron work: fruit, iron, copper, metal");
        let said = place.say(&zed, "general", "who brings fruit");
        zed.engine.tick().unwrap();
        let text = found(&zed, &by(Mode::Text, "fruit")).0;
        assert_eq!(text.len(), 2);
        let both = SearchAsk { query: "fruit".to_owned(), ..SearchAsk::default() };
        assert_eq!(found(&zed, &both).0, [iron, apple, said], "in both rankings, then first in one, then in the other");
        let none = Limits { embedding: None, ..server.limits() };
        let amp = place.person_with("Amp", none);
        assert_eq!(found(&amp, &both), (text.clone(), false), "by text when nobody makes vectors");
        assert_eq!(found(&amp, &by(Mode::Semantic, "fruit")), (text, true));
    }

    fn a_server_that_fails_makes_a_search_go_by_words(place) {
        let server = Server::start();
        let zed = place.person_with("Zed", server.limits());
        let apple = note(&place, &zed, "An apple a day");
        zed.engine.tick().unwrap();
        for answer in [(500, "down"), (200, "{}"), (401, "")] {
            server.answers(move |_| Some((answer.0, answer.1.to_owned())));
            assert_eq!(found(&zed, &by(Mode::Semantic, "apple")), (vec![apple], true), "{answer:?}");
            assert_eq!(found(&zed, &by(Mode::Both, "apple")), (vec![apple], true), "{answer:?}");
        }
        let at = EmbeddingAt { query_timeout: Duration::from_millis(100), ..server.limits().embedding.unwrap() };
        let amp = place.person_with("Amp", Limits { embedding: Some(at), ..Limits::default() });
        server.answers(|_| None);
        let start = Instant::now();
        assert_eq!(found(&amp, &by(Mode::Semantic, "apple")), (vec![apple], true));
        assert!(start.elapsed() < Duration::from_secs(5));
        assert_eq!(found(&amp, &by(Mode::Text, "apple")), (vec![apple], false));
    }

    fn a_write_has_its_memory_embedded_at_once_and_writes_that_come_together_share_a_pass(place) {
        let server = Server::start();
        let zed = place.person_with("Zed", server.limits());
        let id = note(&place, &zed, "An apple a day");
        zed.engine.edit_memory(&zed.name, id, &change("A pear a day"), None).unwrap();
        server.wait_for(1);
        place.until("the pear is embedded", || state(&zed).0 == 1);
        for n in 0..20 {
            zed.engine.edit_memory(&zed.name, id, &change(&format!("{n} pears a day")), None).unwrap();
        }
        zed.engine.close().unwrap();
        let requests = server.asked().len();
        assert!((2..=21).contains(&requests), "{requests}");
        let amp = place.person_with("Amp", server.limits());
        assert_eq!((state(&amp).0, state(&amp).1), (1, 0), "nothing was left when it closed");
        zed.engine.close().unwrap();
    }

    fn what_is_edited_while_it_is_embedded_gets_the_vector_of_its_new_text(place) {
        let server = Server::start();
        let zed = place.person_with("Zed", server.limits());
        let amp = place.person("Amp");
        let id = note(&place, &zed, "An apple a day");
        let (editor, name) = (Arc::clone(&amp.engine), amp.name.clone());
        let times = AtomicUsize::new(0);
        server.answers(move |asked| {
            if times.fetch_add(1, Ordering::SeqCst) == 0 {
                editor.edit_memory(&name, id, &change("Iron a day"), None).unwrap();
            }
            Some(vectors(&asked.texts))
        });
        zed.engine.tick().unwrap();
        assert_eq!(server.asked().len(), 2, "the old text, and then the new one");
        let status = state(&zed);
        assert_eq!((status.0, status.1), (1, 0));
        let other = note(&place, &zed, "An apple pie");
        zed.engine.tick().unwrap();
        assert_eq!(found(&zed, &by(Mode::Semantic, "fruit")).0[0], other);
    }

    fn a_tick_makes_a_few_requests_of_a_batch_each(place) {
        let server = Server::start();
        let zed = place.person_with("Zed", server.limits());
        let all = EMBEDDING_BATCH * EMBEDDING_BATCHES_PER_TICK + 10;
        for n in 0..all {
            note(&place, &zed, &format!("apple {n}"));
        }
        assert_eq!(zed.engine.tick().unwrap().embedded, all - 10);
        let sizes: Vec<usize> = server.asked().iter().map(|asked| asked.texts.len()).collect();
        assert_eq!(sizes, [EMBEDDING_BATCH; EMBEDDING_BATCHES_PER_TICK]);
        assert_eq!(zed.engine.tick().unwrap().embedded, 10);
        assert_eq!(zed.engine.tick().unwrap().embedded, 0);
        assert_eq!(server.asked().len(), EMBEDDING_BATCHES_PER_TICK + 1, "none when none is missing");
    }

    fn a_text_that_is_refused_alone_does_not_block_the_others(place) {
        let server = Server::start();
        let zed = place.person_with("Zed", server.limits());
        for status in [400, 413, 422] {
            server.answers(refuses(status, "poison"));
            let before = state(&zed);
            note(&place, &zed, "An apple");
            note(&place, &zed, "poison");
            note(&place, &zed, "Iron");
            assert_eq!(zed.engine.tick().unwrap().embedded, 2, "{status}");
            let after = state(&zed);
            assert_eq!((after.1, after.2 - before.2, after.3), (0, 1, None), "{status}");
            let requests = server.asked().len();
            zed.engine.tick().unwrap();
            assert_eq!(server.asked().len(), requests, "what was refused is not tried again");
        }
    }

    fn a_server_that_refuses_everything_is_what_is_wrong(place) {
        let server = Server::start();
        let zed = place.person_with("Zed", server.limits());
        server.answers(refuses(400, ""));
        note(&place, &zed, "An apple");
        note(&place, &zed, "Iron");
        assert_eq!(zed.engine.tick().unwrap().embedded, 0);
        let (embedded, backlog, rejected, error) = state(&zed);
        assert_eq!((embedded, backlog, rejected), (0, 2, 0));
        assert!(error.unwrap().contains("answered 400"));
        server.answers(refuses(400, "Iron"));
        assert_eq!(zed.engine.tick().unwrap().embedded, 1);
        assert_eq!(state(&zed), (1, 0, 1, None), "once one was taken, the other is to blame");
    }

    fn what_was_taken_before_another_failure_is_kept(place) {
        let server = Server::start();
        let zed = place.person_with("Zed", server.limits());
        for text in ["apple one", "poison", "apple two", "busy", "apple three"] {
            note(&place, &zed, text);
        }
        server.answers(|asked| {
            let has = |part: &str| asked.texts.iter().any(|text| text.contains(part));
            let alone = asked.texts.len() == 1;
            Some(match () {
                () if alone && has("busy") => (429, "slow down".to_owned()),
                () if has("poison") => (422, "no".to_owned()),
                () => vectors(&asked.texts),
            })
        });
        zed.engine.tick().unwrap();
        let (embedded, backlog, rejected, error) = state(&zed);
        assert_eq!((embedded, backlog, rejected), (2, 2, 1));
        assert!(error.unwrap().contains("429: slow down"));
    }

    fn a_failure_is_told_until_a_pass_succeeds(place) {
        let server = Server::start();
        let zed = place.person_with("Zed", server.limits());
        note(&place, &zed, "An apple");
        server.answers(|_| Some((401, "who are you".to_owned())));
        zed.engine.tick().unwrap();
        let told = state(&zed).3.unwrap();
        for part in ["401: who are you", "no key was sent", "embedding_api_key_file", &std::process::id().to_string()] {
            assert!(told.contains(part), "{part}: {told}");
        }
        server.answers(|asked| Some(vectors(&asked.texts)));
        assert_eq!(zed.engine.tick().unwrap().embedded, 1);
        assert_eq!(state(&zed).3, None);
    }

    fn another_model_begins_anew(place) {
        let server = Server::start();
        let zed = place.person_with("Zed", server.limits());
        let apple = note(&place, &zed, "An apple");
        zed.engine.tick().unwrap();
        let at = EmbeddingAt { model: "large".to_owned(), ..server.limits().embedding.unwrap() };
        let amp = place.join(place.engine(Limits { embedding: Some(at), ..Limits::default() }), "Amp", taskbus::engine::Span::Heartbeat);
        assert_eq!(found(&amp, &by(Mode::Semantic, "fruit")), (vec![], false), "vectors of other models mean nothing");
        place.clock.advance(3 * 60_000);
        amp.engine.heartbeat().unwrap();
        assert_eq!(amp.engine.tick().unwrap().embedded, 1);
        assert_eq!(server.asked().last().unwrap().model, "large");
        assert_eq!(found(&amp, &by(Mode::Semantic, "fruit")), (vec![apple], false));
        assert_eq!(state(&amp).0, 1);
    }

    fn a_key_is_read_from_its_file_each_time(place) {
        let server = Server::start();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        let at = EmbeddingAt { api_key: ApiKey::File(path.clone()), ..server.limits().embedding.unwrap() };
        let zed = place.person_with("Zed", Limits { embedding: Some(at), ..Limits::default() });
        note(&place, &zed, "An apple");
        zed.engine.tick().unwrap();
        assert!(state(&zed).3.unwrap().contains(path.to_str().unwrap()));
        std::fs::write(&path, "export OPENAI_API_KEY='sk-7'\n").unwrap();
        assert_eq!(zed.engine.tick().unwrap().embedded, 1);
        assert_eq!(server.asked()[0].key.as_deref(), Some("Bearer sk-7"));
    }

    fn a_server_that_never_answers_holds_a_tick_only_until_its_deadline(place) {
        let server = Server::start();
        let zed = place.person_with("Zed", Limits { cleanup_interval_seconds: 1, ..server.limits() });
        note(&place, &zed, "An apple");
        server.answers(|_| None);
        let start = Instant::now();
        zed.engine.tick().unwrap();
        assert!(start.elapsed() >= Duration::from_millis(400) && start.elapsed() < Duration::from_secs(5));
        assert!(state(&zed).3.is_some());
    }
}
