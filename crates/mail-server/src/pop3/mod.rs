//! The POP3 server: `restante_proto`'s session with a socket, a clock and a mailroom around it. What is said is decided
//! there; here bytes are moved, mailboxes are opened for those who may, and patience ends.

mod connection;
mod login;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::Arc;

use restante_net::{Admission, Budget, Shutdown, Stream, TooMany};
use restante_proto::pop3::{Session, Settings};

use crate::{ListenerContext, unique_id};

use connection::Connection;
pub use login::Login;

/// What the connections of one listener share.
pub struct Server {
    /// What is the same in all mail protocols.
    pub context: ListenerContext,
    /// What their sessions know.
    pub settings: Arc<Settings>,
    /// Who may open which mailbox.
    pub login: Arc<Login>,
    /// The memory for what is in open mailboxes.
    pub maildrop_budget: Arc<Budget>,
    /// The memory for messages that are on their way out.
    pub message_budget: Arc<Budget>,
}

impl Server {
    /// Serves one connection to its end, or tells it that there are too many.
    pub async fn serve(
        self: Arc<Self>,
        stream: Stream,
        ip: Option<IpAddr>,
        admission: Result<Admission, TooMany>,
        shutdown: Shutdown,
    ) {
        let name = self.context.next_session_name(ip);
        let ended = match self.context.accept(stream, admission.is_ok(), shutdown, &name).await {
            Ok(call) => {
                let timestamp = unique_id(&self.settings.domain);
                let session = Session::new(self.settings.clone(), timestamp, call.stream.is_tls());
                let connection = Connection::new(&self, call, session, ip);
                if admission.is_ok() { connection.run().await } else { connection.refuse().await }
            }
            Err(parting) => Ok(parting.ending),
        };
        self.context.session_ended(&name, ended);
    }
}
