//! The module `logger`: log lines with fields. Here texts are truncated. The log output escapes control characters and
//! invalid names, so that a message cannot forge a line or a field.

use std::collections::BTreeMap;
use std::sync::Arc;

use mlua::{Lua, Table, Value};
use serde_json::Value as Json;

use super::convert::{to_number, to_text_prefix};
use super::{json, set_function};
use crate::services::{Level, Log, LogField};

/// The maximum length of a text, a field name and a field value.
const MAX_TEXT_BYTES: usize = 8 * 1024;

/// The maximum number of fields of a line. Further fields are omitted.
const MAX_FIELDS: usize = 64;

/// How many fields are examined to find the first ones.
const MAX_EXAMINED_FIELDS: usize = 1000;

/// Creates the module.
pub(super) fn module(lua: &Lua, log: &Arc<dyn Log>) -> mlua::Result<Table> {
    let module = lua.create_table()?;
    for level in Level::ALL {
        set_function(lua, &module, level.name(), log, move |lua, log, (text, fields): (Value, Option<Table>)| {
            let text = to_text_prefix(lua, &text, MAX_TEXT_BYTES)?;
            let fields = fields.map(|fields| sorted_fields(lua, &fields)).transpose()?.unwrap_or_default();
            log.write(level, &text, &fields);
            Ok(())
        })?;
    }
    Ok(module)
}

/// Returns the fields sorted by name, only the first ones if there are too many.
fn sorted_fields(lua: &Lua, fields: &Table) -> mlua::Result<Vec<LogField>> {
    let mut sorted = BTreeMap::new();
    for pair in fields.pairs::<Value, Value>().take(MAX_EXAMINED_FIELDS) {
        let (name, value) = pair?;
        sorted.insert(to_text_prefix(lua, &name, MAX_TEXT_BYTES)?, value);
        if sorted.len() > MAX_FIELDS {
            sorted.pop_last();
        }
    }
    sorted.into_iter().map(|(name, value)| Ok((name, field_value(lua, &value)?))).collect()
}

/// Converts a field value. Numbers, booleans and strings are kept. Tables are kept if they can be encoded as short
/// JSON. Everything else is converted with `tostring`.
fn field_value(lua: &Lua, value: &Value) -> mlua::Result<Json> {
    match value {
        Value::Boolean(value) => return Ok(Json::Bool(*value)),
        Value::Integer(number) => return Ok((*number).into()),
        Value::Number(_) => {
            if let Some(number) = to_number(value).and_then(json_number) {
                return Ok(number);
            }
        }
        Value::Table(table) if !has_tostring(table)? => {
            if let Some(text) = json::try_encode(lua, value, MAX_TEXT_BYTES)? {
                return serde_json::from_slice(&text).map_err(mlua::Error::external);
            }
        }
        _ => {}
    }
    to_text_prefix(lua, value, MAX_TEXT_BYTES).map(Json::String)
}

/// Converts a number to JSON. Integers stay integers: 1700000000000000, not 1.7e15.
#[expect(clippy::cast_possible_truncation, reason = "integers of this size are exact in both types")]
fn json_number(number: f64) -> Option<Json> {
    let is_whole = number.fract() == 0.0 && number.abs() <= json::MAX_EXACT_INTEGER;
    if is_whole { Some((number as i64).into()) } else { serde_json::Number::from_f64(number).map(Json::Number) }
}

/// Returns whether the table has a `__tostring` metamethod.
fn has_tostring(table: &Table) -> mlua::Result<bool> {
    table.metatable().map_or(Ok(false), |metatable| Ok(!metatable.raw_get::<Value>("__tostring")?.is_nil()))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use parking_lot::Mutex;

    use super::*;

    #[derive(Default)]
    struct Lines(Mutex<Vec<String>>);

    impl Log for Lines {
        fn is_enabled(&self, _: Level) -> bool {
            true
        }

        fn write(&self, level: Level, text: &str, fields: &[LogField]) {
            let mut line = format!("{level:?} {text}");
            for (name, value) in fields {
                write!(line, " {name}={value}").unwrap();
            }
            self.0.lock().push(line);
        }
    }

    fn logged(code: &str) -> Vec<String> {
        let lines = Arc::new(Lines::default());
        let lua = Lua::new();
        let log: Arc<dyn Log> = Arc::clone(&lines) as Arc<dyn Log>;
        lua.globals().set("logger", module(&lua, &log).unwrap()).unwrap();
        lua.load(code).exec().unwrap();
        std::mem::take(&mut *lines.0.lock())
    }

    #[test]
    fn lines_have_level_text_and_sorted_fields() {
        let table = [
            ("logger.debug('a')", "Debug a"),
            ("logger.info('b', {})", "Info b"),
            ("logger.warn('c', {z = 1, a = true, m = 'x y'})", r#"Warn c a=true m="x y" z=1"#),
            (
                "logger.info('n', {a = 2^50, b = 0.5, c = 1/0, d = 1e300})",
                r#"Info n a=1125899906842624 b=0.5 c="inf" d=1e+300"#,
            ),
            ("logger.info('t', {list = {1, 'x'}, map = {a = {}}})", r#"Info t list=[1,"x"] map={"a":[]}"#),
            (
                "logger.info('t', {own = setmetatable({}, {__tostring = function() return 'me' end})})",
                r#"Info t own="me""#,
            ),
            ("logger.error(42, {7})", "Error 42 1=7"),
            ("logger.info(nil)", "Info nil"),
            ("logger.info('f', {['a b'] = 1, a_b = 2, [''] = 3})", "Info f =3 a b=1 a_b=2"),
        ];
        for (code, expected) in table {
            assert_eq!(logged(code), [expected], "{code}");
        }
    }

    #[test]
    fn truncates_long_lines() {
        let lines = logged(
            "local many = {} for i = 1, 1000 do many[string.format('%04d', i)] = 'v' end
             logger.info(string.rep('x', 100000), many)
             logger.info('', {long = string.rep('y', 100000)})",
        );
        assert_eq!(lines[0].matches('x').count(), MAX_TEXT_BYTES);
        assert_eq!(lines[0].matches("=\"v\"").count(), MAX_FIELDS);
        assert!(lines[0].contains(" 0064=") && !lines[0].contains(" 0065="));
        assert_eq!(lines[1].matches('y').count(), MAX_TEXT_BYTES);
    }

    #[test]
    fn examines_no_more_than_it_writes() {
        let lua = Lua::new();
        lua.globals().set("logger", module(&lua, &(Arc::new(Lines::default()) as Arc<dyn Log>)).unwrap()).unwrap();
        // Each call would take minutes if it copied everything, and there is not enough memory for the results in Lua.
        let code = "local long, many, deep = ('x'):rep(2^24), {}, {}
             for i = 1, 100000 do many[i] = long deep[i] = {long, long} end
             logger.info('', many) logger.info('', deep) logger.info('', {{long, many, deep}})";
        lua.load(code).exec().unwrap();
    }
}
