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
//! - `embedded_assets`: the files of the web interface

pub(crate) mod embedded_assets;
pub(crate) mod encoding;
pub(crate) mod etag;
pub(crate) mod inert_html;
pub(crate) mod inline_images;
pub(crate) mod json;
pub(crate) mod links;
pub(crate) mod message_json;
pub(crate) mod preview_policy;
pub(crate) mod problem;
pub(crate) mod schema;
pub(crate) mod success;
pub(crate) mod viewer;
pub(crate) mod zip;
