//! What scripts hold in their hands: the globals `inbucket` (also known as `restante`), `smtp` and the constructors of
//! objects, the objects that functions of scripts are called with, and what becomes of those that they return. What
//! scripts get by `require` is made elsewhere.

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

pub(crate) use address::to_mailbox;
pub(crate) use inbucket::{SHARED_KEY, SLEEP_KEY, STORE_KEY};
pub(crate) use values::describe_type;

use crate::event::Event;
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

/// The function that the script has defined for an event.
pub(crate) fn handler(lua: &Lua, event: Event) -> Option<Function> {
    inbucket::handler(lua, event)
}

/// From now on the script may, or may not, define functions for events: once it is loaded, all its states have to agree.
pub(crate) fn set_handlers_frozen(lua: &Lua, are_final: bool) {
    inbucket::set_handlers_frozen(lua, are_final);
}

/// Whether a value is the global `inbucket` as scripts find it.
pub(crate) fn is_inbucket(value: &Value) -> bool {
    inbucket::is_inbucket(value)
}

/// Creates the argument for functions that judge a sender or a recipient. The recipient to judge is the last of `to`.
pub(crate) fn session(lua: &Lua, from: &ReversePath, ip: Option<IpAddr>, to: &[Address]) -> mlua::Result<Value> {
    constructors::new_session(lua, &session::to_text(from, ip, to.iter())).map(Value::Table)
}

/// Creates the same argument as text. The function that [`judge`] returns makes a session of it.
pub(crate) fn session_text(lua: &Lua, envelope: &Envelope, candidate: Option<&Address>) -> mlua::Result<Value> {
    let to = envelope.recipients.iter().map(|recipient| &recipient.address).chain(candidate);
    lua.create_string(session::to_text(&envelope.from, envelope.peer.ip, to)).map(Value::String)
}

/// The function with [`session_text`] for its argument, in place of [`session()`].
pub(crate) fn wrap_handler(lua: &Lua, handler: Function) -> mlua::Result<Function> {
    constructors::wrap_handler(lua, handler)
}

/// Whether a table is one of the objects, which are not for looking into.
pub(crate) fn is_object(table: &Table) -> bool {
    class::class_of(table).is_some()
}

/// The argument for functions that see a message before it is stored. Its mail can be read until [`forget`] is called, or
/// the next message comes.
pub(crate) fn inbound(lua: &Lua, message: &IncomingMessage) -> mlua::Result<Value> {
    inbound::InboundMessage::new(lua, message).into_lua(lua)
}

/// The argument for functions that hear of a message that was stored or deleted.
pub(crate) fn metadata(lua: &Lua, summary: &Summary, is_stored: bool) -> mlua::Result<Value> {
    metadata::Metadata::new(summary, is_stored).into_lua(lua)
}

/// What a function has decided about a sender or recipient. Errors are the end of a sentence that begins with its name.
pub(crate) fn parse_verdict(value: &Value) -> Result<Verdict, String> {
    verdict::parse(value)
}

/// What a function wants to be stored; none when it changes nothing. Errors are sentences for the log.
pub(crate) fn parse_inbound_result(
    value: &Value,
    original: &IncomingMessage,
    naming: Naming,
) -> Result<Option<IncomingMessage>, String> {
    inbound::parse_result(value, original, naming)
}

/// Lets go of the mails that were read during a call, when it is over.
pub(crate) fn clear_message_cache(lua: &Lua) {
    content::clear_cache(lua);
}

/// A table with the function `new`.
fn constructor<T: UserData + Send + Sync + 'static>(lua: &Lua, new: fn() -> T) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("new", lua.create_function(move |_, ()| Ok(new()))?)?;
    Ok(table)
}

#[cfg(test)]
mod tests;
