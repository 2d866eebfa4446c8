//! The APIs of other mail servers for tests. Clients that were written for one of them can use this server unchanged. A
//! dialect does not import other handlers.

pub(crate) mod mailpit;
