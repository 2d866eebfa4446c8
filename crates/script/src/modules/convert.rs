//! Conversion of Lua values: texts become UTF-8 with a maximum length, numbers become `f64`.

use mlua::{Lua, LuaString, Value};

use crate::limits;

/// Converts a value as `tostring` does. Invalid UTF-8 is replaced.
pub(super) fn to_text(lua: &Lua, value: &Value) -> mlua::Result<String> {
    match value {
        Value::String(text) => Ok(text.to_string_lossy()),
        // Format numbers as Lua does: 1e20, not a row of zeros.
        Value::Number(_) | Value::Integer(_) => {
            Ok(lua.coerce_string(value.clone())?.map(|text| text.to_string_lossy()).unwrap_or_default())
        }
        // A `__tostring` metamethod may be a host function that calls this function again.
        Value::Table(_) | Value::UserData(_) => {
            limits::check_limits(lua)?;
            value.to_string()
        }
        other => other.to_string(),
    }
}

/// Returns the first `max_bytes` bytes of the result of [`to_text`]. Does not copy the rest of long texts.
pub(super) fn to_text_prefix(lua: &Lua, value: &Value, max_bytes: usize) -> mlua::Result<String> {
    match value {
        Value::String(text) => Ok(text_prefix(text, max_bytes)),
        other => to_text(lua, other).map(|text| truncate(text, max_bytes)),
    }
}

/// Returns the first `max_bytes` bytes of a text. Invalid UTF-8 is replaced.
pub(crate) fn text_prefix(text: &LuaString, max_bytes: usize) -> String {
    let text = text.as_bytes();
    // A few more bytes, so that the last character is complete.
    let text = &text[..text.len().min(max_bytes + 4)];
    truncate(String::from_utf8_lossy(text).into_owned(), max_bytes)
}

/// Returns the value as a number. mlua distinguishes integers from other numbers; Lua does not.
#[expect(clippy::cast_precision_loss, reason = "all Lua numbers are f64, so integers are exact")]
pub(super) fn to_number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

/// Truncates a text to at most `max_bytes` bytes, between characters.
pub(super) fn truncate(mut text: String, max_bytes: usize) -> String {
    text.truncate(text.floor_char_boundary(max_bytes));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converts_values_as_tostring_does() {
        let lua = Lua::new();
        let table = [
            ("'x'", "x"),
            ("'\\255a'", "\u{fffd}a"),
            ("1", "1"),
            ("1.5", "1.5"),
            ("1e20", "1e+20"),
            ("true", "true"),
            ("nil", "nil"),
            ("setmetatable({}, {__tostring = function() return 'mine' end})", "mine"),
        ];
        for (code, expected) in table {
            let value: Value = lua.load(code).eval().unwrap();
            assert_eq!(to_text(&lua, &value).unwrap(), expected, "{code}");
        }
    }

    #[test]
    fn truncates_between_characters() {
        assert_eq!(truncate("grün".to_owned(), 3), "gr");
        assert_eq!(truncate("grün".to_owned(), 4), "grü");
        assert_eq!(truncate("grün".to_owned(), 99), "grün");
    }
}
