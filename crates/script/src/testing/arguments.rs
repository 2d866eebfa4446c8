//! The arguments that a test passes: the fields of a table or an object, converted to the expected types. Their meaning
//! and defaults are in `fixtures`. Errors are sentences for the author of the test.

use mlua::{AnyUserData, ObjectLike, Table, Value};
use restante_mail::mime::NamedAddress;

use crate::objects::{describe_type, is_object, to_named_address};

/// The maximum length of a list.
const MAX_ITEMS: usize = 10_000;

/// The fields of an argument.
pub(super) enum Arguments<'a> {
    /// There is no argument.
    Nothing,
    /// A table that describes something, or an object that is a table.
    Table(&'a Table),
    /// An object of the script API.
    Object(&'a AnyUserData),
}

impl<'a> Arguments<'a> {
    /// Reads an argument. An unknown field is an error. So is an object without the first of the known fields, because
    /// it has another type.
    pub(super) fn new(value: &'a Value, description: &str, known: &[&str]) -> Result<Self, String> {
        let table = match value {
            Value::Nil => return Ok(Self::Nothing),
            Value::UserData(object) if has_first_field(object, known) => return Ok(Self::Object(object)),
            Value::Table(object) if is_object(object) && has_first_field(object, known) => {
                return Ok(Self::Table(object));
            }
            Value::Table(table) if !is_object(table) => table,
            other => return Err(format!("{description} must be a table, not {}", describe_type(other))),
        };
        for pair in table.pairs::<Value, Value>() {
            let (key, _) = pair.map_err(to_message)?;
            let key = key.to_string().map_err(to_message)?;
            if !known.contains(&key.as_str()) {
                return Err(format!("{description} has no field '{key}'; its fields are {}", known.join(", ")));
            }
        }
        Ok(Self::Table(table))
    }

    pub(super) fn bytes(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        match self.value(name)? {
            Value::Nil => Ok(None),
            Value::String(bytes) => Ok(Some(bytes.as_bytes().to_vec())),
            value => text(name, &value).map(|text| Some(text.into_bytes())),
        }
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<String>, String> {
        match self.value(name)? {
            Value::Nil => Ok(None),
            value => text(name, &value).map(Some),
        }
    }

    /// Returns a number of seconds, without its fraction.
    pub(super) fn seconds(&self, name: &str) -> Result<Option<i64>, String> {
        match self.value(name)? {
            Value::Nil => Ok(None),
            Value::Integer(seconds) => Ok(Some(seconds)),
            #[expect(clippy::cast_possible_truncation, reason = "values out of range are rejected as dates later")]
            Value::Number(seconds) => Ok(Some(seconds as i64)),
            other => Err(type_error(name, "a number", &other)),
        }
    }

    pub(super) fn table(&self, name: &str) -> Result<Option<Table>, String> {
        match self.value(name)? {
            Value::Nil => Ok(None),
            Value::Table(table) => Ok(Some(table)),
            other => Err(type_error(name, "a table", &other)),
        }
    }

    pub(super) fn list(&self, name: &str) -> Result<Option<Vec<Value>>, String> {
        self.table(name)?.map(|table| items(name, &table)).transpose()
    }

    pub(super) fn address(&self, name: &str) -> Result<Option<NamedAddress>, String> {
        match self.value(name)? {
            Value::Nil => Ok(None),
            value => parse_address(name, &value).map(Some),
        }
    }

    /// Returns a list of addresses, or a single one as a list.
    pub(super) fn addresses(&self, name: &str) -> Result<Option<Vec<NamedAddress>>, String> {
        let addresses = match self.value(name)? {
            Value::Nil => return Ok(None),
            Value::Table(list) if !is_object(&list) => items(name, &list)?,
            single => vec![single],
        };
        addresses.iter().map(|value| parse_address(name, value)).collect::<Result<_, _>>().map(Some)
    }

    fn value(&self, name: &str) -> Result<Value, String> {
        match self {
            Self::Nothing => Ok(Value::Nil),
            Self::Table(table) => table.get(name).map_err(to_message),
            Self::Object(object) => object.get(name).map_err(to_message),
        }
    }
}

/// Returns a text. A number is converted to its digits, as everywhere in Lua.
pub(super) fn text(name: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.to_string_lossy()),
        Value::Integer(_) | Value::Number(_) => value.to_string().map_err(to_message),
        other => Err(type_error(name, "a text", other)),
    }
}

/// Returns the values of a list up to the first nil.
pub(super) fn items(name: &str, list: &Table) -> Result<Vec<Value>, String> {
    let mut items = Vec::new();
    loop {
        match list.raw_get(items.len() + 1).map_err(to_message)? {
            Value::Nil => return Ok(items),
            _ if items.len() == MAX_ITEMS => return Err(format!("{name} has more than {MAX_ITEMS} items")),
            item => items.push(item),
        }
    }
}

fn has_first_field(object: &impl ObjectLike, known: &[&str]) -> bool {
    let first = known.first().map(|name| object.get::<Value>(*name));
    matches!(first, Some(Ok(value)) if !value.is_nil())
}

/// Parses an address object, or a text such as `ann@example.org` or `Ann <ann@example.org>`.
fn parse_address(name: &str, value: &Value) -> Result<NamedAddress, String> {
    if let Some(NamedAddress { name, address }) = to_named_address(value) {
        return Ok(NamedAddress::new(&name, &address));
    }
    let text = text(name, value).map_err(|_| type_error(name, "a text or an address", value))?;
    Ok(NamedAddress::from_display(&text))
}

fn type_error(name: &str, expected: &str, value: &Value) -> String {
    format!("{name} must be {expected}, not {}", describe_type(value))
}

#[expect(clippy::needless_pass_by_value, reason = "used with map_err")]
fn to_message(error: mlua::Error) -> String {
    error.to_string()
}
