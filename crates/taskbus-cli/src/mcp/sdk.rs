//! The one file that names the SDK. It speaks both eras of the protocol for us: the handshake (2025-11-25 and before)
//! and requests that carry everything (2026-07-28). We give it messages that passed the gate, and tools from the
//! table; it gives us calls.
//!
//! The SDK's own handshake is left out (`serve_directly_with_ct`): it ends the connection over any message that it
//! does not expect before `initialize`, and nothing here depends on the order.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use http_body_util::Full;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientJsonRpcMessage, ContentBlock, CustomRequest,
    CustomResult, ErrorCode, ErrorData, GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation,
    InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, PromptMessage, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, ResourceContents, ResourceTemplate, ResourceUpdatedNotificationParam, Role, ServerCapabilities,
    ServerConfig, ServerJsonRpcMessage, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{
    Peer, RequestContext, RunningService, RxJsonRpcMessage, SubscriptionContext, SubscriptionSink, TxJsonRpcMessage,
};
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Value, json};
use taskbus::answer::ListView;
use taskbus::engine::Engine;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::desk::{Desk, Reply};
use super::flight::Flight;
use super::house::{Caller, House};
use super::near::nearest;
use super::prompts::{self, Prompt};
use super::resources::{self, Resource};
use super::schema::definition;
use super::seats::{self, Seat};
use super::stdio::{Closed, Incoming, Outgoing};
use super::table::{Offer, Offered};
use super::voice;
use super::watch::{Listener, WATCHED_MAX};
use crate::mounted::{Answering, Callers, Request};
use crate::options::ToolSet;
use crate::wire::error::Failure;

/// Messages between the gate and the SDK.
const MESSAGES_WAITING: usize = 16;

/// Standard input and output: the pipes that clients give us are driven without threads.
pub(super) fn pipes() -> (impl AsyncRead + Unpin + Send + 'static, impl AsyncWrite + Unpin + Send + 'static) {
    rmcp::transport::stdio_pipes()
}

/// Serves the desk until `ending`; ends it when the input does.
pub(super) fn serve(
    desk: Arc<Desk>,
    offer: Offer,
    reader: impl AsyncRead + Unpin + Send + 'static,
    outgoing: Outgoing,
    ending: &CancellationToken,
) -> RunningService<RoleServer, Server> {
    let (messages, received) = mpsc::channel(MESSAGES_WAITING);
    let flight = Arc::new(Flight::default());
    let incoming = Incoming { parse, messages, outgoing: outgoing.clone(), flight: Arc::clone(&flight) };
    tokio::spawn(incoming.read(reader, ending.clone()));
    let line = Line { received, outgoing: Some(outgoing), flight };
    let house = House::of_one(desk, ending.clone());
    let seat = OnceLock::from(Arc::clone(&house.common));
    let server = Server::new(Arc::new(Shop::new(offer)), Arc::new(house), seat);
    rmcp::service::serve_directly_with_ct(server, line, None, CancellationToken::new())
}

/// Answers requests over HTTP until `cut`, which ends sessions and streams.
pub(super) fn over_http(
    shop: Arc<Shop>,
    house: Arc<House>,
    callers: &Callers,
    cut: CancellationToken,
) -> impl Fn(Request) -> Answering + Send + Sync + use<> {
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(seats::IDLE);
    let config = StreamableHttpServerConfig::default().with_json_response(true).with_cancellation_token(cut);
    let server = move || Ok::<_, io::Error>(Server::new(Arc::clone(&shop), Arc::clone(&house), OnceLock::new()));
    let service = StreamableHttpService::new(server, Arc::new(sessions), checking(config, callers));
    move |request| {
        let service = service.clone();
        Box::pin(async move { service.handle(request.map(Full::new)).await })
    }
}

/// The server in front has looked at `Host` and `Origin` already; where they can be listed, the SDK looks again.
fn checking(config: StreamableHttpServerConfig, callers: &Callers) -> StreamableHttpServerConfig {
    let Some(hosts) = &callers.hosts else { return config.disable_allowed_hosts() };
    let own = hosts.iter().flat_map(|host| ["http", "https"].map(|scheme| format!("{scheme}://{host}:*")));
    let origins: Vec<String> = own.chain(callers.origins.iter().cloned()).collect();
    config.with_allowed_hosts(hosts).with_allowed_origins(origins).enforce_origin_validation()
}

