//! What scripts get by `require`: the modules `logger`, `json` and `http`; and what the global `restante` has beside its
//! events: the tables `restante.store` and `restante.shared`, and the function `restante.sleep`. The objects that these
//! hand out are made elsewhere, and so is that global.

mod convert;
mod http;
mod json;
mod logger;
mod shared;
mod sleep;
mod store;

use std::sync::Arc;

use mlua::{Lua, Table};

pub(crate) use convert::text_prefix;
pub(crate) use shared::SharedDict;

use crate::objects::{SHARED_KEY, SLEEP_KEY, STORE_KEY};
use crate::services::Services;

/// Lets `require` find the modules, and puts the tables into the registry. A module is made when it is asked for, since
/// most scripts use few of them and there are many states.
pub(crate) fn install(lua: &Lua, services: &Services, shared: &Arc<SharedDict>) -> mlua::Result<()> {
    let log = Arc::clone(&services.log);
    let client = Arc::clone(&services.http);
    lua.preload_module("logger", lua.create_function(move |lua, ()| logger::module(lua, &log))?)?;
    lua.preload_module("json", lua.create_function(|lua, ()| json::module(lua))?)?;
    lua.preload_module("http", lua.create_function(move |lua, ()| http::module(lua, &client))?)?;
    lua.set_named_registry_value(STORE_KEY, store(lua, services)?)?;
    lua.set_named_registry_value(SHARED_KEY, self::shared(lua, shared)?)?;
    lua.set_named_registry_value(SLEEP_KEY, sleep::function(lua, &services.clock)?)
}

/// The table `restante.store`.
pub(crate) fn store(lua: &Lua, services: &Services) -> mlua::Result<Table> {
    store::table(lua, &services.mail)
}

/// The table `restante.shared`.
pub(crate) fn shared(lua: &Lua, shared: &Arc<SharedDict>) -> mlua::Result<Table> {
    shared::table(lua, shared)
}
