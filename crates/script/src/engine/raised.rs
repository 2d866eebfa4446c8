//! Tables that scripts raise as errors. Lua describes such an error by the address of the table only. So the last
//! raised table is remembered, in order to log its contents.

use mlua::{Lua, Table, Value};

/// The registry key of the table that contains the last raised table. `prelude.lua` writes to it.
const RAISED_KEY: &str = "restante.raised";

/// The maximum number of fields in the description.
const MAX_FIELDS: usize = 10;

/// Creates the table into which the prelude puts a raised table.
pub(super) fn install(lua: &Lua) -> mlua::Result<Table> {
    let raised = lua.create_table()?;
    lua.set_named_registry_value(RAISED_KEY, &raised)?;
    Ok(raised)
}

/// Returns the text of an error. If it is only the address of the raised table, returns the contents of the table.
pub(super) fn describe(lua: &Lua, text: String) -> String {
    let Ok(raised) = lua.named_registry_value::<Table>(RAISED_KEY) else { return text };
    let Ok(Some(table)) = raised.raw_get::<Option<Table>>(1) else { return text };
    // The table is not needed any more. An error would only keep it alive.
    let _ = raised.raw_set(1, Value::Nil);
    if text == format!("table: {:p}", table.to_pointer()) { format_table(&table) } else { text }
}

/// Formats a table as `{code=3, reason="no"}`, without the contents of nested tables.
fn format_table(table: &Table) -> String {
    let mut fields: Vec<String> =
        table.pairs::<Value, Value>().flatten().take(MAX_FIELDS + 1).map(format_field).collect();
    fields.sort();
    if fields.len() > MAX_FIELDS {
        fields.truncate(MAX_FIELDS);
        fields.push("...".to_owned());
    }
    format!("{{{}}}", fields.join(", "))
}

fn format_field((key, value): (Value, Value)) -> String {
    let key = match &key {
        Value::String(key) => key.to_string_lossy(),
        other => format!("[{}]", format_value(other)),
    };
    format!("{key}={}", format_value(&value))
}

fn format_value(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{:?}", text.to_string_lossy()),
        Value::Boolean(_) | Value::Integer(_) | Value::Number(_) => value.to_string().unwrap_or_default(),
        Value::Table(_) => "{...}".to_owned(),
        other => other.type_name().to_owned(),
    }
}
