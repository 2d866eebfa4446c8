//! The paths that the APIs of Resend and Postmark both have. The header of a request shows which one it is for.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::routing::MethodFilter;
use restante_http_core::api::Api;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::failure::{Failure, FailureKind};
use crate::incoming::Incoming;
use crate::postmark::{self, Postmark};
use crate::provider::{Action, Handler, Provider, Routes};
use crate::reply::Reply;
use crate::resend::{self, Resend};
use crate::templates::{TEMPLATE, Template, TemplateStore, Templates};
use crate::values::merge_objects;

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

/// Stores a template with the members of these JSON objects. Those of later ones have precedence. `T` has their types, and `check`
/// can refuse them.
pub(crate) fn put<T: DeserializeOwned>(
    templates: &Templates<'_>,
    id: String,
    name_member: &str,
    objects: &[&str],
    check: fn(&T) -> Result<(), Failure>,
) -> Result<Template, Failure> {
    #[derive(Deserialize)]
    struct Names {
        #[serde(alias = "Name")]
        name: Option<String>,
        #[serde(alias = "Alias")]
        alias: Option<String>,
    }

    let extra = merge_objects("template", objects.iter().copied())?;
    let Names { name, alias } = serde_json::from_str(&extra).map_err(Failure::malformed)?;
    let name = name.filter(|name| !name.is_empty()).ok_or_else(|| Failure::missing(name_member))?;
    let template = Template { id, alias, name, extra, ..Template::default() };
    check(&stored_members(&template)?)?;
    let other = template.alias.as_deref().and_then(|alias| templates.find(alias));
    if other.is_some_and(|other| other.id != template.id) {
        return Err(Failure::new(FailureKind::Exists, "Another template has this alias."));
    }
    templates.put(template.clone())?;
    Ok(template)
}

/// Returns the members that are stored with a template.
pub(crate) fn stored_members<T: DeserializeOwned>(template: &Template) -> Result<T, Failure> {
    serde_json::from_str(&template.extra).map_err(Failure::malformed)
}

/// Returns the template that a path names.
pub(crate) fn find(incoming: &Incoming, templates: &Templates<'_>) -> Result<Arc<Template>, Failure> {
    let not_found = || Failure::new(FailureKind::NotFound, "Template not found");
    let failure = || Failure { field: Some(TEMPLATE.to_owned()), ..not_found() };
    templates.find(incoming.path_value("id")).ok_or_else(failure)
}

/// Returns the body of a request as text.
pub(crate) fn body(incoming: &Incoming) -> Result<&str, Failure> {
    str::from_utf8(&incoming.body).map_err(Failure::malformed)
}
