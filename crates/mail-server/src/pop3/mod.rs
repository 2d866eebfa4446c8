//! The POP3 server. It runs the session of `restante_proto` with a socket, a clock and a mailroom. The protocol is
//! implemented there; this module moves bytes, checks logins, opens mailboxes and enforces timeouts.

mod connection;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::Arc;

use restante_net::{Admission, Budget, Shutdown, Stream, TooMany};
use restante_proto::pop3::{Session, Settings};

use crate::{ConnectionFuture, ListenerContext, MailboxLogin, unique_id};

use connection::SessionDriver;

/// The state that the connections of one listener share.
pub struct Server {
    /// The part that is the same in all mail protocols.
    pub context: ListenerContext,
    /// The settings of the sessions.
    pub settings: Arc<Settings>,
    /// Checks logins.
    pub login: Arc<MailboxLogin>,
    /// The memory budget for the lists of open mailboxes.
    pub maildrop_budget: Arc<Budget>,
    /// The memory budget for messages that are being sent.
    pub message_budget: Arc<Budget>,
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
                let timestamp = unique_id(&self.settings.domain);
                let session = Session::new(self.settings.clone(), timestamp, accepted.stream.is_tls());
                let driver = SessionDriver::new(&self, accepted, session, ip);
                if admission.is_ok() { driver.run().await } else { driver.refuse().await }
            }
            Err(early_close) => Ok(early_close.end_reason),
        };
        self.context.session_ended(&name, outcome);
    }
}
