//! What tests want out of a mail: its links, the one-time codes in it, and the ways to unsubscribe.
//!
//! [`links()`], [`codes()`] and [`unsubscribe()`] each look at a parsed mail and answer with plain values. They do no I/O, never
//! fail, and take time in proportion to the mail; what they give back is bounded. Following a link is not done here.

mod codes;
mod links;
mod list_header;
mod relative_url;
mod text_url;
mod unsubscribe;

pub use codes::{Code, CodeSource, codes};
pub use links::{Link, LinkScheme, LinkSource, MAX_LINKS, links};
pub use text_url::TextUrl;
pub use unsubscribe::{Unsubscribe, UnsubscribeLink, UnsubscribeMethod, unsubscribe};
