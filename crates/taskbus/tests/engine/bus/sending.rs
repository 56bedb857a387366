//! Sending: where to, how often, how much.

use taskbus::core::bus::message::{Draft, Headline, Sort};
use taskbus::core::bus::rules::Start;
use taskbus::core::command::Command;
use taskbus::core::limits;
use taskbus::core::refusal::{Conflict, Invalid, Missing, NotRegistered, Refusal};
use taskbus::engine::{HistoryAsk, Limits, ReceiveAsk, Span};
use taskbus::store::read_with;

use super::{drop_channel, letter, name, tagged};
use crate::support::{Fault, Interrupted, Watched, on_every_store, refusal, wish};

on_every_store! {
    fn a_message_is_kept_as_it_was_sent(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let first = zed.say("general", "first");
        let draft = Draft {
            sort: Sort::new("report").unwrap(),
            subject: Headline::new("  in short ").unwrap(),
            reply_to: Some(first),
            metadata: Some([("k".to_owned(), "v".to_owned())].into()),
            ..tagged("all of it", &["Rust", "env:prod"])
        };
        let sent = amp.post("general", &draft, None).unwrap();
        assert_eq!((sent.seq > first, sent.memory_id), (true, None));
        let shown = zed.engine.history(&zed.name, &HistoryAsk::of(name("general"))).unwrap();
        let kept = serde_json::to_value(&shown.messages[1]).unwrap();
        let expected = serde_json::json!({
            "seq": sent.seq, "channel": "general", "sender": "Amp", "context": "Amp's work",
            "created_at": place.now().as_millis(), "type": "report", "subject": "in short", "content": "all of it",
            "reply_to": first, "metadata": {"k": "v"}, "tags": ["env:prod", "rust"],
        });
        assert_eq!(kept, expected);
    }

    fn a_message_on_a_memory_channel_is_a_memory(place) {
        let zed = place.person("Zed");
        let sent = zed.post("memory", &letter("keys turn"), None).unwrap();
        assert_eq!(sent.memory_id, Some(sent.seq));
        let memory = zed.engine.memory(&zed.name, sent.seq).unwrap().memory.unwrap();
        assert_eq!((memory.id, memory.revision), (sent.seq, 1));
        let unread = place.now().plus_millis(1);
        let watched = read_with(&*place.store, None, |it| it.bus().unwrap().unread_memories(unread, 9)).unwrap();
        assert_eq!(watched, [sent.seq], "it expires when nobody reads it");
    }

    fn a_task_list_takes_no_message(place) {
        let zed = place.person("Zed");
        let refused = refusal(zed.post("tasks/work", &letter("x"), None));
        assert_eq!(refused.code(), "validation");
        assert!(refused.to_string().contains("task_update"), "{refused}");
    }

    fn what_is_named_must_be_there(place) {
        let zed = place.person("Zed");
        let channel = refusal(zed.post("general/none", &letter("x"), None));
        assert!(matches!(channel, Refusal::NotFound(Missing::Channel { .. })));
        let reply = Draft { reply_to: Some(999), ..letter("x") };
        let message = refusal(zed.post("general", &reply, None));
        assert!(matches!(message, Refusal::NotFound(Missing::Message { seq: 999, .. })));
    }

    fn the_same_key_sends_once(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        zed.make("general/app");
        let first = zed.post("general/app", &tagged("x", &["b", "a"]), Some("k")).unwrap();
        assert_eq!(zed.post("general/app", &tagged("x", &["A", "b", "b"]), Some("k")).unwrap(), first);
        let other = refusal(zed.post("general/app", &tagged("y", &["a", "b"]), Some("k")));
        assert!(matches!(other, Refusal::Conflict(Conflict::KeyReused { .. })));
        assert_ne!(amp.post("general/app", &tagged("x", &["a", "b"]), Some("k")).unwrap(), first);
        drop_channel(&*place.store, "general/app");
        assert_eq!(zed.post("general/app", &tagged("x", &["a", "b"]), Some("k")).unwrap(), first, "gone, but answered");
    }

    fn a_message_has_a_largest_size(place) {
        let zed = place.person_with("Zed", Limits { max_message_kib: 1, ..Limits::default() });
        let longest = (1..1024).rev().find(|bytes| zed.post("general", &letter(&"x".repeat(*bytes)), None).is_ok());
        let longest = longest.unwrap();
        assert!((700..1024).contains(&longest), "{longest}");
        let refused = refusal(zed.post("general", &letter(&"x".repeat(longest + 1)), None));
        assert!(matches!(refused, Refusal::Invalid(Invalid::TooLarge { actual: 1025, max: 1024, .. })), "{refused}");
        let escaped = zed.post("general", &letter(&"\"".repeat(longest / 2 + 1)), None);
        assert_eq!(refusal(escaped).code(), "validation", "it counts as it is kept");
    }

    fn only_what_is_written_is_charged(place) {
        let zed = place.person_with("Zed", Limits { writes_per_second: 2, ..Limits::default() });
        let first = zed.post("general", &letter("x"), Some("k")).unwrap();
        for _ in 0..5 {
            zed.post("general/none", &letter("x"), None).unwrap_err();
            assert_eq!(zed.post("general", &letter("x"), Some("k")).unwrap(), first);
        }
        zed.say("general", "second");
        let fast = refusal(zed.post("general", &letter("third"), None));
        assert_eq!((fast.code(), fast.retryable()), ("rate_limited", true));
        assert_eq!(zed.post("general", &letter("x"), Some("k")).unwrap(), first);
        place.clock.advance(500);
        zed.say("general", "third");
    }

    fn who_lost_the_name_sends_no_more(place) {
        let old = place.person("Zed");
        let amp = place.person("Amp");
        place.silence_all_but(&[&amp]);
        place.person("Zed");
        let lost = refusal(old.post("general", &letter("x"), None));
        assert!(matches!(lost, Refusal::NotRegistered(NotRegistered::TakenOver { .. })));
        assert_eq!(refusal(old.follow("general", Start::Now)).code(), "not_registered");
        assert_eq!(refusal(old.receive(&ReceiveAsk::default())).code(), "not_registered");
    }

    fn a_channel_that_goes_before_the_lock_is_held_is_not_there(place) {
        let mut place = place;
        let interrupted = Interrupted::over(&mut place);
        let zed = place.person("Zed");
        zed.make("general/app");
        interrupted.before_the_next_write(|store| drop_channel(store, "general/app"));
        let refused = refusal(zed.post("general/app", &letter("x"), None));
        assert!(matches!(refused, Refusal::NotFound(Missing::Channel { .. })));
    }

    fn a_history_is_filtered_by_tags_and_bounds(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let tags: [&[&str]; 4] = [&["env:prod"], &["env"], &["rust"], &[]];
        let sent: Vec<u64> =
            tags.iter().map(|tags| zed.post("general", &tagged("x", tags), None).unwrap().seq).collect();
        let shown = |ask: HistoryAsk| {
            let view = amp.engine.history(&amp.name, &ask).unwrap();
            let seqs: Vec<u64> = view.messages.iter().map(|message| message.seq).collect();
            (seqs, view.next)
        };
        let all = HistoryAsk::of(name("general"));
        let patterns = |texts: &[&str]| taskbus::core::bus::tag::normalize_patterns(texts).unwrap();
        assert_eq!(shown(HistoryAsk { tags: patterns(&["env*"]), ..all.clone() }).0, sent[..2]);
        assert_eq!(shown(HistoryAsk { tags: patterns(&["env:*", "rust"]), ..all.clone() }).0, [sent[0], sent[2]]);
        let newest = shown(HistoryAsk { count: Some(3), ..all.clone() });
        assert_eq!(newest, (sent[1..].to_vec(), Some(sent[1])));
        assert_eq!(shown(HistoryAsk { before: newest.1, count: Some(3), ..all.clone() }), (vec![sent[0]], None));
        let first = shown(HistoryAsk { after: Some(0), count: Some(3), ..all.clone() });
        assert_eq!(first, (sent[..3].to_vec(), Some(sent[2])));
        assert_eq!(shown(HistoryAsk { after: first.1, count: Some(3), ..all.clone() }), (vec![sent[3]], None));
        assert_eq!(shown(HistoryAsk::of(name("general/none"))), (vec![], None), "no error");
        assert_eq!(shown(HistoryAsk { count: Some(limits::RECEIVE_COUNT_MAX as i64), ..all }).0.len(), 4);
    }

    fn a_history_stays_under_the_largest_result(place) {
        let zed = place.person_with("Zed", Limits { result_default_kib: 1, ..Limits::default() });
        for n in 0..9 {
            zed.say("general", &format!("{n} {}", "x".repeat(100)));
        }
        let view = zed.engine.history(&zed.name, &HistoryAsk::of(name("general"))).unwrap();
        assert!(serde_json::to_string(&view).unwrap().len() <= 1024);
        assert!(view.truncated && view.messages.len() > 1 && view.total == Some(9));
        assert!(view.messages.last().unwrap().content.starts_with('8'), "the newest are shown");
    }

    fn a_keyed_task_is_answered_when_its_list_is_gone(place) {
        let zed = place.person("Zed");
        let create = |subject: &str| {
            let draft = taskbus::core::command::Draft::new(taskbus::core::text::Subject::new(subject).unwrap());
            zed.send(Command::Create(Box::new(draft)), Some("k"))
        };
        let first = create("once").unwrap();
        drop_channel(&*place.store, "tasks/work");
        assert_eq!(create("once").unwrap(), first);
        let other = zed.send(Command::Next(Box::default()), None);
        assert!(matches!(refusal(other), Refusal::NotFound(Missing::List { .. })));
    }

    fn a_list_that_goes_before_the_lock_is_held_takes_no_task(place) {
        let mut place = place;
        let interrupted = Interrupted::over(&mut place);
        let zed = place.person("Zed");
        interrupted.before_the_next_write(|store| drop_channel(store, "tasks/work"));
        let draft = taskbus::core::command::Draft::new(taskbus::core::text::Subject::new("late").unwrap());
        let refused = refusal(zed.send(Command::Create(Box::new(draft)), None));
        assert!(matches!(refused, Refusal::NotFound(Missing::List { .. })));
    }

    fn a_write_that_fails_leaves_no_trace_and_costs_nothing(place) {
        let mut place = place;
        let watched = Watched::over(&mut place);
        let zed = place.person_with("Zed", Limits { writes_per_second: 1, ..Limits::default() });
        watched.failing(Fault::Late, || {
            for channel in ["general", "memory", "dm/Zed"] {
                zed.post(channel, &letter("x"), Some("k")).unwrap_err();
            }
            zed.follow("general", Start::Now).unwrap_err();
            let amp = place.engine(Limits::default());
            amp.register(&wish("Amp", Span::Heartbeat)).unwrap_err();
        });
        assert!(zed.engine.channels(&zed.name).unwrap().iter().all(|channel| channel.latest_seq == 0));
        assert_eq!(refusal(zed.post("dm/Amp", &letter("x"), None)).code(), "not_found");
        zed.post("general", &letter("x"), Some("k")).unwrap();
        assert!(!zed.receive(&ReceiveAsk { include_own: true, ..ReceiveAsk::default() }).unwrap().is_news());
    }

    fn numbers_that_no_store_reaches_are_only_numbers(place) {
        let zed = place.person("Zed");
        zed.say("general", "x");
        let shown = |before, after| {
            let ask = HistoryAsk { before, after, ..HistoryAsk::of(name("general")) };
            zed.engine.history(&zed.name, &ask).unwrap().messages.len()
        };
        assert_eq!([shown(Some(u64::MAX), None), shown(Some(0), None), shown(None, Some(u64::MAX))], [1, 0, 0]);
        let reply = Draft { reply_to: Some(u64::MAX), ..letter("x") };
        assert_eq!(refusal(zed.post("general", &reply, None)).code(), "not_found");
        assert_eq!(refusal(zed.engine.memory(&zed.name, u64::MAX)).code(), "not_found");
    }
}
