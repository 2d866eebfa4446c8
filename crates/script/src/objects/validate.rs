//! Validation of values that scripts write to fields, for all objects.

use mlua::{Lua, Value};
use restante_mail::naming::Naming;

use super::address::is_address;
use super::class::class_of;
use super::field::FieldKind;
use super::lists;
use super::values::{describe_type, expect_text, script_error};

/// Checks a value for a field of the given kind. Returns the value to store.
pub(super) fn validate(lua: &Lua, name: &str, kind: FieldKind, value: Value) -> mlua::Result<Value> {
    let type_error = |expected: &str, value: &Value| {
        let kind = describe_type(value);
        script_error(lua, format_args!("{name} must be {expected}, not {kind}"))
    };
    match (kind, value) {
        (FieldKind::ReadOnly | FieldKind::Content | FieldKind::Source, _) => {
            Err(script_error(lua, format_args!("{name} is read-only")))
        }
        (FieldKind::Text, value) => expect_text(lua, name, value).map(Value::String),
        (FieldKind::Number, value) => {
            Ok(Value::Number(lua.coerce_number(value.clone())?.ok_or_else(|| type_error("a number", &value))?))
        }
        (FieldKind::Address, value) if is_address(&value) => Ok(value),
        (FieldKind::Address, value) => Err(type_error("an address", &value)),
        (FieldKind::Addresses, Value::Table(list)) if class_of(&list).is_none() => {
            lists::check_addresses(&list).map_err(|error| script_error(lua, format_args!("{name} {error}")))?;
            Ok(Value::Table(list))
        }
        (FieldKind::Addresses, value) => Err(type_error("a list of addresses", &value)),
        (FieldKind::Mailboxes, Value::Table(list)) if class_of(&list).is_none() => {
            let naming = lua.app_data_ref::<Naming>().map(|naming| *naming).unwrap_or_default();
            lists::parse_mailboxes(&list, naming).map_err(|error| script_error(lua, format_args!("{name} {error}")))?;
            Ok(Value::Table(list))
        }
        (FieldKind::Mailboxes, value) => Err(type_error("a list of texts", &value)),
    }
}
