//! The contents of a message: source, header fields, texts, attachments. A message is loaded and parsed when a script
//! first reads one of them.
//!
//! Lua cannot see how much memory a message takes that an object refers to. So objects contain only the origin of their
//! message, and a state holds at most two messages: the one in delivery, and the one that was read last.

use std::sync::Arc;

use bytes::Bytes;
use mlua::{AnyUserData, Lua, LuaString, Table, Value};
use restante_mail::message::MessageId;
use restante_mail::mime::Mime;
use restante_mail::naming::MailboxName;

use super::field::{Field, FieldKind};
use super::headers;
use super::values::script_error;
use crate::event::CallContext;
use crate::services::MailAccess;

/// The fields of every object with a message.
pub(super) const HEADERS: Field = Field("headers", FieldKind::Content);
/// The name of the same field in newer scripts for Inbucket.
pub(super) const HEADER: Field = Field("header", FieldKind::Content);
pub(super) const TEXT: Field = Field("text", FieldKind::Content);
pub(super) const HTML: Field = Field("html", FieldKind::Content);
pub(super) const ATTACHMENTS: Field = Field("attachments", FieldKind::Content);
pub(super) const SOURCE: Field = Field("source", FieldKind::Source);

/// Where the message of an object comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// It is being delivered; the number counts the deliveries of this state. It can be read until the next delivery.
    InDelivery(u64),
    /// It is in the store.
    Stored(MailboxName, MessageId),
    /// It was deleted.
    Deleted,
    /// The object was created by a script, which may set its source.
    Created,
}

/// The messages that a state holds. Stored in its app data.
pub(super) struct MessageCache {
    access: Arc<dyn MailAccess>,
    delivery_count: u64,
    in_delivery: Option<CachedMessage>,
    last_read: Option<CachedMessage>,
}

struct CachedMessage {
    origin: Origin,
    source: Bytes,
    mime: Option<Arc<Mime>>,
}

impl MessageCache {
    pub(super) fn new(access: Arc<dyn MailAccess>) -> Self {
        Self { access, delivery_count: 0, in_delivery: None, last_read: None }
    }

    fn contains(&self, origin: &Origin) -> bool {
        [&self.in_delivery, &self.last_read].into_iter().flatten().any(|message| message.origin == *origin)
    }

    fn get_mut(&mut self, origin: &Origin) -> Option<&mut CachedMessage> {
        [&mut self.in_delivery, &mut self.last_read].into_iter().flatten().find(|message| message.origin == *origin)
    }
}

impl CachedMessage {
    fn new(origin: Origin, source: Bytes) -> Self {
        Self { origin, source, mime: None }
    }

    fn mime(&mut self) -> Arc<Mime> {
        self.mime.get_or_insert_with(|| Arc::new(Mime::parse(self.source.clone()))).clone()
    }
}

/// Stores the message that is being delivered.
pub(super) fn cache_inbound(lua: &Lua, source: Bytes) -> Origin {
    let Some(mut cache) = lua.app_data_mut::<MessageCache>() else { return Origin::Deleted };
    cache.delivery_count += 1;
    let origin = Origin::InDelivery(cache.delivery_count);
    cache.in_delivery = Some(CachedMessage::new(origin.clone(), source));
    origin
}

/// Drops the messages that were read during a call.
pub(crate) fn clear_message_cache(lua: &Lua) {
    if let Some(mut cache) = lua.app_data_mut::<MessageCache>() {
        cache.in_delivery = None;
        cache.last_read = None;
    }
}

/// Returns the value of one of the fields above, or nil if the message is gone.
pub(super) fn field_value(lua: &Lua, object: &AnyUserData, origin: &Origin, name: &str) -> mlua::Result<Value> {
    if name == SOURCE.0 {
        let source = source(lua, object, origin)?;
        return source.map_or(Ok(Value::Nil), |source| lua.create_string(&source).map(Value::String));
    }
    let Some(mime) = mime(lua, object, origin)? else { return Ok(Value::Nil) };
    match name {
        "headers" | "header" => headers::table(lua, &mime).map(Value::Table),
        "text" => lua.create_string(mime.text()).map(Value::String),
        "html" => lua.create_string(mime.html()).map(Value::String),
        _ => attachments(lua, &mime).map(Value::Table),
    }
}

fn source(lua: &Lua, object: &AnyUserData, origin: &Origin) -> mlua::Result<Option<Bytes>> {
    if *origin == Origin::Created {
        return created_source(object).map(Some);
    }
    load(lua, origin)?;
    Ok(lua.app_data_mut::<MessageCache>().and_then(|mut cache| Some(cache.get_mut(origin)?.source.clone())))
}

fn mime(lua: &Lua, object: &AnyUserData, origin: &Origin) -> mlua::Result<Option<Arc<Mime>>> {
    if *origin == Origin::Created {
        return Ok(Some(Arc::new(Mime::parse(created_source(object)?))));
    }
    load(lua, origin)?;
    Ok(lua.app_data_mut::<MessageCache>().and_then(|mut cache| Some(cache.get_mut(origin)?.mime())))
}

/// Returns the source that a script has set. The object holds it, so it is not cached.
fn created_source(object: &AnyUserData) -> mlua::Result<Bytes> {
    let source: Option<LuaString> = object.named_user_value(SOURCE.0)?;
    Ok(source.map(|source| Bytes::copy_from_slice(&source.as_bytes())).unwrap_or_default())
}

/// Loads a stored message into the cache, if it still exists.
fn load(lua: &Lua, origin: &Origin) -> mlua::Result<()> {
    let Origin::Stored(mailbox, id) = origin else { return Ok(()) };
    let access = match lua.app_data_ref::<MessageCache>() {
        Some(cache) if !cache.contains(origin) => cache.access.clone(),
        _ => return Ok(()),
    };
    let timeout = CallContext::current(lua)?.remaining();
    let source = access.source(mailbox, *id, timeout).map_err(|error| script_error(lua, error))?;
    if let (Some(source), Some(mut cache)) = (source, lua.app_data_mut::<MessageCache>()) {
        cache.last_read = Some(CachedMessage::new(origin.clone(), source));
    }
    Ok(())
}

fn attachments(lua: &Lua, mime: &Mime) -> mlua::Result<Table> {
    let list = lua.create_table()?;
    for attachment in mime.attachments() {
        let entry = lua.create_table()?;
        entry.raw_set("filename", attachment.filename.as_str())?;
        entry.raw_set("content_type", attachment.content_type.as_str())?;
        entry.raw_set("size", attachment.content().len())?;
        entry.raw_set("content_id", attachment.part.content_id.as_deref())?;
        list.raw_push(entry)?;
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{run, state, with_message};
    use super::*;

    #[test]
    fn inbound_message_is_parsed_on_first_access() {
        let (lua, _) = state();
        with_message(&lua);
        let is_parsed = || {
            lua.app_data_ref::<MessageCache>()
                .unwrap()
                .in_delivery
                .as_ref()
                .is_some_and(|message| message.mime.is_some())
        };
        run(&lua, "return msg.size .. msg.subject .. msg.from.name .. #msg.to .. #msg.mailboxes .. #msg.source");
        assert!(!is_parsed());
        run(&lua, "return msg.headers.subject");
        assert!(is_parsed());
    }
}