fn parse(message: Value) -> Result<ClientJsonRpcMessage, Value> {
    let id = message.get("id").cloned();
    serde_json::from_value(message).map_err(|error| {
        let message = format!("the message cannot be read: {error}");
        json!({"jsonrpc": "2.0", "id": id, "error": {"code": ErrorCode::INVALID_REQUEST.0, "message": message}})
    })
}

/// The connection as the SDK wants it.
struct Line {
    received: mpsc::Receiver<ClientJsonRpcMessage>,
    outgoing: Option<Outgoing>,
    flight: Arc<Flight>,
}

impl Transport<RoleServer> for Line {
    type Error = Closed;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Closed>> + Send + 'static {
        let (outgoing, flight) = (self.outgoing.clone(), Arc::clone(&self.flight));
        async move {
            let sent = outgoing.ok_or(Closed)?.send(&message).await;
            if let Some(id) = answered(&message) {
                flight.done(&id);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.received.recv().await
    }

    async fn close(&mut self) -> Result<(), Closed> {
        self.outgoing = None;
        Ok(())
    }
}

/// The request that a message answers.
fn answered(message: &ServerJsonRpcMessage) -> Option<Value> {
    let id = match message {
        ServerJsonRpcMessage::Response(response) => Some(&response.id),
        ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
        ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_) => None,
    };
    id.map(|id| json!(id))
}

/// What every connection of this process is told of us.
pub(super) struct Shop {
    offer: Offer,
    config: ServerConfig,
    tools: Vec<rmcp::model::Tool>,
}

impl Shop {
    /// What is offered, as the SDK publishes it.
    pub(super) fn new(offer: Offer) -> Self {
        let offered = ServerCapabilities::builder().enable_tools().enable_resources().enable_resources_subscribe();
        let offered = if offer.prompts.is_empty() { offered.build() } else { offered.enable_prompts().build() };
        let config = ServerConfig::new(offered)
            .with_server_info(Implementation::new("taskbus", env!("CARGO_PKG_VERSION")).with_title("taskbus"))
            .with_instructions(offer.instructions.as_str());
        let tools = offer.tools.iter().map(published).collect();
        Self { offer, config, tools }
    }
}

/// The server as the SDK sees it: one for each connection, and for each request without a session.
pub(super) struct Server {
    shop: Arc<Shop>,
    house: Arc<House>,
    /// Where this client sits, once it has shaken hands.
    seat: OnceLock<Arc<Seat>>,
    /// What the client of the older era watches, each with the end of its watching.
    watched: Mutex<BTreeMap<String, CancellationToken>>,
}

impl Server {
    fn new(shop: Arc<Shop>, house: Arc<House>, seat: OnceLock<Arc<Seat>>) -> Self {
        Self { shop, house, seat, watched: Mutex::default() }
    }

    /// Asks the engine for what a resource holds.
    async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Engine) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, ErrorData> {
        self.house.look(look).await.map_err(|failure| fault(&failure))
    }

    fn watched(&self) -> MutexGuard<'_, BTreeMap<String, CancellationToken>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sit_down(&self) -> Result<(), ErrorData> {
        if self.seat.get().is_none() {
            let seat = self.house.enter().map_err(|failure| ErrorData::internal_error(failure.message, None))?;
            if let Err(late) = self.seat.set(seat) {
                self.house.leave(late);
            }
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(seat) = self.seat.take() {
            self.house.leave(seat);
        }
    }
}

/// A definition from the table in the SDK's type; both have the same JSON.
fn published(offered: &Offered) -> rmcp::model::Tool {
    serde_json::from_value(definition(offered.tool)).expect("BUG: a definition is a tool")
}

