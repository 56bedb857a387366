//! `send`, `receive`, `history` and `search`.

use taskbus::engine::{HistoryAsk, ReceiveAsk, SearchAsk};
use taskbus_core::bus::channel::ChannelName;
use taskbus_core::bus::message::{Content, Draft, Headline, Metadata, Sort};
use taskbus_core::bus::query::Mode;
use taskbus_core::bus::tag;
use taskbus_core::name::Identity;

use super::Act;
use crate::mcp::args::Args;
use crate::mcp::desk::{Asked, Desk, Reply};
use crate::mcp::typed;
use crate::wire::error::Failure;
use crate::wire::object;

/// The words for how to search, for the table.
pub(crate) const MODES: &[&str] = &["text", "semantic", "both"];

/// Sends a message.
pub(crate) fn send(desk: &Desk, args: &mut Args, asked: &Asked<'_>) -> Result<Reply, Failure> {
    let channel = typed("channel", args.required_text("channel"), ChannelName::new)?;
    let draft = draft(args)?;
    let act = Act::begin(desk, args, asked)?;
    let sent = act.engine.send(&act.who.name, &channel, &draft, act.key.as_ref())?;
    Ok(act.signed(object(&sent)))
}

fn draft(args: &mut Args) -> Result<Draft, Failure> {
    Ok(Draft {
        content: typed("content", args.required_text("content"), Content::new)?,
        sort: sort(args)?,
        subject: args.text("subject").map_or(Ok(None), |text| typed("subject", text, |text| Headline::new(&text)))?,
        reply_to: args.seq("reply_to"),
        metadata: metadata(args),
        tags: tag::normalize(&args.texts("tags").unwrap_or_default())?,
    })
}

/// What a message is about.
pub(super) fn sort(args: &mut Args) -> Result<Sort, Failure> {
    args.text("type").map_or(Ok(Sort::default()), |text| typed("type", text, Sort::new))
}

/// Free data of a message, if there is any.
pub(super) fn metadata(args: &mut Args) -> Option<Metadata> {
    let pairs: Metadata = args.pairs("metadata").into_iter().collect();
    Some(pairs).filter(|pairs| !pairs.is_empty())
}

/// Receives what is new, and waits for it if asked to.
pub(crate) fn receive(desk: &Desk, args: &mut Args, asked: &Asked<'_>) -> Result<Reply, Failure> {
    let channels = args.texts("channels").unwrap_or_default().into_iter();
    let ask = ReceiveAsk {
        ack: args.text("ack"),
        count: count(args),
        wait: super::wait(args, asked),
        channels: channels.map(|name| typed("channels", name, ChannelName::new)).collect::<Result<_, _>>()?,
        include_own: args.flag("include_own"),
        exempt_from_polling: false,
    };
    let act = Act::begin(desk, args, asked)?;
    let received = act.engine.receive(&act.who.name, &ask, asked.hurry)?;
    if (asked.cancelled)() {
        act.engine.take_back(&act.who.name, &received)?;
    }
    Ok(act.signed(object(&received)))
}

/// How many.
fn count(args: &mut Args) -> Option<i64> {
    args.count("count").map(|count| i64::try_from(count).unwrap_or(i64::MAX))
}

/// Shows messages of a channel.
pub(crate) fn history(desk: &Desk, args: &mut Args, asked: &Asked<'_>) -> Result<Reply, Failure> {
    let ask = HistoryAsk {
        channel: typed("channel", args.required_text("channel"), ChannelName::new)?,
        before: args.seq("before"),
        after: args.seq("after"),
        count: count(args),
        tags: tag::normalize_patterns(&args.texts("tags").unwrap_or_default())?,
    };
    let act = Act::begin(desk, args, asked)?;
    let history = act.engine.history(&act.who.name, &ask)?;
    Ok(act.rows(object(&history), "messages"))
}

/// Finds messages and memories.
pub(crate) fn search(desk: &Desk, args: &mut Args, asked: &Asked<'_>) -> Result<Reply, Failure> {
    let ask = SearchAsk {
        query: args.required_text("query"),
        mode: args.word("mode").and_then(Mode::from_word),
        channel: args.text("channel").map(|name| typed("channel", name, ChannelName::new)).transpose()?,
        sender: args.text("sender").map(|name| typed("sender", name, Identity::new)).transpose()?,
        since: args.time("since").flatten(),
        until: args.time("until").flatten(),
        thread: args.seq("thread"),
        tags: tag::normalize_patterns(&args.texts("tags").unwrap_or_default())?,
        count: count(args),
        cursor: args.text("cursor"),
        touch: true,
    };
    let act = Act::begin(desk, args, asked)?;
    let found = act.engine.search(&act.who.name, &ask)?;
    Ok(act.signed(object(&found)))
}
