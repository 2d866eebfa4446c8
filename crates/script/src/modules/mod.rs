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

use mlua::{Lua, Table};

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
    lua.set_named_registry_value(STORE_KEY, store(lua, services)?)?;
    lua.set_named_registry_value(SHARED_KEY, self::shared(lua, shared)?)?;
    lua.set_named_registry_value(RELEASE_KEY, release::function(lua, &services.mail)?)?;
    lua.set_named_registry_value(SLEEP_KEY, sleep::function(lua, &services.clock)?)
}

/// Creates the table `restante.store`.
pub(crate) fn store(lua: &Lua, services: &Services) -> mlua::Result<Table> {
    store::table(lua, &services.mail)
}

/// Creates the table `restante.shared`.
pub(crate) fn shared(lua: &Lua, shared: &Arc<SharedDict>) -> mlua::Result<Table> {
    shared::table(lua, shared)
}
