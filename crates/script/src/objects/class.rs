//! Recognizes the objects that are Lua tables: addresses and sessions.

use mlua::{AnyUserData, Table, UserData};

/// The class of an object that is a table. It is stored in the metatable, which scripts cannot access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Address,
    Session,
}

impl UserData for Class {}

/// Returns the class of a table, if it is one of the objects.
pub(super) fn class_of(table: &Table) -> Option<Class> {
    let marker: Option<AnyUserData> = table.metatable()?.raw_get("class").ok()?;
    marker?.borrow::<Class>().ok().map(|class| *class)
}
