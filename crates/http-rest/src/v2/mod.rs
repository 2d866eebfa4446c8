//! Version 2 of the REST API.
//!
//! - `about`: the description of the server for the web interface
//! - `mailboxes`: the list of mailboxes; `projects`: the list of projects; `usage`: the number and the size of messages
//! - `messages`, `message_search`, `message_changes`: messages as a whole, each with its copies in mailboxes
//! - `message`, `attachment_counts`: copies of messages as the web interface shows them
//! - `tags`: the tags of all messages, and changes of a tag
//! - `body`: the decoded body of a message
//! - `extract`: links, codes, unsubscribe addresses and parts of a message
//! - `html_check`: the features of HTML and CSS that a message uses, and their support in mail clients
//! - `batch`: changes of many messages of a mailbox; `inject`: delivery over HTTP
//! - `wait`: waiting for messages; `search`: searching
//! - `sessions`: SMTP sessions and their transcripts
//! - `chaos`: simulated failures of SMTP; `runs`: leased runs
//! - `relay`: release of messages, and the relay queue; `webhooks`: the webhook queue; `queue`: what both queues share

pub(crate) mod about;
pub(crate) mod attachment_counts;
pub(crate) mod batch;
pub(crate) mod body;
pub(crate) mod chaos;
pub(crate) mod extract;
pub(crate) mod html_check;
pub(crate) mod inject;
pub(crate) mod mailboxes;
pub(crate) mod message;
pub(crate) mod message_changes;
mod message_search;
pub(crate) mod messages;
pub(crate) mod projects;
pub(crate) mod queue;
pub(crate) mod relay;
pub(crate) mod runs;
pub(crate) mod search;
pub(crate) mod sessions;
pub(crate) mod tags;
pub(crate) mod usage;
pub(crate) mod wait;
pub(crate) mod webhooks;
