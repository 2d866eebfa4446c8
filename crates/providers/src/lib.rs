//! The HTTP APIs of mail providers: messages that are sent with them are stored like those over SMTP. [`apis`] describes them.
//!
//! Each provider is a module. It maps a request to an [`provider::Action`], and what was sent to a response. It knows the
//! paths, the members and the errors of the provider, and nothing of the server.
//!
//! - `provider`: the description of a provider, and its API
//! - `exchange`: a request and its response; `transcript` records them
//! - `incoming`, `values`: requests, and the forms of their members; `reply`, `failure`: responses
//! - `email`, `person`: a message to send, and its composition; `stored`: a message that was sent
//! - `templates`, `rendering`: templates that clients have stored

mod email;
mod exchange;
mod failure;
mod incoming;
mod person;
mod provider;
mod rendering;
mod reply;
mod resend;
mod stored;
mod templates;
mod transcript;
mod values;

use std::sync::Arc;

use restante_http_core::api::Api;

use templates::TemplateStore;

/// Returns the API of each provider.
pub fn apis() -> Vec<Api> {
    let templates = Arc::new(TemplateStore::default());
    let all = [resend::api];
    all.into_iter().map(|api| api(&templates)).collect()
}
