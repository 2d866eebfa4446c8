//! What tests want out of a mail: its links, the one-time codes in it, and the ways to unsubscribe.
//!
//! [`links()`], [`codes()`] and [`unsubscribe()`] each look at a parsed mail and answer with plain values. They do no I/O, never
//! fail, and take time in proportion to the mail; what they give back is bounded. Following a link is not done here.

mod base;
mod codes;
mod links;
mod listed;
mod unsubscribe;
mod written;

pub use codes::{Code, Seen, codes};
pub use links::{Found, Kind, Link, MAX_LINKS, links};
pub use unsubscribe::{Method, Unsubscribe, Way, unsubscribe};
pub use written::Written;
