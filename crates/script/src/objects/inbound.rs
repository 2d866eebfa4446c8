//! The object `inbound_message`: a message on its way to the store, which a script may change.

use mlua::{AnyUserData, Lua, LuaString, Table, UserData, UserDataMethods, Value};
use restante_mail::message::Headline;
use restante_mail::mime::{NamedAddress, summarize_recipients, summarize_subject};
use restante_mail::naming::{MailboxName, Naming};
use restante_mailroom::hooks::IncomingMessage;

use super::content::{self, ATTACHMENTS, HEADER, HEADERS, HTML, Origin, SOURCE, TEXT};
use super::field::{Field, Kind};
use super::record::{self, Kept, Record};
use super::values::kind_of;
use super::{address, lists};

/// A message in a script's hands.
pub(super) struct InboundMessage {
    mailboxes: Vec<MailboxName>,
    headline: Headline,
    size: usize,
    origin: Origin,
    kept: Kept,
}

impl InboundMessage {
    /// A message that is being delivered.
    pub(super) fn new(lua: &Lua, message: &IncomingMessage) -> Self {
        Self {
            mailboxes: message.mailboxes.clone(),
            headline: message.headline.clone(),
            size: message.body.len(),
            origin: content::pass(lua, message.body.clone()),
            kept: Kept::default(),
        }
    }

    /// A message that a script makes up.
    pub(super) fn empty() -> Self {
        let (mailboxes, headline) = (Vec::new(), Headline::new("", [], ""));
        Self { mailboxes, headline, size: 0, origin: Origin::Made, kept: Kept::default() }
    }
}

impl UserData for InboundMessage {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        record::add_fields(methods);
        record::add_title(methods, "subject");
    }
}

impl Record for InboundMessage {
    const NAME: &'static str = "inbound_message";
    const FIELDS: &'static [Field] = &[
        Field("mailboxes", Kind::Mailboxes),
        Field("from", Kind::Address),
        Field("to", Kind::Addresses),
        Field("subject", Kind::Text),
        Field("size", Kind::Fixed),
        HEADERS,
        HEADER,
        TEXT,
        HTML,
        ATTACHMENTS,
        SOURCE,
    ];

    fn initial(&self, lua: &Lua, field: &str) -> mlua::Result<Value> {
        match field {
            "mailboxes" => lua.create_sequence_from(self.mailboxes.iter().map(MailboxName::as_str)).map(Value::Table),
            "size" => Ok(number(self.size)),
            field => headline(lua, &self.headline, field),
        }
    }

    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn kept(&self) -> &Kept {
        &self.kept
    }
}

/// The message that a script has returned, if it has; the mail itself stays that of `original`.
pub(super) fn changed(
    value: &Value,
    original: &IncomingMessage,
    naming: Naming,
) -> Result<Option<IncomingMessage>, String> {
    let object = match value {
        Value::Nil | Value::Boolean(false) => return Ok(None),
        Value::UserData(object) if object.is::<InboundMessage>() => object,
        other => return Err(format!("must return the message, nil or false, not {}", kind_of(other))),
    };
    let message = object.borrow::<InboundMessage>().map_err(|error| error.to_string())?;
    let mailboxes = match kept::<Table>(object, "mailboxes")? {
        Some(list) => lists::mailboxes(&list, naming).map_err(|error| format!("inbound_message.mailboxes {error}"))?,
        None => message.mailboxes.clone(),
    };
    let headline = changed_headline(object, &message.headline)?;
    Ok(Some(IncomingMessage { mailboxes, headline, body: original.body.clone() }))
}

/// A sender, recipient or subject, as objects for messages show them.
pub(super) fn headline(lua: &Lua, headline: &Headline, field: &str) -> mlua::Result<Value> {
    match field {
        "from" => address::object(lua, &NamedAddress::from_display(headline.from())),
        "to" => address::list(lua, headline.to().map(NamedAddress::from_display)),
        _ => lua.create_string(headline.subject()).map(Value::String),
    }
}

/// Numbers of Lua have 53 bits, which is more than any mail needs.
pub(super) fn number(n: impl TryInto<mlua::Integer>) -> Value {
    Value::Integer(n.try_into().unwrap_or(mlua::Integer::MAX))
}

/// The headline with the changes of the script. What did not change stays as it is, to the letter.
fn changed_headline(object: &AnyUserData, old: &Headline) -> Result<Headline, String> {
    let from = match kept::<Option<Value>>(object, "from")?.flatten() {
        Some(from) => Some(address::mailbox(&from).ok_or("inbound_message.from is no address any more")?),
        None => None,
    };
    let from = from
        .filter(|from| *from != NamedAddress::from_display(old.from()))
        .map(|from| NamedAddress::new(&from.name, &from.address).display());
    let to = match kept::<Table>(object, "to")? {
        Some(list) => Some(lists::addresses(&list).map_err(|error| format!("inbound_message.to {error}"))?),
        None => None,
    };
    let to = to
        .filter(|to| !old.to().map(NamedAddress::from_display).eq(to.iter().cloned()))
        .map(|to| summarize_recipients(to.iter().map(|to| NamedAddress::new(&to.name, &to.address))));
    let subject = kept::<LuaString>(object, "subject")?
        .map(|subject| subject.to_string_lossy())
        .filter(|subject| subject != old.subject())
        .map(|subject| summarize_subject(&subject));
    if from.is_none() && to.is_none() && subject.is_none() {
        return Ok(old.clone());
    }
    let to: Vec<&str> = to.as_ref().map_or_else(|| old.to().collect(), |to| to.iter().map(String::as_str).collect());
    Ok(Headline::new(from.as_deref().unwrap_or(old.from()), to, subject.as_deref().unwrap_or(old.subject())))
}

/// What a field holds, when the script has read or written it.
fn kept<V: mlua::FromLua>(object: &AnyUserData, field: &str) -> Result<Option<V>, String> {
    object.named_user_value(field).map_err(|error| error.to_string())
}
