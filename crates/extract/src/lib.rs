//!
//! fail, and take time in proportion to the mail; what they give back is bounded. Following a link is not done here.

mod base;
mod links;
mod listed;
mod unsubscribe;
mod written;

pub use links::{Found, Kind, Link, MAX_LINKS, links};
pub use unsubscribe::{Method, Unsubscribe, Way, unsubscribe};
pub use written::Written;
