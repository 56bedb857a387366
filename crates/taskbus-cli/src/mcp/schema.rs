//! The published form of the table: JSON schemas that every client reads. One flat object for each tool, one explicit
//! `type` everywhere, and none of the keywords over which some client stumbles (`anyOf`, `$ref`, `default`, `format`,
//! `null`, lists of types).

use serde_json::{Map, Value, json};

use super::field::{Effect, Field, Kind, Tool};

/// The definition of a tool, as `tools/list` shows it.
pub(super) fn definition(tool: &Tool) -> Value {
    let mut definition = json!({
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": object(tool.fields),
        "annotations": annotations(tool.effect),
    });
    if tool.always_load {
        definition["_meta"] = json!({"anthropic/alwaysLoad": true});
    }
    definition
}

fn annotations(effect: Effect) -> Value {
    json!({
        "readOnlyHint": effect == Effect::Read,
        "destructiveHint": effect == Effect::Remove,
        "idempotentHint": matches!(effect, Effect::Read | Effect::WriteOnce),
        "openWorldHint": false,
    })
}

fn object(fields: &[Field]) -> Value {
    let properties: Map<String, Value> = fields.iter().map(|field| (field.name.to_owned(), property(field))).collect();
    let required: Vec<&str> = fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema["additionalProperties"] = json!(false);
    schema
}

fn property(field: &Field) -> Value {
    let mut schema = shape(field.kind);
    if !field.doc.is_empty() {
        schema["description"] = json!(field.doc);
    }
    schema
}

fn shape(kind: Kind) -> Value {
    match kind {
        Kind::Text | Kind::Clearable | Kind::Date | Kind::Reference | Kind::IdText => json!({"type": "string"}),
        Kind::Word(words) => json!({"type": "string", "enum": words}),
        Kind::Flag => json!({"type": "boolean"}),
        Kind::Integer { min, max: i64::MAX } => json!({"type": "integer", "minimum": min}),
        Kind::Integer { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
        Kind::Id | Kind::IdOrNone | Kind::Seq | Kind::Millis => json!({"type": "integer"}),
        Kind::Ids => json!({"type": "array", "items": {"type": "integer"}}),
        Kind::Words | Kind::Texts | Kind::References | Kind::IdTexts => {
            json!({"type": "array", "items": {"type": "string"}})
        }
        Kind::Metadata => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        Kind::Data => json!({"type": "object", "additionalProperties": true}),
        Kind::Items(fields) => json!({"type": "array", "items": object(fields)}),
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
