//! A request and its response: reads the request, lets the provider decide, composes and delivers messages, and records the
//! transcript.

use std::sync::Arc;

use axum::extract::{FromRequestParts as _, Request};
use axum::http::request::Parts;
use axum::http::{Uri, header};
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;
use restante_auth::{Grant, Scope};
use restante_http_connection::clean_path::path_and_query;
use restante_http_connection::context::Peer;
use restante_http_core::extractors::body;
use restante_http_core::extractors::cancellation::Cancellation;
use restante_http_core::extractors::late_token::check_late_token;
use restante_http_core::extractors::parameters::{path_values, require_scope};
use restante_http_core::extractors::request_context::{RequestHost, client_path};
use restante_http_core::response::problem::Problem;
use restante_http_core::server::{Server, Settings};
use restante_http_core::uploads::{CheckedUpload, JSON_SIZE_FACTOR, Upload};
use restante_mail::message::Summary;
use restante_net::Reservation;

use crate::email::{Composed, Content, Email, Sent};
use crate::failure::{Failure, FailureKind};
use crate::incoming::Incoming;
use crate::provider::{Action, Description, Handler};
use crate::reply::Reply;
use crate::stored::StoredEmail;
use crate::templates::TemplateStore;
use crate::text_budget::MAX_TEXT_BYTES;
use crate::transcript::{Delivered, Transcript};

/// The maximum number of characters of a key that are shown.
const SHOWN_KEY_CHARS: usize = 6;

/// Why a request fails: for a reason that the provider knows, or that all APIs have. The middleware writes the latter in the
/// form of the provider, and logs it.
enum Error {
    Failure(Failure),
    Problem(Problem),
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl<T: Into<Problem>> From<T> for Error {
    fn from(problem: T) -> Self {
        Self::Problem(problem.into())
    }
}

impl Error {
    fn into_failure(self) -> Failure {
        match self {
            Self::Failure(failure) => failure,
            Self::Problem(problem) => Failure::from(&problem),
        }
    }
}

/// A request with its grant.
struct Exchange {
    server: Arc<Server>,
    templates: Arc<TemplateStore>,
    provider: Description,
    incoming: Arc<Incoming>,
    grant: Grant,
    /// The API key.
    key: Option<String>,
    peer: Peer,
}

/// Responds to a request.
pub(crate) async fn respond(
    server: Arc<Server>,
    templates: Arc<TemplateStore>,
    provider: Description,
    handler: Handler,
    request: Request,
) -> Response {
    let mut transcript = Transcript::start(server.mailroom.journal(), &request);
    let result = process(server, templates, provider, handler, request, &mut transcript).await;
    let (response, recorded, is_denied) = match result {
        Ok(reply) => (None, reply, false),
        Err(Error::Failure(failure)) => (None, (provider.failure)(&failure), failure.kind == FailureKind::Unauthorized),
        Err(Error::Problem(problem)) => {
            let failure = Failure::from(&problem);
            let is_denied = failure.kind == FailureKind::Unauthorized;
            (Some(problem.into_response()), (provider.failure)(&failure), is_denied)
        }
    };
    // What clients without a valid key send is not recorded, so that it does not replace other sessions.
    if !is_denied {
        transcript.finish(&recorded);
    }
    response.unwrap_or_else(|| recorded.into_response())
}

async fn process(
    server: Arc<Server>,
    templates: Arc<TemplateStore>,
    provider: Description,
    handler: Handler,
    request: Request,
    transcript: &mut Transcript,
) -> Result<Reply, Error> {
    let (mut parts, body) = request.into_parts();
    let mut reservation = server.uploads.budget.reservation();
    let path = path_values(&mut parts, &server).await?;
    let limit = server.settings.max_message_bytes.saturating_mul(JSON_SIZE_FACTOR);
    let body = body::read_upload(&parts.headers, body, limit, &mut reservation).await?;
    parts.uri = client_uri(&server.settings, &parts);
    let incoming = Arc::new(Incoming::new(&parts, path, body));
    let (key, signing_key) = find_keys(&server, provider, &incoming).await?;
    let may_have_key =
        provider.body_key.is_some() && key.is_none() && incoming.header(header::AUTHORIZATION.as_str()).is_none();
    transcript.record_request(&incoming, key.as_deref(), may_have_key);
    let signing_key = signing_key?;
    let is_signed = signing_key.is_some();
    let key = signing_key.or(key);
    let grant = grant(&server, &parts, key.as_deref(), is_signed).await?;
    require_scope(&grant, if parts.method.is_safe() { Scope::Read } else { Scope::Write })?;
    // A large request may take a while to arrive.
    let Ok(cancellation) = Cancellation::from_request_parts(&mut parts, &()).await;
    cancellation.check_credentials().await?;
    let peer = parts.extensions.get().copied().unwrap_or_default();
    let exchange = Exchange { server, templates, provider, incoming, grant, key, peer };
    transcript.set_login(exchange.login());
    exchange.run(handler, reservation, transcript).await
}

/// Returns the URI of a request as its client sees it. Signatures cover it.
fn client_uri(settings: &Settings, parts: &Parts) -> Uri {
    let path = path_and_query(&parts.uri, &client_path(settings, &parts.extensions, parts.uri.path()));
    let uri = Uri::builder().path_and_query(path);
    let uri = match parts.extensions.get::<RequestHost>() {
        Some(RequestHost { scheme, authority }) => uri.scheme(*scheme).authority(&**authority),
        None => uri,
    };
    uri.build().unwrap_or_else(|_| parts.uri.clone())
}

/// Returns the API key of a request, and the id of the key that has signed it. Both can depend on the whole body.
async fn find_keys(
    server: &Arc<Server>,
    provider: Description,
    incoming: &Arc<Incoming>,
) -> Result<(Option<String>, Result<Option<String>, Failure>), Problem> {
    let work = server.renderer.work_permit(incoming.body.len()).await?;
    let (server, incoming) = (server.clone(), incoming.clone());
    let find = move || {
        let key = (provider.key)(&incoming.headers).or_else(|| provider.body_key.and_then(|key| key(&incoming)));
        (key, (provider.verify)(&incoming, &server.settings.signing_keys))
    };
    Ok(work.run(find).await?)
}

/// Returns the grant of a request: that of the middleware, or that of a key which was found later.
async fn grant(server: &Server, parts: &Parts, key: Option<&str>, is_signed: bool) -> Result<Grant, Error> {
    match parts.extensions.get::<Grant>() {
        Some(grant) => Ok(grant.clone()),
        None => Ok(check_late_token(server, &parts.extensions, key, is_signed).await?),
    }
}

impl Exchange {
    /// Returns the name that messages show as login: that of the token, or the beginning of the key.
    fn login(&self) -> Option<String> {
        self.grant.name().map(str::to_owned).or_else(|| self.key.as_deref().map(shown_key))
    }

