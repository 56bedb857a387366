//! The set `full`: what `core` leaves out of the bus. It comes with the tools of `core`.

use crate::mcp::calls::{channels, memory, messages};
use crate::mcp::field::{Effect, Field, Kind, Tool};

use super::core::{AS, COUNT, KEY, METADATA, TYPE};

/// The tools, in the order in which they are published.
pub(super) const TOOLS: [&Tool; 9] =
    [&LIST_CHANNELS, &SUBSCRIBE, &UNSUBSCRIBE, &HISTORY, &SEARCH, &GET_MEMORY, &EDIT_MEMORY, &DELETE_MEMORY, &DISCOVER];

const CURSOR: Field = Field::new("cursor", Kind::Text, "next of the last page");
const ANY_TAGS: Field = Field::new("tags", Kind::Words, "any of these; prefix*");
const MEMORY_ID: Field = Field::new("id", Kind::Seq, "memory_id").or(&["memory_id"]).required();
const FOLLOWED: Field = Field::new("channel", Kind::Text, "");
const FOLLOWED_TAGS: Field = Field::new("tags", Kind::Words, "instead: messages with all of these, anywhere; prefix*");

const LIST_CHANNELS: Tool = Tool {
    name: "list_channels",
    title: "List channels",
    description: "Every channel by name, task lists too, inboxes not: kind, how many messages, memories or tasks are \
        live, the newest number, and of task lists when something last happened. More than fit: total and next.",
    effect: Effect::Read,
    always_load: false,
    fields: &[CURSOR, AS],
    run: channels::list,
};

const SUBSCRIBE: Tool = Tool {
    name: "subscribe",
    title: "Subscribe",
    description: "Hear a channel by receive from now on, or messages with certain tags in any ordinary channel. Who \
        is subscribed already keeps the place. Task lists can be heard: each change is a message. Unknown: not_found.",
    effect: Effect::WriteOnce,
    always_load: false,
    fields: &[
        FOLLOWED,
        FOLLOWED_TAGS,
        Field::new("from", Kind::Word(channels::BEGINNINGS), "now if left out"),
        Field::new("persistent", Kind::Flag, "for every agent of this repository, kept in .local/taskbus.json"),
        AS,
    ],
    run: channels::subscribe,
};

const UNSUBSCRIBE: Tool = Tool {
    name: "unsubscribe",
    title: "Unsubscribe",
    description: "Hear a channel no longer, or a set of tags, named as it was subscribed to. Fine if you did not.",
    effect: Effect::WriteOnce,
    always_load: false,
    fields: &[
        FOLLOWED,
        FOLLOWED_TAGS.doc("instead: that set"),
        Field::new("persistent", Kind::Flag, "take it out of .local/taskbus.json too"),
        AS,
    ],
    run: channels::unsubscribe,
};

const HISTORY: Tool = Tool {
    name: "history",
    title: "Read channel",
    description: "Messages of a channel, read or not, oldest first, the newest of them if not all fit; it moves no \
        place. Earlier ones: before with the lowest seq you have; later ones: after. Other agents' inboxes are not \
        found.",
    effect: Effect::Read,
    always_load: false,
    fields: &[
        Field::new("channel", Kind::Text, "").required(),
        Field::new("before", Kind::Seq, "seq, exclusive"),
        Field::new("after", Kind::Seq, "seq, exclusive"),
        COUNT,
        ANY_TAGS,
        AS,
    ],
    run: messages::history,
};

const SEARCH: Tool = Tool {
    name: "search",
    title: "Search",
    description: "Find memories, messages and tasks. All words must occur; word* is a beginning; other signs are no \
        syntax. mode text by words, semantic by meaning (memories only), both if set up. Returns hits, best first, and \
        next. Search before you solve what somebody may have solved.",
    effect: Effect::Read,
    always_load: false,
    fields: &[
        Field::new("query", Kind::Text, "").required(),
        Field::new("mode", Kind::Word(messages::MODES), ""),
        Field::new("channel", Kind::Text, "only here"),
        Field::new("sender", Kind::Text, ""),
        Field::new("since", Kind::Millis, "Unix ms"),
        Field::new("until", Kind::Millis, "Unix ms"),
        Field::new("thread", Kind::Seq, "this message and its answers"),
        ANY_TAGS,
        COUNT,
        CURSOR,
        AS,
    ],
    run: messages::search,
};

const GET_MEMORY: Tool = Tool {
    name: "get_memory",
    title: "Read memory",
    description: "One memory as it is now, by its memory_id. Gone: not_found.",
    effect: Effect::Read,
    always_load: false,
    fields: &[MEMORY_ID, AS],
    run: memory::get,
};

const EDIT_MEMORY: Tool = Tool {
    name: "edit_memory",
    title: "Edit memory",
    description: "Replace the content of a memory; its id stays. type and metadata are replaced too (left out: none), \
        subject and tags stay when left out. Returns {seq, memory_id, revision, replaced}. The last writer wins: read \
        it just before.",
    effect: Effect::Remove,
    always_load: false,
    fields: &[
        MEMORY_ID,
        Field::new("content", Kind::Text, "").required(),
        Field::new("subject", Kind::Clearable, ""),
        TYPE,
        Field::new("tags", Kind::Words, "replace; [] clears"),
        METADATA,
        KEY,
        AS,
    ],
    run: memory::edit,
};

const DELETE_MEMORY: Tool = Tool {
    name: "delete_memory",
    title: "Delete memory",
    description: "Delete a memory that is no longer true. Who hears its channel is told. Returns {deleted}.",
    effect: Effect::Remove,
    always_load: false,
    fields: &[MEMORY_ID, KEY, AS],
    run: memory::delete,
};

const DISCOVER: Tool = Tool {
    name: "discover",
    title: "Who is here",
    description: "The agents that are here now: name, what they work on, program, since when. Write to one with send \
        {channel: \"dm/NAME\"}.",
    effect: Effect::Read,
    always_load: false,
    fields: &[CURSOR, AS],
    run: channels::discover,
};
