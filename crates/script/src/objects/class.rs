//! How the objects that are tables, addresses and sessions, are recognised.

use mlua::{AnyUserData, Table, UserData};

/// What an object that is a table is. Its metatable, which no script gets hold of, holds one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Address,
    Session,
}

impl UserData for Class {}

/// What a table is, if it is one of the objects.
pub(super) fn class_of(table: &Table) -> Option<Class> {
    let marker: Option<AnyUserData> = table.metatable()?.raw_get("class").ok()?;
    marker?.borrow::<Class>().ok().map(|class| *class)
}
