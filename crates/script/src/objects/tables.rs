//! The objects that are tables, addresses and sessions: teaches a state to make them, makes and recognises them, and says what
//! may be written to them. How they behave is in `objects.lua`.

use mlua::{AnyUserData, Function, IntoLua, Lua, Table, UserData, Value};

use super::field::{Field, checked};
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

/// The functions that make objects; lies in the app data of a state.
pub(super) struct Makers {
    pub(super) address: Function,
    pub(super) session: Function,
    pub(super) judge: Function,
}

/// A new address.
pub(super) fn new_address(lua: &Lua, name: impl IntoLua, address: impl IntoLua) -> mlua::Result<Table> {
    maker(lua, |makers| &makers.address)?.call((name, address))
}

/// A new session, of the text that `session::text` makes.
pub(super) fn new_session(lua: &Lua, text: &str) -> mlua::Result<Table> {
    maker(lua, |makers| &makers.session)?.call(text)
}

/// A function that is called with the text of a session, and calls this one with the session.
pub(super) fn judge(lua: &Lua, handler: Function) -> mlua::Result<Function> {
    maker(lua, |makers| &makers.judge)?.call(handler)
}

fn maker(lua: &Lua, which: fn(&Makers) -> &Function) -> mlua::Result<Function> {
    let makers = lua.app_data_ref::<Makers>().ok_or_else(|| mlua::Error::runtime("this state makes no objects"))?;
    Ok(which(&makers).clone())
}

/// What an object that is a table is. Its metatable, which no script gets hold of, holds one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Address,
    Session,
}

impl UserData for Class {}

/// What a table is, if it is one of the objects.
pub(super) fn class(table: &Table) -> Option<Class> {
    let marker: Option<AnyUserData> = table.metatable()?.raw_get("class").ok()?;
    marker?.borrow::<Class>().ok().map(|class| *class)
}
