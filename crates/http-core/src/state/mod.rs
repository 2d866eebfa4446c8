//! The state that all requests share: settings, mailroom, caches and limits.
//!
//! - `message`: rendered responses about one message, and their cache
//! - `mailboxes`: the mailboxes that a grant allows
//! - `messages`: messages of all mailboxes, with the copies that a grant allows
//! - `message_changes`: changes of many messages
//! - `changed_messages`: the messages of events
//! - `offset`: pages of the list of all messages by offset
//! - `overview`: the number of messages and of unread ones, and the tags, cached
//! - `delivery`: the delivery of uploaded messages
//! - `attachment`: attachments and parts as files
//! - `attachment_archive`: all attachments of a message as one file
//! - `parsed_mail_cache`: messages that waiting requests compare with their queries

pub mod attachment;
mod attachment_archive;
mod attachment_document;
mod changed_messages;
pub mod delivery;
mod mailboxes;
pub mod message;
pub mod message_changes;
pub mod messages;
mod offset;
pub mod overview;
pub mod parsed_mail_cache;

use std::fmt;
use std::hash::RandomState;
use std::net::IpAddr;
use std::sync::Arc;
use std::thread::available_parallelism;

use bytes::Bytes;
use parking_lot::Mutex;
use restante_auth::AuthService;
use restante_cache::Cache;
use restante_http_connection::context::Peer;
use restante_http_connection::memory::{MemoryPermit, ResponseBudget, SMALL_BYTES};
use restante_http_connection::work::WorkPermit;
use restante_logging::LogThrottle;
use restante_mailroom::Mailroom;
use restante_mailroom::store_error_log::StoreErrorLog;
use restante_metrics::{Metrics, Registry};
use restante_net::{ClientLimits, Network, Readiness};
use restante_relay::Relay;
use restante_script::Host;
use restante_search::Search;
use restante_settings::AllowList;
use restante_webhook::Webhooks;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::response::etag::EntityTags;
use crate::response::problem::Problem;
use message::CacheKey;
use offset::KnownOffsets;
use overview::OverviewCache;
use parsed_mail_cache::ParsedMailCache;

/// The maximum number of concurrent expensive tasks, on any number of processors: rendering the worst message takes
/// about twenty times its size in memory.
const MAX_WORK_PERMITS: usize = 4;
/// The number of messages that are read without a work permit. Each of them can have many copies.
pub const MAX_MESSAGES_WITHOUT_PERMIT: usize = 200;
/// See [`Server::max_compared_bytes`]. This takes some ten seconds.
const MAX_COMPARED_BYTES: u64 = 32 << 30;
/// The limit on requests that wait for messages. One connection can carry a hundred of them, so the limit on
/// connections is not enough.
const MAX_WAITS: usize = 20_000;
/// The memory for all large messages that are being uploaded. One upload at a time may exceed it, see
/// [`restante_net::Budget`].
pub const MAX_UPLOAD_BYTES: usize = 64 * 1024 * 1024;

/// The settings of the HTTP service.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The prefix of all paths: empty, or `/x/y` without a trailing slash.
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
    /// The maximum number of messages per mailbox, if there is one.
    pub mailbox_cap: Option<usize>,
    /// The maximum size of a message in bytes, as over SMTP.
    pub max_message_bytes: usize,
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
    /// Checks credentials. Without it, anonymous requests may do everything.
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

    pub fn is_proxy(&self, ip: IpAddr) -> bool {
        self.trusted_proxies.iter().any(|network| network.contains(ip))
    }
}

/// The state that all requests share.
pub struct Server {
    pub mailroom: Arc<Mailroom>,
    pub settings: Settings,
    pub response_cache: Arc<Cache<CacheKey, Bytes>>,
    overview_cache: OverviewCache,
    known_offsets: KnownOffsets,
    pub parsed_mail_cache: ParsedMailCache,
    pub response_budget: ResponseBudget,
    pub etags: EntityTags,
    /// Limits expensive work, and so the memory that it takes. A request that holds a scan permit must not wait for one of
    /// these: requests for long lists wait for a scan permit while they hold one.
    pub work_permits: Arc<Semaphore>,
    /// Limits the images that are decoded at the same time: this takes more memory than other work.
    pub image_permits: Arc<Semaphore>,
    /// Limits the rendering of metrics, which must not wait for other expensive work.
    pub scrape_permits: Arc<Semaphore>,
    /// Limits listings that read many mailboxes or messages to find the few that a client may see. A request that needs both
    /// acquires the work permit first.
    pub scan_permits: Arc<Semaphore>,
    /// The maximum number of bytes that all terms of a search in the summaries and sources of messages are compared with.
    pub max_compared_bytes: u64,
    /// Permits for subscribers of live events, if they are limited.
    pub subscriber_permits: Option<Arc<Semaphore>>,
    /// Permits for requests that wait for messages.
    pub wait_permits: Semaphore,
    /// The memory for messages that are being uploaded. It is separate from the memory for responses, so that slow
    /// uploads do not block responses, and the reverse.
    pub upload_budget: Arc<restante_net::Budget>,
    /// Computes the versions of cached responses that depend on texts.
    pub state_hasher: RandomState,
    pub log_throttles: LogThrottles,
}