fn caller(context: &RequestContext<RoleServer>) -> Caller {
    let client = context.client_info();
    let text = |name: &str| context.meta.get(name).and_then(Value::as_str).map(str::to_owned);
    Caller {
        // Codex names the thread, and the session that began it.
        thread: text("threadId").or_else(|| text("sessionId")).filter(|thread| !thread.trim().is_empty()),
        client: client.as_ref().map_or_else(String::new, |client| client.name.clone()),
        version: client.map_or_else(String::new, |client| client.version),
        cancelled: context.ct.clone(),
    }
}

fn result(set: ToolSet, outcome: Result<Reply, Failure>) -> CallToolResult {
    let reply = outcome.unwrap_or_else(|failure| voice::refusal(set, failure));
    let is_error = reply.is_error;
    let (text, facts) = reply.into_text();
    let content = vec![ContentBlock::text(text)];
    let mut result = if is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.structured_content = Some(facts);
    result
}

/// A failure where the protocol has no result that could say it.
fn fault(failure: &Failure) -> ErrorData {
    let code = if failure.code == "internal" { ErrorCode::INTERNAL_ERROR } else { ErrorCode::INVALID_PARAMS };
    let facts = failure.to_object();
    let message = facts["message"].as_str().unwrap_or_default().to_owned();
    ErrorData::new(code, message, Some(Value::Object(facts)))
}

fn no_resource(uri: &str) -> ErrorData {
    let shown = crate::wire::error::cut(uri, 256);
    let hint = "there are taskbus://list/NAME and taskbus://task/ID, for lists and tasks that exist";
    ErrorData::resource_not_found(format!("there is no resource {shown:?}; {hint}"), Some(json!({"uri": shown})))
}

fn published_prompt(prompt: &Prompt) -> rmcp::model::Prompt {
    let argument = |argument: &prompts::Argument| {
        rmcp::model::PromptArgument::new(argument.name).with_description(argument.description).with_required(false)
    };
    let arguments = prompt.arguments.iter().map(argument).collect();
    rmcp::model::Prompt::new(prompt.name, Some(prompt.description), Some(arguments)).with_title(prompt.title)
}

fn published_list(list: &ListView) -> rmcp::model::Resource {
    let description = format!("{} live tasks", list.tasks);
    rmcp::model::Resource::new(resources::address(&list.name), list.name.as_str())
        .with_description(description)
        .with_mime_type(resources::MIME_TYPE)
}

/// Where notices of changes go: to a client of the older era, or to one listener of the newer.
enum Teller {
    Peer(Peer<RoleServer>),
    Sink(SubscriptionSink),
}

impl Teller {
    /// Tells of a change; whether anybody heard.
    async fn tell(&self, uri: String) -> bool {
        match self {
            Self::Peer(peer) => peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.is_ok(),
            Self::Sink(sink) => sink.notify_resource_updated(uri).await.is_ok(),
        }
    }
}

/// Tells of changes until `ended`, or until nobody hears.
async fn tell(mut listener: Listener, to: Teller, ended: impl Future<Output = ()>) {
    let mut ended = std::pin::pin!(ended);
    loop {
        let changed = tokio::select! {
            () = &mut ended => return,
            changed = listener.changed() => changed,
        };
        match changed {
            Ok(addresses) => {
                for address in addresses {
                    if !to.tell(address).await {
                        return;
                    }
                }
            }
            Err(failure) => tracing::warn!(failure.message, "a watched resource could not be looked at"),
        }
    }
}

fn unknown_tool(offer: &Offer, name: &str) -> ErrorData {
    let hint = match nearest(name, offer.names()) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("there are {}", offer.names().collect::<Vec<_>>().join(", ")),
    };
    let shown = crate::wire::error::cut(name, 64);
    ErrorData::invalid_params(format!("unknown tool {shown:?}; {hint}"), None)
}

