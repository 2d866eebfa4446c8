//! The object `inbound_message`: a message in delivery, which a script can change.

use mlua::{AnyUserData, Lua, LuaString, Table, UserData, UserDataMethods, Value};
use restante_mail::message::Headline;
use restante_mail::mime::{NamedAddress, summarize_recipients, summarize_subject};
use restante_mail::naming::{MailboxName, Naming};
use restante_mailroom::hooks::IncomingMessage;

use super::content::{self, ATTACHMENTS, HEADER, HEADERS, HTML, Origin, SOURCE, TEXT};
use super::field::{Field, FieldKind};
use super::record::{self, FieldSet, Record};
use super::values::describe_type;
use super::{address, lists};

/// The message of an object.
pub(super) struct InboundMessage {
    mailboxes: Vec<MailboxName>,
    headline: Headline,
    size: usize,
    origin: Origin,
    cached_fields: FieldSet,
}

impl InboundMessage {
    /// Creates the object for a message that is being delivered.
    pub(super) fn new(lua: &Lua, message: &IncomingMessage) -> Self {
        Self {
            mailboxes: message.mailboxes.clone(),
            headline: message.headline.clone(),
            size: message.body.len(),
            origin: content::cache_inbound(lua, message.body.clone()),
            cached_fields: FieldSet::default(),
        }
    }

    /// Creates the object for a new message of a script.
    pub(super) fn empty() -> Self {
        let (mailboxes, headline) = (Vec::new(), Headline::new("", [], ""));
        Self { mailboxes, headline, size: 0, origin: Origin::Created, cached_fields: FieldSet::default() }
    }
}

impl UserData for InboundMessage {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        record::add_fields(methods);
        record::add_tostring(methods, "subject");
    }
}

impl Record for InboundMessage {
    const NAME: &'static str = "inbound_message";
    const FIELDS: &'static [Field] = &[
        Field("mailboxes", FieldKind::Mailboxes),
        Field("from", FieldKind::Address),
        Field("to", FieldKind::Addresses),
        Field("subject", FieldKind::Text),
        Field("size", FieldKind::ReadOnly),
        HEADERS,
        HEADER,
        TEXT,
        HTML,
        ATTACHMENTS,
        SOURCE,
    ];

    fn default_value(&self, lua: &Lua, field: &str) -> mlua::Result<Value> {
        match field {
            "mailboxes" => lua.create_sequence_from(self.mailboxes.iter().map(MailboxName::as_str)).map(Value::Table),
            "size" => Ok(to_integer(self.size)),
            field => headline_field(lua, &self.headline, field),
        }
    }

    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn cached_fields(&self) -> &FieldSet {
        &self.cached_fields
    }
}

/// Parses the message that a function returned. The source stays that of `original`. Returns `None` if the script
/// returned nil or false.
pub(crate) fn parse_inbound_result(
    value: &Value,
    original: &IncomingMessage,
    naming: Naming,
) -> Result<Option<IncomingMessage>, String> {
    let object = match value {
        Value::Nil | Value::Boolean(false) => return Ok(None),
        Value::UserData(object) if object.is::<InboundMessage>() => object,
        other => return Err(format!("must return the message, nil or false, not {}", describe_type(other))),
    };
    let message = object.borrow::<InboundMessage>().map_err(|error| error.to_string())?;
    let mailboxes = match cached_value::<Table>(object, "mailboxes")? {
        Some(list) => {
            lists::parse_mailboxes(&list, naming).map_err(|error| format!("inbound_message.mailboxes {error}"))?
        }
        None => message.mailboxes.clone(),
    };
    let headline = changed_headline(object, &message.headline)?;
    Ok(Some(IncomingMessage { mailboxes, headline, body: original.body.clone() }))
}

/// Returns the sender, the recipients or the subject as a Lua value.
pub(super) fn headline_field(lua: &Lua, headline: &Headline, field: &str) -> mlua::Result<Value> {
    match field {
        "from" => address::to_object(lua, &NamedAddress::from_display(headline.from())),
        "to" => address::to_list(lua, headline.to().map(NamedAddress::from_display)),
        _ => lua.create_string(headline.subject()).map(Value::String),
    }
}

/// Converts a number. Lua has 53-bit integers, which is more than any message needs.
pub(super) fn to_integer(number: impl TryInto<mlua::Integer>) -> Value {
    Value::Integer(number.try_into().unwrap_or(mlua::Integer::MAX))
}

/// Returns the headline with the changes of the script. Unchanged parts stay byte for byte.
fn changed_headline(object: &AnyUserData, original: &Headline) -> Result<Headline, String> {
    let from = match cached_value::<Option<Value>>(object, "from")?.flatten() {
        Some(from) => Some(address::to_named_address(&from).ok_or("inbound_message.from is no longer an address")?),
        None => None,
    };
    let from = from
        .filter(|from| *from != NamedAddress::from_display(original.from()))
        .map(|from| NamedAddress::new(&from.name, &from.address).display());
    let to = match cached_value::<Table>(object, "to")? {
        Some(list) => Some(lists::parse_addresses(&list).map_err(|error| format!("inbound_message.to {error}"))?),
        None => None,
    };
    let to = to
        .filter(|to| !original.to().map(NamedAddress::from_display).eq(to.iter().cloned()))
        .map(|to| summarize_recipients(to.iter().map(|to| NamedAddress::new(&to.name, &to.address))));
    let subject = cached_value::<LuaString>(object, "subject")?
        .map(|subject| subject.to_string_lossy())
        .filter(|subject| subject != original.subject())
        .map(|subject| summarize_subject(&subject));
    if from.is_none() && to.is_none() && subject.is_none() {
        return Ok(original.clone());
    }
    let to: Vec<&str> =
        to.as_ref().map_or_else(|| original.to().collect(), |to| to.iter().map(String::as_str).collect());
    Ok(Headline::new(from.as_deref().unwrap_or(original.from()), to, subject.as_deref().unwrap_or(original.subject())))
}

/// Returns the value of a field that the script has read or written.
fn cached_value<V: mlua::FromLua>(object: &AnyUserData, field: &str) -> Result<Option<V>, String> {
    object.named_user_value(field).map_err(|error| error.to_string())
}
