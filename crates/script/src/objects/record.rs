//! Objects that are userdata with fields: the common part of inbound messages and metadata.
//!
//! The userdata contains the data of the server and never changes. The value of a field is created from it when a
//! script reads the field. Values that a script has written, or could change in place, are stored in Lua, so that they
//! are garbage collected and count towards the memory limit. Looking them up costs more than creating a short text, so
//! a set records which fields are stored. Validation of written values is in `validate`.

use std::sync::atomic::{AtomicU16, Ordering};

use mlua::{AnyUserData, IntoLua, Lua, MetaMethod, UserData, UserDataMethods, Value};

use super::content::{self, Origin};
use super::field::{Field, FieldKind};
use super::validate::validate;
use super::values::{expect_text, field_name, script_error, unknown_field};

/// An object with fields.
pub(super) trait Record: UserData + Send + 'static {
    /// The name that scripts use.
    const NAME: &'static str;
    /// The fields.
    const FIELDS: &'static [Field];
    /// Returns the value of a field that the script has not written to.
    fn default_value(&self, lua: &Lua, field: &str) -> mlua::Result<Value>;

    /// Returns where the message comes from.
    fn origin(&self) -> &Origin;

    /// Returns the fields that are stored in Lua.
    fn cached_fields(&self) -> &FieldSet;
}

/// A set of fields: one bit for each, in the order of [`Record::FIELDS`].
#[derive(Default)]
pub(super) struct FieldSet(AtomicU16);

impl FieldSet {
    fn contains(&self, index: usize) -> bool {
        self.0.load(Ordering::Relaxed) & (1 << index) != 0
    }

    fn add(&self, index: usize) {
        self.0.fetch_or(1 << index, Ordering::Relaxed);
    }
}

/// Adds the metamethods that read and write fields.
pub(super) fn add_fields<T: Record>(methods: &mut impl UserDataMethods<T>) {
    methods.add_meta_function(MetaMethod::Index, |lua, (object, key): (AnyUserData, Value)| {
        match find_field::<T>(&key) {
            Some(index) => read_field::<T>(lua, &object, index),
            None => Ok(Value::Nil),
        }
    });
    methods.add_meta_function(MetaMethod::NewIndex, |lua, (object, key, value): (AnyUserData, Value, Value)| {
        let index = find_field::<T>(&key).ok_or_else(|| unknown_field(lua, T::NAME, &key))?;
        write_field::<T>(lua, &object, index, value)
    });
}

/// Adds the metamethod `tostring`: the name of the object and the value of `field`.
pub(super) fn add_tostring<T: Record>(methods: &mut impl UserDataMethods<T>, field: &'static str) {
    methods.add_meta_function(MetaMethod::ToString, move |lua, object: AnyUserData| {
        let value =
            field_index::<T>(field.as_bytes()).map_or(Ok(Value::Nil), |index| read_field::<T>(lua, &object, index))?;
        Ok(format!("{}({})", T::NAME, value.to_string()?))
    });
}

/// Stores the value of a field in Lua.
pub(super) fn set_value<T: Record>(object: &AnyUserData, field: &str, value: impl IntoLua) -> mlua::Result<()> {
    if let Some(index) = field_index::<T>(field.as_bytes()) {
        object.borrow::<T>()?.cached_fields().add(index);
    }
    object.set_named_user_value(field, value)
}

fn find_field<T: Record>(key: &Value) -> Option<usize> {
    field_index::<T>(&field_name(key)?)
}

fn field_index<T: Record>(name: &[u8]) -> Option<usize> {
    T::FIELDS.iter().position(|field| field.0.as_bytes() == name)
}

fn read_field<T: Record>(lua: &Lua, object: &AnyUserData, index: usize) -> mlua::Result<Value> {
    let Field(name, kind) = T::FIELDS[index];
    let record = object.borrow::<T>()?;
    if record.cached_fields().contains(index) {
        let cached: Value = object.named_user_value(name)?;
        if !cached.is_nil() {
            return Ok(cached);
        }
    }
    let value = match kind {
        FieldKind::Content | FieldKind::Source => content::field_value(lua, object, record.origin(), name)?,
        _ => without_memory_limit(lua, || record.default_value(lua, name))?,
    };
    if !matches!(kind, FieldKind::Text | FieldKind::Number | FieldKind::ReadOnly) {
        record.cached_fields().add(index);
        object.set_named_user_value(name, &value)?;
    }
    Ok(value)
}

/// Creates a small value without the memory limit of the state. This is faster, because allocations cannot fail.
fn without_memory_limit<T>(lua: &Lua, create: impl FnOnce() -> mlua::Result<T>) -> mlua::Result<T> {
    let limit = lua.set_memory_limit(0)?;
    let value = create();
    lua.set_memory_limit(limit)?;
    value
}

fn write_field<T: Record>(lua: &Lua, object: &AnyUserData, index: usize, value: Value) -> mlua::Result<()> {
    let Field(name, kind) = T::FIELDS[index];
    let full_name = format!("{}.{name}", T::NAME);
    match kind {
        FieldKind::Source => write_source::<T>(lua, object, &full_name, value),
        _ => set_value::<T>(object, name, validate(lua, &full_name, kind, value)?),
    }
}

/// Sets the source of an object. The fields that are read from the message change with it.
fn write_source<T: Record>(lua: &Lua, object: &AnyUserData, name: &str, value: Value) -> mlua::Result<()> {
    if *object.borrow::<T>()?.origin() != Origin::Created {
        return Err(script_error(lua, format_args!("{name} is read-only except in a new {}", T::NAME)));
    }
    let source = expect_text(lua, name, value)?;
    for Field(name, _) in T::FIELDS.iter().filter(|field| matches!(field.1, FieldKind::Content)) {
        set_value::<T>(object, name, Value::Nil)?;
    }
    set_value::<T>(object, "size", source.as_bytes().len())?;
    set_value::<T>(object, "source", source)
}
