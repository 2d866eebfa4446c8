//! Leased runs: projects with a limited lifetime and a token of their own, so that test suites that use one server at the
//! same time do not see each other's mail.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use jiff::Timestamp;
use restante_auth::Scope;
use restante_auth::runs::Runs;
use restante_http_core::extractors::body;
use restante_http_core::extractors::parameters::{RequestGrant, path_values, require_scope};
use restante_http_core::extractors::request_context::BaseUrl;
use restante_http_core::response::problem::{Problem, internal_error};
use restante_http_core::response::success;
use restante_http_core::server::Server;
use restante_mail::duration;
use restante_mailroom::DeletionCause;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::v2::about::About;

/// The maximum size of a request body.
const MAX_BODY_BYTES: usize = 1024;
/// The lifetime of a run if the request does not choose it, and the longest one.
const DEFAULT_LIFETIME: &str = "1h";
const MAX_LIFETIME: Duration = Duration::from_hours(24);
/// The last label of the domain of a run. It is reserved for tests (RFC 2606).
const DOMAIN_SUFFIX: &str = "test";
/// The name that stands for the run whose token the request has.
const CURRENT: &str = "current";

/// A leased run: a project with a limited lifetime, and how to use it.
#[derive(Serialize, ToSchema)]
pub(crate) struct Run<'a> {
    project: &'a str,
    /// The token, which may read and write the mail of the project. Names of mailboxes in its requests are names in the project.
    token: &'a str,
    /// When the run ends.
    #[schema(format = DateTime)]
    expires: String,
    /// The domain of the run. Mail to all of its addresses is stored in the project.
    domain: &'a str,
    /// The pattern of the addresses whose mail is stored in the project.
    address: String,
    smtp: RunSmtp<'a>,
}

/// How to send mail of any recipients into the project.
#[derive(Serialize, ToSchema)]
struct RunSmtp<'a> {
    /// The host of the request.
    host: &'a str,
    /// Null if the server has no port for SMTP.
    #[schema(required)]
    port: Option<u16>,
    /// `off`, `starttls` (offered) or `implicit`.
    tls: &'static str,
    username: &'a str,
    password: &'a str,
}

/// The body of a request.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
struct NewRun {
    expires_in: String,
}

impl Default for NewRun {
    fn default() -> Self {
        Self { expires_in: DEFAULT_LIFETIME.to_owned() }
    }
}

/// Leases a run. Any client that may read and write mail can do this, because it gets access only to a new project.
pub(crate) async fn lease(
    State(server): State<Arc<Server>>,
    RequestGrant(grant): RequestGrant,
    Extension(about): Extension<Arc<About>>,
    BaseUrl(url): BaseUrl,
    request: Request,
) -> Result<Response, Problem> {
    require_scope(&grant, Scope::Read)?;
    let runs = runs(&server)?;
    // A list would be read as the members of the type in their order.
    let body: Map<String, Value> = body::read_json(request, MAX_BODY_BYTES).await?.unwrap_or_default();
    let new: NewRun = serde_json::from_value(body.into()).map_err(Problem::InvalidJson)?;
    let requested = Timestamp::now() + parse_lifetime(&new.expires_in)?;
    // A run that was leased with the token of another one ends with that.
    let outer = grant.home().and_then(|home| runs.find(home));
    let expires = outer.map_or(requested, |outer| outer.expires.min(requested));
    let (run, token) = runs.lease(expires).map_err(|_| internal_error(&"the random source has failed"))?;
    let project = run.project.as_str();
    let uri = url.parse::<Uri>().ok();
    let host = uri.as_ref().and_then(Uri::host).unwrap_or_default().trim_matches(['[', ']']);
    let domain = format!("{project}.{DOMAIN_SUFFIX}");
    let mut response = success::no_store_json(&Run {
        project,
        token: &token,
        expires: run.expires.to_string(),
        domain: &domain,
        address: format!("*@{domain}"),
        smtp: RunSmtp { host, port: about.smtp.port, tls: about.smtp.tls, username: project, password: &token },
    })?;
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}

/// Deletes all mail of a run. Its token stays valid until it expires, because nothing about it is stored.
pub(crate) async fn end(
    State(server): State<Arc<Server>>,
    RequestGrant(grant): RequestGrant,
    PathRun(name): PathRun,
) -> Result<Response, Problem> {
    let project = match name.as_str() {
        CURRENT => grant.home().cloned(),
        name => name.parse().ok(),
    };
    let runs = runs(&server)?;
    let run = project.and_then(|project| runs.find(&project)).ok_or(Problem::NoSuchRun)?;
    let covers_run = grant.home() == Some(&run.project) && grant.covers_home();
    if !covers_run && !grant.covers_all_mailboxes() {
        return Err(Problem::MailboxNotAllowed);
    }
    server.mailroom.purge_project(&run.project, DeletionCause::Request).await?;
    success::done()
}

/// The name of a run, from `{project}`.
pub(crate) struct PathRun(String);

impl FromRequestParts<Arc<Server>> for PathRun {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        path_values(parts, server).await.map(Self)
    }
}

fn runs(server: &Server) -> Result<&Runs, Problem> {
    server.settings.auth.as_ref().map(|auth| &**auth.authenticator.runs()).ok_or(Problem::NoSuchPath)
}

fn parse_lifetime(text: &str) -> Result<Duration, Problem> {
    let invalid = |reason: &str| Problem::invalid_member("expires-in", &reason);
    match duration::parse(text).map_err(|error| invalid(&error))? {
        time if time < Duration::from_secs(1) || time > MAX_LIFETIME => Err(invalid("must be 1s to 24h")),
        time => Ok(time),
    }
}
