//! Version 1 of the REST API.

pub(crate) mod mailbox;
