//! The REST API.

pub(crate) mod v1;
pub(crate) mod v2;
