//! The servers of the mail protocols: they run the state machines of `restante_proto` on connections.
//!
//! - `context`: the parts that all of them share: accepting a connection, TLS, log lines, counters
//! - [`mailbox_login`]: logins to mailboxes
//! - [`smtp`]: SMTP and LMTP, with logins and transcripts
//! - [`pop3`]: POP3, with logins
//! - [`imap`]: IMAP, with logins

mod context;
pub mod imap;
pub mod mailbox_login;
pub mod pop3;
pub mod smtp;

use std::pin::Pin;

use context::unique_id;
pub use context::{AcceptedConnection, EarlyClose, ListenerContext};
pub use mailbox_login::MailboxLogin;

/// Serves a connection. The compiler generates the code of a future where it is polled or boxed: so the code of sessions is compiled with
/// this crate, and has its optimization level.
pub type ConnectionFuture = Pin<Box<dyn Future<Output = ()> + Send>>;
