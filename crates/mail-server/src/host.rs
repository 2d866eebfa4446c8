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
pub struct Host {
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
    pub timeout: Duration,
    /// Whether the dialogue goes to the log.
    pub netdebug: bool,
    /// How many sessions there have been, also at other listeners, to tell them apart in the log.
    pub sessions: Arc<AtomicU64>,
    /// What the log was told of the store, also by other listeners.
    pub store_errors: Arc<StoreErrorLog>,
}

/// One connection, seen from outside its session.
pub struct Call<'a> {
    host: &'a Host,
    /// What the log calls it.
    pub name: &'a str,
    /// What it is carried by.
    pub wire: LineStream,
    /// The end of the server.
    pub shutdown: Shutdown,
}

/// Why a connection ends before anything could be said on it, or said on.
#[derive(Debug)]
pub struct Parting {
    /// How it ends.
    pub ending: SessionEndReason,
    /// What went wrong, where something has.
    pub why: Option<io::Error>,
}

impl From<SessionEndReason> for Parting {
    fn from(ending: SessionEndReason) -> Self {
        Self { ending, why: None }
    }
}

impl Host {
    /// What the log calls the next session: its protocol, its number, and the peer.
    pub fn name(&self, ip: Option<IpAddr>) -> String {
        let protocol = self.protocol.name();
        let number = self.sessions.fetch_add(1, Ordering::Relaxed) + 1;
        let peer: &dyn Display = ip.as_ref().map_or(&"unix", |ip| ip);
        format!("{protocol} {number} {peer}")
    }

    /// Takes a connection, after the handshake where TLS comes first. There may be nobody to talk to then.
    pub async fn take<'a>(
        &'a self,
        stream: Stream,
        admitted: bool,
        mut shutdown: Shutdown,
        name: &'a str,
    ) -> Result<Call<'a>, Parting> {
        let stream = match &self.tls {
            // A handshake is too much work for a connection that is sent away, and there is no other way to tell it.
            Some(_) if self.implicit_tls && !admitted => return Err(SessionEndReason::Refused.into()),
            Some(tls) if self.implicit_tls => self.handshake(name, tls.accept(stream), &mut shutdown).await?,
            _ => stream,
        };
        Ok(Call { host: self, name, wire: LineStream::new(stream, self.timeout), shutdown })
    }

    /// Takes note of how a session has ended, be it that its connection broke.
    pub fn ended(&self, name: &str, ended: io::Result<SessionEndReason>) -> SessionEndReason {
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
    async fn handshake<T>(
        &self,
        name: &str,
        handshake: impl Future<Output = io::Result<T>>,
        shutdown: &mut Shutdown,
    ) -> Result<T, Parting> {
        let outcome = tokio::select! {
            biased;
            outcome = handshake => outcome,
            () = shutdown.triggered() => return Err(SessionEndReason::Shutdown.into()),
        };
        self.metrics.count_handshake(self.protocol, outcome).map_err(|error| {
            tracing::debug!(session = name, %error, "TLS handshake failed");
            Parting { ending: SessionEndReason::TlsFailed, why: Some(error) }
        })
    }
}

impl Call<'_> {
    /// Tells the operator what the store has failed at.
    pub fn store_failed(&self, what: &str, error: &StoreError) {
        self.host.store_errors.log(what, Some(self.name), error);
    }

    /// What of its dialogue is to be recorded, for [`Call::log`].
    pub fn recorded(&self) -> Option<TranscriptScope> {
        let refusals = || tracing::enabled!(tracing::Level::DEBUG).then_some(TranscriptScope::Refusals);
        if self.host.netdebug { Some(TranscriptScope::Everything) } else { refusals() }
    }

    /// The dialogue, for those who asked for it, and what was refused, for those who look closely.
    pub fn log(&self, dialogue: &TranscriptBuffer) {
        if self.recorded().is_none() {
            return;
        }
        for RecordedLine { speaker, text, is_refusal: refusal, .. } in dialogue.lines() {
            if refusal {
                tracing::debug!(session = self.name, reply = text, "refused");
            }
            if self.host.netdebug {
                let arrow = match speaker {
                    Speaker::Client => "<",
                    Speaker::Server => ">",
                };
                tracing::info!("{} {arrow} {text}", self.name);
            }
        }
    }

    /// Does the handshake that the peer has asked for.
    pub async fn start_tls(self) -> Result<Self, Parting> {
        let Self { host, name, wire, mut shutdown } = self;
        let started = async {
            match &host.tls {
                Some(tls) => wire.start_tls(tls).await,
                None => Err(io::ErrorKind::Unsupported.into()),
            }
        };
        let wire = host.handshake(name, started, &mut shutdown).await?;
        Ok(Self { host, name, wire, shutdown })
    }

    /// Closes the connection behind the last words, for this reason. It stays the reason when the peer has closed before us.
    pub async fn part(&mut self, ending: SessionEndReason) -> SessionEndReason {
        let closed = match ending {
            SessionEndReason::Quit => self.wire.close_after_quit().await,
            _ => self.wire.close().await,
        };
        if let Err(error) = closed {
            tracing::debug!(session = self.name, %error, "the connection broke at its end");
        }
        ending
    }
}
