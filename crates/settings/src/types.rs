//! The typed configuration that the rest of the program works with. How its values are written is known to the table
//! and the parsers beside this file, not here.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use restante_mail::naming::Naming;
use restante_mailroom::policy::Policy;
use restante_net::{Certificate, ListenAddr, Network};
use restante_proto::Secret;
pub use restante_store::disk::Durability;
use restante_store::postgres::{Address, Url};
use restante_webhook::Target;

use super::credential::{Credential, MailboxPassword};

/// Every setting, parsed and checked.
#[derive(Debug, Clone)]
pub struct Config {
    /// What is logged and where.
    pub log: restante_logging::Settings,
    /// Where to write the process id.
    pub pidfile: Option<PathBuf>,
    /// How a recipient address becomes a mailbox name.
    pub mailbox_naming: Naming,
    /// The SMTP listeners and their limits.
    pub smtp: Smtp,
    /// The LMTP listeners.
    pub lmtp: Lmtp,
    /// The POP3 listeners.
    pub pop3: Pop3,
    /// The HTTP listeners.
    pub web: Web,
    /// Who is let in.
    pub auth: Auth,
    /// Where mail is kept, and for how long.
    pub storage: Storage,
    /// The script.
    pub scripting: Scripting,
    /// Who is told of mail, and how.
    pub webhooks: Webhooks,
    /// Searching mail.
    pub search: Search,
}

impl Config {
    /// Empty places for the defaults to be parsed into.
    pub(super) fn empty() -> Self {
        Self {
            log: restante_logging::Settings::default(),
            pidfile: None,
            mailbox_naming: Naming::default(),
            smtp: Smtp::default(),
            lmtp: Lmtp::default(),
            pop3: Pop3::default(),
            web: Web::default(),
            auth: Auth::default(),
            storage: Storage::default(),
            scripting: Scripting::default(),
            webhooks: Webhooks::default(),
            search: Search::default(),
        }
    }

    /// The most bytes of one message that is taken in. One that the whole store has no room for must not be acknowledged; a
    /// little is left for the lines that are added for each mailbox.
    pub fn effective_max_message_bytes(&self) -> usize {
        let room = match self.storage.max_bytes {
            0 => usize::MAX,
            room => usize::try_from(room - room / 64).unwrap_or(usize::MAX),
        };
        self.smtp.max_message_bytes.min(room)
    }

    /// The file of tokens: the one that is named, or the one that belongs into the data directory.
    pub fn token_file(&self) -> Option<PathBuf> {
        let in_data_directory = || self.storage.path.as_ref().map(|dir| dir.join(TOKENS_FILE_NAME));
        self.auth.tokens.clone().or_else(in_data_directory)
    }
}

/// The SMTP listeners and their limits.
#[derive(Debug, Clone, Default)]
pub struct Smtp {
    /// Where to listen, with STARTTLS when TLS is on.
    pub addr: Vec<ListenAddr>,
    /// Where to listen with TLS from the first byte.
    pub tls_addr: Vec<ListenAddr>,
    /// The name the server calls itself.
    pub domain: String,
    /// Recipients per message.
    pub max_recipients: usize,
    /// Bytes per message.
    pub max_message_bytes: usize,
    /// How long a client may stay silent.
    pub timeout: Duration,
    /// Whose mail is accepted and stored.
    pub policy: Policy,
    /// STARTTLS and implicit TLS.
    pub tls: Tls,
    /// Who may authenticate; nobody listed means that anything is accepted.
    pub credentials: Vec<Credential>,
    /// Whether MAIL needs AUTH first.
    pub require_auth: bool,
    /// Whether unknown parameters, and arguments of commands that take none, are errors.
    pub strict: bool,
    /// Connections at the same time, over all SMTP and LMTP listeners.
    pub max_connections: usize,
    /// Connections at the same time from one IP address.
    pub max_connections_per_ip: Option<usize>,
    /// Bad commands in a session before it is closed.
    pub max_bad_commands: u32,
    /// Bytes of messages being received at the same time; never less than one message.
    pub max_inflight_bytes: usize,
    /// Bytes of transcripts of SMTP and LMTP sessions that are kept; 0 keeps none.
    pub transcript_bytes: usize,
    /// Proxies whose connections begin with a PROXY protocol header; for LMTP too.
    pub proxies: Vec<Network>,
}

