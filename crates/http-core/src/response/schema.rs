//! Types that stand for types without `ToSchema` in the schemas of other types: types of other crates, which do not
//! describe them for OpenAPI, and types with flattened members. `openapi/api/schemas.json` contains their schemas.

use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

macro_rules! schemas_in_data {
    ($($name:ident),+) => {
        $(
            #[doc = concat!("The schema `", stringify!($name), "`.")]
            pub enum $name {}

            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    Ref::from_schema_name(stringify!($name)).into()
                }
            }

            impl ToSchema for $name {}
        )+
    };
}

schemas_in_data!(
    Defect,
    HtmlCheckClient,
    HtmlCheckSupportLevel,
    Link,
    OneTimeCode,
    Outcome,
    PartDetails,
    Protocol,
    Side,
    Tls,
    Unsubscribe
);
