//! The APIs, one module for each provider. `aws` and `sigv4` are shared by both versions of Amazon SES.

mod aws;
mod azure;
mod brevo;
mod gmail;
mod graph;
mod mailersend;
mod mailgun;
mod mailjet;
mod mailtrap;
mod mandrill;
mod postal;
mod postmark;
mod resend;
mod resend_postmark;
mod scaleway;
mod sendgrid;
mod ses_v1;
mod ses_v2;
mod sigv4;
mod sparkpost;

use std::sync::Arc;

use restante_http_core::api::Api;

use crate::templates::TemplateStore;

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