/// TLS of one protocol.
#[derive(Debug, Clone, Default)]
pub struct Tls {
    /// Whether there is TLS at all.
    pub enabled: bool,
    /// Whether the plain listeners speak TLS from the first byte.
    pub force: bool,
    /// The certificate; ask [`Tls::certificate`], which knows whether TLS is on.
    pub cert: CertSource,
    /// The file of its private key, where the certificate is a file.
    pub key: PathBuf,
}

/// Where a certificate comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CertSource {
    /// Made at start, for development.
    #[default]
    SelfSigned,
    /// A PEM file, the server's own certificate first.
    File(PathBuf),
}

impl Tls {
    /// The certificate to use, or none when TLS is off.
    pub fn certificate(&self) -> Option<Certificate<'_>> {
        if !self.enabled {
            return None;
        }
        Some(match &self.cert {
            CertSource::SelfSigned => Certificate::SelfSigned,
            CertSource::File(cert) => Certificate::Files { cert, key: &self.key },
        })
    }
}

/// The LMTP listeners; domain, limits and policy are those of SMTP.
#[derive(Debug, Clone, Default)]
pub struct Lmtp {
    /// Where to listen.
    pub addr: Vec<ListenAddr>,
}

/// The POP3 listeners.
#[derive(Debug, Clone, Default)]
pub struct Pop3 {
    /// Where to listen, with STLS when TLS is on.
    pub addr: Vec<ListenAddr>,
    /// Where to listen with TLS from the first byte.
    pub tls_addr: Vec<ListenAddr>,
    /// The name the server calls itself.
    pub domain: String,
    /// How long a client may stay silent.
    pub timeout: Duration,
    /// STLS and implicit TLS.
    pub tls: Tls,
    /// The passwords of mailboxes; none listed means that anything opens all of them.
    pub mailbox_passwords: Vec<MailboxPassword>,
    /// What the keys are made of, as soon as it is known how mailboxes are named.
    pub(super) credentials: Vec<Credential>,
    /// Connections at the same time.
    pub max_connections: usize,
    /// Connections at the same time from one IP address.
    pub max_connections_per_ip: Option<usize>,
    /// Bad commands in a session before it is closed.
    pub max_bad_commands: u32,
    /// Proxies whose connections begin with a PROXY protocol header.
    pub proxies: Vec<Network>,
}

/// The HTTP listeners.
#[derive(Debug, Clone, Default)]
pub struct Web {
    /// Where to listen.
    pub addr: Vec<ListenAddr>,
    /// Where to listen for HTTPS.
    pub tls_addr: Vec<ListenAddr>,
    /// HTTPS. It is enabled where there is a listener that speaks it, and forced where `addr` does.
    pub tls: Tls,
    /// What stands before every path: empty, or `/x/y` without a slash at the end.
    pub base_path: String,
    /// The URL under which clients see the server, without a slash at the end.
    pub public_url: Option<String>,
    /// The host names that requests may be addressed to.
    pub hosts: Hosts,
    /// The origins whose pages may use the API.
    pub cors: Option<Origins>,
    /// Proxies whose `X-Forwarded-*` headers are believed.
    pub trusted_proxies: Vec<Network>,
    /// Connections at the same time.
    pub max_connections: usize,
    /// Connections at the same time from one IP address, or requests where a trusted proxy stands between.
    pub max_connections_per_ip: Option<usize>,
    /// Proxies whose connections begin with a PROXY protocol header.
    pub proxies: Vec<Network>,
    /// Bytes of rendered answers to remember.
    pub cache_bytes: usize,
    /// HTML for the home page.
    pub greeting_file: Option<PathBuf>,
    /// Whether the pages offer the live monitor.
    pub monitor_visible: bool,
    /// Readers of the live monitor at the same time.
    pub max_monitors: Option<usize>,
    /// Messages that a new reader of the live monitor is told of.
    pub monitor_history: usize,
}

/// The host names that requests may be addressed to, beside loopback names and IP addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hosts {
    /// Any name at all.
    Any,
    /// These names, in lower case.
    Only(Vec<String>),
}

impl Default for Hosts {
    fn default() -> Self {
        Self::Only(Vec::new())
    }
}

impl Hosts {
    /// The names that are known.
    pub fn names(&self) -> &[String] {
        match self {
            Self::Any => &[],
            Self::Only(names) => names,
        }
    }

    /// Adds a name in lower case.
    pub(super) fn add(&mut self, name: &str) {
        if let Self::Only(names) = self
            && !names.iter().any(|known| known == name)
        {
            names.push(name.to_owned());
        }
    }

