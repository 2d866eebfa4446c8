//! The parts that the SMTP, POP3 and IMAP servers share. A [`ListenerContext`] accepts the connections of a listener; an
//! [`AcceptedConnection`] is one of them. The session itself is in each protocol's module.

use std::fmt::Display;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use restante_mailroom::Mailroom;
use restante_mailroom::store_error_log::StoreErrorLog;
use restante_metrics::{Metrics, Protocol, SessionEndReason};
use restante_net::{LineStream, Shutdown, Stream, Tls};
use restante_proto::{RecordedLine, Speaker, TranscriptBuffer, TranscriptScope};
use restante_store::StoreError;

/// Returns a text that is used only once, in the form of a message id: the timestamp of APOP (RFC 1939 section 7) or
/// the challenge of CRAM-MD5 (RFC 2195 section 2).
pub(crate) fn unique_id(domain: &str) -> String {
    format!("<{}.{}@{domain}>", std::process::id(), Timestamp::now().as_nanosecond())
}

/// The state that the connections of one listener share, in every protocol.
pub struct ListenerContext {
    /// The protocol.
    pub protocol: Protocol,
    /// The mailroom, through which the server accesses the store.
    pub mailroom: Arc<Mailroom>,
    /// The TLS configuration, for implicit TLS and STARTTLS or STLS.
    pub tls: Option<Arc<Tls>>,
    /// Whether connections start with TLS.
    pub implicit_tls: bool,
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// How long a client may be silent.
    pub idle_timeout: Duration,
    /// Whether sessions are logged line by line.
    pub netdebug: bool,
    /// The number of sessions so far, shared by all listeners. It numbers the sessions in the log.
    pub session_count: Arc<AtomicU64>,
    /// Logs store errors, throttled across all listeners.
    pub store_errors: Arc<StoreErrorLog>,
}

/// An accepted connection: its stream, the name of its session, and the shutdown signal.
pub struct AcceptedConnection<'a> {
    pub(crate) context: &'a ListenerContext,
    /// The name of the session in the log.
    pub session_name: &'a str,
    /// The stream.
    pub stream: LineStream,
    /// The shutdown signal.
    pub shutdown: Shutdown,
}

/// A connection that is closed before a session could start, or because STARTTLS failed.
#[derive(Debug)]
pub struct EarlyClose {
    /// How the session is counted.
    pub end_reason: SessionEndReason,
    /// The error, if there was one.
    pub error: Option<io::Error>,
}

impl From<SessionEndReason> for EarlyClose {
    fn from(end_reason: SessionEndReason) -> Self {
        Self { end_reason, error: None }
    }
}

impl ListenerContext {
    /// Returns the log name of the next session: protocol, number and client.
    pub fn next_session_name(&self, ip: Option<IpAddr>) -> String {
        let protocol = self.protocol.log_name();
        let number = self.session_count.fetch_add(1, Ordering::Relaxed) + 1;
        let client: &dyn Display = ip.as_ref().map_or(&"unix", |ip| ip);
        format!("{protocol} {number} {client}")
    }

    /// Accepts a connection, after the handshake if the listener uses implicit TLS.
    pub async fn accept<'a>(
        &'a self,
        stream: Stream,
        is_admitted: bool,
        mut shutdown: Shutdown,
        name: &'a str,
    ) -> Result<AcceptedConnection<'a>, EarlyClose> {
        let stream = match &self.tls {
            // A handshake is too expensive for a refused connection, and without it no reply can be sent.
            Some(_) if self.implicit_tls && !is_admitted => return Err(SessionEndReason::Refused.into()),
            Some(tls) if self.implicit_tls => self.wait_for_handshake(name, tls.accept(stream), &mut shutdown).await?,
            _ => stream,
        };
        Ok(AcceptedConnection {
            context: self,
            session_name: name,
            stream: LineStream::new(stream, self.idle_timeout),
            shutdown,
        })
    }

    /// Counts and logs the end of a session.
    pub fn session_ended(&self, name: &str, outcome: io::Result<SessionEndReason>) -> SessionEndReason {
        let end_reason = outcome.unwrap_or_else(|error| {
            tracing::debug!(session = name, %error, "connection lost");
            match error.kind() {
                io::ErrorKind::TimedOut => SessionEndReason::Timeout,
                _ => SessionEndReason::Disconnected,
            }
        });
        self.metrics.count_session_end(self.protocol, end_reason);
        tracing::debug!(session = name, ending = end_reason.name(), "session ended");
        end_reason
    }

    /// Waits for a handshake or the shutdown. Before the handshake there is nothing to finish.
    async fn wait_for_handshake<T>(
        &self,
        name: &str,
        handshake: impl Future<Output = io::Result<T>>,
        shutdown: &mut Shutdown,
    ) -> Result<T, EarlyClose> {
        let outcome = tokio::select! {
            biased;
            outcome = handshake => outcome,
            () = shutdown.triggered() => return Err(SessionEndReason::Shutdown.into()),
        };
        self.metrics.count_handshake(self.protocol, outcome).map_err(|error| {
            tracing::debug!(session = name, %error, "TLS handshake failed");
            EarlyClose { end_reason: SessionEndReason::TlsFailed, error: Some(error) }
        })
    }
}

impl AcceptedConnection<'_> {
    /// Logs a store error.
    pub fn log_store_error(&self, message: &str, error: &StoreError) {
        self.context.store_errors.log(message, Some(self.session_name), error);
    }

    /// Returns the part of the session to record for [`AcceptedConnection::log_transcript`].
    pub fn transcript_scope(&self) -> Option<TranscriptScope> {
        let refusals = || tracing::enabled!(tracing::Level::DEBUG).then_some(TranscriptScope::Refusals);
        if self.context.netdebug { Some(TranscriptScope::Everything) } else { refusals() }
    }

    /// Logs refusals at debug level, and every line if `netdebug` is set.
    pub fn log_transcript(&self, transcript: &TranscriptBuffer) {
        if self.transcript_scope().is_none() {
            return;
        }
        for RecordedLine { speaker, text, is_refusal, .. } in transcript.lines() {
            if is_refusal {
                tracing::debug!(session = self.session_name, reply = text, "command refused");
            }
            if self.context.netdebug {
                let arrow = match speaker {
                    Speaker::Client => "<",
                    Speaker::Server => ">",
                };
                tracing::info!("{} {arrow} {text}", self.session_name);
            }
        }
    }

    /// Performs the handshake that the client requested.
    pub async fn start_tls(self) -> Result<Self, EarlyClose> {
        let Self { context, session_name: name, stream, mut shutdown } = self;
        let handshake = async {
            match &context.tls {
                Some(tls) => stream.start_tls(tls).await,
                None => Err(io::ErrorKind::Unsupported.into()),
            }
        };
        let stream = context.wait_for_handshake(name, handshake, &mut shutdown).await?;
        Ok(Self { context, session_name: name, stream, shutdown })
    }

    /// Closes the connection after the last reply. Returns `end_reason`, also if the client has closed before.
    pub async fn close(&mut self, end_reason: SessionEndReason) -> SessionEndReason {
        let result = match end_reason {
            SessionEndReason::Quit => self.stream.close_after_quit().await,
            _ => self.stream.close().await,
        };
        if let Err(error) = result {
            tracing::debug!(session = self.session_name, %error, "connection lost while closing");
        }
        end_reason
    }
}
