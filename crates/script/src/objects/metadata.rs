//! The object `message_metadata`: what the store knows of a message.

use mlua::{Lua, UserData, UserDataMethods, Value};
use restante_mail::message::{Headline, Summary};

use super::content::{ATTACHMENTS, HEADER, HEADERS, HTML, Origin, SOURCE, TEXT};
use super::field::{Field, Kind};
use super::inbound::{headline, number};
use super::record::{self, Kept, Record};

/// Metadata in a script's hands.
pub(super) struct Metadata {
    summary: Option<Summary>,
    origin: Origin,
    kept: Kept,
}

impl Metadata {
    /// That of a message which is, or was, in the store.
    pub(super) fn new(summary: &Summary, is_stored: bool) -> Self {
        let origin = if is_stored { Origin::Stored(summary.mailbox.clone(), summary.id) } else { Origin::Gone };
        Self { summary: Some(summary.clone()), origin, kept: Kept::default() }
    }

    /// Metadata that a script makes up.
    pub(super) fn empty() -> Self {
        Self { summary: None, origin: Origin::Made, kept: Kept::default() }
    }
}

impl UserData for Metadata {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        record::add_fields(methods);
        record::add_title(methods, "subject");
    }
}

impl Record for Metadata {
    const NAME: &'static str = "message_metadata";
    const FIELDS: &'static [Field] = &[
        Field("mailbox", Kind::Text),
        Field("id", Kind::Text),
        Field("from", Kind::Address),
        Field("to", Kind::Addresses),
        Field("date", Kind::Number),
        Field("subject", Kind::Text),
        Field("size", Kind::Number),
        HEADERS,
        HEADER,
        TEXT,
        HTML,
        ATTACHMENTS,
        SOURCE,
    ];

    fn initial(&self, lua: &Lua, field: &str) -> mlua::Result<Value> {
        let Some(summary) = &self.summary else {
            return match field {
                "mailbox" | "id" => lua.create_string("").map(Value::String),
                "date" | "size" => Ok(number(0)),
                field => headline(lua, &Headline::new("", [], ""), field),
            };
        };
        match field {
            "mailbox" => lua.create_string(summary.mailbox.as_str()).map(Value::String),
            "id" => lua.create_string(summary.id.to_string()).map(Value::String),
            "date" => Ok(number(summary.received.as_second())),
            "size" => Ok(number(summary.size)),
            field => headline(lua, &summary.headline, field),
        }
    }

    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn kept(&self) -> &Kept {
        &self.kept
    }
}
