//! Values of scripts for the world outside: texts are UTF-8 and no longer than is good, numbers are of one kind.

use mlua::{Lua, LuaString, Value};

use crate::limits;

/// What `tostring` makes of a value. What is no UTF-8 is replaced.
pub(super) fn to_text(lua: &Lua, value: &Value) -> mlua::Result<String> {
    match value {
        Value::String(text) => Ok(text.to_string_lossy()),
        // In Lua's way, which is not Rust's: 1e20, not a row of zeros.
        Value::Number(_) | Value::Integer(_) => {
            Ok(lua.coerce_string(value.clone())?.map(|text| text.to_string_lossy()).unwrap_or_default())
        }
        // Their metatables may name a function of the host that comes back here, and so on.
        Value::Table(_) | Value::UserData(_) => {
            limits::check_limits(lua)?;
            value.to_string()
        }
        other => other.to_string(),
    }
}

/// The first bytes of what [`text_of`] makes of a value, so many of them at most. Long texts are not copied for it.
pub(super) fn to_text_prefix(lua: &Lua, value: &Value, most: usize) -> mlua::Result<String> {
    match value {
        Value::String(text) => Ok(text_prefix(text, most)),
        other => to_text(lua, other).map(|text| truncate(text, most)),
    }
}

/// The first bytes of a text, so many of them at most. What is no UTF-8 is replaced.
pub(crate) fn text_prefix(text: &LuaString, most: usize) -> String {
    let text = text.as_bytes();
    // A few more, so that the last character is whole.
    let text = &text[..text.len().min(most + 4)];
    truncate(String::from_utf8_lossy(text).into_owned(), most)
}

/// The number that a value is. Those that are whole reach us apart from the others, which is no difference to a script.
#[expect(clippy::cast_precision_loss, reason = "Lua has no other numbers, so the whole ones were exact before")]
pub(super) fn to_number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

/// The text, cut to at most so many bytes.
pub(super) fn truncate(mut text: String, most: usize) -> String {
    text.truncate(text.floor_char_boundary(most));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_what_tostring_makes_of_them() {
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
    fn texts_are_cut_between_characters() {
        assert_eq!(truncate("grün".to_owned(), 3), "gr");
        assert_eq!(truncate("grün".to_owned(), 4), "grü");
        assert_eq!(truncate("grün".to_owned(), 99), "grün");
    }
}
