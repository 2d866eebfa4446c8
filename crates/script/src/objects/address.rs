//! The object `address`: a display name and an address, both of which a script may change.

use mlua::{AnyUserData, Lua, LuaString, MetaMethod, Table, UserData, UserDataMethods, Value};
use restante_mail::mime::Mailbox;

use super::content::Origin;
use super::record::{self, Field, Kept, Kind, Record};
use super::values::expect_text;

/// How much of what a script has written is looked at, in bytes: more than is ever shown of a name or an address.
const MAX_READ: usize = 4096;

/// An address in a script's hands.
#[derive(Default)]
pub(super) struct Address {
    mailbox: Mailbox,
    kept: Kept,
}

impl UserData for Address {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        record::add_fields(methods);
        methods.add_meta_function(MetaMethod::ToString, |_, object: AnyUserData| Ok(read(&object)?.display()));
        methods.add_meta_function(MetaMethod::Eq, |_, (one, other): (AnyUserData, AnyUserData)| {
            Ok(read(&one)? == read(&other)?)
        });
    }
}

impl Record for Address {
    const NAME: &'static str = "address";
    const FIELDS: &'static [Field] = &[Field("name", Kind::Text), Field("address", Kind::Text)];

    fn initial(&self, lua: &Lua, field: &str) -> mlua::Result<Value> {
        let text = if field == "name" { &self.mailbox.name } else { &self.mailbox.address };
        lua.create_string(text).map(Value::String)
    }

    fn origin(&self) -> Option<&Origin> {
        None
    }

    fn kept(&self) -> &Kept {
        &self.kept
    }
}

/// The table `address`.
pub(super) fn constructor(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let new = lua.create_function(|lua, (name, address): (Value, Value)| {
        let name = expect_text(lua, "the name in address.new(name, address)", name)?;
        let address = expect_text(lua, "the address in address.new(name, address)", address)?;
        let object = lua.create_userdata(Address::default())?;
        record::keep::<Address>(&object, "name", name)?;
        record::keep::<Address>(&object, "address", address)?;
        Ok(object)
    })?;
    table.raw_set("new", new)?;
    Ok(table)
}

/// A new address.
pub(super) fn object(lua: &Lua, mailbox: Mailbox) -> mlua::Result<Value> {
    lua.create_userdata(Address { mailbox, kept: Kept::default() }).map(Value::UserData)
}

/// A new list of addresses.
pub(super) fn list(lua: &Lua, mailboxes: impl Iterator<Item = Mailbox>) -> mlua::Result<Value> {
    let table = lua.create_table()?;
    for mailbox in mailboxes {
        table.raw_push(object(lua, mailbox)?)?;
    }
    Ok(Value::Table(table))
}

/// Whether a value is an address.
pub(super) fn is_address(value: &Value) -> bool {
    value.as_userdata().is_some_and(AnyUserData::is::<Address>)
}

/// What an address holds; none when the value is something else. Very long texts are cut.
pub(super) fn mailbox(value: &Value) -> Option<Mailbox> {
    value.as_userdata().and_then(|object| read(object).ok())
}

fn read(object: &AnyUserData) -> mlua::Result<Mailbox> {
    let initial = &object.borrow::<Address>()?.mailbox;
    Ok(Mailbox { name: text(object, "name", &initial.name)?, address: text(object, "address", &initial.address)? })
}

fn text(object: &AnyUserData, field: &str, initial: &str) -> mlua::Result<String> {
    let Some(written) = object.named_user_value::<Option<LuaString>>(field)? else { return Ok(initial.to_owned()) };
    let bytes = written.as_bytes();
    Ok(String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_READ)]).into_owned())
}
