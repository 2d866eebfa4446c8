//! The shapes of what is told, and how a description refers to them.

use utoipa::ToSchema;
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::schema::{Object, Schema, Type};
use utoipa::openapi::{Ref, RefOr};

/// A name, and the schema of that name.
pub(super) type NamedSchema = (String, RefOr<Schema>);

/// A header of an answer.
pub(super) fn header(about: &str) -> Header {
    HeaderBuilder::new().schema(Some(Object::with_type(Type::String))).description(Some(about)).build()
}

/// The reference to the shape of a type.
pub(super) fn reference<T: ToSchema>() -> Ref {
    Ref::from_schema_name(T::name())
}

/// The shape of a type and all those that it is made of.
pub(super) fn schemas_of<T: ToSchema>() -> Vec<NamedSchema> {
    let mut schemas = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut schemas);
    schemas
}
