//! The paths that the APIs of Resend and Postmark both have. The header of a request shows which one it is for.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::routing::MethodFilter;
use restante_http_core::api::Api;
use serde_json::json;

use super::postmark::{self, Postmark};
use super::resend::{self, Resend};
use crate::failure::Failure;
use crate::incoming::Incoming;
use crate::provider::{Action, Handler, Provider, Routes};
use crate::reply::Reply;
use crate::templates::{TemplateStore, Templates};

/// Either of the two providers.
struct Either;

impl Provider for Either {
    const NAME: &'static str = "resend and postmark";

    fn key(headers: &HeaderMap) -> Option<String> {
        Postmark::key(headers).or_else(|| Resend::key(headers))
    }

    /// Returns an error that both kinds of clients can read. It is used only if the provider is not known.
    fn failure(failure: &Failure) -> Reply {
        let mut reply = Resend::failure(failure);
        let mut members: serde_json::Map<_, _> = serde_json::from_slice(&reply.body).unwrap_or_default();
        members.insert("ErrorCode".to_owned(), postmark::error_code(failure).into());
        members.insert("Message".to_owned(), json!(failure.message));
        reply.body = serde_json::Value::Object(members).to_string().into();
        reply
    }
}

/// Returns the API.
pub(crate) fn api(templates: &Arc<TemplateStore>) -> Api {
    Routes::new::<Either>(templates)
        .get("/domains", |i, t| choose(i, t, resend::list_domains, postmark::list_domains))
        .post("/domains", |i, t| run::<Resend>(i, t, resend::create_domain))
        .get("/templates", |i, t| choose(i, t, resend::list_templates, postmark::list_templates))
        .post("/templates", |i, t| choose(i, t, resend::create_template, postmark::create_template))
        .get("/templates/{id}", |i, t| choose(i, t, resend::read_template, postmark::read_template))
        .on(MethodFilter::PATCH, "/templates/{id}", |i, t| run::<Resend>(i, t, resend::update_template))
        .on(MethodFilter::PUT, "/templates/{id}", |i, t| run::<Postmark>(i, t, postmark::update_template))
        .on(MethodFilter::DELETE, "/templates/{id}", |i, t| {
            choose(i, t, resend::delete_template, postmark::delete_template)
        })
        .api()
}

fn choose(
    incoming: &Incoming,
    templates: &Templates<'_>,
    resend: Handler,
    postmark: Handler,
) -> Result<Action, Failure> {
    if Postmark::key(&incoming.headers).is_some() {
        run::<Postmark>(incoming, templates, postmark)
    } else {
        run::<Resend>(incoming, templates, resend)
    }
}

/// Runs the handler of a provider with its templates. An error has the form of the provider.
fn run<P: Provider>(incoming: &Incoming, templates: &Templates<'_>, handler: Handler) -> Result<Action, Failure> {
    let result = handler(incoming, &templates.of(P::NAME));
    result.or_else(|failure| Ok(Action::Reply(P::failure(&failure))))
}
