//! The SMTP and LMTP servers: `restante_proto`'s session with a socket, a clock and a mailroom around it. What is said
//! is decided there; here bytes are moved, questions are passed on, and patience ends.

mod connection;
mod login;

use std::fmt::Display;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use restante_mailroom::Mailroom;
use restante_proto::smtp::{Dialect, Session, Settings};

use crate::metrics::{Metrics, Protocol};
use crate::net::{Admission, Budget, Shutdown, Stream, Tls, TooMany};

use connection::Connection;
pub use login::Login;

/// What the connections of one listener share.
pub struct Server {
    /// What their sessions know.
    pub settings: Arc<Settings>,
    /// Where their mail goes.
    pub mailroom: Arc<Mailroom>,
    /// The certificate, for STARTTLS and for TLS from the first byte.
    pub tls: Option<Arc<Tls>>,
    /// Whether connections begin with TLS.
    pub implicit_tls: bool,
    /// Who may log in.
    pub login: Arc<Login>,
    /// The memory for messages that are on their way in.
    pub budget: Arc<Budget>,
    /// Where it is counted what they do.
    pub metrics: Arc<Metrics>,
    /// How long a peer may stay silent.
    pub timeout: Duration,
    /// Whether the dialogue goes to the log.
    pub netdebug: bool,
    /// How many sessions there have been, to tell them apart in the log.
    pub sessions: AtomicU64,
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
        let name = self.session_name(ip);
        let stream = match (&self.tls, self.implicit_tls) {
            // A handshake is too much work for a connection that is sent away, and there is no other way to tell it.
            (Some(_), true) if admission.is_err() => return,
            (Some(tls), true) => match self.metrics.handshake(self.protocol(), tls.accept(stream).await) {
                Ok(stream) => stream,
                Err(error) => return tracing::debug!(session = name, %error, "TLS handshake failed"),
            },
            _ => stream,
        };
        let session = Session::new(self.settings.clone(), ip, stream.is_tls());
        let connection = Connection::new(&self, stream, session, shutdown, &name);
        let ended = match &admission {
            Ok(_) => connection.run().await,
            Err(_) => connection.refuse().await,
        };
        if let Err(error) = ended {
            tracing::debug!(session = name, %error, "the connection broke");
        }
    }

    /// The protocol that they speak.
    pub fn protocol(&self) -> Protocol {
        match self.settings.dialect {
            Dialect::Smtp => Protocol::Smtp,
            Dialect::Lmtp => Protocol::Lmtp,
        }
    }

    /// What the log calls a session: its protocol, its number, and the peer.
    fn session_name(&self, ip: Option<IpAddr>) -> String {
        let protocol = match self.settings.dialect {
            Dialect::Smtp => "SMTP",
            Dialect::Lmtp => "LMTP",
        };
        let number = self.sessions.fetch_add(1, Ordering::Relaxed) + 1;
        let peer: &dyn Display = ip.as_ref().map_or(&"unix", |ip| ip);
        format!("{protocol} {number} {peer}")
    }
}
