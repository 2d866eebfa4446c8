//! The modules that scripts get with `require`: `logger`, `json` and `http`. Also the contents of the global `restante`
//! besides its events: the tables `restante.store` and `restante.shared` and the functions `restante.release` and
//! `restante.sleep`. The global itself and the objects are in `objects`.

mod convert;
mod http;
mod json;
mod logger;
mod release;
mod shared;
mod sleep;
mod store;

use std::sync::Arc;

use mlua::{FromLuaMulti, IntoLuaMulti, Lua, Table};

pub(crate) use convert::text_prefix;
pub(crate) use shared::SharedDict;

use crate::objects::{RELEASE_KEY, SHARED_KEY, SLEEP_KEY, STORE_KEY};
use crate::services::Services;

/// Makes the modules available to `require` and puts the tables into the registry. A module is created when it is first
/// required: most scripts use few modules, and there are many states.
pub(crate) fn install(lua: &Lua, services: &Services, shared: &Arc<SharedDict>) -> mlua::Result<()> {
    let log = Arc::clone(&services.log);
    let client = Arc::clone(&services.http);
    lua.preload_module("logger", lua.create_function(move |lua, ()| logger::module(lua, &log))?)?;
    lua.preload_module("json", lua.create_function(|lua, ()| json::module(lua))?)?;
    lua.preload_module("http", lua.create_function(move |lua, ()| http::module(lua, &client))?)?;
    lua.set_named_registry_value(STORE_KEY, store::table(lua, &services.mail)?)?;
    lua.set_named_registry_value(SHARED_KEY, shared::table(lua, shared)?)?;
    lua.set_named_registry_value(RELEASE_KEY, release::function(lua, &services.mail)?)?;
    lua.set_named_registry_value(SLEEP_KEY, sleep::function(lua, &services.clock)?)
}

/// Adds a function to a table. `state` is shared by the functions of the table.
fn set_function<S, A, R>(
    lua: &Lua,
    table: &Table,
    name: &str,
    state: &Arc<S>,
    function: impl Fn(&Lua, &S, A) -> mlua::Result<R> + Send + 'static,
) -> mlua::Result<()>
where
    S: Send + Sync + ?Sized + 'static,
    A: FromLuaMulti,
    R: IntoLuaMulti,
{
    let state = Arc::clone(state);
    table.raw_set(name, lua.create_function(move |lua, arguments| function(lua, &state, arguments))?)
}
