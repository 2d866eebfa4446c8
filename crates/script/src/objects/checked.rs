//! What scripts may write to a field, whatever object has it.

use mlua::{Lua, Value};
use restante_mail::naming::Naming;

use super::address::is_address;
use super::class::class;
use super::field::Kind;
use super::lists;
use super::values::{expect_text, fault, kind_of};

/// What a field of that kind is to hold when a script writes a value to it.
pub(super) fn checked(lua: &Lua, what: &str, kind: Kind, value: Value) -> mlua::Result<Value> {
    let misfit = |wanted: &str, value: &Value| {
        let kind = kind_of(value);
        fault(lua, format_args!("{what} must be {wanted}, not {kind}"))
    };
    match (kind, value) {
        (Kind::Fixed | Kind::Content | Kind::Source, _) => Err(fault(lua, format_args!("{what} is read-only"))),
        (Kind::Text, value) => expect_text(lua, what, value).map(Value::String),
        (Kind::Number, value) => {
            Ok(Value::Number(lua.coerce_number(value.clone())?.ok_or_else(|| misfit("a number", &value))?))
        }
        (Kind::Address, value) if is_address(&value) => Ok(value),
        (Kind::Address, value) => Err(misfit("an address", &value)),
        (Kind::Addresses, Value::Table(list)) if class(&list).is_none() => {
            lists::check_addresses(&list).map_err(|error| fault(lua, format_args!("{what} {error}")))?;
            Ok(Value::Table(list))
        }
        (Kind::Addresses, value) => Err(misfit("a list of addresses", &value)),
        (Kind::Mailboxes, Value::Table(list)) if class(&list).is_none() => {
            let naming = lua.app_data_ref::<Naming>().map(|naming| *naming).unwrap_or_default();
            lists::mailboxes(&list, naming).map_err(|error| fault(lua, format_args!("{what} {error}")))?;
            Ok(Value::Table(list))
        }
        (Kind::Mailboxes, value) => Err(misfit("a list of texts", &value)),
    }
}
