//! Tables that scripts raise as errors. What Lua says of one is its address in memory, so the table that was raised last is
//! remembered, to tell what is in it.

use mlua::{Lua, Table, Value};

/// The name in the registry of the table that holds the last one; `prelude.lua` writes to it.
const RAISED_KEY: &str = "restante.raised";

/// How many fields are shown.
const MAX_FIELDS: usize = 10;

/// Where the prelude puts a table that is raised.
pub(super) fn install(lua: &Lua) -> mlua::Result<Table> {
    let raised = lua.create_table()?;
    lua.set_named_registry_value(RAISED_KEY, &raised)?;
    Ok(raised)
}

/// The text of an error; what is in the table when the text is only its address.
pub(super) fn describe(lua: &Lua, text: String) -> String {
    let Ok(raised) = lua.named_registry_value::<Table>(RAISED_KEY) else { return text };
    let Ok(Some(table)) = raised.raw_get::<Option<Table>>(1) else { return text };
    // Whatever comes of it, it is not needed any more.
    let _ = raised.raw_set(1, Value::Nil);
    if text == format!("table: {:p}", table.to_pointer()) { format_table(&table) } else { text }
}

/// `{code=3, reason="no"}`, without what is in further tables.
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
