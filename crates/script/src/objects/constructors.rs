//! Calls the Lua functions of `objects.lua` that create addresses and sessions.

use mlua::{Function, IntoLua, Lua, Table};

/// The functions that create objects. Stored in the app data of a state.
pub(super) struct Constructors {
    pub(super) address: Function,
    pub(super) session: Function,
    pub(super) wrap_handler: Function,
}

/// Creates an address.
pub(super) fn new_address(lua: &Lua, name: impl IntoLua, address: impl IntoLua) -> mlua::Result<Table> {
    constructor(lua, |constructors| &constructors.address)?.call((name, address))
}

/// Creates a session from the text of `session::to_text`.
pub(super) fn new_session(lua: &Lua, text: &str) -> mlua::Result<Table> {
    constructor(lua, |constructors| &constructors.session)?.call(text)
}

/// Returns a function that takes the text of a session and calls `handler` with the session.
pub(crate) fn wrap_handler(lua: &Lua, handler: Function) -> mlua::Result<Function> {
    constructor(lua, |constructors| &constructors.wrap_handler)?.call(handler)
}

fn constructor(lua: &Lua, select: fn(&Constructors) -> &Function) -> mlua::Result<Function> {
    let constructors =
        lua.app_data_ref::<Constructors>().ok_or_else(|| mlua::Error::runtime("this state has no constructors"))?;
    Ok(select(&constructors).clone())
}
