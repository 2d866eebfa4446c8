//! Makes the objects that are tables, by the functions that `objects.lua` has brought into the state.

use mlua::{Function, IntoLua, Lua, Table};

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
