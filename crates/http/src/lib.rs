//! HTTP: the REST API, the attachment links, the web interface, and what a supervisor asks.
//!
//! [`router`] makes the service, [`serve_connection`] speaks it on one connection. A request goes through `guard` (is it
//! meant for us, may it write), `client` (where it comes from, by a proxy's word) and `access` (who asks), is turned into
//! values by `target`, answered by `rest`, `view`, `extract`, `mailboxes`, `search`, `sessions` or `attachment` from what the
//! mailroom says, once there is something to say in `wait` (by the `readings` of what came), taken in by `inject`, or followed up by `monitor` for as long as the
//! client listens, and leaves through `reply`, or through `problem` when something is wrong. `pages` and `assets` answer
//! with what the build has `packed`, `openapi` with a description of the API. `render` writes the JSON, `answers` remembers
//! it and `budget` bounds it. What pages of other origins may do is said by `cors`. `connection` speaks HTTP/1.1 and `http2`
//! HTTP/2, where a `ledger` says how fast each answer is taken. What many of these share stands below them: `request`, `paths`
//! and `terms`. Listening and TLS are not done here.

mod about;
mod access;
mod answers;
mod assets;
mod attachment;
mod attendance;
mod batch;
mod body;
mod budget;
mod client;
mod connection;
mod cors;
mod departure;
mod encoding;
mod etag;
mod extract;
mod greeting;
mod guard;
mod http2;
mod impatient;
mod inject;
mod json;
mod ledger;
mod links;
mod mailboxes;
mod monitor;
mod observe;
mod openapi;
mod packed;
mod pages;
mod paths;
mod probe;
mod problem;
mod readings;
mod render;
mod reply;
mod request;
mod rest;
mod search;
mod sessions;
mod status;
mod target;
mod terms;
#[cfg(test)]
mod tests;
mod view;
mod wait;

use std::collections::HashSet;
use std::fmt::{self, Display};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, get, post};
use bytes::Bytes;
use restante_access::Locks;
use restante_cache::Cache;
use restante_logging::LogThrottle;
use restante_mailroom::Mailroom;
use restante_mailroom::store_error_log::StoreErrorLog;
use restante_metrics::{ExtensionCounts, Metrics};
use restante_net::{Clients, Network, Readiness};
use restante_script::Host;
use restante_search::Search;
use restante_settings::{Hosts, Origins};
use restante_webhook::Webhooks;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use answers::Key;
use budget::{Allowance, Budget};
use etag::Tags;
use greeting::Greeting;
use openapi::Description;
use problem::Problem;
use readings::Readings;
use view::Counted;

pub use about::{About, Port};
pub use connection::{PROTOCOLS, Version, refuse_connection, refuse_plain, serve_connection};
pub use openapi::openapi;
pub use render::summary_record;
pub use status::Status;
pub use terms::{Peer, Tenure};

/// How much heavy work is done at the same time, on however many processors: rendering the worst of mails takes some
/// twenty times its size.
const MAX_HEAVY: usize = 4;
/// How long is waited for a turn at it. Who comes again later waits no longer, and holds nothing meanwhile.
const TURN_PATIENCE: Duration = Duration::from_secs(10);

/// What the HTTP service is told at its start.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// What stands before every path: empty, or `/x/y` without a slash at the end.
    pub base_path: String,
    /// The URL under which clients see the server, without a slash at the end.
    pub public_url: Option<String>,
    /// The host names that requests may be addressed to, beside loopback names and IP addresses.
    pub hosts: Hosts,
    /// The origins whose web pages may use the API, beside our own.
    pub cors: Option<Origins>,
    /// Proxies whose `X-Forwarded-*` headers are believed.
    pub trusted_proxies: Vec<Network>,
    /// Bytes of rendered answers to remember; 0 remembers none.
    pub cache_bytes: usize,
    /// How many may listen to the live monitor at the same time, unless that is not limited.
    pub max_monitors: Option<usize>,
    /// The largest message that is taken, in bytes, as over SMTP.
    pub max_message_bytes: usize,
    /// How many requests a client behind a trusted proxy may have open, beside its connections from elsewhere.
    pub clients: Arc<Clients>,
    /// Whether new work is welcome.
    pub readiness: Arc<Readiness>,
    /// What the server counts.
    pub metrics: Arc<Metrics>,
    /// What it tells about its configuration.
    pub status: Status,
    /// What it tells the web interface about itself.
    pub about: About,
    /// The parts of the server that are optional.
    pub extensions: Extensions,
    /// What keeps out those who are not known; without it everybody is let in.
    pub locks: Option<Arc<Locks>>,
    /// A file of HTML that greets on the home page, instead of the built-in text.
    pub greeting_file: Option<PathBuf>,
}

