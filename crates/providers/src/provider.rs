//! The description of a provider, and its API.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use restante_http_core::api::{Api, Route};
use restante_http_core::credentials::Credentials;
use restante_http_core::response::problem::Problem;
use restante_http_core::server::{Server, SigningKey};
use restante_mail::message::MessageId;
use serde::Serialize;

use crate::email::{Email, Sent};
use crate::exchange;
use crate::failure::Failure;
use crate::incoming::Incoming;
use crate::reply::Reply;
use crate::stored::StoredEmail;
use crate::templates::{TemplateStore, Templates};

/// A provider: what is common to all of its requests.
pub(crate) trait Provider: 'static {
    /// The name in error messages.
    const NAME: &'static str;
    /// Whether some requests have their key in the body. See [`Provider::body_key`].
    const HAS_BODY_KEY: bool = false;
    /// Whether the key in the header is the id of a key that has signed the request. See [`Provider::verify`].
    const IS_KEY_SIGNING: bool = false;

    /// Returns the API key in the header of a request.
    fn key(headers: &HeaderMap) -> Option<String>;

    /// Returns the API key in the body of a request whose header has none.
    fn body_key(_: &Incoming) -> Option<String> {
        None
    }

    /// Checks the signature of a request. Returns the id of the key that has signed it, or `None` if signatures are not verified:
    /// the provider has none, or there are no keys.
    fn verify(_: &Incoming, _: &[SigningKey]) -> Result<Option<String>, Failure> {
        Ok(None)
    }

    /// Returns the response to a request that fails.
    fn failure(failure: &Failure) -> Reply;
}

/// Decides what a request asks for. It must not do anything else than read the request, and change templates.
pub(crate) type Handler = fn(&Incoming, &Templates<'_>) -> Result<Action, Failure>;

/// What a request asks for.
pub(crate) enum Action {
    /// Nothing: the response is known.
    Reply(Reply),
    /// Send all messages, or none if one of them is refused.
    Send(Vec<Email>, fn(&Incoming, &[Sent]) -> Reply),
    /// Send each message, independently of the others.
    SendEach(Vec<Result<Email, Failure>>, fn(&Incoming, &[Result<Sent, Failure>]) -> Reply),
    /// Read a message that was sent.
    Read(MessageId, fn(&StoredEmail) -> Reply),
}

impl Action {
    /// Responds with a value as JSON.
    pub(crate) fn json(body: &impl Serialize) -> Result<Self, Failure> {
        Ok(Self::Reply(Reply::json(StatusCode::OK, body)))
    }
}

/// The functions of a [`Provider`].
#[derive(Clone, Copy)]
pub(crate) struct Description {
    pub(crate) name: &'static str,
    pub(crate) key: fn(&HeaderMap) -> Option<String>,
    pub(crate) body_key: Option<fn(&Incoming) -> Option<String>>,
    pub(crate) verify: fn(&Incoming, &[SigningKey]) -> Result<Option<String>, Failure>,
    pub(crate) failure: fn(&Failure) -> Reply,
}

/// The routes of a provider.
pub(crate) struct Routes<'t> {
    provider: Description,
    templates: &'t Arc<TemplateStore>,
    api: Api,
}

impl<'t> Routes<'t> {
    /// Creates the API of a provider without routes.
    pub(crate) fn new<P: Provider>(templates: &'t Arc<TemplateStore>) -> Self {
        let provider = Description {
            name: P::NAME,
            key: P::key,
            body_key: P::HAS_BODY_KEY.then_some(P::body_key as fn(&Incoming) -> Option<String>),
            verify: P::verify,
            failure: P::failure,
        };
        let api = Api {
            allows_trailing_slash: true,
            credentials: credentials::<P>,
            error_form: error_form::<P>,
            ..Api::new(P::NAME, Vec::new())
        };
        Self { provider, templates, api }
    }

    /// Adds the handler of POST requests.
    pub(crate) fn post(self, path: &str, handler: Handler) -> Self {
        self.on(MethodFilter::POST, path, handler)
    }

    /// Adds the handler of GET requests.
    pub(crate) fn get(self, path: &str, handler: Handler) -> Self {
        self.on(MethodFilter::GET, path, handler)
    }

    /// Adds the handler of requests with other methods.
    pub(crate) fn on(mut self, methods: MethodFilter, path: &str, handler: Handler) -> Self {
        let added = self.handle(methods, handler);
        match self.api.routes.iter_mut().find(|(known, _)| known == path) {
            Some((_, handlers)) => *handlers = std::mem::take(handlers).merge(added),
            None => self.api.routes.push((path.to_owned(), added)),
        }
        self
    }

    /// Adds the handler of POST requests to a path that another API of the listener may have.
    pub(crate) fn post_optional(mut self, path: &str, handler: Handler) -> Self {
        let route: Route = (path.to_owned(), self.handle(MethodFilter::POST, handler));
        self.api.optional_routes.push(route);
        self
    }

    /// Returns the API.
    pub(crate) fn api(self) -> Api {
        self.api
    }

    fn handle(&self, methods: MethodFilter, handler: Handler) -> MethodRouter<Arc<Server>> {
        let (provider, templates) = (self.provider, self.templates.clone());
        on(methods, async move |State(server): State<Arc<Server>>, request: Request| {
            exchange::respond(server, templates, provider, handler, request).await
        })
    }
}

/// Returns the key of a request as a token.
fn credentials<P: Provider>(_: &str, request: &Request) -> Credentials {
    match P::key(request.headers()) {
        Some(id) if P::IS_KEY_SIGNING => Credentials::SigningKey(id),
        Some(key) => Credentials::Token(key),
        None if P::HAS_BODY_KEY => Credentials::InBody,
        None => Credentials::from_headers(request),
    }
}

/// Writes a problem as the provider reports it.
#[expect(clippy::needless_pass_by_value, reason = "the type that an API needs")]
fn error_form<P: Provider>(problem: &Problem, response: Response) -> Response {
    let mut reply = P::failure(&Failure::from(problem)).into_response();
    if response.status() == StatusCode::METHOD_NOT_ALLOWED {
        *reply.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    }
    for name in [header::RETRY_AFTER, header::WWW_AUTHENTICATE, header::ALLOW] {
        if let Some(value) = response.headers().get(&name) {
            reply.headers_mut().insert(name, value.clone());
        }
    }
    *reply.extensions_mut() = response.extensions().clone();
    reply
}

/// Returns the token of the header field Authorization.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<String> {
    match Credentials::from_authorization(headers)? {
        Credentials::Token(token) => Some(token),
        _ => None,
    }
}

/// Returns the user name and the password of the header field Authorization.
pub(crate) fn basic(headers: &HeaderMap) -> Option<(String, String)> {
    match Credentials::from_authorization(headers)? {
        Credentials::Basic { user, password } => Some((user, password)),
        _ => None,
    }
}

/// Returns the value of a header field with a key.
pub(crate) fn header_key(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?.trim();
    (!value.is_empty()).then(|| value.to_owned())
}
