//! All errors of requests, and the only place where they become responses: `application/problem+json` (RFC 9457). The
//! client gets a plain sentence; the cause is logged once, here or, if it could happen too often, throttled by the middleware,
//! which also changes the response to the form of the API.

use std::fmt::Display;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use restante_api_types::json::to_vec;
use restante_auth::{DenialReason, Denied, Scope};
use restante_http_connection::http1::refuse;
use restante_http_connection::memory::OverBudget;
use restante_http_connection::work::WorkError;
use restante_mail::envelope::{RecipientRefusal, Refusal, SenderRefusal};
use restante_net::{NotReady, TooMany};
use restante_proto::smtp;
use restante_relay::ReleaseError;
use restante_search::{QueryError, SearchError};
use restante_store::StoreError;
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite};
use utoipa::ToSchema;

/// The reason why a request fails. Its text is a sentence for people.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The request is malformed; the sentence says where.
    #[error("{0}")]
    Malformed(String),
    /// The query to search or to wait for cannot be parsed.
    #[error("{0}")]
    InvalidQuery(QueryError),
    /// The Host header is missing or malformed.
    #[error("The Host header is missing or malformed.")]
    BadHost,
    /// The request is for a host name that is not one of this server: perhaps a foreign name that was pointed at this
    /// address (DNS rebinding).
    #[error("This server does not serve the host name of the request. Add the name to the setting web.hosts.")]
    Misdirected,
    /// The request comes from a web page of another origin.
    #[error(
        "This request comes from a web page of another origin. Only origins that the setting web.corsorigins lists may use \
         the API. To open this address, type it into the address bar."
    )]
    ForeignOrigin,
    /// The credentials are missing or wrong.
    #[error("{}", denial_sentence(.0.reason))]
    Denied(Denied, Challenge),
    /// The grant of the client does not include this scope.
    #[error("The credentials do not allow this: it needs the scope {0}.")]
    MissingScope(Scope),
    /// The grant of the client does not include this scope for all mailboxes.
    #[error("The credentials do not allow this: it needs the scope {0} for all mailboxes.")]
    ScopeNotEverywhere(Scope),
    /// The grant of the client does not include this mailbox.
    #[error("The credentials are not for this mailbox.")]
    MailboxNotAllowed,
    /// The grant of the client includes no mailbox of this project.
    #[error("The credentials are not for this project.")]
    ProjectNotAllowed,
    /// A web page wants to load something that may be a message as a script, style or plugin.
    #[error("Only the files of the web interface may be used as a script, a style or a plugin of a page.")]
    ForbiddenDestination,
    /// There is nothing at this path.
    #[error("There is nothing at this path.")]
    NoSuchPath,
    /// There is no such message in the mailbox.
    #[error("The mailbox has no such message.")]
    NoSuchCopy,
    /// There is no such message in any mailbox that the grant of the client includes.
    #[error("There is no such message.")]
    NoSuchMessage,
    /// No message that the grant of the client includes has this tag.
    #[error("No message has this tag.")]
    NoSuchTag,
    /// There is no such run.
    #[error(
        "There is no such run. A run is known only to servers with the key in auth.secret that it was leased with."
    )]
    NoSuchRun,
    /// A tag cannot get this name, because another one has it.
    #[error("There is another tag with this name.")]
    TagExists,
    /// Simulated failures are disabled.
    #[error("Simulated failures are disabled by the setting chaos.enabled.")]
    ChaosDisabled,
    /// The message has no attachment with this index.
    #[error("The message has no such attachment.")]
    NoSuchAttachment,
    /// The message has no attachments, only parts that belong to its HTML or none.
    #[error("The message has no attachments.")]
    NoAttachments,
    /// The message has no part with this index.
    #[error("The message has no such part.")]
    NoSuchPart,
    /// The message has no HTML.
    #[error("The message has no HTML.")]
    NoHtml,
    /// The search is disabled.
    #[error("The search is disabled by the setting search.enabled.")]
    SearchDisabled,
    /// The search failed.
    #[error("{}", search_sentence(.0))]
    Search(SearchError),
    /// The search index does not contain all messages, so those to change cannot be determined.
    #[error("The search index does not contain all messages yet, so those that match are not known. Try again later.")]
    IncompleteIndex,
    /// A query of another API cannot be decided for all messages, so those to change cannot be determined.
    #[error(
        "There are more messages than are searched for words, so those that match are not known. Select fewer messages, for \
         example with from: or after:."
    )]
    UndecidedMatches,
    /// The message exists, but there is no transcript of its delivery, or not any more.
    #[error("There is no transcript of the delivery of this message.")]
    NoTranscript,
    /// There is no such session, or not any more.
    #[error("There is no such session, or it is not stored any more.")]
    NoSuchSession,
    /// There is no such entry in the queue with this name, or not any more.
    #[error("There is no such entry in the {0} queue, or it is not stored any more.")]
    NoSuchEntry(&'static str),
    /// The message is not released, for this reason.
    #[error("{}", sentence(&.0.to_string()))]
    Release(ReleaseError),
    /// The path does not support this method.
    #[error("This path does not support this method. The Allow header lists the supported methods.")]
    MethodNotAllowed,
    /// The path requires a WebSocket handshake.
    #[error(
        "This path requires a WebSocket handshake, version 13. /api/v2/events has the same events without WebSocket."
    )]
    WebSocketRequired,
    /// The request body did not arrive in time.
    #[error("The body of the request did not arrive in time.")]
    BodyTimeout,
    /// The request body is too large.
    #[error("The body of the request is too large.")]
    BodyTooLarge,
    /// The message composed from the request body is too large, or larger than its mailbox may be.
    #[error("The message is too large: {bytes} bytes. At most {max} are accepted.")]
    MessageTooLarge {
        /// The size of the message.
        bytes: u64,
        /// The maximum size.
        max: u64,
    },
    /// The content type of the request body is not JSON.
    #[error("The body of the request must be application/json.")]
    NotJson,
    /// The request body is not valid JSON.
    #[error("The body of the request is not valid JSON: {0}.")]
    InvalidJson(serde_json::Error),
    /// The request body is valid JSON but not of this shape.
    #[error("The body of the request must be {0}.")]
    WrongShape(&'static str),
    /// This member of the request body is invalid, for this reason.
    #[error("The member {0} is invalid: {1}.")]
    InvalidMember(String, String),
    /// The content type of the request body is neither a message nor JSON.
    #[error("The body of the request must be message/rfc822 or application/json.")]
    NotMessage,
    /// No message can be composed from the request body, for this reason.
    #[error("The body of the request is not a valid message: {0}.")]
    InvalidMessage(String),
    /// The policy or a hook refuses the message.
    #[error("The message is refused, as over SMTP: {} {}", .0.code, .0.text)]
    Refused(Refusal),
    /// Fewer messages than expected arrived in time.
    #[error("{found} of {expected} matching messages arrived in time.")]
    TooFewMessages {
        /// The number of messages that arrived.
        found: usize,
        /// The expected number of messages.
        expected: usize,
    },
    /// A message arrived, and none was expected.
    #[error("A matching message arrived, but none was expected.")]
    UnexpectedMessage,
    /// The client has disconnected.
    #[error("The client closed its side of the connection before the response was ready.")]
    Disconnected,
    /// There are too many connections, or too many of this client.
    #[error("{}", too_many_sentence(*.0))]
    TooMany(TooMany),
    /// There are too many subscribers of live events.
    #[error("There are too many subscribers of live events.")]
    TooManySubscribers,
    /// There are too many requests that wait for messages.
    #[error("Too many requests are waiting for messages.")]
    TooManyWaits,
    /// Too many large messages are being uploaded.
    #[error("Too many large messages are being uploaded. Try again later.")]
    TooManyUploads,
    /// The server is shutting down, or cannot accept connections.
    #[error("{}", not_ready_sentence(*.0))]
    NotReady(NotReady),
    /// Too many large responses are in memory.
    #[error("Too many large responses are being sent. Try again later.")]
    OverBudget(OverBudget),
    /// Too much expensive work was already waiting.
    #[error("The server is busy with other large messages. Try again later.")]
    NoWorkPermit,
    /// The store failed.
    #[error("{}", store_sentence(.0))]
    Store(#[from] StoreError),
    /// A bug of the server.
    #[error("Internal error. The log of the server contains the cause.")]
    Internal(String),
}

/// How credentials are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Challenge {
    /// From a program, which may support only Basic authentication.
    Program,
    /// From a page in a browser. Basic authentication would make the browser open a password dialog.
    Page,
}