/// The optional parts of the server. By default there are none.
#[derive(Clone, Default)]
pub struct Extensions {
    /// The script.
    pub script: Option<Arc<Host>>,
    /// The webhooks.
    pub webhooks: Option<Arc<Webhooks>>,
    /// The search.
    pub search: Option<Arc<Search>>,
}

impl Extensions {
    /// Returns the name of the script's file, if a script is loaded.
    fn script_name(&self) -> Option<String> {
        let path = self.script.as_ref()?.loaded()?.path;
        Some(path.file_name()?.to_string_lossy().into_owned())
    }

    /// Returns the counters of all parts.
    fn counts(&self) -> ExtensionCounts {
        ExtensionCounts {
            script: self.script.as_ref().map(|script| script.counts()).unwrap_or_default(),
            webhooks: self.webhooks.as_ref().map(|webhooks| webhooks.counts()).unwrap_or_default(),
            search: self.search.as_ref().map(|search| search.counts()),
        }
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extensions").field("script", &self.script_name()).finish_non_exhaustive()
    }
}

impl Settings {
    /// Whether what a peer says about its clients is believed. It must be at the other end itself: the client that a
    /// PROXY header names says in its requests what it likes.
    fn trusts(&self, peer: Peer) -> bool {
        peer.via.is_some_and(|ip| self.is_proxy(ip))
    }

    /// What links start with that are for a page of this server: they say the same whatever a client calls it.
    fn root(&self) -> &str {
        self.public_url.as_deref().unwrap_or(&self.base_path)
    }

    /// The path of the root as browsers see it: empty, or without a slash at the end.
    fn public_path(&self) -> &str {
        let Some((_, rest)) = self.public_url.as_deref().and_then(|url| url.split_once("://")) else {
            return &self.base_path;
        };
        rest.find('/').map_or("", |at| &rest[at..])
    }

    fn is_proxy(&self, ip: IpAddr) -> bool {
        self.trusted_proxies.iter().any(|network| network.contains(ip))
    }
}

/// The whole service. It answers under the base path and at the root, because some clients drop the base path.
pub fn router(mailroom: Arc<Mailroom>, settings: Settings) -> Router {
    routed(Arc::new(Server::new(mailroom, settings)))
}

fn routed(server: Arc<Server>) -> Router {
    let base = server.settings.base_path.as_str();
    let mut routes = Routes::default();
    if !base.is_empty() {
        routes = below(base, routes.route(base, get(pages::to_home)));
    }
    // Robots look at the root of a host only (RFC 9309 section 2.3), and so do browsers for an icon.
    let routes = below("", routes).route(paths::ROBOTS, get(pages::robots)).route(paths::ICON, get(pages::icon));
    let service = routes
        .router
        .fallback(async || Problem::NoSuchPath)
        .method_not_allowed_fallback(async || Problem::MethodNotAllowed)
        .layer(from_fn_with_state(server.clone(), guard::admit));
    let service = match server.settings.cors {
        // Outside of the door: a browser asks without credentials whether it may ask with them.
        Some(_) => service.layer(from_fn_with_state(server.clone(), cors::share)),
        None => service,
    };
    service.with_state(server)
}

/// Routes, of which the first one has a path that two of them want: a base path can have the name of anything that we
/// serve, and so can what is below it.
#[derive(Default)]
struct Routes {
    router: Router<Arc<Server>>,
    taken: HashSet<String>,
}

impl Routes {
    fn route(mut self, path: &str, answer: MethodRouter<Arc<Server>>) -> Self {
        if self.taken.insert(path.to_owned()) {
            self.router = self.router.route(path, answer);
        }
        self
    }
}

