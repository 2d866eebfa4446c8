//! The HTTP APIs of mail providers: messages that are sent with them are stored like those over SMTP. [`apis`] describes them.
//!
//! Each provider is a module. It maps a request to an [`provider::Action`], and what was sent to a response. It knows the
//! paths, the members and the errors of the provider, and nothing of the server.
//!
//! - `provider`: the description of a provider, and its API
//! - `exchange`: a request and its response; `transcript` records them
//! - `incoming`, `multipart`, `values`, `variables`, `files`, `pairs`, `oauth`: requests, and the forms of their members; `reply`, `failure`: responses
//! - `email`, `person`: a message to send, and its composition; `raw`: complete messages; `stored`: a message that was sent
//! - `templates`, `versions`, `rendering`: templates that clients have stored

#![expect(clippy::unnecessary_wraps, reason = "all handlers have the same type")]
#![expect(clippy::struct_field_names, reason = "members have the names that the provider gives them")]

mod aws;
mod azure;
mod brevo;
mod email;
mod exchange;
mod failure;
mod files;
mod gmail;
mod graph;
mod incoming;
mod mailersend;
mod mailgun;
mod mailjet;
mod mailtrap;
mod mandrill;
mod multipart;
mod oauth;
mod pairs;
mod person;
mod postal;
mod postmark;
mod provider;
mod raw;
mod rendering;
mod reply;
mod resend;
mod resend_postmark;
mod scaleway;
mod sendgrid;
mod ses_v1;
mod ses_v2;
mod sigv4;
mod sparkpost;
mod stored;
mod templates;
mod transcript;
mod values;
mod variables;
mod versions;

use std::sync::Arc;

use restante_http_core::api::Api;

use templates::TemplateStore;

/// Returns the API of each provider.
pub fn apis() -> Vec<Api> {
    let templates = Arc::new(TemplateStore::default());
    let all = [
        azure::api,
        brevo::api,
        gmail::api,
        graph::api,
        mailersend::api,
        mailgun::api,
        mailjet::api,
        mailtrap::api,
        mandrill::api,
        postal::api,
        postmark::api,
        resend::api,
        resend_postmark::api,
        scaleway::api,
        sendgrid::api,
        ses_v1::api,
        ses_v2::api,
        sparkpost::api,
    ];
    all.into_iter().map(|api| api(&templates)).collect()
}
