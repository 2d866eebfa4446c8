//! The typed configuration. How its values are written is defined in the table and the parsers, not here.

use std::path::PathBuf;
use std::time::Duration;

use restante_mail::named_enum;
use restante_mail::naming::Naming;
use restante_mailroom::chaos::Triggers;
use restante_mailroom::policy::Policy;
use restante_mailroom::projects::ProjectRules;
use restante_mailroom::tagging::Tagging;
use restante_net::{Certificate, ListenAddr, Network};
use restante_proto::smtp::OptionalCommand;
pub use restante_store::disk::Durability;
use restante_store::postgres::{Address, Url};
use restante_store::{Limits, MailboxPolicies};

use super::api_mount::ApiMount;
use super::credential::{Credential, MailboxPassword, SigningKey};

/// All settings, parsed and checked.
#[derive(Debug, Clone)]
pub struct Config {
    /// The level, format and output of the log.
    pub log: restante_logging::Settings,
    /// The pid file.
    pub pidfile: Option<PathBuf>,
    /// Whether the server stops when its standard input is closed.
    pub stop_with_stdin: bool,
    /// How a recipient address becomes a mailbox name.
    pub mailbox_naming: Naming,
    /// Which project a new message is delivered into.
    pub projects: ProjectRules,
    /// Which tags a new message gets.
    pub tagging: Tagging,
    /// The simulated failures of SMTP.
    pub chaos: Chaos,
    /// The SMTP listeners and their limits.
    pub smtp: Smtp,
    /// The LMTP listeners.
    pub lmtp: Lmtp,
    /// The POP3 listeners.
    pub pop3: Pop3,
    /// The IMAP listeners.
    pub imap: Imap,
    /// The HTTP listeners.
    pub web: Web,
    /// The keys with which clients sign requests to the APIs of providers. If there are none, signatures are not verified.
    pub signing_keys: Vec<SigningKey>,
    /// Authentication. In a loaded configuration, the token file is also the one in the data directory, if it exists, and the ids are those of
    /// the signing keys.
    pub auth: restante_auth::Settings,
    /// The store and its limits.
    pub storage: Storage,
    /// The script.
    pub scripting: Scripting,
    /// The webhooks. Whether their queue is durable is known when it is opened.
    pub webhooks: restante_webhook::Settings,
    /// The relay. In a loaded configuration, its domain is that of SMTP, and the targets of its rules exist.
    pub relay: restante_relay::Settings,
    /// The search.
    pub search: Search,
}

/// The simulated failures of SMTP.
#[derive(Debug, Clone, Default)]
pub struct Chaos {
    /// Whether the failures can be set over HTTP.
    pub enabled: bool,
    /// The failures from the start on, if any are set.
    pub triggers: Option<Triggers>,
}

impl Chaos {
    /// Returns whether failures are simulated, or can be set over HTTP. As in Mailpit, a trigger enables them with any
    /// probability.
    pub fn is_enabled(&self) -> bool {
        self.enabled || self.triggers.is_some()
    }
}

impl Config {
    /// Returns a configuration without values, into which the defaults are parsed.
    pub(super) fn empty() -> Self {
        Self {
            log: restante_logging::Settings::default(),
            pidfile: None,
            stop_with_stdin: false,
            mailbox_naming: Naming::default(),
            projects: ProjectRules::default(),
            tagging: Tagging::default(),
            chaos: Chaos::default(),
            smtp: Smtp::default(),
            lmtp: Lmtp::default(),
            pop3: Pop3::default(),
            imap: Imap::default(),
            web: Web::default(),
            signing_keys: Vec::new(),
            auth: restante_auth::Settings::default(),
            storage: Storage::default(),
            scripting: Scripting::default(),
            webhooks: restante_webhook::Settings::default(),
            relay: restante_relay::Settings::default(),
            search: Search::default(),
        }
    }