/// Adds everything that is below the root, or below a base path.
fn below(base: &str, routes: Routes) -> Routes {
    let path = |path: &str| format!("{base}{path}");
    routes
        .route(&path("/"), get(pages::at_root))
        .route(&path("/m/{name}"), get(pages::below))
        .route(&path("/m/{name}/{id}"), get(pages::two_below))
        .route(&path("/monitor"), get(pages::at_root))
        .route(&path("/status"), get(pages::at_root))
        .route(&path("/search"), get(pages::at_root))
        .route(&path("/sessions"), get(pages::at_root))
        .route(&path("/m/"), get(pages::up))
        .route(&path("/m/{name}/"), get(pages::without_slash))
        .route(&path("/m/{name}/{id}/"), get(pages::without_slash))
        .route(&path("/monitor/"), get(pages::without_slash))
        .route(&path("/status/"), get(pages::without_slash))
        .route(&path("/search/"), get(pages::without_slash))
        .route(&path("/sessions/"), get(pages::without_slash))
        .route(&path(paths::ASSETS), get(assets::asset))
        .route(&path(paths::LOGIN), get(access::form).post(access::log_in))
        .route(&path(paths::LOGOUT), post(access::log_out))
        .route(&path("/api/v1/mailbox/{name}"), get(rest::list).delete(rest::purge))
        .route(&path("/api/v1/mailbox/{name}/{id}"), get(rest::message).patch(rest::mark).delete(rest::remove))
        // One of the clients in use deletes a message by the path of its source.
        .route(&path("/api/v1/mailbox/{name}/{id}/source"), get(rest::source).delete(rest::remove))
        .route(&path("/api/v1/monitor/messages"), get(monitor::summaries))
        .route(&path("/api/v1/monitor/messages/{name}"), get(monitor::summaries))
        .route(&path("/api/v2/mailboxes"), get(mailboxes::list).delete(mailboxes::purge))
        .route(&path("/api/v2/mailbox/{name}"), post(inject::inject))
        .route(&path("/api/v2/mailbox/{name}/wait"), get(wait::wait))
        .route(&path("/api/v2/mailbox/{name}/attachments"), get(view::counts))
        .route(&path("/api/v2/mailbox/{name}/{id}"), get(view::details))
        .route(&path("/api/v2/mailbox/{name}/{id}/links"), get(extract::links))
        .route(&path("/api/v2/mailbox/{name}/{id}/codes"), get(extract::codes))
        .route(&path("/api/v2/mailbox/{name}/{id}/unsubscribe"), get(extract::unsubscribe))
        .route(&path("/api/v2/mailbox/{name}/{id}/parts"), get(extract::parts))
        .route(&path("/api/v2/mailbox/{name}/{id}/parts/{index}"), get(attachment::part))
        .route(&path("/api/v2/mailbox/{name}/delete"), post(batch::delete))
        .route(&path("/api/v2/mailbox/{name}/mark"), post(batch::mark))
        .route(&path("/api/v2/search"), get(search::search))
        .route(&path("/api/v2/mailbox/{name}/{id}/transcript"), get(sessions::transcript))
        .route(&path("/api/v2/sessions"), get(sessions::list))
        .route(&path("/api/v2/sessions/{id}"), get(sessions::session))
        .route(&path("/api/v2/monitor/messages"), get(monitor::changes))
        .route(&path("/api/v2/monitor/messages/{name}"), get(monitor::changes))
        .route(&path("/api/v2/events"), get(monitor::events))
        .route(&path("/api/v2/events/{name}"), get(monitor::events))
        .route(&path(openapi::DOCUMENT), get(openapi::document))
        .route(&path(paths::DOCS), get(openapi::docs))
        .route(&path("/mailbox/dattach/{name}/{id}/{index}/{*file}"), get(attachment::download))
        .route(&path("/mailbox/vattach/{name}/{id}/{index}/{*file}"), get(attachment::view))
        .route(&path("/serve/mailbox/{name}/{id}"), get(view::compat))
        .route(&path("/serve/mailbox/{name}/{id}/html"), get(view::preview))
        .route(&path("/serve/mailbox/{name}/{id}/source"), get(rest::source))
        .route(&path("/serve/mailbox/{name}/{id}/attach/{index}/{*file}"), get(attachment::view))
        .route(&path(greeting::GREETING), get(greeting::greeting))
        .route(&path(status::STATUS), get(status::status))
        .route(&path(about::ABOUT), get(about::about))
        .route(&path(paths::LIVE), get(probe::live))
        .route(&path(paths::READY), get(probe::ready))
        .route(&path(observe::METRICS), get(observe::metrics))
        .route(&path(observe::VARS), get(observe::vars))
}

