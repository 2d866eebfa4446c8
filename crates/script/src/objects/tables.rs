//! The objects that are Lua tables, addresses and sessions: their setup in a state and the validation of their fields.
//! Their behavior is in `objects.lua`.

use mlua::{Function, Lua, Value};

use super::class::Class;
use super::constructors::Constructors;
use super::field::Field;
use super::validate::validate;
use super::values::{field_name, unknown_field};
use super::{address, session};
use crate::call_error::PRELUDE_NAME;

/// Loads `objects.lua` into a new state.
pub(super) fn install(lua: &Lua) -> mlua::Result<()> {
    let host = lua.create_table()?;
    host.raw_set("address", Class::Address)?;
    host.raw_set("session", Class::Session)?;
    host.raw_set("display_address", lua.create_function(|_, object: Value| Ok(address::display(&object)))?)?;
    host.raw_set("validate_address", field_validator(lua, "address", address::FIELDS)?)?;
    host.raw_set("validate_session", field_validator(lua, "smtp_session", session::FIELDS)?)?;
    let chunk = lua.load(include_str!("objects.lua")).set_name(format!("={PRELUDE_NAME}"));
    let (address, session, wrap_handler) = chunk.call(host)?;
    lua.set_app_data(Constructors { address, session, wrap_handler });
    Ok(())
}

/// Creates a function that validates a value for a field and returns the value to store.
fn field_validator(lua: &Lua, object: &'static str, fields: &'static [Field]) -> mlua::Result<Function> {
    lua.create_function(move |lua, (key, value): (Value, Value)| {
        let written = field_name(&key);
        let field = fields.iter().find(|field| written.as_deref() == Some(field.0.as_bytes()));
        let Field(name, kind) = field.ok_or_else(|| unknown_field(lua, object, &key))?;
        validate(lua, &format!("{object}.{name}"), *kind, value)
    })
}
