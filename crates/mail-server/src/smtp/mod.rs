//! The SMTP and LMTP servers: `restante_proto`'s session with a socket, a clock and a mailroom around it. What is said
//! is decided there; here bytes are moved, questions are passed on, and patience ends.

mod connection;
mod login;
mod transcript_recorder;

use std::net::IpAddr;
use std::sync::Arc;

use restante_net::{Admission, Budget, Shutdown, Stream, TooMany};
use restante_proto::smtp::{Session, Settings};
use tokio::time::Instant;

use crate::ListenerContext;

use connection::Connection;
pub use login::Login;
use transcript_recorder::TranscriptRecorder;

/// What the connections of one listener share.
pub struct Server {
    /// What is the same in all mail protocols.
    pub context: ListenerContext,
    /// What their sessions know.
    pub settings: Arc<Settings>,
    /// Who may log in.
    pub login: Arc<Login>,
    /// The memory for messages that are on their way in.
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
        let mut scribe = self
            .context
            .mailroom
            .journal()
            .map(|journal| TranscriptRecorder::start(journal, self.settings.dialect, ip));
        let ended = match self.context.accept(stream, admission.is_ok(), shutdown, &name).await {
            Ok(call) => {
                let mut session = Session::new(self.settings.clone(), ip, call.stream.is_tls());
                let connection = Connection::new(&self, call, &mut session, scribe.as_mut(), ip);
                let ended = if admission.is_ok() { connection.run().await } else { connection.refuse().await };
                session.disconnected();
                if let Some(scribe) = &mut scribe {
                    scribe.record_transcript(&mut session, Instant::now());
                }
                ended
            }
            Err(parting) => {
                if let Some(scribe) = &mut scribe {
                    scribe.record_early_close(&parting);
                }
                Ok(parting.ending)
            }
        };
        let ending = self.context.session_ended(&name, ended);
        if let Some(scribe) = scribe {
            scribe.finish(ending);
        }
    }
}
