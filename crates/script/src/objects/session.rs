//! The object `smtp_session`: what is known of a message before it is sent.

use std::fmt::{Display, Write as _};
use std::net::IpAddr;

use mlua::{Lua, Table};
use restante_mail::address::Address;
use restante_mail::envelope::ReversePath;

use super::constructors;
use super::field::{Field, FieldKind};

/// The fields that scripts can write to.
pub(super) const FIELDS: &[Field] =
    &[Field("from", FieldKind::Address), Field("to", FieldKind::Addresses), Field("remote_addr", FieldKind::Text)];

/// Creates the table `smtp_session`.
pub(super) fn constructor(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    // The lines of an empty session.
    table.raw_set("new", lua.create_function(|lua, ()| constructors::new_session(lua, "\n\n"))?)?;
    Ok(table)
}

/// Writes a session as text: one line each for the sender, the peer and every recipient. Addresses contain no line
/// breaks.
pub(super) fn to_text<'a>(from: &ReversePath, ip: Option<IpAddr>, to: impl Iterator<Item = &'a Address>) -> String {
    let mut text = String::with_capacity(128);
    add_line(&mut text, from.as_ref());
    add_line(&mut text, ip);
    for recipient in to {
        add_line(&mut text, Some(recipient));
    }
    text
}

fn add_line(text: &mut String, value: Option<impl Display>) {
    if let Some(value) = value {
        // Writing to a string cannot fail.
        let _ = write!(text, "{value}");
    }
    text.push('\n');
}
