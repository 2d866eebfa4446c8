//! A blocking HTTP client for outgoing requests, with limits on time and size and a policy for the addresses that may
//! be reached. The callers decide what is sent to which URL. The resolver and the TLS configurations also serve clients of
//! other protocols.

mod client;
mod client_config;
mod connectors;
mod insecure;
mod proxies;
mod public_address;
mod resolver;
mod target_url;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use client::{Download, HttpClient};
pub use client_config::{client_config_with_roots, system_client_config};
pub use connectors::TlsTrust;
pub use insecure::insecure_client_config;
pub use resolver::PolicyResolver;
pub use target_url::{has_private_host, parse_url};
pub use url::quirks::domain_to_unicode;
pub use url::{Host, Url, form_urlencoded};

/// Sends HTTP requests. Blocks, so it must not be called on a network thread. Can be shared by threads.
pub trait HttpService: Send + Sync + 'static {
    /// Sends a request and returns the response, with any status.
    fn send(&self, request: &Request) -> Result<Response, HttpError>;

    /// Returns whether requests must be sent by the thread that needs the responses, one after the other.
    fn requires_caller_thread(&self) -> bool {
        false
    }
}

/// The policy of a client.
#[derive(Clone, Debug)]
pub struct ClientPolicy {
    /// Whether addresses that are not public may be reached: loopback, private, link-local, unique-local and similar
    /// addresses.
    pub allow_private_addresses: bool,
    /// Whether requests use the proxies that the environment defines. A proxy resolves names itself, so
    /// `allow_private_addresses` has no effect on requests through a proxy.
    pub use_proxies: bool,
    /// The maximum number of redirects that are followed.
    pub max_redirects: u32,
    /// The part of a response that is read.
    pub body_mode: BodyMode,
    /// Whether requests of all methods are retried. If a reused connection breaks, it is unknown whether the server has
    /// processed the request. The request is then sent again at once over a new connection. Idempotent methods (RFC
    /// 9110 section 9.2.2) are always retried.
    pub retry_all_methods: bool,
}

/// The part of a response that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyMode {
    /// The whole response. A larger or incomplete body is an error.
    Full {
        /// The maximum size of the body, in bytes.
        max_bytes: u64,
    },
    /// Only the head. The request succeeds when the head has arrived. The body is discarded, and errors in it are
    /// ignored.
    HeadOnly,
}

/// An HTTP request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The method, such as GET or POST.
    pub method: String,
    /// An HTTP or HTTPS URL.
    pub url: String,
    /// The header fields.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<Vec<u8>>,
    /// The timeout of the whole request, from the name lookup to the last byte of the response.
    pub timeout: Duration,
}

/// An HTTP response.
#[derive(Clone, Debug, Default)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The header fields in their order, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body. Empty with [`BodyMode::HeadOnly`].
    pub body: Vec<u8>,
    /// The URL of the response, after all redirects.
    pub url: String,
}

/// The reason why there is no response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// The request is invalid: its URL, a header field or the method.
    #[error("{0}")]
    InvalidRequest(String),
    /// The policy does not allow the address.
    #[error("{0}")]
    ForbiddenAddress(String),
    /// The timeout has elapsed.
    #[error("no response in time")]
    Timeout,
    /// The response is larger than allowed.
    #[error("the response is too large")]
    ResponseTooLarge,
    /// No program accepts connections at the address.
    #[error("connection refused")]
    ConnectionRefused,
    /// The name lookup, the connection, TLS or the protocol failed.
    #[error("{0}")]
    Network(String),
}
