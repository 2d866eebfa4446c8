//! The object `smtp_session`: what is known of a mail before it is sent.

use std::net::IpAddr;

use mlua::{Lua, UserData, UserDataMethods, Value};
use restante_mail::address::Address;
use restante_mail::envelope::{Envelope, reverse_path_text};
use restante_mail::mime::Mailbox;

use super::address;
use super::content::Origin;
use super::record::{self, Field, Kept, Kind, Record};

/// A session in a script's hands.
#[derive(Default)]
pub(super) struct Session {
    from: String,
    to: Vec<String>,
    ip: Option<IpAddr>,
    kept: Kept,
}

impl Session {
    /// What is known when `candidate`, if any, is the next recipient.
    pub(super) fn new(envelope: &Envelope, candidate: Option<&Address>) -> Self {
        Self {
            from: reverse_path_text(&envelope.from),
            to: envelope.recipients.iter().chain(candidate).map(Address::to_string).collect(),
            ip: envelope.peer.ip,
            kept: Kept::default(),
        }
    }
}

impl UserData for Session {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        record::add_fields(methods);
        record::add_title(methods, "remote_addr");
    }
}

impl Record for Session {
    const NAME: &'static str = "smtp_session";
    const FIELDS: &'static [Field] =
        &[Field("from", Kind::Address), Field("to", Kind::Addresses), Field("remote_addr", Kind::Text)];

    fn initial(&self, lua: &Lua, field: &str) -> mlua::Result<Value> {
        match field {
            "from" => address::object(lua, bare(&self.from)),
            "to" => address::list(lua, self.to.iter().map(|to| bare(to))),
            _ => lua.create_string(self.ip.map(|ip| ip.to_string()).unwrap_or_default()).map(Value::String),
        }
    }

    fn origin(&self) -> Option<&Origin> {
        None
    }

    fn kept(&self) -> &Kept {
        &self.kept
    }
}

/// Envelopes know no names.
fn bare(address: &str) -> Mailbox {
    Mailbox { name: String::new(), address: address.to_owned() }
}
