//! The lists of a message as scripts write them: Lua tables, in which there can be anything. Errors are the end of a
//! sentence that begins with the name of the list.

use std::collections::BTreeMap;

use mlua::{Table, Value};
use restante_mail::mime::NamedAddress;
use restante_mail::naming::{MailboxName, Naming};

use super::address::{is_address, to_mailbox};
use super::values::{describe_type, display_key, truncate};

/// How many mailboxes a script may send one message to.
const MAX_MAILBOXES: usize = 1000;
/// How many addresses are looked at: one more than a summary ever holds, so that a list that has grown has changed.
const MAX_ADDRESSES: usize = 1001;

/// The mailboxes that are meant by a list of names or addresses.
pub(super) fn parse_mailboxes(list: &Table, naming: Naming) -> Result<Vec<MailboxName>, String> {
    let mut names = BTreeMap::new();
    for_each_item(list, |place, item| {
        if names.len() == MAX_MAILBOXES {
            return Err(format!("holds more than {MAX_MAILBOXES} names"));
        }
        let text = item_text(item).ok_or_else(|| type_error("texts", &place, item))?;
        let name = naming.parse_mailbox(&text).map_err(|error| format!("holds '{}': {error}", truncate(&text)))?;
        names.insert(place, name);
        Ok(())
    })?;
    Ok(names.into_values().collect())
}

/// The contents of a list of addresses, as many of them as can be of interest.
pub(super) fn parse_addresses(list: &Table) -> Result<Vec<NamedAddress>, String> {
    let mut found = BTreeMap::new();
    for_each_item(list, |place, item| {
        // Far behind the others, it would be dropped again.
        let is_far = found.len() == MAX_ADDRESSES && found.last_key_value().is_some_and(|(last, _)| *last < place);
        if is_far && is_address(item) {
            return Ok(());
        }
        let address = to_mailbox(item).ok_or_else(|| type_error("addresses", &place, item))?;
        found.insert(place, address);
        if found.len() > MAX_ADDRESSES {
            found.pop_last();
        }
        Ok(())
    })?;
    Ok(found.into_values().collect())
}

/// Whether all is well with a list of addresses.
pub(super) fn check_addresses(list: &Table) -> Result<(), String> {
    for_each_item(
        list,
        |place, item| if is_address(item) { Ok(()) } else { Err(type_error("addresses", &place, item)) },
    )
}

/// Where in a list an item stands: numbers first, whatever gaps there are between them, then names. Names are cut short, so
/// they have a number as well.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum ItemKey {
    Index(i64),
    Name(String, usize),
}

/// Hands over all values of a list, in no order, without any magic of the table's own. Booleans hold no place in it: they
/// are what is left of an `x and y` that did not apply.
fn for_each_item(list: &Table, mut take: impl FnMut(ItemKey, &Value) -> Result<(), String>) -> Result<(), String> {
    for (visited, pair) in list.pairs::<Value, Value>().enumerate() {
        let (key, item) = pair.map_err(|error| error.to_string())?;
        if item.is_boolean() {
            continue;
        }
        let place = match key {
            Value::Integer(number) => ItemKey::Index(number),
            other => ItemKey::Name(display_key(&other), visited),
        };
        take(place, &item)?;
    }
    Ok(())
}

/// Bytes that are no UTF-8 become U+FFFD, which no name can hold; a number is taken for its digits.
fn item_text(item: &Value) -> Option<String> {
    match item {
        Value::String(text) => Some(text.to_string_lossy()),
        Value::Integer(_) | Value::Number(_) => item.to_string().ok(),
        _ => None,
    }
}

fn type_error(wanted: &str, place: &ItemKey, item: &Value) -> String {
    let kind = describe_type(item);
    match place {
        ItemKey::Index(number) => format!("must be a list of {wanted}, but item {number} is {kind}"),
        ItemKey::Name(name, _) => format!("must be a list of {wanted}, but item '{name}' is {kind}"),
    }
}
