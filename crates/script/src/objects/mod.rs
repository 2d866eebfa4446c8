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

use mlua::{Function, IntoLua as _, Lua, Table, UserData, Value};
use restante_mail::address::Address;
use restante_mail::envelope::{Envelope, ReversePath};
use restante_mail::message::Summary;
use restante_mail::naming::Naming;
use restante_mailroom::hooks::{IncomingMessage, Verdict};

pub(crate) use address::to_named_address;
pub(crate) use inbucket::{RELEASE_KEY, SHARED_KEY, SLEEP_KEY, STORE_KEY};
pub(crate) use values::describe_type;

use crate::event::ScriptEvent;
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

/// Returns the function that the script has defined for an event.
pub(crate) fn handler(lua: &Lua, event: ScriptEvent) -> Option<Function> {
    inbucket::handler(lua, event)
}

/// Sets whether the script is prevented from defining functions for events. After loading it is, because all states
/// must have the same functions.
pub(crate) fn set_handlers_frozen(lua: &Lua, are_frozen: bool) {
    inbucket::set_handlers_frozen(lua, are_frozen);
}

/// Returns whether a value is the original global `inbucket`.
pub(crate) fn is_inbucket(value: &Value) -> bool {
    inbucket::is_inbucket(value)
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

/// Returns a function that takes [`session_text`] instead of [`session()`] and calls `handler`.
pub(crate) fn wrap_handler(lua: &Lua, handler: Function) -> mlua::Result<Function> {
    constructors::wrap_handler(lua, handler)
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

/// Parses the decision about a sender or recipient. An error is the end of a sentence that starts with the name of the
/// function.
pub(crate) fn parse_verdict(value: &Value) -> Result<Verdict, String> {
    verdict::parse(value)
}

/// Parses the message that a function returned; `None` if it changed nothing. Errors are sentences for the log.
pub(crate) fn parse_inbound_result(
    value: &Value,
    original: &IncomingMessage,
    naming: Naming,
) -> Result<Option<IncomingMessage>, String> {
    inbound::parse_result(value, original, naming)
}

/// Drops the messages that were read during a call.
pub(crate) fn clear_message_cache(lua: &Lua) {
    content::clear_cache(lua);
}

/// Creates a table with the function `new`.
fn constructor<T: UserData + Send + Sync + 'static>(lua: &Lua, new: fn() -> T) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("new", lua.create_function(move |_, ()| Ok(new()))?)?;
    Ok(table)
}

#[cfg(test)]
mod tests;
