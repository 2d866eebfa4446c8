//! The IMAP server. It runs the session of `restante_proto` with a socket, a clock and a mailroom. The protocol is
//! implemented there; this module moves bytes, checks logins, maps the names of mailboxes, and reports changes.

mod account;
mod connection;
mod folders;
mod listing;
mod messages;
mod open_mailbox;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use restante_net::{Admission, Budget, Shutdown, Stream, TooMany};
use restante_proto::imap::{Refusal, Session, Settings};
use restante_store::StoreError;

use crate::mailbox_login::MailboxLogin;
use crate::{AcceptedConnection, ConnectionFuture, ListenerContext};

use connection::SessionDriver;
pub use folders::FolderNotes;
pub use listing::ListCache;

/// The state that the connections of one listener share.
pub struct Server {
    /// The part that is the same in all mail protocols.
    pub context: ListenerContext,
    /// The settings of the sessions.
    pub settings: Arc<Settings>,
    /// Checks logins.
    pub login: Arc<MailboxLogin>,
    /// The folders without messages, and the subscriptions.
    pub folders: Arc<FolderNotes>,
    /// The memory budget for the lists of messages of selected mailboxes.
    pub index_budget: Arc<Budget>,
    /// The memory budget for messages that are being sent or searched.
    pub message_budget: Arc<Budget>,
    /// The lists of large mailboxes that were opened last.
    pub lists: Arc<ListCache>,
    /// The last UIDVALIDITY that is valid for one session only. Starts with a random number.
    pub session_uid_validity: Arc<AtomicU32>,
}

impl Server {
    /// Serves one connection until it ends, or refuses it if there is no admission.
    pub fn serve(
        self: Arc<Self>,
        stream: Stream,
        ip: Option<IpAddr>,
        admission: Result<Admission, TooMany>,
        shutdown: Shutdown,
    ) -> ConnectionFuture {
        Box::pin(self.serve_connection(stream, ip, admission, shutdown))
    }

    async fn serve_connection(
        self: Arc<Self>,
        stream: Stream,
        ip: Option<IpAddr>,
        admission: Result<Admission, TooMany>,
        shutdown: Shutdown,
    ) {
        let name = self.context.next_session_name(ip);
        let outcome = match self.context.accept(stream, admission.is_ok(), shutdown, &name).await {
            Ok(accepted) => {
                let session = Session::new(self.settings.clone(), accepted.stream.is_tls());
                let driver = SessionDriver::new(&self, accepted, session, ip);
                if admission.is_ok() { driver.run().await } else { driver.refuse().await }
            }
            Err(early_close) => Ok(early_close.end_reason),
        };
        self.context.session_ended(&name, outcome);
    }

    fn next_session_uid_validity(&self) -> u32 {
        self.session_uid_validity.fetch_add(1, Ordering::Relaxed).max(1)
    }
}

/// Why an operation failed.
#[derive(Debug)]
enum Failure {
    /// It is refused.
    Refusal(Refusal),
    /// The store has failed.
    Store(StoreError),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refusal(refusal)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Failure {
    /// Returns the refusal for the session, and logs an error of the store.
    fn into_refusal(self, connection: &AcceptedConnection<'_>) -> Refusal {
        match self {
            Self::Refusal(refusal) => refusal,
            Self::Store(error) => {
                connection.log_store_error("store operation failed", &error);
                match error {
                    StoreError::NoSpace(_) => Refusal::Limit("There is no space left".to_owned()),
                    _ => Refusal::Unavailable,
                }
            }
        }
    }
}
