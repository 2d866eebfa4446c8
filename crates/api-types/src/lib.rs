//! The types of JSON answers that more than one crate needs, and the form in which JSON is written.
//!
//! Each type is serialised by the server, deserialised by the command line, and described in OpenAPI: its doc comments are the
//! descriptions there. Types that only the HTTP server needs are next to its handlers. Deserialising is lenient: fields that other
//! servers leave out have defaults.

pub mod json;
mod mailbox;
mod message;
pub mod patterns;
mod time;

pub use mailbox::{Mailbox, Newest};
pub use message::{FoundMessage, Identifier, MessageRecord, SnippetFragment};
pub use time::Time;
