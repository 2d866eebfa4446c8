//! The server as its APIs use it: settings, the mailroom, and what is built on it.

use std::fmt;
use std::hash::RandomState;
use std::net::IpAddr;
use std::sync::Arc;

use restante_auth::AuthService;
use restante_http_connection::context::Peer;
use restante_logging::LogThrottle;
use restante_mailroom::Mailroom;
use restante_mailroom::store_error_log::StoreErrorLog;
use restante_metrics::{Metrics, Registry};
use restante_net::{ClientLimits, Network, Readiness};
use restante_relay::Relay;
use restante_script::Host;
use restante_search::Search;
use restante_settings::AllowList;
pub use restante_settings::SigningKey;
use restante_webhook::Webhooks;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::messages::Messages;
use crate::parsed_mail_cache::ParsedMailCache;
use crate::render::Renderer;
use crate::response::problem::Problem;
use crate::uploads::Uploads;

/// See [`Server::max_compared_bytes`]. This takes some ten seconds.
const MAX_COMPARED_BYTES: u64 = 32 << 30;
/// The limit on requests that wait for messages. One connection can carry a hundred of them, so the limit on
/// connections is not enough.
const MAX_WAITS: usize = 20_000;

/// The settings of the HTTP service.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// A prefix of all paths, which are also served without it: empty, or `/x/y` without a trailing slash.
    pub base_path: String,
    /// The URL under which clients see the server, without a trailing slash.
    pub public_url: Option<String>,
    /// The host names that requests may be addressed to, in addition to loopback names and IP addresses.
    pub hosts: AllowList,
    /// The other origins whose web pages may use the API.
    pub cors: Option<AllowList>,
    /// Proxies whose `X-Forwarded-*` headers are trusted.
    pub trusted_proxies: Vec<Network>,
    /// The size of the response cache in bytes. 0 disables it.
    pub cache_bytes: usize,
    /// The maximum number of subscribers of live events, if there is one.
    pub max_monitors: Option<usize>,
    /// The maximum size of a message in bytes, as over SMTP.
    pub max_message_bytes: usize,
    /// The keys with which clients sign requests. If there are none, signatures are not verified.
    pub signing_keys: Vec<SigningKey>,
    /// The limit on open requests per client behind a trusted proxy.
    pub clients: Arc<ClientLimits>,
    /// Whether the server accepts new work.
    pub readiness: Arc<Readiness>,
    /// The metrics of the server.
    pub metrics: Arc<Metrics>,
    /// The registered metrics.
    pub registry: Arc<Registry>,
    /// The optional services.
    pub services: Services,
    /// Checks credentials, and leases runs. Unless it requires credentials, anonymous requests may do everything.
    pub auth: Option<Arc<AuthService>>,
}

/// The optional services of a server. By default there are none.
#[derive(Clone, Default)]
pub struct Services {
    /// The script.
    pub script: Option<Arc<Host>>,
    /// The webhooks.
    pub webhooks: Option<Arc<Webhooks>>,
    /// The search.
    pub search: Option<Arc<Search>>,
    /// The relay.
    pub relay: Option<Arc<Relay>>,
}

impl Services {
    /// Returns the name of the script's file, if a script is loaded.
    pub fn script_name(&self) -> Option<String> {
        let path = self.script.as_ref()?.loaded()?.path;
        Some(path.file_name()?.to_string_lossy().into_owned())
    }
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Services").field("script", &self.script_name()).finish_non_exhaustive()
    }
}

impl Settings {
    /// Returns whether the forwarded headers of a peer are trusted. The proxy itself must be at the other end of the
    /// socket: a client that a PROXY header names can send any headers.
    pub fn trusts(&self, peer: Peer) -> bool {
        peer.socket_ip.is_some_and(|ip| self.is_proxy(ip))
    }

    /// Returns what checks credentials, if they are required.
    pub fn required_auth(&self) -> Option<&Arc<AuthService>> {
        self.auth.as_ref().filter(|auth| auth.is_enabled())
    }

