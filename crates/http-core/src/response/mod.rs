//! Responses: problem documents, entity tags, content coding, and the JSON of messages.
//!
//! - `problem`: all errors of requests, as problem documents (RFC 9457)
//! - `success`: headers and bodies of successful responses, and redirects
//! - `etag`, `encoding`: conditional requests and content coding
//! - `json`: bodies with JSON; `message_json`: the JSON of messages
//! - `schema`: types without a schema of their own in the schemas of other types
//! - `links`: links to attachments; `inline_images`: the images in the HTML of a message
//! - `preview_policy`: the policies of documents with the HTML of a message
//! - `zip`: a writer for archives

pub mod encoding;
pub mod etag;
pub mod inert_html;
pub mod inline_images;
pub mod json;
pub mod links;
pub mod message_json;
pub mod preview_policy;
pub mod problem;
pub mod schema;
pub mod success;
pub mod viewer;
pub mod zip;