/// Throttles for log lines about refused requests and store errors.
#[derive(Default)]
pub struct LogThrottles {
    pub requests: LogThrottle,
    pub subscribers: LogThrottle,
    pub waits: LogThrottle,
    pub store_errors: StoreErrorLog,
}

impl Server {
    /// Returns the relay, if it is configured.
    pub fn relay(&self) -> Option<&Relay> {
        self.settings.services.relay.as_deref()
    }

    pub fn new(mailroom: Arc<Mailroom>, settings: Settings) -> Self {
        Self {
            mailroom,
            response_cache: Arc::new(Cache::new(settings.cache_bytes)),
            overview_cache: OverviewCache::default(),
            known_offsets: KnownOffsets::default(),
            parsed_mail_cache: ParsedMailCache::new(),
            response_budget: ResponseBudget::with_cache_bytes(settings.cache_bytes),
            etags: EntityTags::new(),
            work_permits: Arc::new(Semaphore::new(
                available_parallelism().map_or(1, usize::from).min(MAX_WORK_PERMITS),
            )),
            image_permits: Arc::new(Semaphore::new(1)),
            scrape_permits: Arc::new(Semaphore::new(1)),
            scan_permits: Arc::new(Semaphore::new(1)),
            max_compared_bytes: MAX_COMPARED_BYTES,
            subscriber_permits: settings.max_monitors.map(|max| Arc::new(Semaphore::new(max))),
            wait_permits: Semaphore::new(MAX_WAITS),
            upload_budget: restante_net::Budget::new(MAX_UPLOAD_BYTES),
            state_hasher: RandomState::new(),
            log_throttles: LogThrottles::default(),
            settings,
        }
    }

    /// Renders a response within the memory budget. If the budget is used up, waits for memory and calls `render`
    /// again.
    pub async fn within_budget<T, F>(&self, render: impl Fn(MemoryPermit) -> F) -> Result<T, Problem>
    where
        F: Future<Output = Result<T, Problem>>,
    {
        match render(MemoryPermit::OnDemand(self.response_budget.clone())).await {
            Err(Problem::OverBudget(over_budget)) => {
                render(MemoryPermit::Reserved(self.response_budget.reserve_for(over_budget).await?)).await
            }
            result => result,
        }
    }

    /// Renders a value of about this size within the memory budget. `work` is the permit with which it was read, if there is
    /// one.
    pub async fn render_value<T: Send + Sync + 'static>(
        &self,
        value: T,
        size: usize,
        work: Option<WorkPermit>,
        write: fn(&T, usize) -> Result<Bytes, Problem>,
    ) -> Result<Bytes, Problem> {
        let (value, work) = (&Arc::new(value), &Mutex::new(work));
        let render = |memory: MemoryPermit| async move {
            let held = work.lock().take();
            let work = match held {
                Some(work) => work,
                None => self.work_permit(size).await?,
            };
            let value = value.clone();
            work.run(move || Ok::<_, Problem>(memory.charge(write(&value, size)?)?)).await?
        };
        self.within_budget(render).await
    }

    /// Acquires a permit to process `size` bytes. A few bytes are processed on the network thread, without waiting. Load the
    /// data after this returns, so that it is not held in memory while waiting.
    pub async fn work_permit(&self, size: usize) -> Result<WorkPermit, Problem> {
        if size <= SMALL_BYTES {
            return Ok(WorkPermit::Inline);
        }
        Ok(WorkPermit::acquire(&self.work_permits).await?)
    }

    /// Acquires a permit to read and render a long list of messages, before they are in memory. A short list needs one only
    /// if it turns out to be large.
    pub async fn list_permit(&self, limit: usize) -> Result<Option<WorkPermit>, Problem> {
        if limit <= MAX_MESSAGES_WITHOUT_PERMIT {
            return Ok(None);
        }
        Ok(Some(WorkPermit::acquire(&self.work_permits).await?))
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
