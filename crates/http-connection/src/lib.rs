//! HTTP connections: HTTP/1.1 and HTTP/2 on one socket, and the limits on the resources that a client can hold. The
//! caller passes the router that serves the requests.
//!
//! - [`http1`], `http2`: serving a connection; refusing one
//! - [`context`]: the peer and the lifetime of a connection, and its limits
//! - `write_timeout`, `h2_progress`: timeouts for clients that do not read their responses
//! - [`disconnect`]: detects that a client has disconnected
//! - [`memory`]: permits for large responses in memory
//! - [`work`]: permits for expensive work, which runs outside of the network threads
//! - [`clean_path`]: paths without repeated slashes and dot segments

pub mod clean_path;
pub mod context;
pub mod disconnect;
mod h2_progress;
pub mod http1;
mod http2;
pub mod memory;
pub mod work;
mod write_timeout;
