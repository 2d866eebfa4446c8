//! References to schemas, and the schemas of types.

use utoipa::ToSchema;
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::schema::{Object, Schema, Type};
use utoipa::openapi::{Ref, RefOr};

/// The name of a schema, and the schema.
pub(super) type NamedSchema = (String, RefOr<Schema>);

/// Returns a response header.
pub(super) fn header(about: &str) -> Header {
    HeaderBuilder::new().schema(Some(Object::with_type(Type::String))).description(Some(about)).build()
}

/// Returns a reference to the schema of a type.
pub(super) fn reference<T: ToSchema>() -> Ref {
    Ref::from_schema_name(T::name())
}

/// Returns the schema of a type and all schemas that it refers to.
pub(super) fn schemas_of<T: ToSchema>() -> Vec<NamedSchema> {
    let mut schemas = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut schemas);
    schemas
}
