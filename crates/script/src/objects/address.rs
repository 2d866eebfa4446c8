//! The object `address`: a display name and an address, both of which a script may change.

use mlua::{AnyUserData, Lua, MetaMethod, Table, UserData, UserDataMethods, Value};
use restante_mail::mime::Mailbox;

use super::values::{expect_text, name, unknown_field};

/// An address in a script's hands.
pub(super) struct Address(pub(super) Mailbox);

impl UserData for Address {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::Index, |lua, this, field: Value| match name(&field).as_deref() {
            Some(b"name") => lua.create_string(&this.0.name).map(Value::String),
            Some(b"address") => lua.create_string(&this.0.address).map(Value::String),
            _ => Ok(Value::Nil),
        });
        methods.add_meta_method_mut(MetaMethod::NewIndex, |lua, this, (field, value): (Value, Value)| {
            let (what, place) = match name(&field).as_deref() {
                Some(b"name") => ("address.name", &mut this.0.name),
                Some(b"address") => ("address.address", &mut this.0.address),
                _ => return Err(unknown_field(lua, "address", &field)),
            };
            *place = expect_text(lua, what, value)?.to_string_lossy();
            Ok(())
        });
        methods.add_meta_method(MetaMethod::ToString, |_, this, ()| Ok(this.0.display()));
        methods.add_meta_function(MetaMethod::Eq, |_, (one, other): (AnyUserData, AnyUserData)| {
            Ok(one.borrow::<Self>()?.0 == other.borrow::<Self>()?.0)
        });
    }
}

/// The table `address`.
pub(super) fn constructor(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let new = lua.create_function(|lua, (name, address): (Value, Value)| {
        let name = expect_text(lua, "the name in address.new(name, address)", name)?.to_string_lossy();
        let address = expect_text(lua, "the address in address.new(name, address)", address)?.to_string_lossy();
        Ok(Address(Mailbox { name, address }))
    })?;
    table.raw_set("new", new)?;
    Ok(table)
}

/// A new list of addresses.
pub(super) fn list(lua: &Lua, mailboxes: impl Iterator<Item = Mailbox>) -> mlua::Result<Value> {
    let table = lua.create_table()?;
    for mailbox in mailboxes {
        table.raw_push(Address(mailbox))?;
    }
    Ok(Value::Table(table))
}

/// What an address holds; none when the value is something else.
pub(super) fn mailbox(value: &Value) -> Option<Mailbox> {
    let address = value.as_userdata()?.borrow::<Address>().ok()?;
    Some(address.0.clone())
}