impl Challenge {
    /// Returns the value of `WWW-Authenticate` (RFC 9110 section 11.6.1).
    pub const fn header_value(self) -> &'static str {
        match self {
            Self::Program => "Bearer realm=\"Restante\", Basic realm=\"Restante\", charset=\"UTF-8\"",
            Self::Page => "Bearer realm=\"Restante\"",
        }
    }
}

impl From<OverBudget> for Problem {
    fn from(over_budget: OverBudget) -> Self {
        Self::OverBudget(over_budget)
    }
}

impl From<WorkError> for Problem {
    fn from(error: WorkError) -> Self {
        match error {
            WorkError::NoPermit => Self::NoWorkPermit,
            WorkError::Failed(error) => Self::Internal(error),
        }
    }
}

impl From<SearchError> for Problem {
    fn from(error: SearchError) -> Self {
        match error {
            SearchError::Store(error) => Self::Store(error),
            other => Self::Search(other),
        }
    }
}

impl From<SenderRefusal> for Problem {
    fn from(refusal: SenderRefusal) -> Self {
        Self::Refused(smtp::sender_refusal(refusal))
    }
}

impl From<RecipientRefusal> for Problem {
    fn from(refusal: RecipientRefusal) -> Self {
        match refusal {
            RecipientRefusal::NotPermitted => Self::MailboxNotAllowed,
            refusal => Self::Refused(smtp::recipient_refusal(refusal)),
        }
    }
}

