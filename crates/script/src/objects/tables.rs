//! The objects that are tables, addresses and sessions: teaches a state to make them, and says what may be written to them.
//! How they behave is in `objects.lua`.

use mlua::{Function, Lua, Value};

use super::checked::checked;
use super::class::Class;
use super::field::Field;
use super::makers::Makers;
use super::values::{name, unknown_field};
use super::{address, session};
use crate::failure::PRELUDE;

/// Teaches a new state to make the objects.
pub(super) fn install(lua: &Lua) -> mlua::Result<()> {
    let host = lua.create_table()?;
    host.raw_set("address", Class::Address)?;
    host.raw_set("session", Class::Session)?;
    host.raw_set("shown_address", lua.create_function(|_, object: Value| Ok(address::shown(&object)))?)?;
    host.raw_set("checked_for_address", checker(lua, "address", address::FIELDS)?)?;
    host.raw_set("checked_for_session", checker(lua, "smtp_session", session::FIELDS)?)?;
    let chunk = lua.load(include_str!("objects.lua")).set_name(format!("={PRELUDE}"));
    let (address, session, judge) = chunk.call(host)?;
    lua.set_app_data(Makers { address, session, judge });
    Ok(())
}

/// A function that says what a field is to hold when a script writes a value to it.
fn checker(lua: &Lua, object: &'static str, fields: &'static [Field]) -> mlua::Result<Function> {
    lua.create_function(move |lua, (key, value): (Value, Value)| {
        let wanted = name(&key);
        let field = fields.iter().find(|field| wanted.as_deref() == Some(field.0.as_bytes()));
        let Field(name, kind) = field.ok_or_else(|| unknown_field(lua, object, &key))?;
        checked(lua, &format!("{object}.{name}"), *kind, value)
    })
}
