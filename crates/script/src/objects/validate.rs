//! Validation of values that scripts write to fields, for all objects.

use mlua::{Lua, Value};
use restante_mail::naming::Naming;

use super::address::is_address;
use super::class::class_of;
use super::field::FieldKind;
use super::lists;
use super::values::{describe_type, expect_text, script_error};

/// Checks a value for a field of the given kind. Returns the value to store.
pub(super) fn validate(lua: &Lua, what: &str, kind: FieldKind, value: Value) -> mlua::Result<Value> {
    let misfit = |wanted: &str, value: &Value| {
        let kind = describe_type(value);
        script_error(lua, format_args!("{what} must be {wanted}, not {kind}"))
    };
    match (kind, value) {
        (FieldKind::ReadOnly | FieldKind::Content | FieldKind::Source, _) => {
            Err(script_error(lua, format_args!("{what} is read-only")))
        }
        (FieldKind::Text, value) => expect_text(lua, what, value).map(Value::String),
        (FieldKind::Number, value) => {
            Ok(Value::Number(lua.coerce_number(value.clone())?.ok_or_else(|| misfit("a number", &value))?))
        }
        (FieldKind::Address, value) if is_address(&value) => Ok(value),
        (FieldKind::Address, value) => Err(misfit("an address", &value)),
        (FieldKind::Addresses, Value::Table(list)) if class_of(&list).is_none() => {
            lists::check_addresses(&list).map_err(|error| script_error(lua, format_args!("{what} {error}")))?;
            Ok(Value::Table(list))
        }
        (FieldKind::Addresses, value) => Err(misfit("a list of addresses", &value)),
        (FieldKind::Mailboxes, Value::Table(list)) if class_of(&list).is_none() => {
            let naming = lua.app_data_ref::<Naming>().map(|naming| *naming).unwrap_or_default();
            lists::parse_mailboxes(&list, naming).map_err(|error| script_error(lua, format_args!("{what} {error}")))?;
            Ok(Value::Table(list))
        }
        (FieldKind::Mailboxes, value) => Err(misfit("a list of texts", &value)),
    }
}
