//! Extraction of the data that tests need from a message: links, one-time codes, and ways to unsubscribe.
//!
//! [`links()`], [`codes()`] and [`unsubscribe()`] each analyze a parsed message and return plain values. They do no I/O
//! and never fail. Their time is linear in the size of the message, and their results are bounded. Links are not
//! followed. The values serialize as the HTTP API returns them.

mod codes;
mod link;
mod links;
mod list_header;
mod main_link;
mod relative_url;
#[cfg(test)]
mod tests;
mod text_url;
mod unsubscribe;

pub use codes::{Code, CodeSource, codes, otp_token_defects};
pub use link::{Link, LinkScheme, LinkSource};
pub use links::{MAX_LINKS, links};
pub use text_url::TextUrl;
pub use unsubscribe::{Unsubscribe, UnsubscribeLink, UnsubscribeMethod, unsubscribe};
