//! Makes the objects that are tables, by the functions that `objects.lua` has brought into the state.

use mlua::{Function, IntoLua, Lua, Table};

/// The functions that make objects; lies in the app data of a state.
pub(super) struct Constructors {
    pub(super) address: Function,
    pub(super) session: Function,
    pub(super) wrap_handler: Function,
}

/// A new address.
pub(super) fn new_address(lua: &Lua, name: impl IntoLua, address: impl IntoLua) -> mlua::Result<Table> {
    constructor(lua, |makers| &makers.address)?.call((name, address))
}

/// A new session, of the text that `session::text` makes.
pub(super) fn new_session(lua: &Lua, text: &str) -> mlua::Result<Table> {
    constructor(lua, |makers| &makers.session)?.call(text)
}

/// A function that is called with the text of a session, and calls this one with the session.
pub(super) fn wrap_handler(lua: &Lua, handler: Function) -> mlua::Result<Function> {
    constructor(lua, |makers| &makers.wrap_handler)?.call(handler)
}

fn constructor(lua: &Lua, which: fn(&Constructors) -> &Function) -> mlua::Result<Function> {
    let makers =
        lua.app_data_ref::<Constructors>().ok_or_else(|| mlua::Error::runtime("this state makes no objects"))?;
    Ok(which(&makers).clone())
}