    /// Returns the prefix of links to pages of this server. It does not depend on the host name that a client uses.
    pub fn link_root(&self) -> &str {
        self.public_url.as_deref().unwrap_or(&self.base_path)
    }

    /// Returns the path of the root as browsers see it: empty, or without a trailing slash.
    pub fn public_path(&self) -> &str {
        let Some((_, rest)) = self.public_url.as_deref().and_then(|url| url.split_once("://")) else {
            return &self.base_path;
        };
        rest.find('/').map_or("", |at| &rest[at..])
    }

    /// Returns whether this is the address of a trusted proxy.
    pub fn is_proxy(&self, ip: IpAddr) -> bool {
        self.trusted_proxies.iter().any(|network| network.contains(ip))
    }
}

/// The server.
pub struct Server {
    /// The mailroom.
    pub mailroom: Arc<Mailroom>,
    /// The settings.
    pub settings: Settings,
    /// Queries of messages.
    pub messages: Arc<Messages>,
    /// Rendered responses.
    pub renderer: Renderer,
    /// Messages from requests.
    pub uploads: Uploads,
    /// Messages that waiting requests compare with their queries.
    pub parsed_mail_cache: ParsedMailCache,
    /// Limits the rendering of metrics, which must not wait for other expensive work.
    pub scrape_permits: Arc<Semaphore>,
    /// The maximum number of bytes that all terms of a search in the summaries and sources of messages are compared with.
    pub max_compared_bytes: u64,
    /// Permits for subscribers of live events, if they are limited.
    pub subscriber_permits: Option<Arc<Semaphore>>,
    /// Permits for requests that wait for messages.
    pub wait_permits: Semaphore,
    /// Computes the versions of cached responses that depend on texts.
    pub state_hasher: RandomState,
    /// Throttles for log lines.
    pub log_throttles: LogThrottles,
}

/// Throttles for log lines about refused requests and errors.
#[derive(Default)]
pub struct LogThrottles {
    /// Refused requests.
    pub requests: LogThrottle,
    /// Refused subscribers.
    pub subscribers: LogThrottle,
    /// Refused requests that wait for messages.
    pub waits: LogThrottle,
    /// Errors of the identity provider.
    pub provider_errors: LogThrottle,
    /// Errors of the store.
    pub store_errors: StoreErrorLog,
}

impl Server {
    /// Returns the relay, if it is configured.
    pub fn relay(&self) -> Option<&Relay> {
        self.settings.services.relay.as_deref()
    }

    /// Creates a server.
    pub fn new(mailroom: Arc<Mailroom>, settings: Settings) -> Self {
        let (search, metrics) = (settings.services.search.clone(), settings.metrics.clone());
        Self {
            messages: Arc::new(Messages::new(mailroom.clone(), search, metrics)),
            renderer: Renderer::new(mailroom.clone(), settings.cache_bytes),
            uploads: Uploads::new(mailroom.clone()),
            mailroom,
            parsed_mail_cache: ParsedMailCache::new(),
            scrape_permits: Arc::new(Semaphore::new(1)),
            max_compared_bytes: MAX_COMPARED_BYTES,
            subscriber_permits: settings.max_monitors.map(|max| Arc::new(Semaphore::new(max))),
            wait_permits: Semaphore::new(MAX_WAITS),
            state_hasher: RandomState::new(),
            log_throttles: LogThrottles::default(),
            settings,
        }
    }

    /// Returns a permit to wait for messages.
    pub fn wait_permit(&self) -> Result<SemaphorePermit<'_>, Problem> {
        let permit = self.wait_permits.try_acquire();
        if permit.is_err() && self.log_throttles.waits.should_log() {
            tracing::warn!("too many requests wait for messages, refusing new ones");
        }
        permit.map_err(|_| Problem::TooManyWaits)
    }
}