impl From<ReleaseError> for Problem {
    fn from(error: ReleaseError) -> Self {
        match error {
            ReleaseError::Store(error) => Self::Store(error),
            ReleaseError::Deleted => Self::NoSuchMessage,
            error => Self::Release(error),
        }
    }
}

impl Problem {
    /// Returns the problem that a member of the request body is invalid.
    pub fn invalid_member(name: impl Into<String>, reason: &dyn Display) -> Self {
        Self::InvalidMember(name.into(), reason.to_string())
    }

    /// Returns the status of the response.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Malformed(_) | Self::InvalidQuery(_) | Self::BadHost | Self::Disconnected => StatusCode::BAD_REQUEST,
            // The only suitable status that names the host as the reason (RFC 9110 section 15.5.20).
            Self::Misdirected => StatusCode::MISDIRECTED_REQUEST,
            Self::Denied(Denied { reason: DenialReason::TooMany, .. }, _) | Self::TooMany(TooMany::FromClient) => {
                StatusCode::TOO_MANY_REQUESTS
            }
            // A temporary refusal has a code below 500, as over SMTP. An account without access has valid credentials.
            Self::Denied(Denied { reason: DenialReason::NoAccess, .. }, _)
            | Self::ForeignOrigin
            | Self::MissingScope(_)
            | Self::ScopeNotEverywhere(_)
            | Self::MailboxNotAllowed
            | Self::ProjectNotAllowed
            | Self::ForbiddenDestination
            | Self::Release(ReleaseError::NotAllowed(_) | ReleaseError::Blocked(_))
            | Self::Refused(Refusal { code: 500.., .. }) => StatusCode::FORBIDDEN,
            Self::Denied(..) => StatusCode::UNAUTHORIZED,
            Self::NoSuchPath
            | Self::NoSuchCopy
            | Self::NoSuchMessage
            | Self::NoSuchTag
            | Self::NoSuchRun
            | Self::ChaosDisabled
            | Self::NoSuchAttachment
            | Self::NoAttachments
            | Self::NoSuchPart
            | Self::NoHtml
            | Self::SearchDisabled
            | Self::NoTranscript
            | Self::NoSuchSession
            | Self::NoSuchEntry(_) => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::WebSocketRequired => StatusCode::UPGRADE_REQUIRED,
            Self::BodyTimeout | Self::TooFewMessages { .. } => StatusCode::REQUEST_TIMEOUT,
            Self::UnexpectedMessage | Self::TagExists | Self::Release(ReleaseError::Loop(_)) => StatusCode::CONFLICT,
            Self::BodyTooLarge | Self::MessageTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NotJson | Self::NotMessage => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooMany(TooMany::InTotal)
            | Self::Refused(_)
            | Self::TooManySubscribers
            | Self::TooManyWaits
            | Self::TooManyUploads
            | Self::NotReady(_)
            | Self::OverBudget(_)
            | Self::NoWorkPermit
            | Self::Search(_)
            | Self::IncompleteIndex
            | Self::UndecidedMatches
            | Self::Release(ReleaseError::QueueFull)
            | Self::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::InvalidJson(_)
            | Self::WrongShape(_)
            | Self::InvalidMember(..)
            | Self::InvalidMessage(_)
            | Self::Release(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Returns the number of seconds after which the client should try again, or `None` if that is not known.
    pub fn retry_after(&self) -> Option<&'static str> {
        match self {
            // Connections are closed frequently.
            Self::TooMany(_) => Some("1"),
            Self::Denied(Denied { reason: DenialReason::TooMany, .. }, _) => Some("10"),
            Self::OverBudget(_)
            | Self::NoWorkPermit
            | Self::TooManySubscribers
            | Self::TooManyWaits
            | Self::TooManyUploads
            | Self::Refused(Refusal { code: ..500, .. })
            | Self::NotReady(NotReady::NotAccepting)
            | Self::Search(SearchError::Busy | SearchError::Unavailable(_))
            | Self::IncompleteIndex
            | Self::Release(ReleaseError::QueueFull)
            | Self::Store(StoreError::NoSpace(_) | StoreError::Unavailable(_)) => Some("5"),
            _ => None,
        }
    }

