//! The IMAP server. It runs the session of `restante_proto` with a socket, a clock and a mailroom.

use std::net::IpAddr;
use std::sync::Arc;

use restante_metrics::SessionEndReason;
use restante_net::{Admission, Budget, Shutdown, Stream, TooMany};
use restante_proto::imap::Settings;
use tokio::time::Instant;

use crate::{ListenerContext, MailboxLogin};

/// The state that the connections of one listener share.
pub struct Server {
    /// The part that is the same in all mail protocols.
    pub context: ListenerContext,
    /// The settings of the sessions.
    pub settings: Arc<Settings>,
    /// Checks logins.
    pub login: Arc<MailboxLogin>,
    /// The memory budget for the lists of messages of selected mailboxes.
    pub index_budget: Arc<Budget>,
    /// The memory budget for messages that are being sent or received.
    pub message_budget: Arc<Budget>,
}

impl Server {
    /// Serves one connection until it ends, or refuses it if there is no admission.
    pub async fn serve(
        self: Arc<Self>,
        stream: Stream,
        ip: Option<IpAddr>,
        admission: Result<Admission, TooMany>,
        shutdown: Shutdown,
    ) {
        let name = self.context.next_session_name(ip);
        let outcome = match self.context.accept(stream, admission.is_ok(), shutdown, &name).await {
            Ok(mut connection) => {
                let (greeting, end_reason) = match admission {
                    Ok(_) => ("* OK IMAP4rev1 server ready\r\n", SessionEndReason::Quit),
                    Err(_) => ("* BYE [UNAVAILABLE] Too many connections\r\n", SessionEndReason::Refused),
                };
                match connection.stream.write(Instant::now(), &mut greeting.as_bytes().to_vec()).await {
                    Ok(()) => Ok(connection.close(end_reason).await),
                    Err(error) => Err(error),
                }
            }
            Err(early_close) => Ok(early_close.end_reason),
        };
        self.context.session_ended(&name, outcome);
    }
}
