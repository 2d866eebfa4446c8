//! The SMTP and LMTP servers. They run the session of `restante_proto` with a socket, a clock and a mailroom. The
//! protocol is implemented there; this module moves bytes, performs actions and enforces timeouts.

mod connection;
mod login;
mod transcript_recorder;

use std::net::IpAddr;
use std::sync::Arc;

use restante_net::{Admission, Budget, Shutdown, Stream, TooMany};
use restante_proto::smtp::{Session, Settings};
use tokio::time::Instant;

use crate::{ConnectionFuture, ListenerContext};

use connection::SessionDriver;
pub use login::Login;
use transcript_recorder::TranscriptRecorder;

/// The state that the connections of one listener share.
pub struct Server {
    /// The part that is the same in all mail protocols.
    pub context: ListenerContext,
    /// The settings of the sessions.
    pub settings: Arc<Settings>,
    /// Checks logins.
    pub login: Arc<Login>,
    /// The memory budget for messages that are being received.
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
        let mut recorder = self
            .context
            .mailroom
            .journal()
            .map(|journal| TranscriptRecorder::start(journal, self.settings.protocol, ip));
        let outcome = match self.context.accept(stream, admission.is_ok(), shutdown, &name).await {
            Ok(accepted) => {
                let mut session = Session::new(self.settings.clone(), ip, accepted.stream.is_tls());
                let driver = SessionDriver::new(&self, accepted, &mut session, recorder.as_mut(), ip);
                let outcome = if admission.is_ok() { driver.run().await } else { driver.refuse().await };
                session.disconnected();
                if let Some(recorder) = &mut recorder {
                    recorder.record_transcript(&mut session, Instant::now());
                }
                outcome
            }
            Err(early_close) => {
                if let Some(recorder) = &mut recorder {
                    recorder.record_early_close(&early_close);
                }
                Ok(early_close.end_reason)
            }
        };
        let end_reason = self.context.session_ended(&name, outcome);
        if let Some(recorder) = recorder {
            recorder.finish(end_reason);
        }
    }
}
