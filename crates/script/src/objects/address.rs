//! The object `address`: a display name and an address, both of which a script may change.

use mlua::{Lua, LuaString, Table, Value};
use restante_mail::mime::NamedAddress;

use super::class::{Class, class_of};
use super::constructors;
use super::field::{Field, FieldKind};
use super::values::expect_text;

/// What scripts may write to.
pub(super) const FIELDS: &[Field] = &[Field("name", FieldKind::Text), Field("address", FieldKind::Text)];

/// How much of what a script has written is looked at, in bytes: more than is ever shown of a name or an address.
const MAX_READ_BYTES: usize = 4096;

/// The table `address`.
pub(super) fn constructor(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let new = lua.create_function(|lua, (name, address): (Value, Value)| {
        let name = expect_text(lua, "the name in address.new(name, address)", name)?;
        let address = expect_text(lua, "the address in address.new(name, address)", address)?;
        constructors::new_address(lua, name, address)
    })?;
    table.raw_set("new", new)?;
    Ok(table)
}

/// A new address.
pub(super) fn to_object(lua: &Lua, mailbox: &NamedAddress) -> mlua::Result<Value> {
    constructors::new_address(lua, mailbox.name.as_str(), mailbox.address.as_str()).map(Value::Table)
}

/// A new list of addresses.
pub(super) fn to_list(lua: &Lua, mailboxes: impl Iterator<Item = NamedAddress>) -> mlua::Result<Value> {
    let table = lua.create_table()?;
    for mailbox in mailboxes {
        table.raw_push(to_object(lua, &mailbox)?)?;
    }
    Ok(Value::Table(table))
}

/// Whether a value is an address.
pub(super) fn is_address(value: &Value) -> bool {
    value.as_table().and_then(class_of) == Some(Class::Address)
}

/// What an address holds; none when the value is something else. Very long texts are cut.
pub(crate) fn to_mailbox(value: &Value) -> Option<NamedAddress> {
    let object = value.as_table().filter(|table| class_of(table) == Some(Class::Address))?;
    Some(NamedAddress { name: field_text(object, "\0name")?, address: field_text(object, "\0address")? })
}

/// An address for people to read.
pub(super) fn display(value: &Value) -> String {
    to_mailbox(value).map_or_else(|| "address".to_owned(), |mailbox| mailbox.display())
}

/// What lies in a field. Scripts can put something else there, though not by an assignment.
fn field_text(object: &Table, field: &str) -> Option<String> {
    let text: LuaString = object.raw_get(field).ok()?;
    let bytes = text.as_bytes();
    Some(String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_READ_BYTES)]).into_owned())
}
