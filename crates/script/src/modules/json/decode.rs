//! Decodes JSON directly into the Lua state, so that its memory limit applies to the result. A null becomes nil: such a
//! field is absent, and arrays omit it. Invalid UTF-8 is replaced.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use mlua::{Lua, LuaString, Value};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Decodes a text. The inner error is a text for the script. The parser limits the depth.
pub(super) fn decode(lua: &Lua, text: &[u8]) -> mlua::Result<Result<Value, String>> {
    let text: Cow<'_, str> = String::from_utf8_lossy(text);
    let lua_error = Cell::new(None);
    let mut parser = serde_json::Deserializer::from_str(&text);
    let value = Builder { lua, lua_error: &lua_error }.deserialize(&mut parser);
    let value = value.and_then(|value| parser.end().map(|()| value));
    if let Some(error) = lua_error.take() {
        return Err(error);
    }
    Ok(value.map_err(|error| error.to_string()))
}

/// Builds one value. The parser has its own error type, so a Lua error is stored in `lua_error`.
#[derive(Clone, Copy)]
struct Builder<'a> {
    lua: &'a Lua,
    lua_error: &'a Cell<Option<mlua::Error>>,
}

impl Builder<'_> {
    fn record_error<T, E: Error>(self, result: mlua::Result<T>) -> Result<T, E> {
        result.map_err(|error| {
            let text = E::custom(&error);
            self.lua_error.set(Some(error));
            text
        })
    }
}

impl<'de> DeserializeSeed<'de> for Builder<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Builder<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Nil)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Boolean(value))
    }

    #[expect(clippy::cast_precision_loss, reason = "all Lua numbers are f64")]
    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value as f64))
    }

    #[expect(clippy::cast_precision_loss, reason = "all Lua numbers are f64")]
    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value as f64))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Number(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.record_error(self.lua.create_string(value)).map(Value::String)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let table = self.record_error(self.lua.create_table())?;
        while let Some(element) = elements.next_element_seed(self)? {
            if !element.is_nil() {
                self.record_error(table.raw_push(element))?;
            }
        }
        Ok(Value::Table(table))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let table = self.record_error(self.lua.create_table())?;
        while let Some(key) = entries.next_key::<Cow<'_, str>>()? {
            let value = entries.next_value_seed(self)?;
            self.record_error(table.raw_set(LuaString::wrap(key.as_bytes()), value))?;
        }
        Ok(Value::Table(table))
    }
}