    /// Returns the denial for the log, if this is one.
    pub fn denial(&self) -> Option<Denied> {
        match self {
            Self::Denied(denied, _) => Some(denied.clone()),
            Self::MissingScope(_) => Some(DenialReason::Scope.into()),
            Self::ScopeNotEverywhere(_) | Self::MailboxNotAllowed | Self::ProjectNotAllowed => {
                Some(DenialReason::Mailbox.into())
            }
            _ => None,
        }
    }

    /// Logs a fault of the server. Store errors are logged by the middleware, which gets them with the response.
    fn log(&self) {
        match self {
            Self::Search(error @ SearchError::Unavailable(_)) => tracing::error!(%error, "HTTP request failed"),
            Self::Internal(error) => tracing::error!(%error, "HTTP request failed because of a bug"),
            _ => {}
        }
    }

    /// Returns the body of the response.
    pub fn body(&self) -> Bytes {
        // Strings and numbers can always be serialized.
        let mut body = to_vec(&self.document()).unwrap_or_default();
        body.push(b'\n');
        body.into()
    }

    /// Returns the problem document. Other types may add members to it (RFC 9457 section 3.2).
    pub fn document(&self) -> ProblemDocument {
        let status = self.status();
        ProblemDocument {
            kind: "about:blank",
            // A problem with the type `about:blank` has the phrase of its status as title (RFC 9457 section 4.2.1).
            title: status.canonical_reason().unwrap_or_default(),
            status: status.as_u16(),
            detail: self.to_string(),
            position: if let Self::InvalidQuery(error) = self { Some(error.position()) } else { None },
        }
    }
}