    async fn run(
        self,
        handler: Handler,
        reservation: Reservation,
        transcript: &mut Transcript,
    ) -> Result<Reply, Error> {
        let work = self.server.renderer.work_permit(self.work_size()).await?;
        let (incoming, templates) = (self.incoming.clone(), self.templates.clone());
        let (home, name) = (self.grant.home().cloned(), self.provider.name);
        match work.run(move || handler(&incoming, &templates.scope(home, name))).await?? {
            Action::Reply(reply) => Ok(reply),
            Action::Read(id, reply) => Ok(reply(&StoredEmail::read(&self.server, &self.grant, id).await?)),
            Action::Send(emails, reply) => {
                let emails = emails.into_iter().map(Ok).collect();
                let results = self.send(emails, true, reservation, transcript).await?;
                let sent = results.into_iter().collect::<Result<Vec<_>, _>>()?;
                Ok(reply(&self.incoming, &sent))
            }
            Action::SendEach(emails, reply) => {
                let results = self.send(emails, false, reservation, transcript).await?;
                let results: Vec<_> = results.into_iter().map(|result| result.map_err(Error::into_failure)).collect();
                Ok(reply(&self.incoming, &results))
            }
        }
    }

    /// Returns a size that stands for the work of the handler. It can copy the texts of the request for each recipient, and read all
    /// templates.
    fn work_size(&self) -> usize {
        const COPIES: usize = 16;
        if self.templates.is_empty() { self.incoming.body.len().saturating_mul(COPIES) } else { usize::MAX }
    }

