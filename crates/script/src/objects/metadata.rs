//! The object `message_metadata`: the summary of a stored message.

use mlua::{Lua, UserData, UserDataMethods, Value};
use restante_mail::message::{Headline, Summary};
use restante_mail::mime::NamedAddress;

use super::address;
use super::content::{ATTACHMENTS, HEADER, HEADERS, HTML, Origin, SOURCE, TEXT};
use super::field::{Field, FieldKind};
use super::inbound::{headline_field, to_integer};
use super::record::{self, FieldSet, Record};

/// The summary of an object.
pub(super) struct Metadata {
    summary: Option<Summary>,
    origin: Origin,
    cached_fields: FieldSet,
}

impl Metadata {
    /// Creates the object for a message that is, or was, in the store.
    pub(super) fn new(summary: &Summary, is_stored: bool) -> Self {
        let origin = if is_stored { Origin::Stored(summary.mailbox.clone(), summary.id) } else { Origin::Deleted };
        Self { summary: Some(summary.clone()), origin, cached_fields: FieldSet::default() }
    }

    /// Creates the object for new metadata of a script.
    pub(super) fn empty() -> Self {
        Self { summary: None, origin: Origin::Created, cached_fields: FieldSet::default() }
    }
}

impl UserData for Metadata {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        record::add_fields(methods);
        record::add_tostring(methods, "subject");
    }
}

impl Record for Metadata {
    const NAME: &'static str = "message_metadata";
    const FIELDS: &'static [Field] = &[
        Field("mailbox", FieldKind::Text),
        Field("id", FieldKind::Text),
        Field("from", FieldKind::Address),
        Field("to", FieldKind::Addresses),
        Field("date", FieldKind::Number),
        Field("subject", FieldKind::Text),
        Field("size", FieldKind::Number),
        HEADERS,
        HEADER,
        TEXT,
        HTML,
        ATTACHMENTS,
        SOURCE,
    ];

    fn default_value(&self, lua: &Lua, field: &str) -> mlua::Result<Value> {
        let Some(summary) = &self.summary else {
            return match field {
                "mailbox" | "id" => lua.create_string("").map(Value::String),
                "date" | "size" => Ok(to_integer(0)),
                field => headline_field(lua, &Headline::new("", [], ""), field),
            };
        };
        match field {
            "mailbox" => lua.create_string(summary.mailbox.as_str()).map(Value::String),
            "id" => lua.create_string(summary.id.to_string()).map(Value::String),
            "date" => Ok(to_integer(summary.received.as_second())),
            "size" => Ok(to_integer(summary.size)),
            "to" => address::to_list(lua, summary.to().map(|to| NamedAddress::from_display(&to))),
            field => headline_field(lua, &summary.headline, field),
        }
    }

    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn cached_fields(&self) -> &FieldSet {
        &self.cached_fields
    }
}
