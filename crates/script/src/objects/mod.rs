//! The Lua objects of scripts: the globals `inbucket` (also `restante`), `smtp` and the constructors, the arguments of
//! event functions, and the conversion of their return values. Modules for `require` are in `modules`.

mod address;
mod class;
mod constructors;
mod content;
mod field;
mod headers;
mod inbound;
mod inbucket;
mod lists;
mod metadata;
mod record;
mod session;
mod tables;
mod validate;
mod values;
mod verdict;

use std::net::IpAddr;

use mlua::{IntoLua as _, Lua, Table, UserData, Value};
use restante_mail::address::Address;
use restante_mail::envelope::{Envelope, ReversePath};
use restante_mail::message::Summary;
use restante_mail::naming::Naming;
use restante_mailroom::hooks::IncomingMessage;

pub(crate) use address::to_named_address;
pub(crate) use constructors::wrap_handler;
pub(crate) use content::clear_message_cache;
pub(crate) use inbound::parse_inbound_result;
pub(crate) use inbucket::{RELEASE_KEY, SHARED_KEY, SLEEP_KEY, STORE_KEY, handler, is_inbucket, set_handlers_frozen};
pub(crate) use values::describe_type;
pub(crate) use verdict::parse_verdict;

use crate::services::Services;

/// Puts the globals into a new state.
pub(crate) fn install(lua: &Lua, services: &Services, naming: Naming) -> mlua::Result<()> {
    lua.set_app_data(content::MessageCache::new(services.mail.clone()));
    lua.set_app_data(naming);
    tables::install(lua)?;
    let globals = lua.globals();
    let inbucket = inbucket::object(lua)?;
    globals.raw_set("inbucket", &inbucket)?;
    globals.raw_set("restante", inbucket)?;
    globals.raw_set("smtp", verdict::table(lua)?)?;
    globals.raw_set("address", address::constructor(lua)?)?;
    globals.raw_set("inbound_message", constructor(lua, inbound::InboundMessage::empty)?)?;
    globals.raw_set("message_metadata", constructor(lua, metadata::Metadata::empty)?)?;
    globals.raw_set("smtp_session", session::constructor(lua)?)
}

/// Creates the argument of functions that decide about a sender or a recipient. The recipient in question is the last
/// of `to`.
pub(crate) fn session(lua: &Lua, from: &ReversePath, ip: Option<IpAddr>, to: &[Address]) -> mlua::Result<Value> {
    constructors::new_session(lua, &session::to_text(from, ip, to.iter())).map(Value::Table)
}

/// Creates the same argument as text. The function that [`wrap_handler`] returns converts it into a session.
pub(crate) fn session_text(lua: &Lua, envelope: &Envelope, candidate: Option<&Address>) -> mlua::Result<Value> {
    let to = envelope.recipients.iter().map(|recipient| &recipient.address).chain(candidate);
    lua.create_string(session::to_text(&envelope.from, envelope.peer.ip, to)).map(Value::String)
}

/// Returns whether a table is one of the objects, whose contents are private.
pub(crate) fn is_object(table: &Table) -> bool {
    class::class_of(table).is_some()
}

/// Creates the argument of functions that get a message before it is stored. Its source can be read until
/// [`clear_message_cache`] is called or the next message arrives.
pub(crate) fn inbound(lua: &Lua, message: &IncomingMessage) -> mlua::Result<Value> {
    inbound::InboundMessage::new(lua, message).into_lua(lua)
}

/// Creates the argument of functions that get a stored or deleted message.
pub(crate) fn metadata(lua: &Lua, summary: &Summary, is_stored: bool) -> mlua::Result<Value> {
    metadata::Metadata::new(summary, is_stored).into_lua(lua)
}

/// Creates a table with the function `new`.
fn constructor<T: UserData + Send + Sync + 'static>(lua: &Lua, new: fn() -> T) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("new", lua.create_function(move |_, ()| Ok(new()))?)?;
    Ok(table)
}

#[cfg(test)]
mod tests;
