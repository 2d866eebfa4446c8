//! The object `address`: a display name and an address. Scripts can change both.

use mlua::{Lua, LuaString, Table, Value};
use restante_mail::mime::NamedAddress;

use super::class::{Class, class_of};
use super::constructors;
use super::field::{Field, FieldKind};
use super::values::expect_text;

/// The fields that scripts can write to.
pub(super) const FIELDS: &[Field] = &[Field("name", FieldKind::Text), Field("address", FieldKind::Text)];

/// How much of a field is read. Names and addresses are truncated to less when they are used.
const MAX_READ_BYTES: usize = 4096;

/// Creates the table `address`.
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

/// Creates an address.
pub(super) fn to_object(lua: &Lua, address: &NamedAddress) -> mlua::Result<Value> {
    constructors::new_address(lua, address.name.as_str(), address.address.as_str()).map(Value::Table)
}

/// Creates a list of addresses.
pub(super) fn to_list(lua: &Lua, addresses: impl Iterator<Item = NamedAddress>) -> mlua::Result<Value> {
    let table = lua.create_table()?;
    for address in addresses {
        table.raw_push(to_object(lua, &address)?)?;
    }
    Ok(Value::Table(table))
}

/// Returns whether a value is an address.
pub(super) fn is_address(value: &Value) -> bool {
    value.as_table().and_then(class_of) == Some(Class::Address)
}

/// Returns the contents of an address, or `None` if the value is not one. Very long texts are truncated.
pub(crate) fn to_named_address(value: &Value) -> Option<NamedAddress> {
    let object = value.as_table().filter(|table| class_of(table) == Some(Class::Address))?;
    Some(NamedAddress { name: field_text(object, "\0name")?, address: field_text(object, "\0address")? })
}

/// Formats an address for display.
pub(super) fn display(value: &Value) -> String {
    to_named_address(value).map_or_else(|| "address".to_owned(), |address| address.display())
}

/// Returns the contents of a field. Scripts can put another type there with `rawset`.
fn field_text(object: &Table, field: &str) -> Option<String> {
    let text: LuaString = object.raw_get(field).ok()?;
    let bytes = text.as_bytes();
    Some(String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_READ_BYTES)]).into_owned())
}