    /// Whether requests for this host name (without a port, in any case) are answered.
    pub fn allows(&self, host: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Only(names) => names.iter().any(|name| name.eq_ignore_ascii_case(host)),
        }
    }
}

/// Origins of web pages (RFC 6454 section 4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origins {
    /// Any at all.
    Any,
    /// These, written as browsers do.
    Only(Vec<String>),
}

impl Origins {
    /// Whether this one is among them, as a browser names it.
    pub fn allow(&self, origin: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Only(origins) => origins.iter().any(|allowed| allowed == origin),
        }
    }
}

/// The file of tokens in a data directory.
pub(super) const TOKENS_FILE_NAME: &str = "tokens.toml";

/// Who is let in.
#[derive(Debug, Clone, Default)]
pub struct Auth {
    /// The file of users.
    pub users: Option<PathBuf>,
    /// The file of tokens. In a loaded configuration it is also the one in the data directory, when there is one.
    pub tokens: Option<PathBuf>,
    /// How long a login by a page lasts.
    pub session_time: Duration,
    /// What the cookies of such logins are signed with.
    pub secret: Option<Secret>,
}

impl Auth {
    /// Returns the settings of the authenticator.
    pub fn settings(&self) -> restante_auth::Settings {
        restante_auth::Settings {
            users: self.users.clone(),
            tokens: self.tokens.clone(),
            session_time: self.session_time,
            secret: self.secret.as_ref().map(|secret| secret.expose().as_bytes().to_vec()),
        }
    }

    /// Whether anybody has to say who they are. A file of tokens that is empty, or not there, lets nobody in: to revoke the
    /// last token must not open the doors.
    pub fn is_enabled(&self) -> bool {
        self.users.is_some() || self.tokens.is_some()
    }
}

/// Where mail is kept, and for how long.
#[derive(Debug, Clone, Default)]
pub struct Storage {
    /// The kind of store.
    pub kind: StoreKind,
    /// The data directory, whichever setting names it. In a loaded configuration it is there when the kind is
    /// [`StoreKind::File`], and only then.
    pub path: Option<PathBuf>,
    /// The data directory that `storage.params` names.
    pub(super) params_path: Option<PathBuf>,
    /// When a message in the data directory counts as stored.
    pub durability: Durability,
    /// Bytes of memory for what was last read from the data directory or the database.
    pub cache_bytes: usize,
    /// The URL of the database; it may hold a password.
    pub(super) url: Option<Url>,
    /// The database. In a configuration that was loaded to open a store it is there when the kind is
    /// [`StoreKind::Postgres`], and only then.
    pub database: Option<Address>,
    /// How many connections to the database are made at most.
    pub connections: usize,
    /// Bytes that the store may hold; zero is no bound.
    pub max_bytes: u64,
    /// How long a message is kept; none means for ever.
    pub retention_period: Option<Duration>,
    /// Messages per mailbox; none means no limit.
    pub mailbox_msg_cap: Option<usize>,
}

/// The kind of store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StoreKind {
    /// In memory, gone when the process ends.
    #[default]
    Memory,
    /// In a data directory.
    File,
    /// In a PostgreSQL database.
    Postgres,
}

/// The script.
#[derive(Debug, Clone, Default)]
pub struct Scripting {
    /// The script is the first of these files that exists; without one there is no script.
    pub paths: Vec<PathBuf>,
    /// Whether it is kept away from files, programs and the environment.
    pub sandbox: bool,
    /// How long one call may take.
    pub timeout: Duration,
    /// Bytes that one of its states may hold.
    pub memory_bytes: usize,
    /// How many states are kept ready; none means one for each core.
    pub states: Option<usize>,
    /// The most calls of `before` functions at the same time.
    pub max_calls: usize,
    /// Events that may wait for `after` functions.
    pub queue: usize,
}

/// Who is told of mail, and how.
#[derive(Clone, Default)]
pub struct Webhooks {
    /// Who is told of what.
    pub targets: Vec<Target>,
    /// The key to sign with.
    pub secret: Option<restante_webhook::Key>,
    /// Whether targets may be at addresses that are not public.
    pub private_addresses: bool,
    /// How long a target may take to answer.
    pub timeout: Duration,
    /// How long it is tried to tell of one event.
    pub give_up_after: Duration,
    /// Events that may wait for one target.
    pub queue: usize,
}

/// Searching mail.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// Whether there is an index, so that all mail can be searched.
    pub enabled: bool,
}

/// URLs may hold tokens, so only their number is shown.
impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhooks").field("targets", &self.targets.len()).finish_non_exhaustive()
    }
}