/// The reason why a request failed (RFC 9457).
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemDocument {
    /// Always `about:blank`: the status is the kind of problem.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The phrase of the status.
    title: &'static str,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// A sentence for people.
    detail: String,
    /// If a query cannot be parsed, the number of characters before the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>, nullable = false)]
    position: Option<usize>,
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        self.log();
        let mut response = Response::new(Body::from(self.body()));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        // A missing resource may exist at the next request.
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = self.retry_after() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static(seconds));
        }
        if let Self::WebSocketRequired = self {
            // The required protocol must be named (RFC 9110 section 15.5.22, RFC 6455 section 4.4).
            headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
            headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
            headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        }
        if let Self::Denied(_, challenge) = self
            && response.status() == StatusCode::UNAUTHORIZED
        {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge.header_value()));
        }
        // Middleware logs it, and changes the body to the form of the API.
        response.extensions_mut().insert(Arc::new(self));
        response
    }
}

/// Returns the problem for a bug of the server, with its cause for the log.
pub fn internal_error(error: &dyn Display) -> Problem {
    Problem::Internal(error.to_string())
}

fn denial_sentence(reason: DenialReason) -> &'static str {
    match reason {
        DenialReason::NoCredentials => "This server requires credentials: a token, or a user name and a password.",
        DenialReason::UnknownToken => "The token is unknown.",
        DenialReason::Expired => "The token or the login has expired, or was revoked.",
        DenialReason::SingleSignOn => "The login with single sign-on was not completed.",
        DenialReason::NoAccess => "Your account has no access to this server.",
        DenialReason::TooMany => "Too many logins have failed. Try again later.",
        DenialReason::WrongPassword | DenialReason::Scope | DenialReason::Mailbox => {
            "The user name or the password is wrong."
        }
    }
}

fn search_sentence(error: &SearchError) -> &'static str {
    match error {
        SearchError::Timeout => {
            "The search takes too long. Search for fewer words, or for words that occur in fewer messages."
        }
        SearchError::Busy => "Too many searches are running. Try again later.",
        _ => "The search index cannot be used at the moment.",
    }
}

fn store_sentence(error: &StoreError) -> &'static str {
    match error {
        StoreError::NoSpace(_) => "The store is full.",
        StoreError::Unavailable(_) => "The store cannot be reached at the moment.",
        StoreError::Broken(_) => "The store failed.",
    }
}

fn too_many_sentence(limit: TooMany) -> &'static str {
    match limit {
        TooMany::InTotal => "The server has too many connections.",
        TooMany::FromClient => "This client has too many connections or requests open.",
    }
}

fn not_ready_sentence(reason: NotReady) -> &'static str {
    match reason {
        NotReady::ShuttingDown => "The server is shutting down.",
        NotReady::NotAccepting => "The server cannot accept connections at the moment.",
    }
}

/// Returns a phrase as a sentence.
fn sentence(phrase: &str) -> String {
    let mut chars = phrase.chars();
    chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).chain(['.']).collect()
}

/// Refuses a connection above the limits with a problem document, before a request is read.
pub async fn refuse_connection<S: AsyncRead + AsyncWrite + Unpin>(stream: S, too_many: TooMany) {
    refuse(stream, &whole_response(&Problem::TooMany(too_many))).await;
}

/// Returns a problem as a whole response, with its status line and header.
fn whole_response(problem: &Problem) -> Vec<u8> {
    let (status, body) = (problem.status(), problem.body());
    // `StatusCode` writes itself with its phrase.
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/problem+json\r\ncontent-length: {}\r\nretry-after: {}\r\n\
         connection: close\r\n\r\n",
        body.len(),
        problem.retry_after().unwrap_or("1"),
    );
    [head.as_bytes(), &body].concat()
}
