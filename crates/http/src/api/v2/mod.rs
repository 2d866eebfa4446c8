//! Version 2 of the REST API.
//!
//! - `mailboxes`: the list of mailboxes
//! - `messages`, `message_search`: messages as a whole, each with its copies in mailboxes
//! - `message`, `attachment_counts`: copies of messages as the web interface shows them
//! - `extract`: links, codes, unsubscribe addresses and parts of a message
//! - `batch`: changes of many messages; `inject`: delivery over HTTP
//! - `wait`: waiting for messages; `search`: searching
//! - `sessions`: SMTP sessions and their transcripts

pub(crate) mod attachment_counts;
pub(crate) mod batch;
pub(crate) mod extract;
pub(crate) mod inject;
pub(crate) mod mailboxes;
pub(crate) mod message;
mod message_search;
pub(crate) mod messages;
pub(crate) mod search;
pub(crate) mod sessions;
pub(crate) mod wait;