/// What all requests share.
struct Server {
    mailroom: Arc<Mailroom>,
    settings: Settings,
    answers: Arc<Cache<Key, Bytes>>,
    counted: Counted,
    readings: Readings,
    budget: Budget,
    tags: Tags,
    greeting: Arc<Greeting>,
    description: Description,
    /// Bounds the heavy work that is being done, and with it the memory that takes.
    heavy: Arc<Semaphore>,
    /// Bounds the writing down of metrics, which must not wait for the work of others.
    scrapes: Arc<Semaphore>,
    /// Bounds the listings that read many mailboxes to find the few that a client may see.
    scans: Arc<Semaphore>,
    /// The places of those who listen to the live monitor, where these are limited.
    monitors: Option<Arc<Semaphore>>,
    /// The places of those who wait for mail.
    waits: Semaphore,
    /// The memory for mail that is being handed in. Answers have their own: who dawdles with the one must not stop the other.
    uploads: Arc<restante_net::Budget>,
    told: Told,
}

/// When the operator was told that requests were refused because there are too many of them, or because the store failed.
#[derive(Default)]
struct Told {
    requests: LogThrottle,
    monitors: LogThrottle,
    waits: LogThrottle,
    store_errors: StoreErrorLog,
}

/// The right to work on something now: here when that is quick, otherwise away from the network threads.
enum Turn {
    Here,
    Away(OwnedSemaphorePermit),
}

impl Server {
    fn new(mailroom: Arc<Mailroom>, settings: Settings) -> Self {
        Self {
            mailroom,
            answers: Arc::new(Cache::new(settings.cache_bytes)),
            counted: Counted::new(),
            readings: Readings::new(),
            budget: Budget::beside_cache(settings.cache_bytes),
            tags: Tags::new(),
            greeting: Arc::new(Greeting::new(settings.greeting_file.clone())),
            description: Description::default(),
            heavy: Arc::new(Semaphore::new(available_parallelism().map_or(1, usize::from).min(MAX_HEAVY))),
            scrapes: Arc::new(Semaphore::new(1)),
            scans: Arc::new(Semaphore::new(1)),
            monitors: settings.max_monitors.map(|most| Arc::new(Semaphore::new(most))),
            waits: Semaphore::new(wait::MOST),
            uploads: restante_net::Budget::new(inject::UNDER_WAY),
            told: Told::default(),
            settings,
        }
    }

    /// Makes an answer for which there is room. When there is none at first, `make` is called again once there is.
    async fn within_budget<T, F>(&self, make: impl Fn(Allowance) -> F) -> Result<T, Problem>
    where
        F: Future<Output = Result<T, Problem>>,
    {
        match make(Allowance::Rest(self.budget.clone())).await {
            Err(Problem::Busy(excess)) => make(Allowance::Granted(self.budget.room_for(excess).await?)).await,
            answer => answer,
        }
    }

    /// Waits for the turn to work on so many bytes, with which one is quickly done when they are few. What is worked on is
    /// better fetched afterwards than held meanwhile.
    async fn turn(&self, size: usize, quick: usize) -> Result<Turn, Problem> {
        if size <= quick {
            return Ok(Turn::Here);
        }
        Turn::away(&self.heavy).await
    }
}

impl Turn {
    /// Waits a while for the turn to do heavy work, of those that this semaphore has.
    async fn away(turns: &Arc<Semaphore>) -> Result<Self, Problem> {
        timeout(TURN_PATIENCE, Self::in_time(turns)).await.unwrap_or(Err(Problem::Crowded))
    }

    /// Waits for such a turn, however long it takes.
    async fn in_time(turns: &Arc<Semaphore>) -> Result<Self, Problem> {
        turns.clone().acquire_owned().await.map(Self::Away).map_err(|error| fault(&error))
    }

    /// Does the work.
    async fn work<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
        let permit = match self {
            Self::Here => return Ok(work()),
            Self::Away(permit) => permit,
        };
        // The permit goes with the work, which does not end when the client goes away and nobody waits for it any more.
        let work = move || {
            let _permit = permit;
            work()
        };
        spawn_blocking(work).await.map_err(|error| fault(&error))
    }
}

fn fault(error: &dyn Display) -> Problem {
    Problem::Fault(error.to_string())
}
