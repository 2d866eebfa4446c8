//! What the servers of the mail protocols have in common around their sessions: a [`Host`] takes the connections of a
//! listener, and a [`Call`] is one of them. What is said in a session, and what is done for it, is each protocol's own.

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

/// Returns text that is used once, in the form of a message id: the timestamp of APOP (RFC 1939 section 7) and the challenge of
/// CRAM-MD5 (RFC 2195 section 2).
pub(crate) fn unique_id(domain: &str) -> String {
    format!("<{}.{}@{domain}>", std::process::id(), Timestamp::now().as_nanosecond())
}

/// What the connections of one listener share, whatever they speak.
pub struct ListenerContext {
    /// What they speak.
    pub protocol: Protocol,
    /// Where mail goes and is.
    pub mailroom: Arc<Mailroom>,
    /// The certificate, for TLS on demand and from the first byte.
    pub tls: Option<Arc<Tls>>,
    /// Whether connections begin with TLS.
    pub implicit_tls: bool,
    /// Where it is counted what they do.
    pub metrics: Arc<Metrics>,
    /// How long a peer may stay silent.
    pub idle_timeout: Duration,
    /// Whether the dialogue goes to the log.
    pub netdebug: bool,
    /// How many sessions there have been, also at other listeners, to tell them apart in the log.
    pub session_count: Arc<AtomicU64>,
    /// What the log was told of the store, also by other listeners.
    pub store_errors: Arc<StoreErrorLog>,
}

/// One connection, seen from outside its session.
pub struct AcceptedConnection<'a> {
    context: &'a ListenerContext,
    /// What the log calls it.
    pub session_name: &'a str,
    /// What it is carried by.
    pub stream: LineStream,
    /// The end of the server.
    pub shutdown: Shutdown,
}

/// Why a connection ends before anything could be said on it, or said on.
#[derive(Debug)]
pub struct EarlyClose {
    /// How it ends.
    pub ending: SessionEndReason,
    /// What went wrong, where something has.
    pub error: Option<io::Error>,
}

impl From<SessionEndReason> for EarlyClose {
    fn from(ending: SessionEndReason) -> Self {
        Self { ending, error: None }
    }
}

impl ListenerContext {
    /// What the log calls the next session: its protocol, its number, and the peer.
    pub fn next_session_name(&self, ip: Option<IpAddr>) -> String {
        let protocol = self.protocol.name();
        let number = self.session_count.fetch_add(1, Ordering::Relaxed) + 1;
        let peer: &dyn Display = ip.as_ref().map_or(&"unix", |ip| ip);
        format!("{protocol} {number} {peer}")
    }

    /// Takes a connection, after the handshake where TLS comes first. There may be nobody to talk to then.
    pub async fn accept<'a>(
        &'a self,
        stream: Stream,
        admitted: bool,
        mut shutdown: Shutdown,
        name: &'a str,
    ) -> Result<AcceptedConnection<'a>, EarlyClose> {
        let stream = match &self.tls {
            // A handshake is too much work for a connection that is sent away, and there is no other way to tell it.
            Some(_) if self.implicit_tls && !admitted => return Err(SessionEndReason::Refused.into()),
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

    /// Takes note of how a session has ended, be it that its connection broke.
    pub fn session_ended(&self, name: &str, ended: io::Result<SessionEndReason>) -> SessionEndReason {
        let ending = ended.unwrap_or_else(|error| {
            tracing::debug!(session = name, %error, "the connection broke");
            match error.kind() {
                io::ErrorKind::TimedOut => SessionEndReason::Timeout,
                _ => SessionEndReason::Disconnected,
            }
        });
        self.metrics.count_session_end(self.protocol, ending);
        tracing::debug!(session = name, ?ending, "ended");
        ending
    }

    /// Waits for a handshake, but not when the server ends: nothing was said yet that could be finished.
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
            EarlyClose { ending: SessionEndReason::TlsFailed, error: Some(error) }
        })
    }
}

impl AcceptedConnection<'_> {
    /// Tells the operator what the store has failed at.
    pub fn log_store_error(&self, what: &str, error: &StoreError) {
        self.context.store_errors.log(what, Some(self.session_name), error);
    }

    /// What of its dialogue is to be recorded, for [`Call::log`].
    pub fn transcript_scope(&self) -> Option<TranscriptScope> {
        let refusals = || tracing::enabled!(tracing::Level::DEBUG).then_some(TranscriptScope::Refusals);
        if self.context.netdebug { Some(TranscriptScope::Everything) } else { refusals() }
    }

    /// The dialogue, for those who asked for it, and what was refused, for those who look closely.
    pub fn log_transcript(&self, dialogue: &TranscriptBuffer) {
        if self.transcript_scope().is_none() {
            return;
        }
        for RecordedLine { speaker, text, is_refusal: refusal, .. } in dialogue.lines() {
            if refusal {
                tracing::debug!(session = self.session_name, reply = text, "refused");
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

    /// Does the handshake that the peer has asked for.
    pub async fn start_tls(self) -> Result<Self, EarlyClose> {
        let Self { context: host, session_name: name, stream: wire, mut shutdown } = self;
        let started = async {
            match &host.tls {
                Some(tls) => wire.start_tls(tls).await,
                None => Err(io::ErrorKind::Unsupported.into()),
            }
        };
        let wire = host.wait_for_handshake(name, started, &mut shutdown).await?;
        Ok(Self { context: host, session_name: name, stream: wire, shutdown })
    }

    /// Closes the connection behind the last words, for this reason. It stays the reason when the peer has closed before us.
    pub async fn close(&mut self, ending: SessionEndReason) -> SessionEndReason {
        let closed = match ending {
            SessionEndReason::Quit => self.stream.close_after_quit().await,
            _ => self.stream.close().await,
        };
        if let Err(error) = closed {
            tracing::debug!(session = self.session_name, %error, "the connection broke at its end");
        }
        ending
    }
}
