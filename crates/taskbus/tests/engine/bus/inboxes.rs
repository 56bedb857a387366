//! Direct messages.

use taskbus::core::bus::rules::Start;
use taskbus::core::refusal::Refusal;
use taskbus::engine::HistoryAsk;

use super::{contents, letter, name};
use crate::support::{Person, on_every_store, refusal, wish};

fn history(person: &Person, channel: &str) -> Result<usize, Refusal> {
    match person.engine.history(&person.name, &HistoryAsk::of(name(channel))) {
        Ok(view) => Ok(view.messages.len()),
        refused => Err(refusal(refused)),
    }
}

on_every_store! {
    fn a_message_waits_in_the_inbox_of_who_is_not_there(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        zed.say("dm/Amp", "while you are here");
        let first = amp.all();
        assert_eq!(contents(&first), ["while you are here"]);
        assert!(amp.ack(&first).messages.is_empty());
        amp.engine.close().unwrap();
        zed.say("dm/Amp", "while you are away");
        let again = place.person("Amp");
        assert_eq!(contents(&again.all()), ["while you are away"]);
    }

    fn nobody_else_reads_an_inbox_or_learns_whether_it_is_there(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        zed.say("dm/Amp", "for you");
        assert_eq!(history(&amp, "dm/Amp"), Ok(1));
        let foreign = history(&zed, "dm/Amp").unwrap_err();
        let missing = history(&zed, "dm/Nobody").unwrap_err();
        assert_eq!(foreign.code(), "not_found");
        assert_eq!(foreign.to_string().replace("Amp", "X"), missing.to_string().replace("Nobody", "X"));
        let owned = history(&amp, "dm/Zed/impl").unwrap_err();
        assert_eq!(owned.code(), "not_found", "an inbox of Zed/impl, of whom nobody has heard");
    }

    fn an_inbox_of_nobody_takes_no_message(place) {
        let zed = place.person("Zed");
        let refused = refusal(zed.post("dm/Nobody", &letter("x"), None));
        assert_eq!(refused.code(), "not_found");
        assert!(refused.to_string().contains("never registered"), "{refused}");
    }

    fn an_inbox_is_made_and_followed_by_registering_alone(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        for channel in ["dm/Amp", "dm/Zed"] {
            assert_eq!(refusal(zed.follow(channel, Start::Oldest)).code(), "validation");
            assert_eq!(refusal(zed.unfollow(channel)).code(), "validation");
        }
        let again = amp.engine.register(&wish("Amp", taskbus::engine::Span::Heartbeat)).unwrap();
        assert_eq!(again.pending.len(), 1, "one inbox, however often one registers");
    }

    fn an_answer_names_only_what_its_sender_can_know_of(place) {
        let (zed, amp, jan) = (place.person("Zed"), place.person("Amp"), place.person("Jan"));
        let private = zed.say("dm/Amp", "between us");
        let reply = taskbus::core::bus::message::Draft { reply_to: Some(private), ..letter("yes") };
        amp.post("dm/Zed", &reply, None).unwrap();
        zed.post("general", &reply, None).unwrap();
        assert_eq!(refusal(jan.post("general", &reply, None)).code(), "not_found");
    }
}
