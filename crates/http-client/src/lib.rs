//! The HTTP requests that leave this program: one blocking client with limits on time and size, and a say in which
//! addresses may be reached. What is sent, to whom and why is decided by those who use it.

mod client;
mod connectors;
mod destination;
mod insecure;
mod proxies;
mod public;
mod resolver;

use std::fmt;
use std::time::Duration;

pub use client::{Courier, Download};
pub use connectors::Trust;
pub use destination::{destination, is_plainly_private};
pub use insecure::accept_any_certificate;
pub use url::Url;

/// Sends requests; blocking, so never called on a network thread. May be shared by threads.
pub trait Http: Send + Sync + 'static {
    /// Sends a request and reads the answer, whatever its status.
    fn send(&self, request: &Request) -> Result<Response, Failure>;

    /// Whether requests have to come from the thread that wants the answers, one after the other.
    fn one_by_one(&self) -> bool {
        false
    }
}

/// Which way requests may go.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Whether addresses that are not public may be reached: loopback, private, link-local, unique-local and the like.
    pub private_addresses: bool,
    /// Whether requests go through the proxies that the environment names. A proxy looks up names itself, so what is said
    /// about addresses holds only without.
    pub proxies: bool,
    /// How many redirects are followed.
    pub redirects: u32,
    /// What of an answer matters.
    pub answers: Answers,
    /// Whether every request may arrive twice. When a connection breaks that was kept from an earlier request, nobody
    /// knows whether the other side has seen the request; it is then sent again at once, over a new connection. Methods for
    /// which that does not matter (RFC 9110 section 9.2.2) are sent again in any case.
    pub repeatable: bool,
}

/// What of an answer matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// All of it. A body of more bytes than this, or one that breaks off, is a failure.
    Whole {
        /// The longest body.
        max: u64,
    },
    /// The head: once it is there, the request has been answered, whatever becomes of the body, which is thrown away.
    Head,
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
pub enum Failure {
    /// The request makes no sense: its URL, a header field or the method.
    Malformed(String),
    /// The rules do not allow the address.
    Forbidden(String),
    /// It took too long.
    Timeout,
    /// The answer is longer than allowed.
    TooLong,
    /// Name, connection, TLS or protocol failed.
    Broken(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(what) | Self::Forbidden(what) | Self::Broken(what) => f.write_str(what),
            Self::Timeout => f.write_str("no answer in time"),
            Self::TooLong => f.write_str("the answer is too long"),
        }
    }
}

impl std::error::Error for Failure {}
