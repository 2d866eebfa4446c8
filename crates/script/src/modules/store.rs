//! `restante.store`: access to stored messages, for `after` hooks only. A `before` hook must not wait for the store,
//! because its delivery would wait, too.

use std::sync::Arc;
use std::time::Duration;

use mlua::{Lua, LuaString, Table, Value};
use restante_mail::message::{MessageId, Summary};
use restante_mail::naming::MailboxName;

use super::convert::{to_number, to_text_prefix};
use super::set_function;
use crate::event::{CallContext, ScriptEvent};
use crate::objects;
use crate::services::MailAccess;

/// The name of the table.
const NAME: &str = "restante.store";

/// How many messages are listed without the option `limit`.
const DEFAULT_LIMIT: usize = 100;

/// The maximum number of listed messages.
const MAX_LIMIT: usize = 1000;

/// How much of an id is read and shown. Valid ids are shorter.
const MAX_ID_BYTES: usize = 100;

/// Creates the table with the functions.
pub(super) fn table(lua: &Lua, access: &Arc<dyn MailAccess>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    set_function(lua, &table, "list", access, |lua, mail, (mailbox, options): (LuaString, Option<Table>)| {
        let (mailbox, timeout) = prepare(lua, mail, NAME, &mailbox)?;
        let (after, limit) = options.map_or(Ok((None, DEFAULT_LIMIT)), |options| parse_page(lua, &options))?;
        let messages = mail.list(&mailbox, after, limit, timeout).map_err(mlua::Error::runtime)?;
        let list = lua.create_table_with_capacity(messages.len(), 0)?;
        for summary in &messages {
            list.raw_push(objects::metadata(lua, summary, true)?)?;
        }
        Ok(list)
    })?;
    set_function(lua, &table, "get", access, |lua, mail, (mailbox, id): (LuaString, Value)| {
        let (mailbox, timeout) = prepare(lua, mail, NAME, &mailbox)?;
        let message = find(lua, mail, &mailbox, &id, timeout)?;
        message.map(|summary| objects::metadata(lua, &summary, true)).transpose()
    })?;
    set_function(lua, &table, "delete", access, |lua, mail, (mailbox, id): (LuaString, Value)| {
        let (mailbox, timeout) = prepare(lua, mail, NAME, &mailbox)?;
        let Some(id) = parse_id(lua, &id)? else { return Ok(false) };
        mail.delete(&mailbox, id, timeout).map_err(mlua::Error::runtime)
    })?;
    Ok(table)
}

/// Returns the mailbox and the time that the store may take. Fails if the store may not be used now; `name` is what the
/// script uses.
pub(super) fn prepare(
    lua: &Lua,
    access: &dyn MailAccess,
    name: &str,
    mailbox: &LuaString,
) -> mlua::Result<(MailboxName, Duration)> {
    let context = CallContext::current(lua)?;
    if context.event.is_none_or(ScriptEvent::is_before) {
        return Err(mlua::Error::runtime(format!("{name} can be used in after hooks only")));
    }
    let mailbox = access.mailbox(&mailbox.to_string_lossy()).map_err(mlua::Error::runtime)?;
    Ok((mailbox, context.remaining()))
}

fn parse_page(lua: &Lua, options: &Table) -> mlua::Result<(Option<MessageId>, usize)> {
    let limit = options.raw_get::<Option<usize>>("limit")?.map_or(DEFAULT_LIMIT, |limit| limit.min(MAX_LIMIT));
    let after: Value = options.raw_get("after")?;
    if after.is_nil() {
        return Ok((None, limit));
    }
    match parse_id(lua, &after)? {
        Some(after) => Ok((Some(after), limit)),
        None => Err(mlua::Error::runtime(format!("{:?} is no message id", to_text_prefix(lua, &after, MAX_ID_BYTES)?))),
    }
}

fn find(
    lua: &Lua,
    access: &dyn MailAccess,
    mailbox: &MailboxName,
    id: &Value,
    timeout: Duration,
) -> mlua::Result<Option<Summary>> {
    if to_text_prefix(lua, id, MAX_ID_BYTES)? == "latest" {
        return access.latest(mailbox, timeout).map_err(mlua::Error::runtime);
    }
    let Some(id) = parse_id(lua, id)? else { return Ok(None) };
    access.find(mailbox, id, timeout).map_err(mlua::Error::runtime)
}

/// Parses a message id, which may be a string or a number. Returns `None` if it is not valid.
pub(super) fn parse_id(lua: &Lua, id: &Value) -> mlua::Result<Option<MessageId>> {
    // Lua's conversion to a string would lose the last digits of a number.
    let text = match to_number(id) {
        Some(number) => format!("{number:.0}"),
        None => to_text_prefix(lua, id, MAX_ID_BYTES)?,
    };
    Ok(text.parse().ok())
}

#[cfg(test)]
pub(super) mod tests;
