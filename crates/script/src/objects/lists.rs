//! The lists of a message as scripts write them: Lua tables, in which there can be anything. Errors are the end of a
//! sentence that begins with the name of the list.

use mlua::{Table, Value};
use restante_mail::mime::Mailbox;
use restante_mail::naming::{MailboxName, Naming};

use super::address::{is_address, mailbox};
use super::values::{kind_of, short};

/// How many mailboxes a script may send one message to.
const MAX_MAILBOXES: usize = 1000;
/// How many addresses are looked at: one more than a summary ever holds, so that a list that has grown has changed.
const MAX_ADDRESSES: usize = 1001;

/// The mailboxes that are meant by a list of names or addresses.
pub(super) fn mailboxes(list: &Table, naming: Naming) -> Result<Vec<MailboxName>, String> {
    let mut names = Vec::new();
    for item in items(list) {
        if names.len() == MAX_MAILBOXES {
            return Err(format!("holds more than {MAX_MAILBOXES} names"));
        }
        let item = item?;
        let text = text(&item).ok_or_else(|| misfit("texts", names.len(), &item))?;
        let name = naming.mailbox_named(&text).map_err(|error| format!("holds '{}': {error}", short(&text)))?;
        names.push(name);
    }
    Ok(names)
}

/// The contents of a list of addresses, as many of them as can be of interest.
pub(super) fn addresses(list: &Table) -> Result<Vec<Mailbox>, String> {
    let mut found = Vec::new();
    for item in items(list).take(MAX_ADDRESSES) {
        let item = item?;
        found.push(mailbox(&item).ok_or_else(|| misfit("addresses", found.len(), &item))?);
    }
    Ok(found)
}

/// Whether all is well with a list of addresses.
pub(super) fn check_addresses(list: &Table) -> Result<(), String> {
    for (before, item) in items(list).enumerate() {
        let item = item?;
        if !is_address(&item) {
            return Err(misfit("addresses", before, &item));
        }
    }
    Ok(())
}

/// The values of a list up to the first that is nil, without any magic of the table's own.
fn items(list: &Table) -> impl Iterator<Item = Result<Value, String>> {
    let item = |at: usize| list.raw_get(at).map_err(|error| error.to_string());
    (1..).map(item).take_while(|item| !matches!(item, Ok(Value::Nil)))
}

/// Bytes that are no UTF-8 become U+FFFD, which no name can hold; a number is taken for its digits.
fn text(item: &Value) -> Option<String> {
    match item {
        Value::String(text) => Some(text.to_string_lossy()),
        Value::Integer(_) | Value::Number(_) => item.to_string().ok(),
        _ => None,
    }
}

fn misfit(wanted: &str, before: usize, item: &Value) -> String {
    format!("must be a list of {wanted}, but item {} is {}", before + 1, kind_of(item))
}
