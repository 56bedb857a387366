//! The least that an MCP server on our SDK can be: two tools, of which one writes down a note and the other reads it
//! back, and no store. `bench/processes` measures `taskbus mcp` against it. It is not an example of how to serve.

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler, ServiceExt as _};
use serde_json::{Map, Value, json};

/// The server: a note.
#[derive(Default)]
struct TwoTools {
    note: Mutex<Value>,
}

impl TwoTools {
    fn write(&self, note: Option<Value>) -> Value {
        let mut kept = self.note.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = note.unwrap_or_default();
        json!({"written": true})
    }

    fn read(&self) -> Value {
        let note = self.note.lock().unwrap_or_else(PoisonError::into_inner);
        json!({"note": *note})
    }
}

fn tool(name: &'static str, description: &'static str, fields: &[&str]) -> Tool {
    let properties: Map<String, Value> =
        fields.iter().map(|field| ((*field).to_owned(), json!({"type": "string"}))).collect();
    let schema = json!({"type": "object", "properties": properties});
    let schema = schema.as_object().cloned().unwrap_or_default();
    Tool::new(name, description, Arc::new(schema))
}

impl ServerHandler for TwoTools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("two-tools", "1"))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = vec![tool("write", "Writes a note down", &["note"]), tool("read", "Reads the note", &[])];
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut arguments = request.arguments.unwrap_or_default();
        let facts = match request.name.as_ref() {
            "write" => self.write(arguments.remove("note")),
            "read" => self.read(),
            other => return Err(ErrorData::invalid_params(format!("unknown tool {other:?}"), None)),
        };
        let mut result = CallToolResult::success(vec![ContentBlock::text(facts.to_string())]);
        result.structured_content = Some(facts);
        Ok(result.into())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let service = TwoTools::default().serve(rmcp::transport::stdio_pipes()).await?;
        service.waiting().await?;
        Ok(())
    })
}
