//! Values as scripts hand them over, and what scripts are told when these are not what they should be: errors that name
//! the line to blame, as Lua's own do.

use std::fmt::Display;

use mlua::{BorrowedBytes, Lua, LuaString, Value};

use super::class::class_of;
use crate::call_error::current_location;

/// How much of a text is shown in an error, in bytes.
const MAX_SHOWN_BYTES: usize = 80;

/// An error for the script that is running, with its file and line in front.
pub(super) fn script_error(lua: &Lua, text: impl Display) -> mlua::Error {
    match current_location(lua) {
        Some((file, line)) => mlua::Error::runtime(format_args!("{file}:{line}: {text}")),
        None => mlua::Error::runtime(text),
    }
}

/// The error of a script that writes to a field that is not there.
pub(super) fn unknown_field(lua: &Lua, object: &str, key: &Value) -> mlua::Error {
    script_error(lua, format_args!("attempt to set unknown field '{}' of {object}", display_key(key)))
}

/// A key for people to read. Tables are not asked what they are called: that would run code of the script.
pub(super) fn display_key(key: &Value) -> String {
    if matches!(key, Value::Table(_) | Value::UserData(_)) {
        return describe_type(key).to_owned();
    }
    key.to_string().map_or_else(|_| describe_type(key).to_owned(), |text| truncate(&text).to_owned())
}

/// The beginning of a text, short enough for a log.
pub(super) fn truncate(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_SHOWN_BYTES)]
}

/// What a value is, with its article: `a number`.
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

/// The name of a field that a script reads or writes; what is no text names none.
pub(super) fn field_name(key: &Value) -> Option<BorrowedBytes> {
    key.as_string().map(LuaString::as_bytes)
}

/// The text that a value has to be. A number is taken for its digits, as everywhere in Lua.
pub(super) fn expect_text(lua: &Lua, what: &str, value: Value) -> mlua::Result<LuaString> {
    let kind = describe_type(&value);
    lua.coerce_string(value)?.ok_or_else(|| script_error(lua, format_args!("{what} must be a text, not {kind}")))
}
