//! Opens sessions: resolves the host of a target, connects, starts TLS, greets and logs in.

use std::fmt;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use restante_http_client::{
    HttpError, PolicyResolver, client_config_with_roots, insecure_client_config, system_client_config,
};
use restante_journal::TranscriptLines;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::client::Client;
use super::extensions::{Extension, SmtpExtensions};
use super::login::log_in;
use super::transaction::Session;
use crate::settings::{Target, TargetTls, Verification};

/// The time limit for opening a session, as a multiple of the timeout of the target. Each step is limited by the timeout
/// itself.
const OPENING_TIMEOUTS: u32 = 4;

/// Opens sessions to targets.
pub(crate) struct Connector {
    domain: String,
    resolver: Arc<PolicyResolver>,
    /// The TLS configuration with the roots of the system, which takes a while to load.
    system_config: Arc<OnceLock<Arc<ClientConfig>>>,
}

/// Why there is no session.
#[derive(Debug)]
pub(crate) struct ConnectError {
    /// A sentence for the operator that contains no password.
    pub(crate) text: String,
    /// The conversation so far.
    pub(crate) transcript: TranscriptLines,
}

impl Connector {
    /// Creates a connector. `domain` is the name of this server in EHLO.
    pub(crate) fn new(domain: String, allow_private_addresses: bool) -> Self {
        Self { domain, resolver: Arc::new(PolicyResolver::new(allow_private_addresses)), system_config: Arc::default() }
    }

    /// Connects, starts TLS, greets and logs in.
    pub(crate) async fn connect(&self, target: &Target) -> Result<Session, ConnectError> {
        let mut client = Client::new(target.timeout);
        let opening = timeout(target.timeout.saturating_mul(OPENING_TIMEOUTS), self.open(&mut client, target)).await;
        match opening.unwrap_or_else(|_| Err("the server is too slow".to_owned())) {
            Ok(extensions) => Ok(Session::new(client, extensions)),
            Err(text) => {
                client.recorder().add_note(&text);
                Err(ConnectError { text, transcript: client.recorder().take_transcript() })
            }
        }
    }

    async fn open(&self, client: &mut Client, target: &Target) -> Result<SmtpExtensions, String> {
        self.connect_tcp(client, target).await?;
        if target.tls == TargetTls::Implicit {
            self.start_tls(client, target).await?;
        }
        let greeting = client.read_reply().await?;
        if greeting.code != 220 {
            return Err(format!("the server refused the connection: {}", greeting.text()));
        }
        let mut extensions = self.greet(client).await?;
        match target.tls {
            TargetTls::StartTls if !extensions.has(Extension::StartTls) => {
                return Err(
                    "the server offers no STARTTLS; set starttls=optional or starttls=never for this target".to_owned()
                );
            }
            TargetTls::StartTls | TargetTls::Optional if extensions.has(Extension::StartTls) => {
                let reply = client.command("STARTTLS").await?;
                if reply.code != 220 {
                    return Err(format!("the server refused STARTTLS: {}", reply.text()));
                }
                self.start_tls(client, target).await?;
                // What the server has said before is not authenticated (RFC 3207 section 4.2).
                extensions = self.greet(client).await?;
            }
            _ => {}
        }
        if let Some(login) = &target.login {
            log_in(client, login, &extensions).await?;
        }
        Ok(extensions)
    }

