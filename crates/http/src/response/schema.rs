//! Types that stand for types of other crates in schemas. The other crates do not describe their types for OpenAPI, so
//! `openapi/api/schemas.json` contains these schemas.

use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

macro_rules! schemas_in_data {
    ($($name:ident),+) => {
        $(
            pub(crate) enum $name {}

            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    Ref::from_schema_name(stringify!($name)).into()
                }
            }

            impl ToSchema for $name {}
        )+
    };
}

schemas_in_data!(Defect, Disposition, HtmlCheckClient, HtmlCheckSupportLevel, Outcome, Protocol, Side, Tls);
