//! The servers of the mail protocols: they run the state machines of `restante_proto` on connections.
//!
//! - `host`: what all of them share around a session: accepting a connection, TLS, log lines, counters
//! - [`smtp`]: SMTP and LMTP, with logins and transcripts
//! - [`pop3`]: POP3, with logins

mod host;
pub mod pop3;
pub mod smtp;

use host::unique_id;
pub use host::{Call, Host, Parting};