    /// Connects to one of the addresses of the host. They share the time limit.
    async fn connect_tcp(&self, client: &mut Client, target: &Target) -> Result<(), String> {
        let (resolver, host, port, limit) =
            (Arc::clone(&self.resolver), target.host.clone(), target.port, target.timeout);
        let addresses = if host.parse::<IpAddr>().is_ok() {
            resolver.resolve_host(&host, port, limit)
        } else {
            let lookup = spawn_blocking(move || resolver.resolve_host(&host, port, limit)).await;
            lookup.unwrap_or_else(|error| Err(HttpError::Network(error.to_string())))
        };
        let addresses = addresses.map_err(|error| match error {
            HttpError::ForbiddenAddress(text) => format!("{text}; set relay.private to allow it"),
            HttpError::Timeout => format!("cannot resolve {} in time", target.host),
            other => other.to_string(),
        })?;
        let limit = limit / u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
        let mut failure = String::new();
        for address in addresses {
            if !failure.is_empty() {
                client.recorder().add_note(&failure);
            }
            let connected = timeout(limit, TcpStream::connect(address)).await;
            match connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
                Ok(stream) => {
                    // Commands are small and wait for replies. Without this option the session is only slower.
                    let _ = stream.set_nodelay(true);
                    client.recorder().add_note(&format!("connected to {address}"));
                    client.stream().set_connection(stream, false);
                    return Ok(());
                }
                Err(error) => failure = format!("cannot connect to {address}: {error}"),
            }
        }
        Err(failure)
    }

    /// Encrypts the connection and verifies the certificate of the server.
    async fn start_tls(&self, client: &mut Client, target: &Target) -> Result<(), String> {
        let (stream, unread) = client.stream().take_connection();
        // These bytes were not encrypted. An attacker could have inserted them.
        if !unread.is_empty() {
            return Err("the server sent unencrypted data after its reply to STARTTLS".to_owned());
        }
        let name = ServerName::try_from(target.host.clone())
            .map_err(|_| format!("{:?} is not a name that a certificate can have", target.host))?;
        let connector = TlsConnector::from(self.tls_config(&target.verification).await?);
        let stream = match timeout(client.timeout(), connector.connect(name, stream)).await {
            Ok(result) => result.map_err(|error| format!("TLS failed with {}: {error}", target.host))?,
            Err(_) => return Err(format!("TLS failed with {}: no answer in time", target.host)),
        };
        let session = stream.get_ref().1;
        if let (Some(version), Some(suite)) = (session.protocol_version(), session.negotiated_cipher_suite()) {
            client.recorder().add_note(&format!("{version:?}, {:?}", suite.suite()));
        }
        client.stream().set_connection(stream, true);
        Ok(())
    }

    async fn tls_config(&self, verification: &Verification) -> Result<Arc<ClientConfig>, String> {
        let (verification, cached) = (verification.clone(), Arc::clone(&self.system_config));
        if let (Verification::System, Some(config)) = (&verification, cached.get()) {
            return Ok(Arc::clone(config));
        }
        let loading = spawn_blocking(move || match verification {
            Verification::System => {
                let config = Arc::new(system_client_config().map_err(to_text)?);
                Ok(Arc::clone(cached.get_or_init(|| config)))
            }
            Verification::Ca(path) => {
                let unusable = |error| format!("cannot use the certificates in {}: {error}", path.display());
                let pem = fs::read(&path).map_err(|error| unusable(error.to_string()))?;
                client_config_with_roots(&pem).map(Arc::new).map_err(|error| unusable(error.to_string()))
            }
            Verification::None => insecure_client_config().map(Arc::new).map_err(to_text),
        });
        loading.await.map_err(to_text)?
    }

    /// Sends EHLO, or HELO to a server that does not know it.
    async fn greet(&self, client: &mut Client) -> Result<SmtpExtensions, String> {
        let reply = client.command(&format!("EHLO {}", self.domain)).await?;
        if reply.is_success() {
            return Ok(SmtpExtensions::parse(&reply));
        }
        let reply = match reply.code {
            500..=504 => client.command(&format!("HELO {}", self.domain)).await?,
            _ => reply,
        };
        if reply.is_success() {
            Ok(SmtpExtensions::default())
        } else {
            Err(format!("the server refused the greeting: {}", reply.text()))
        }
    }
}

fn to_text(error: impl fmt::Display) -> String {
    error.to_string()
}
