//! The header of a message as a Lua table: a list of fields in their order, which can also be indexed by field name,
//! ignoring case.

use mlua::{BString, Lua, LuaString, Table, Value};
use restante_mail::mime::Mime;

use super::values::{expect_text, field_name, script_error};

/// The metatable key of the table that maps field names in lower case to their values.
const VALUES_KEY: &str = "values";

/// Creates the table for the header of a message.
pub(super) fn table(lua: &Lua, mime: &Mime) -> mlua::Result<Table> {
    let (header, values) = (lua.create_table()?, lua.create_table()?);
    for field in mime.header() {
        let (name, value) = (field.raw_name(), lua.create_string(field.decoded_value())?);
        let entry = lua.create_table()?;
        entry.raw_set("name", &*name)?;
        entry.raw_set("value", &value)?;
        header.raw_push(entry)?;
        let name = name.to_ascii_lowercase();
        match values.raw_get::<Option<Table>>(name.as_str())? {
            Some(existing) => existing.raw_push(value)?,
            None => values.raw_set(name, lua.create_sequence_from([value])?)?,
        }
    }
    header.set_metatable(Some(metatable(lua, values)?))?;
    Ok(header)
}

fn metatable(lua: &Lua, values: Table) -> mlua::Result<Table> {
    let metatable = lua.create_table()?;
    metatable.raw_set(VALUES_KEY, values)?;
    metatable.raw_set("__metatable", false)?;
    metatable.raw_set(
        "__index",
        lua.create_function(|lua, (header, key): (Table, Value)| {
            let Some(name) = field_name(&key) else { return Ok(Value::Nil) };
            if &*name == b"all" {
                return lua.create_function(all).map(Value::Function);
            }
            let first = values_of(&header, &name)?.map(|values| values.raw_get(1));
            first.unwrap_or(Ok(Value::Nil))
        })?,
    )?;
    let read_only = |lua: &Lua, _: (Table, Value, Value)| -> mlua::Result<()> {
        Err(script_error(lua, "message headers are read-only"))
    };
    metatable.raw_set("__newindex", lua.create_function(read_only)?)?;
    metatable
        .raw_set("__tostring", lua.create_function(|_, header: Table| Ok(format!("headers({})", header.raw_len())))?)?;
    Ok(metatable)
}

/// Implements `headers:all(name)`: all values of the fields with that name, in their order.
fn all(lua: &Lua, (header, name): (Table, Value)) -> mlua::Result<Table> {
    let name = expect_text(lua, "the name in headers:all(name)", name)?;
    let list = lua.create_table()?;
    if let Some(values) = values_of(&header, &name.as_bytes())? {
        for value in values.sequence_values::<LuaString>() {
            list.raw_push(value?)?;
        }
    }
    Ok(list)
}

fn values_of(header: &Table, name: &[u8]) -> mlua::Result<Option<Table>> {
    let Some(metatable) = header.metatable() else { return Ok(None) };
    let values: Option<Table> = metatable.raw_get(VALUES_KEY)?;
    values.map_or(Ok(None), |values| values.raw_get(BString::from(name.to_ascii_lowercase())))
}
