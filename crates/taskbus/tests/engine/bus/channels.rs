//! Channels: made, listed, and there from the start.

use taskbus::core::bus::channel::ChannelKind;
use taskbus::core::bus::rules::Start;
use taskbus::core::neighbourhood::ListRules;
use taskbus::core::refusal::{Conflict, Invalid, Refusal};
use taskbus::engine::{Error, HistoryAsk, Limits};

use super::name;
use crate::support::{Person, Watched, on_every_store, refusal};

fn create(person: &Person, channel: &str, kind: Option<ChannelKind>) -> Result<ChannelKind, Error> {
    let made = person.engine.create_channel(&person.name, &name(channel), kind, ListRules::default())?;
    assert_eq!(made.name, name(channel));
    Ok(made.kind)
}

fn listed(person: &Person) -> Vec<String> {
    person.engine.channels(&person.name).unwrap().into_iter().map(|channel| channel.name.into()).collect()
}

on_every_store! {
    fn a_name_says_what_kind_of_channel_it_is(place) {
        let zed = place.person("Zed");
        let (ordinary, memory) = (Some(ChannelKind::Ordinary), Some(ChannelKind::Memory));
        assert_eq!(create(&zed, "tasks/app", memory).unwrap(), ChannelKind::Memory);
        assert_eq!(create(&zed, "tasks/app", None).unwrap(), ChannelKind::Memory);
        assert_eq!(create(&zed, "general/app", None).unwrap(), ChannelKind::Ordinary);
        assert_eq!(create(&zed, "plain", memory).unwrap(), ChannelKind::Memory);
        let refused = refusal(create(&zed, "tasks/app", ordinary));
        assert!(matches!(refused, Refusal::Invalid(Invalid::Kind { .. })) && refused.to_string().contains("memory"));
        assert_eq!(refusal(create(&zed, "dm/Amp", ordinary)).code(), "validation");
        assert_eq!(refusal(create(&zed, "other", None)).code(), "validation");
        let other = refusal(create(&zed, "plain", ordinary));
        assert!(matches!(other, Refusal::Conflict(Conflict::ChannelExists { .. })));
        assert!(zed.engine.lists().unwrap().iter().any(|list| list.name.as_str() == "tasks/app"));
    }

    fn channels_are_listed_without_inboxes(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        zed.make("general/app");
        zed.say("general/app", "x");
        zed.say("dm/Amp", "x");
        place.clock.advance(5);
        zed.create("a task");
        assert_eq!(listed(&amp), ["general", "general/app", "memory", "tasks/work"]);
        let all = amp.engine.channels(&amp.name).unwrap();
        assert_eq!((all[1].messages, all[1].last_activity), (1, None));
        assert_eq!((all[3].messages, all[3].last_activity), (1, Some(place.now())));
        assert!(all[3].latest_seq > all[1].latest_seq);
        assert!(amp.engine.channels_all().unwrap().iter().any(|channel| channel.name == name("dm/Zed")));
    }

    fn the_default_channels_are_there_before_anybody_writes(place) {
        let mut place = place;
        let watched = Watched::over(&mut place);
        let zed = place.person("Zed");
        let writes = watched.writes_during(|| {
            assert_eq!(listed(&zed), ["general", "memory", "tasks/work"]);
            zed.engine.history(&zed.name, &HistoryAsk::of(name("general"))).unwrap();
        });
        assert_eq!(writes, 0);
        assert_eq!(create(&zed, "general", Some(ChannelKind::Ordinary)).unwrap(), ChannelKind::Ordinary);
        zed.follow("memory", Start::Oldest).unwrap();
        assert!(!zed.all().is_news(), "it is there, though nobody has written to it");
        let amp = place.person("Amp");
        amp.say("memory", "kept");
        assert_eq!(zed.all().messages.len(), 1);
    }

    fn who_is_there_can_be_asked_unless_it_is_switched_off(place) {
        let (zed, _amp) = (place.person("Zed"), place.person("Amp"));
        let there = zed.engine.discover(&zed.name).unwrap();
        let names: Vec<&str> = there.iter().map(|session| session.name.as_str()).collect();
        assert_eq!(names, ["Amp", "Zed"]);
        let jan = place.person_with("Jan", Limits { discovery_enabled: false, ..Limits::default() });
        let refused = refusal(jan.engine.discover(&jan.name));
        assert!(refused.to_string().contains("discovery_enabled"), "{refused}");
    }
}
