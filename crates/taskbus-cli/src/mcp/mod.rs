//! The MCP server over standard input and output.
mod args;
mod calls;
mod desk;
mod field;
mod gate;
mod near;
mod people;
mod schema;
mod table;
#[cfg(test)]
mod trial;

use taskbus_core::refusal::{Invalid, Refusal};
use taskbus_core::text::TextError;

use crate::wire::error::Failure;

/// A text as what it must be, or the refusal that names the field.
fn typed<T>(field: &'static str, text: String, new: impl FnOnce(String) -> Result<T, TextError>) -> Result<T, Failure> {
    new(text).map_err(|error| Refusal::Invalid(Invalid::Text { field, error }).into())
}