    /// Returns the maximum size of a message in bytes. A message that does not fit into the store must not be
    /// acknowledged. Some space is left for the header fields that are added for each mailbox.
    pub fn effective_max_message_bytes(&self) -> usize {
        let limit = match self.storage.max_bytes {
            0 => usize::MAX,
            limit => usize::try_from(limit - limit / 64).unwrap_or(usize::MAX),
        };
        self.smtp.max_message_bytes.min(limit)
    }

    /// Returns the path of the token file: the configured one, or the one in the data directory.
    pub fn token_file(&self) -> Option<PathBuf> {
        let in_data_directory = || self.storage.path.as_ref().map(|dir| dir.join(TOKENS_FILE_NAME));
        self.auth.tokens.clone().or_else(in_data_directory)
    }
}

/// The SMTP listeners and their limits.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate setting")]
pub struct Smtp {
    /// The addresses to listen on, with STARTTLS if TLS is enabled.
    pub addr: Vec<ListenAddr>,
    /// The addresses to listen on with TLS from the first byte.
    pub tls_addr: Vec<ListenAddr>,
    /// The host name in the greeting.
    pub domain: String,
    /// The maximum number of recipients per message.
    pub max_recipients: usize,
    /// The maximum size of a message in bytes.
    pub max_message_bytes: usize,
    /// The idle timeout of a client.
    pub timeout: Duration,
    /// The domains that are accepted and stored.
    pub policy: Policy,
    /// STARTTLS and implicit TLS.
    pub tls: Tls,
    /// The credentials for AUTH. If there are none, and no users and tokens, AUTH accepts everything.
    pub credentials: Vec<Credential>,
    /// True if AUTH accepts everything, even if there are users and tokens.
    pub accept_any_login: bool,
    /// True if MAIL and AUTH require STARTTLS.
    pub require_starttls: bool,
    /// True if MAIL requires AUTH.
    pub require_auth: bool,
    /// True if unknown parameters, and arguments of commands that take none, are errors.
    pub strict: bool,
    /// The commands that are refused with 502.
    pub disabled_commands: Vec<OptionalCommand>,
    /// The maximum number of concurrent connections of all SMTP and LMTP listeners.
    pub max_connections: usize,
    /// The maximum number of concurrent connections per client.
    pub max_connections_per_ip: Option<usize>,
    /// The maximum number of bad commands in a session.
    pub max_bad_commands: u32,
    /// The maximum number of bytes of messages being received; at least the size of one message.
    pub max_inflight_bytes: usize,
    /// The maximum number of bytes of stored transcripts; 0 stores none.
    pub transcript_bytes: usize,
    /// Proxies whose connections begin with a PROXY protocol header, also for LMTP.
    pub proxies: Vec<Network>,
}

/// The TLS settings of a protocol.
#[derive(Debug, Clone, Default)]
pub struct Tls {
    /// True if TLS is enabled.
    pub enabled: bool,
    /// True if the plain listeners use TLS from the first byte.
    pub force: bool,
    /// The source of the certificate. [`Tls::certificate`] also considers whether TLS is enabled.
    pub cert: CertSource,
    /// The file of the private key, if the certificate is a file.
    pub key: PathBuf,
}

/// The source of a certificate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CertSource {
    /// Created at start, for development.
    #[default]
    SelfSigned,
    /// A PEM file; the server's own certificate is the first one.
    File(PathBuf),
}

impl Tls {
    /// Returns the certificate to use; `None` if TLS is disabled.
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
    /// The addresses to listen on.
    pub addr: Vec<ListenAddr>,
}

