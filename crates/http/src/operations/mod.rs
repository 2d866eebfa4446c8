//! Health checks, metrics and descriptions of the server.

pub(crate) mod about;
pub(crate) mod metrics;
pub(crate) mod probe;
pub(crate) mod status;
