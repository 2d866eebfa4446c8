//! Values from scripts and errors about them. Errors contain the line of the script, as Lua's own errors do.

use std::fmt::Display;

use mlua::{BorrowedBytes, Lua, LuaString, Value};

use super::class::class_of;
use crate::call_error::current_location;

/// The maximum length of a text in an error.
const MAX_SHOWN_BYTES: usize = 80;

/// Creates an error for the running script, with its file and line.
pub(super) fn script_error(lua: &Lua, text: impl Display) -> mlua::Error {
    match current_location(lua) {
        Some((file, line)) => mlua::Error::runtime(format_args!("{file}:{line}: {text}")),
        None => mlua::Error::runtime(text),
    }
}

/// Creates the error for an assignment to an unknown field.
pub(super) fn unknown_field(lua: &Lua, object: &str, key: &Value) -> mlua::Error {
    script_error(lua, format_args!("attempt to set unknown field '{}' of {object}", display_key(key)))
}

/// Formats a key for display. Tables are not converted with `tostring`, which would run code of the script.
pub(super) fn display_key(key: &Value) -> String {
    if matches!(key, Value::Table(_) | Value::UserData(_)) {
        return describe_type(key).to_owned();
    }
    key.to_string().map_or_else(|_| describe_type(key).to_owned(), |text| truncate(&text).to_owned())
}

/// Truncates a text for the log.
pub(super) fn truncate(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_SHOWN_BYTES)]
}

/// Returns the type of a value with its article: `a number`.
pub(crate) fn describe_type(value: &Value) -> &'static str {
    match value {
        Value::Nil => "nil",
        Value::Boolean(_) => "a boolean",
        Value::Integer(_) | Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Table(table) if class_of(table).is_none() => "a table",
        Value::Function(_) => "a function",
        _ => "another object",
    }
}

/// Returns the name of a field; `None` if the key is not a string.
pub(super) fn field_name(key: &Value) -> Option<BorrowedBytes> {
    key.as_string().map(LuaString::as_bytes)
}

/// Converts a value to a string, or fails. A number is converted to its digits, as everywhere in Lua.
pub(super) fn expect_text(lua: &Lua, name: &str, value: Value) -> mlua::Result<LuaString> {
    let type_name = describe_type(&value);
    lua.coerce_string(value)?.ok_or_else(|| script_error(lua, format_args!("{name} must be a text, not {type_name}")))
}