fn unknown_prompt(offer: &Offer, name: &str) -> ErrorData {
    let names: Vec<&str> = offer.prompts.iter().map(|prompt| prompt.name).collect();
    let shown = crate::wire::error::cut(name, 64);
    let message = match names.as_slice() {
        [] => format!("there is no prompt {shown:?}; prompts come with the tools of the set core"),
        names => format!("there is no prompt {shown:?}; there are {}", names.join(", ")),
    };
    ErrorData::invalid_params(message, None)
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        self.shop.config.clone()
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        self.sit_down()?;
        let answer = self.negotiate_initialize(&request)?;
        // What was agreed on counts from here on, not what was asked for.
        let mut peer = request;
        peer.protocol_version = answer.protocol_version.clone();
        context.peer.set_peer_info(peer);
        Ok(answer)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.shop.tools.clone()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(offered) = self.shop.offer.find(&request.name) else {
            return Err(unknown_tool(&self.shop.offer, &request.name));
        };
        let arguments = request.arguments.unwrap_or_default();
        let outcome = self.house.call(self.seat.get(), offered, arguments, caller(&context)).await;
        Ok(result(offered.set, outcome).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(self.shop.offer.prompts.iter().map(published_prompt).collect()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let Some(prompt) = self.shop.offer.prompts.iter().find(|prompt| prompt.name == request.name) else {
            return Err(unknown_prompt(&self.shop.offer, &request.name));
        };
        let told = prompt
            .told(request.arguments.unwrap_or_default(), self.shop.offer.one_list)
            .map_err(|failure| fault(&failure))?;
        let messages = vec![PromptMessage::new_text(Role::User, told)];
        Ok(GetPromptResult::new(messages).with_description(prompt.description).into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let (lists, next) = self.look(move |engine| resources::lists(engine, cursor.as_deref())).await?;
        let mut page = ListResourcesResult::with_all_items(lists.iter().map(published_list).collect());
        page.next_cursor = next;
        Ok(page)
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = |(uri, name, about): &(&str, &str, &str)| {
            ResourceTemplate::new(*uri, *name).with_description(*about).with_mime_type(resources::MIME_TYPE)
        };
        Ok(ListResourceTemplatesResult::with_all_items(resources::TEMPLATES.iter().map(template).collect()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let resource = Resource::parse(&request.uri).ok_or_else(|| no_resource(&request.uri))?;
        let held = self.look(move |engine| resource.read(engine)).await?;
        let text = held.ok_or_else(|| no_resource(&request.uri))?;
        let contents = ResourceContents::text(text, request.uri).with_mime_type(resources::MIME_TYPE);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let uri = request.uri;
        if Resource::parse(&uri).is_none() {
            return Err(no_resource(&uri));
        }
        let listener = self.house.watch.listen(vec![uri.clone()]).await.map_err(|failure| fault(&failure))?;
        let end = self.house.ending.child_token();
        let mut watched = self.watched();
        if watched.len() >= WATCHED_MAX && !watched.contains_key(&uri) {
            let message = format!("{WATCHED_MAX} resources are watched already; unsubscribe from one first");
            return Err(ErrorData::invalid_params(message, None));
        }
        if let Some(earlier) = watched.insert(uri, end.clone()) {
            earlier.cancel();
        }
        tokio::spawn(tell(listener, Teller::Peer(context.peer), async move { end.cancelled().await }));
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if let Some(watching) = self.watched().remove(&request.uri) {
            watching.cancel();
        }
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        // Lists of tools, prompts and resources are not announced. A client that wants nothing else is not sent away,
        // because some take a refusal for a broken server.
        let wanted = requested.resource_subscriptions.iter().flatten();
        let known = wanted.filter(|uri| Resource::parse(uri).is_some()).take(WATCHED_MAX);
        Some(SubscriptionFilter::builder().resource_subscriptions(known).build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let ended = async {
            tokio::select! {
                () = context.cancelled() => {}
                () = self.house.ending.cancelled() => {}
            }
        };
        let wanted = context.accepted().resource_subscriptions.clone().unwrap_or_default();
        if wanted.is_empty() {
            ended.await;
            return Ok(());
        }
        let listener = self.house.watch.listen(wanted).await.map_err(|failure| fault(&failure))?;
        let teller = Teller::Sink(context.sink().clone());
        // The client was told that it is heard before we listened, and cannot know what changed in between.
        for address in listener.addresses() {
            teller.tell(address.to_owned()).await;
        }
        tell(listener, teller, ended).await;
        Ok(())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // The gate lets only known methods through: one that the SDK does not recognise has parameters of another
        // shape than the protocol says.
        Err(ErrorData::invalid_params(format!("the params of {} cannot be read", request.method), None))
    }
}
