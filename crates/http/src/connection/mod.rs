//! Connections: HTTP/1.1 and HTTP/2 on one socket, and the limits on what a client can hold.
//!
//! - `http1`, `http2`: serving a connection; refusing one
//! - `context`: the peer and the lifetime of a connection, and its limits
//! - `write_timeout`, `h2_progress`: timeouts for clients that do not read their responses
//! - `disconnect`: detects that a client has disconnected
//! - `memory`: permits for large responses in memory
//! - `work`: permits for expensive work, which runs outside of the network threads

pub(crate) mod context;
pub(crate) mod disconnect;
mod h2_progress;
pub(crate) mod http1;
mod http2;
pub(crate) mod memory;
pub(crate) mod work;
mod write_timeout;