/// The POP3 listeners.
#[derive(Debug, Clone, Default)]
pub struct Pop3 {
    /// The addresses to listen on, with STLS if TLS is enabled.
    pub addr: Vec<ListenAddr>,
    /// The addresses to listen on with TLS from the first byte.
    pub tls_addr: Vec<ListenAddr>,
    /// The host name in the greeting.
    pub domain: String,
    /// The idle timeout of a client.
    pub timeout: Duration,
    /// STLS and implicit TLS.
    pub tls: Tls,
    /// The passwords of mailboxes. If there are none, and no users and tokens, every password opens every mailbox.
    pub mailbox_passwords: Vec<MailboxPassword>,
    /// The credentials from which `mailbox_passwords` is derived once the naming of mailboxes is known.
    pub(super) credentials: Vec<Credential>,
    /// The maximum number of concurrent connections.
    pub max_connections: usize,
    /// The maximum number of concurrent connections per client.
    pub max_connections_per_ip: Option<usize>,
    /// The maximum number of bad commands in a session.
    pub max_bad_commands: u32,
    /// Proxies whose connections begin with a PROXY protocol header.
    pub proxies: Vec<Network>,
}

/// The IMAP listeners.
#[derive(Debug, Clone, Default)]
pub struct Imap {
    /// The addresses to listen on, with STARTTLS if TLS is enabled.
    pub addr: Vec<ListenAddr>,
    /// The addresses to listen on with TLS from the first byte.
    pub tls_addr: Vec<ListenAddr>,
    /// The host name in the greeting.
    pub domain: String,
    /// The idle timeout of a client.
    pub timeout: Duration,
    /// STARTTLS and implicit TLS.
    pub tls: Tls,
    /// The passwords of mailboxes. If there are none, and no users and tokens, every password opens every mailbox.
    pub mailbox_passwords: Vec<MailboxPassword>,
    /// The credentials from which `mailbox_passwords` is derived once the naming of mailboxes is known.
    pub(super) credentials: Vec<Credential>,
    /// The maximum number of concurrent connections.
    pub max_connections: usize,
    /// The maximum number of concurrent connections per client.
    pub max_connections_per_ip: Option<usize>,
    /// The maximum number of bad commands in a session.
    pub max_bad_commands: u32,
    /// Proxies whose connections begin with a PROXY protocol header.
    pub proxies: Vec<Network>,
}

/// The HTTP listeners.
#[derive(Debug, Clone, Default)]
pub struct Web {
    /// The addresses to listen on.
    pub addr: Vec<ListenAddr>,
    /// The addresses to listen on for HTTPS.
    pub tls_addr: Vec<ListenAddr>,
    /// Where APIs are served in addition.
    pub listeners: Vec<ApiMount>,
    /// HTTPS. It is enabled if any listener uses it, and forced if `addr` does. Entries of `listeners` can use it on their own.
    pub tls: Tls,
    /// The prefix of all paths: empty, or `/x/y` without a trailing slash.
    pub base_path: String,
    /// The URL of the server as clients see it, without a trailing slash.
    pub public_url: Option<String>,
    /// The host names that requests may be addressed to, in addition to loopback names and IP addresses. They are in lower
    /// case and have no port.
    pub hosts: AllowList,
    /// The origins whose pages may use the API (RFC 6454 section 4), written as browsers do.
    pub cors: Option<AllowList>,
    /// Proxies whose `X-Forwarded-*` header fields are trusted.
    pub trusted_proxies: Vec<Network>,
    /// The maximum number of concurrent connections.
    pub max_connections: usize,
    /// The maximum number of concurrent connections per client, or of requests if they come through a trusted proxy.
    pub max_connections_per_ip: Option<usize>,
    /// Proxies whose connections begin with a PROXY protocol header.
    pub proxies: Vec<Network>,
    /// The maximum size of the cache of rendered responses in bytes.
    pub cache_bytes: usize,
    /// The HTML file of the greeting.
    pub greeting_file: Option<PathBuf>,
    /// True if the web interface shows the live monitor.
    pub monitor_visible: bool,
    /// The maximum number of concurrent clients of the live monitor.
    pub max_monitors: Option<usize>,
    /// The number of recent messages that a new client of the live monitor receives.
    pub monitor_history: usize,
}

