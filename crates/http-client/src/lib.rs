//! The HTTP requests that leave this program: one blocking client with limits on time and size, and a say in which
//! addresses may be reached. What is sent, to whom and why is decided by those who use it.

mod client;
mod connectors;
mod insecure;
mod proxies;
mod public_address;
mod resolver;
mod target_url;

use std::fmt;
use std::time::Duration;

pub use client::{Download, HttpClient};
pub use connectors::TlsTrust;
pub use insecure::insecure_client_config;
pub use target_url::{has_private_host, parse_url};
pub use url::Url;

/// Sends requests; blocking, so never called on a network thread. May be shared by threads.
pub trait HttpService: Send + Sync + 'static {
    /// Sends a request and reads the answer, whatever its status.
    fn send(&self, request: &Request) -> Result<Response, HttpError>;

    /// Whether requests have to come from the thread that wants the answers, one after the other.
    fn requires_caller_thread(&self) -> bool {
        false
    }
}

/// Which way requests may go.
#[derive(Clone, Debug)]
pub struct ClientPolicy {
    /// Whether addresses that are not public may be reached: loopback, private, link-local, unique-local and the like.
    pub allow_private_addresses: bool,
    /// Whether requests go through the proxies that the environment names. A proxy looks up names itself, so what is said
    /// about addresses holds only without.
    pub use_proxies: bool,
    /// How many redirects are followed.
    pub max_redirects: u32,
    /// What of an answer matters.
    pub body_mode: BodyMode,
    /// Whether every request may arrive twice. When a connection breaks that was kept from an earlier request, nobody
    /// knows whether the other side has seen the request; it is then sent again at once, over a new connection. Methods for
    /// which that does not matter (RFC 9110 section 9.2.2) are sent again in any case.
    pub retry_all_methods: bool,
}

/// What of an answer matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyMode {
    /// All of it. A body of more bytes than this, or one that breaks off, is a failure.
    Full {
        /// The longest body.
        max_bytes: u64,
    },
    /// The head: once it is there, the request has been answered, whatever becomes of the body, which is thrown away.
    HeadOnly,
}

/// A request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// GET, POST and so on.
    pub method: String,
    /// An http or https URL.
    pub url: String,
    /// Header fields.
    pub headers: Vec<(String, String)>,
    /// What is sent along.
    pub body: Option<Vec<u8>>,
    /// How long it may take in all, from looking up the name to the last byte of the answer.
    pub timeout: Duration,
}

/// An answer.
#[derive(Clone, Debug, Default)]
pub struct Response {
    /// 200 and so on.
    pub status: u16,
    /// Header fields in their order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body; empty where only the head matters.
    pub body: Vec<u8>,
    /// The URL that has answered in the end.
    pub url: String,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpError {
    /// The request makes no sense: its URL, a header field or the method.
    InvalidRequest(String),
    /// The rules do not allow the address.
    ForbiddenAddress(String),
    /// It took too long.
    Timeout,
    /// The answer is longer than allowed.
    ResponseTooLarge,
    /// Name, connection, TLS or protocol failed.
    Network(String),
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidRequest(text) | Self::ForbiddenAddress(text) | Self::Network(text) => f.write_str(text),
            Self::Timeout => f.write_str("no answer in time"),
            Self::ResponseTooLarge => f.write_str("the answer is too long"),
        }
    }
}

impl std::error::Error for HttpError {}
