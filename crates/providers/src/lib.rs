//! The HTTP APIs of mail providers: messages that are sent with them are stored like those over SMTP. [`apis()`] returns them.
//!
//! Each provider is a module of `apis`. It maps a request to an `Action`, and what was sent to a response. It knows the
//! paths, the members and the errors of the provider, and nothing of the server.
//!
//! - `provider`: the description of a provider, and its API
//! - `exchange`: a request and its response; `transcript` records them
//! - `incoming`, `multipart`, `values`, `variables`, `text_budget`, `files`, `pairs`, `oauth`: requests, and the forms of their members;
//!   `reply`, `failure`: responses
//! - `email`, `person`: a message to send, and its composition; `raw`: complete messages; `stored`: a message that was sent
//! - `templates`, `json_templates`, `versions`, `rendering`: templates that clients have stored

#![expect(clippy::unnecessary_wraps, reason = "all handlers have the same type")]
#![expect(clippy::struct_field_names, reason = "members have the names that the provider gives them")]

mod apis;
mod email;
mod exchange;
mod failure;
mod files;
mod incoming;
mod json_templates;
mod multipart;
mod oauth;
mod pairs;
mod person;
mod provider;
mod raw;
mod rendering;
mod reply;
mod stored;
mod templates;
mod text_budget;
mod transcript;
mod values;
mod variables;
mod versions;

pub use apis::apis;
