//! The module `json`. Errors are returned as nil and a text and never raised, because scripts decode
//! untrusted input.

mod decode;
mod encode;

use mlua::{Lua, LuaString, Table, Value};

/// The maximum nesting depth, in both directions.
const MAX_DEPTH: usize = 127;

/// Integers up to this value are exact in `f64` and are written without a fraction.
pub(super) const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// The maximum length of a JSON text. Tables that contain the same table several times can have an exponentially long
/// text.
const MAX_TEXT_BYTES: usize = 16 * 1024 * 1024;

/// Encodes a value. Returns `None` if it cannot be encoded in `max_bytes` bytes.
pub(super) fn try_encode(lua: &Lua, value: &Value, max_bytes: usize) -> mlua::Result<Option<Vec<u8>>> {
    encode::encode(lua, value, max_bytes).map(Result::ok)
}

/// Creates the module.
pub(super) fn module(lua: &Lua) -> mlua::Result<Table> {
    let module = lua.create_table()?;
    let encode = lua.create_function(|lua, value: Value| match encode::encode(lua, &value, MAX_TEXT_BYTES)? {
        Ok(text) => lua.create_string(text).map(Ok),
        Err(reason) => Ok(Err(reason)),
    })?;
    module.raw_set("encode", encode)?;
    let decode = lua.create_function(|lua, text: LuaString| decode::decode(lua, &text.as_bytes()))?;
    module.raw_set("decode", decode)?;
    Ok(module)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::event::CallContext;

    /// Returns the result of the code as text, or `!` and the error.
    fn eval(code: &str) -> String {
        let lua = Lua::new();
        lua.globals().set("json", module(&lua).unwrap()).unwrap();
        let (value, reason): (Value, Option<String>) = lua.load(code).eval().unwrap();
        match reason {
            Some(reason) => format!("!{reason}"),
            None => value.to_string().unwrap(),
        }
    }

    #[test]
    fn encodes_values() {
        let table = [
            ("nil", "null"),
            ("true", "true"),
            ("1", "1"),
            ("-7", "-7"),
            ("0.5", "0.5"),
            ("2^53", "9007199254740992"),
            ("1e300", "1e300"),
            ("'a\"\\n\\0é'", r#""a\"\n\u0000é""#),
            ("'\\255'", "\"\u{fffd}\""),
            ("{}", "[]"),
            ("{1, 'x', {}}", r#"[1,"x",[]]"#),
            ("{b = 1, a = {c = false}}", r#"{"a":{"c":false},"b":1}"#),
            ("{['1'] = 1}", r#"{"1":1}"#),
            ("(function() local t = {1} return {t, t} end)()", "[[1],[1]]"),
            ("0/0", "!cannot encode a number that is not finite to JSON"),
            ("{1/0}", "!cannot encode a number that is not finite to JSON"),
            ("{1, x = 2}", "!cannot encode mixed or invalid key types"),
            ("{[true] = 2}", "!cannot encode mixed or invalid key types"),
            ("{[1] = 1, [3] = 3}", "!cannot encode sparse array"),
            ("{[0] = 1}", "!cannot encode sparse array"),
            ("{[1.5] = 1}", "!cannot encode sparse array"),
            ("print", "!cannot encode function to JSON"),
            ("{x = coroutine.create(print)}", "!cannot encode thread to JSON"),
            ("(function() local t = {} t.t = t return t end)()", "!cannot encode recursively nested tables to JSON"),
            ("(function() local t = {} for _ = 1, 126 do t = {t} end return #json.encode(t) end)()", "254"),
            (
                "(function() local t = {} for _ = 1, 127 do t = {t} end return t end)()",
                "!cannot encode tables this deep to JSON",
            ),
            // Small in memory, long as text.
            ("string.rep('\\0', 4 * 2^20)", "!the JSON text is too long"),
            (
                "(function() local s, t = string.rep('x', 2^20), {} for i = 1, 16 do t[i] = s end return t end)()",
                "!the JSON text is too long",
            ),
            // The same keys on every level, none of which is written before the innermost table.
            (
                "(function() local keys, t = {}, {} for i = 1, 8 do keys[i] = string.rep(tostring(i), 2^20) end
                  for _ = 1, 100 do local u = {a = t} for _, key in ipairs(keys) do u['b' .. key] = 1 end t = u end
                  return t end)()",
                "!the JSON text is too long",
            ),
        ];
        for (code, expected) in table {
            assert_eq!(eval(&format!("return json.encode({code})")), expected, "{code}");
        }
    }

    #[test]
    fn decodes_texts() {
        let table = [
            ("json.decode('1.5')", "1.5"),
            ("json.decode('\"x\\\\u00e9\"')", "xé"),
            ("json.decode('null')", "nil"),
            ("json.decode('{\"a\": {\"b\": [1, 2, 3]}}').a.b[3]", "3"),
            ("#json.decode('[]')", "0"),
            ("#json.decode('[1, null, 3]')", "2"),
            ("json.decode('{\"a\": null}').a", "nil"),
            ("json.decode('18446744073709551615')", "18446744073709552000"),
            ("json.decode(7)", "7"),
            ("json.decode('\"\\255\"')", "\u{fffd}"),
            ("json.decode('')", "!EOF while parsing a value at line 1 column 0"),
            ("json.decode('{} x')", "!trailing characters at line 1 column 4"),
            ("json.decode('{x: 1}')", "!key must be a string at line 1 column 2"),
            ("json.decode('1e999')", "!number out of range at line 1 column 5"),
            ("json.decode(string.rep('[', 127) .. string.rep(']', 127)) ~= nil", "true"),
            ("json.decode(string.rep('[', 1000000))", "!recursion limit exceeded at line 1 column 128"),
        ];
        for (code, expected) in table {
            assert_eq!(eval(&format!("return {code}")), expected, "{code}");
        }
    }

    #[test]
    fn encoding_stops_at_the_deadline() {
        let lua = Lua::new();
        lua.globals().set("json", module(&lua).unwrap()).unwrap();
        lua.set_app_data(CallContext { event: None, deadline: Instant::now() + Duration::from_millis(50) });
        let code = "local t = {} for _ = 1, 100 do t = {t, t} end json.encode(t)";
        let error = lua.load(code).exec().unwrap_err();
        assert!(error.to_string().contains("json.encode takes too long"), "{error}");
    }

    #[test]
    fn decode_raises_on_other_types() {
        let lua = Lua::new();
        lua.globals().set("json", module(&lua).unwrap()).unwrap();
        assert!(lua.load("json.decode({})").exec().is_err());
        assert!(lua.load("json.decode()").exec().is_err());
    }

    #[test]
    fn decode_raises_if_memory_is_exhausted() {
        let lua = Lua::new();
        lua.globals().set("json", module(&lua).unwrap()).unwrap();
        lua.set_memory_limit(lua.used_memory() + 4_000_000).unwrap();
        let error = lua.load("local t = json.decode('[' .. string.rep('[],', 200000) .. '1]')").exec().unwrap_err();
        assert!(error.to_string().contains("not enough memory"), "{error}");
    }
}