/// The values of a setting that are allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowList {
    /// Any value.
    Any,
    /// These values.
    Only(Vec<String>),
}

impl Default for AllowList {
    fn default() -> Self {
        Self::Only(Vec::new())
    }
}

impl AllowList {
    /// Returns the configured values.
    pub fn names(&self) -> &[String] {
        match self {
            Self::Any => &[],
            Self::Only(names) => names,
        }
    }

    /// Adds a value.
    pub(super) fn add(&mut self, name: &str) {
        if let Self::Only(names) = self
            && !names.iter().any(|known| known == name)
        {
            names.push(name.to_owned());
        }
    }

    /// Returns true if this value is allowed. Its case is ignored.
    pub fn allows(&self, name: &str) -> bool {
        *self == Self::Any || self.names().iter().any(|allowed| allowed.eq_ignore_ascii_case(name))
    }
}

/// The name of the token file in a data directory.
pub(super) const TOKENS_FILE_NAME: &str = "tokens.toml";

/// The store and its limits.
#[derive(Debug, Clone, Default)]
pub struct Storage {
    /// The kind of store.
    pub kind: StoreKind,
    /// The data directory, from whichever setting. In a loaded configuration it is set if and only if the kind is
    /// [`StoreKind::File`].
    pub path: Option<PathBuf>,
    /// The data directory in `storage.params`.
    pub(super) params_path: Option<PathBuf>,
    /// When a message in the data directory is acknowledged.
    pub durability: Durability,
    /// The size in bytes of the cache for data read from the data directory or the database.
    pub cache_bytes: usize,
    /// The URL of the database. It may contain a password.
    pub(super) url: Option<Url>,
    /// The database. In a configuration that was loaded to open a store it is set if and only if the kind is
    /// [`StoreKind::Postgres`].
    pub database: Option<Address>,
    /// The maximum number of connections to the database.
    pub connections: usize,
    /// The maximum size of the store in bytes; zero means no limit.
    pub max_bytes: u64,
    /// How long a message is kept; `None` means forever.
    pub retention_period: Option<Duration>,
    /// The maximum number of messages in all mailboxes together; `None` means no limit.
    pub max_messages: Option<usize>,
    /// The maximum number of messages per mailbox; `None` means no limit.
    pub mailbox_msg_cap: Option<usize>,
    /// Other limits for some mailboxes.
    pub policies: MailboxPolicies,
}

impl Storage {
    /// Returns the limits of the store.
    pub fn limits(&self) -> Limits {
        Limits {
            messages_per_mailbox: self.mailbox_msg_cap.unwrap_or(0),
            bytes: self.max_bytes,
            policies: self.policies.clone(),
        }
    }
}

named_enum! {
    /// The kind of store.
    #[derive(Default)]
    pub enum StoreKind {
        /// In memory, lost when the process ends.
        #[default]
        Memory = "memory",
        /// In a data directory.
        File = "file",
        /// In a PostgreSQL database.
        Postgres = "postgres",
    }
}

/// The script settings.
#[derive(Debug, Clone, Default)]
pub struct Scripting {
    /// The script is the first of these files that exists. If none exists, there is no script.
    pub paths: Vec<PathBuf>,
    /// True if the script is used only if no other user can have written it, because the setting is not given.
    pub trusted_files_only: bool,
    /// True if the script has no access to files, programs and the environment.
    pub sandbox: bool,
    /// The time limit of one call.
    pub timeout: Duration,
    /// The memory limit of one Lua state in bytes.
    pub memory_bytes: usize,
    /// The number of Lua states that are kept ready; `None` means that it depends on the number of cores.
    pub states: Option<usize>,
    /// The maximum number of concurrent calls of `before` functions.
    pub max_calls: usize,
    /// The maximum number of events that wait for `after` functions.
    pub queue: usize,
}

/// The search settings.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// True if there is an index, so that all messages can be searched.
    pub enabled: bool,
}
