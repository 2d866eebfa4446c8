//! The lists of a message as scripts write them: Lua tables, which can contain anything. An error is the end of a
//! sentence that starts with the name of the list.

use std::collections::BTreeMap;

use mlua::{Table, Value};
use restante_mail::mime::NamedAddress;
use restante_mail::naming::{MailboxName, Naming};

use super::address::{is_address, to_named_address};
use super::values::{describe_type, display_key, truncate};

/// The maximum number of mailboxes of a message.
const MAX_MAILBOXES: usize = 1000;
/// The maximum number of addresses that are read. It is one more than a summary can contain, so that a longer list is
/// recognized as changed.
const MAX_ADDRESSES: usize = 1001;

/// Parses a list of mailbox names or addresses.
pub(super) fn parse_mailboxes(list: &Table, naming: Naming) -> Result<Vec<MailboxName>, String> {
    let mut names = BTreeMap::new();
    for_each_item(list, |key, item| {
        if names.len() == MAX_MAILBOXES {
            return Err(format!("holds more than {MAX_MAILBOXES} names"));
        }
        let text = item_text(item).ok_or_else(|| type_error("texts", &key, item))?;
        let name = naming.parse_mailbox(&text).map_err(|error| format!("holds '{}': {error}", truncate(&text)))?;
        names.insert(key, name);
        Ok(())
    })?;
    Ok(names.into_values().collect())
}

/// Parses a list of addresses, up to [`MAX_ADDRESSES`] of them.
pub(super) fn parse_addresses(list: &Table) -> Result<Vec<NamedAddress>, String> {
    let mut addresses = BTreeMap::new();
    for_each_item(list, |key, item| {
        // An address after all the others would be removed again.
        let is_beyond =
            addresses.len() == MAX_ADDRESSES && addresses.last_key_value().is_some_and(|(last, _)| *last < key);
        if is_beyond && is_address(item) {
            return Ok(());
        }
        let address = to_named_address(item).ok_or_else(|| type_error("addresses", &key, item))?;
        addresses.insert(key, address);
        if addresses.len() > MAX_ADDRESSES {
            addresses.pop_last();
        }
        Ok(())
    })?;
    Ok(addresses.into_values().collect())
}

/// Checks that a list contains only addresses.
pub(super) fn check_addresses(list: &Table) -> Result<(), String> {
    for_each_item(list, |key, item| if is_address(item) { Ok(()) } else { Err(type_error("addresses", &key, item)) })
}

/// The position of an item: integers first, also with gaps, then names. Names are truncated, so a number makes them
/// unique.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum ItemKey {
    Index(i64),
    Name(String, usize),
}

/// Calls `visit` for all values of a list, in any order and without metamethods. Booleans are skipped: they are the
/// result of an `x and y` that did not apply.
fn for_each_item(list: &Table, mut visit: impl FnMut(ItemKey, &Value) -> Result<(), String>) -> Result<(), String> {
    for (count, pair) in list.pairs::<Value, Value>().enumerate() {
        let (key, item) = pair.map_err(|error| error.to_string())?;
        if item.is_boolean() {
            continue;
        }
        let key = match key {
            Value::Integer(number) => ItemKey::Index(number),
            other => ItemKey::Name(display_key(&other), count),
        };
        visit(key, &item)?;
    }
    Ok(())
}

/// Returns a text. Invalid UTF-8 becomes U+FFFD, which no name can contain. A number is converted to its digits.
fn item_text(item: &Value) -> Option<String> {
    match item {
        Value::String(text) => Some(text.to_string_lossy()),
        Value::Integer(_) | Value::Number(_) => item.to_string().ok(),
        _ => None,
    }
}

fn type_error(expected: &str, key: &ItemKey, item: &Value) -> String {
    let kind = describe_type(item);
    match key {
        ItemKey::Index(number) => format!("must be a list of {expected}, but item {number} is {kind}"),
        ItemKey::Name(name, _) => format!("must be a list of {expected}, but item '{name}' is {kind}"),
    }
}