    /// Composes messages, after memory for them is reserved. If they are sent together, it stops at the first failure.
    async fn compose(
        &self,
        emails: Vec<Result<Email, Failure>>,
        are_together: bool,
        reservation: &mut Reservation,
    ) -> Result<Vec<Result<Composed, Failure>>, Error> {
        let has_templates = emails.iter().flatten().any(|email| matches!(email.content, Content::Template(..)));
        let size: usize = emails.iter().flatten().map(Email::size).sum();
        self.check_size(size)?;
        let body = self.incoming.body.len();
        body::reserve_memory(reservation, body + size + if has_templates { MAX_TEXT_BYTES } else { 0 }).await?;
        let work = self.server.renderer.work_permit(if has_templates { usize::MAX } else { size }).await?;
        let (server, incoming, templates) = (self.server.clone(), self.incoming.clone(), self.templates.clone());
        let (home, name) = (self.grant.home().cloned(), self.provider.name);
        let compose = move || -> Vec<_> {
            let templates = templates.scope(home, name);
            // Each message has an id of its own.
            let context = || server.uploads.compose_context();
            let compose = |email: Email| email.compose(&templates, &incoming.budget, &context());
            let mut composed = Vec::with_capacity(emails.len());
            for email in emails {
                composed.push(email.and_then(compose));
                if are_together && matches!(composed.last(), Some(Err(_))) {
                    break;
                }
            }
            composed
        };
        let composed = work.run(compose).await?;
        if has_templates {
            // Most templates use little of the memory.
            reservation.adjust_to(0).await;
            let messages = composed.iter().flatten().map(|email| email.message.len()).sum::<usize>();
            body::reserve_memory(reservation, body + messages).await?;
        }
        Ok(composed)
    }

    /// Fails if messages of this size together are larger than a request may be.
    fn check_size(&self, size: usize) -> Result<(), Failure> {
        let max = self.server.settings.max_message_bytes.saturating_mul(JSON_SIZE_FACTOR);
        if size <= max {
            return Ok(());
        }
        let problem = format!("The messages of the request have {size} bytes together. At most {max} are accepted.");
        Err(Failure::new(FailureKind::TooLarge, problem))
    }

    /// Delivers the messages that are accepted: if they are sent together, all of them or none. The results are in the order of
    /// the messages.
    async fn send(
        &self,
        emails: Vec<Result<Email, Failure>>,
        are_together: bool,
        mut reservation: Reservation,
        transcript: &mut Transcript,
    ) -> Result<Vec<Result<Sent, Error>>, Error> {
        let (mut uploads, mut results) = (Vec::new(), Vec::with_capacity(emails.len()));
        for email in self.compose(emails, are_together, &mut reservation).await? {
            let checked = match email {
                Ok(email) => self.check(email).await,
                Err(failure) => Err(failure.into()),
            };
            match checked {
                Ok((upload, details)) => {
                    uploads.push(upload);
                    results.push(Ok(details));
                }
                Err(error) if are_together => return Err(error),
                Err(error) => results.push(Err(error)),
            }
        }
        let mut stored = self.server.uploads.deliver(&self.grant, uploads, reservation).await?.into_iter();
        for result in &mut results {
            let Ok(details) = result else { continue };
            match stored.next() {
                Some(Ok(stored)) => Self::record(details, stored, transcript),
                Some(Err(problem)) => *result = Err(problem.into()),
                None => {}
            }
        }
        Ok(results)
    }

    async fn check(&self, email: Composed) -> Result<(CheckedUpload, Sent), Error> {
        let (upload, details) = self.upload(email)?;
        Ok((self.server.uploads.check(&self.grant, upload).await?, details))
    }

    fn upload(&self, email: Composed) -> Result<(Upload, Sent), Problem> {
        let Composed { from, recipients, message, sent } = email;
        let max = self.server.settings.max_message_bytes;
        if message.len() > max {
            return Err(Problem::MessageTooLarge { bytes: message.len() as u64, max: max as u64 });
        }
        let (login, key) = (self.login(), self.key.as_deref().map(Into::into));
        let upload = Upload { ip: self.peer.ip, login, key, from, recipients, project: None, message };
        Ok((upload, sent))
    }

    /// Records where a message is stored. One that was discarded gets an id too.
    fn record(sent: &mut Sent, stored: Vec<Summary>, transcript: &mut Transcript) {
        let now = u64::try_from(Timestamp::now().as_microsecond()).unwrap_or_default();
        sent.id = stored.first().map_or_else(|| now.into(), |copy| copy.message);
        let messages = stored.into_iter().map(|copy| (copy.mailbox, copy.id)).collect();
        transcript.record_message(Delivered {
            to: sent.recipients().map(|person| person.address.text()).collect(),
            messages,
        });
    }
}

/// Returns the beginning of a key, at most half of it.
fn shown_key(key: &str) -> String {
    let count = SHOWN_KEY_CHARS.min(key.chars().count() / 2);
    key.chars().take(count).map(|c| if c.is_control() { ' ' } else { c }).chain("...".chars()).collect()
}
