//! Everything that can be wrong with a request, and the one place where it becomes an answer: `application/problem+json`
//! (RFC 9457). The client gets a plain sentence; what happened inside goes to the log, once, from here, or
//! from `middleware::request_checks` where that could be too often.

use std::borrow::Cow;
use std::fmt::Display;

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
use restante_search::{QueryError, SearchError};
use restante_store::StoreError;
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite};
use utoipa::ToSchema;

/// Why a request is not answered as asked.
#[derive(Debug)]
pub(crate) enum Problem {
    /// The request is malformed; the sentence says where.
    Malformed(String),
    /// What is to be searched for, or waited for, is no question.
    InvalidQuery(QueryError),
    /// The Host header is missing or malformed.
    BadHost,
    /// The request is for a host name that is not ours: perhaps a foreign name that was pointed at this address
    /// (DNS rebinding).
    Misdirected,
    /// The request comes from a web page of another origin.
    ForeignOrigin,
    /// The client did not say who it is, or not the truth.
    Denied(Denied, Challenge),
    /// The client may not do things of this kind.
    MissingScope(Scope),
    /// The client may not do anything with this mailbox.
    MailboxNotAllowed,
    /// A web page wants to use what may be mail as its own code.
    ForbiddenDestination,
    /// There is nothing at this path.
    NoSuchPath,
    /// There is no such message in the mailbox.
    NoSuchMessage,
    /// The message has no attachment of this index.
    NoSuchAttachment,
    /// The message has no part of this index.
    NoSuchPart,
    /// Searching is switched off.
    SearchDisabled,
    /// A search could not be answered.
    Search(SearchError),
    /// The message is there, but what was said when it came is not, or never was.
    NoTranscript,
    /// There is no such session, or not any more.
    NoSuchSession,
    /// The path does not have this method.
    MethodNotAllowed,
    /// The path speaks WebSocket, and the request does not.
    WebSocketRequired,
    /// The request's body did not arrive in time.
    BodyTimeout,
    /// The request's body is larger than any sensible one.
    BodyTooLarge,
    /// The mail that the request's body makes is larger than those that are taken.
    MessageTooLarge {
        /// How large it is.
        bytes: usize,
        /// How large one may be.
        max: usize,
    },
    /// The request's body is no JSON, by its own account.
    NotJson,
    /// The request's body calls itself JSON and is none.
    InvalidJson(serde_json::Error),
    /// The request's body is JSON that does not say what is wanted, which is this.
    WrongShape(&'static str),
    /// The request's body is neither a mail nor the pieces of one, by its own account.
    NotMessage,
    /// No mail can be made of the request's body, and this is why.
    InvalidMessage(String),
    /// The policy or a hook does not want the mail.
    Refused(Refusal),
    /// Not all the messages came in time that were waited for.
    TooFewMessages {
        /// How many came.
        found: usize,
        /// How many were waited for.
        expected: usize,
    },
    /// A message came where none should.
    UnexpectedMessage,
    /// The client does not wait any longer.
    Disconnected,
    /// There are too many connections, or too many of this client.
    TooMany(TooMany),
    /// Too many listen to the live monitor.
    TooManySubscribers,
    /// Too many wait for mail.
    TooManyWaits,
    /// Too many large mails are being handed in.
    TooManyUploads,
    /// New work is not welcome now.
    NotReady(NotReady),
    /// Too many large answers are under way.
    OverBudget(OverBudget),
    /// Too much heavy work was to be done before.
    NoWorkPermit,
    /// The store did not do its work.
    Store(StoreError),
    /// We made a mistake.
    Internal(String),
}

/// How credentials are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// Of a program, which may know only the old way.
    Program,
    /// Of a page in a browser, which would put a window of its own before the page for the old way.
    Page,
}

impl Challenge {
    /// The header field that asks (RFC 9110 section 11.6.1).
    pub(crate) const fn header_value(self) -> &'static str {
        match self {
            Self::Program => "Bearer realm=\"Restante\", Basic realm=\"Restante\", charset=\"UTF-8\"",
            Self::Page => "Bearer realm=\"Restante\"",
        }
    }
}

impl From<OverBudget> for Problem {
    fn from(excess: OverBudget) -> Self {
        Self::OverBudget(excess)
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

impl From<TooMany> for Problem {
    fn from(too_many: TooMany) -> Self {
        Self::TooMany(too_many)
    }
}

impl From<NotReady> for Problem {
    fn from(why: NotReady) -> Self {
        Self::NotReady(why)
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

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Problem {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Malformed(_) | Self::InvalidQuery(_) | Self::BadHost | Self::Disconnected => StatusCode::BAD_REQUEST,
            // Of the statuses that fit, only this one says that the host name is the reason (RFC 9110 section 15.5.20).
            Self::Misdirected => StatusCode::MISDIRECTED_REQUEST,
            Self::Denied(Denied { reason: DenialReason::TooMany, .. }, _) | Self::TooMany(TooMany::FromPeer) => {
                StatusCode::TOO_MANY_REQUESTS
            }
            Self::Denied(..) => StatusCode::UNAUTHORIZED,
            // A refusal for now has a code below 500, as over SMTP.
            Self::ForeignOrigin
            | Self::MissingScope(_)
            | Self::MailboxNotAllowed
            | Self::ForbiddenDestination
            | Self::Refused(Refusal { code: 500.., .. }) => StatusCode::FORBIDDEN,
            Self::NoSuchPath
            | Self::NoSuchMessage
            | Self::NoSuchAttachment
            | Self::NoSuchPart
            | Self::SearchDisabled
            | Self::NoTranscript
            | Self::NoSuchSession => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::WebSocketRequired => StatusCode::UPGRADE_REQUIRED,
            Self::BodyTimeout | Self::TooFewMessages { .. } => StatusCode::REQUEST_TIMEOUT,
            Self::UnexpectedMessage => StatusCode::CONFLICT,
            Self::BodyTooLarge | Self::MessageTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NotJson | Self::NotMessage => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::InvalidJson(_) | Self::WrongShape(_) | Self::InvalidMessage(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::TooMany(TooMany::InTotal)
            | Self::Refused(_)
            | Self::TooManySubscribers
            | Self::TooManyWaits
            | Self::TooManyUploads
            | Self::NotReady(_)
            | Self::OverBudget(_)
            | Self::NoWorkPermit
            | Self::Search(_)
            | Self::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn detail(&self) -> Cow<'_, str> {
        Cow::Borrowed(match self {
            Self::Malformed(sentence) => return Cow::Borrowed(sentence),
            Self::InvalidQuery(error) => return Cow::Owned(error.to_string()),
            Self::BadHost => "The Host header is missing or malformed.",
            Self::Misdirected => {
                "This server does not answer for the host name of the request. Add the name to the setting web.hosts."
            }
            Self::ForeignOrigin => {
                "This request comes from a web page of another origin. Only origins that the setting web.corsorigins lists \
                 may use the API. To open this address, type it into the address bar."
            }
            Self::MissingScope(scope) => {
                return Cow::Owned(format!("The credentials do not allow this: it needs the scope {scope}."));
            }
            Self::MailboxNotAllowed => "The credentials are not for this mailbox.",
            Self::Denied(denied, _) => match denied.reason {
                DenialReason::NoCredentials => {
                    "This server asks for credentials: a token, or a user name and a password."
                }
                DenialReason::UnknownToken => "The token is not known here.",
                DenialReason::Expired => "The token or the login has expired, or was revoked.",
                DenialReason::TooMany => "Too many logins have failed. Try again later.",
                DenialReason::WrongPassword | DenialReason::Scope | DenialReason::Mailbox => {
                    "The user name or the password is wrong."
                }
            },
            Self::ForbiddenDestination => {
                "Only the files of the web interface may be used as a script, a style or a plugin of a page."
            }
            Self::NoSuchPath => "There is nothing at this path.",
            Self::NoSuchMessage => "The mailbox has no such message.",
            Self::NoSuchAttachment => "The message has no such attachment.",
            Self::NoSuchPart => "The message has no such part.",
            Self::SearchDisabled => "Searching is switched off by the setting search.enabled.",
            Self::Search(SearchError::Timeout) => {
                "This search takes too long; one for words that are not in most messages is quicker."
            }
            Self::Search(SearchError::Busy) => {
                "Others are searching at the moment, and there is no room for this search."
            }
            Self::Search(_) => "The search index cannot be used at the moment.",
            Self::NoTranscript => "No transcript of the session that brought this message is kept.",
            Self::NoSuchSession => "There is no such session, or nothing of it is kept any more.",
            Self::MethodNotAllowed => "This path does not have this method; the Allow header lists those it has.",
            Self::WebSocketRequired => {
                "This path speaks WebSocket, version 13, only. The same events without it are at /api/v2/events."
            }
            Self::BodyTimeout => "The body of the request did not arrive in time.",
            Self::BodyTooLarge => "The body of the request is too large.",
            Self::MessageTooLarge { bytes, max: most } => {
                return Cow::Owned(format!("The mail is too large when it is made: {bytes} bytes, of at most {most}."));
            }
            Self::NotJson => "The body of the request must be application/json.",
            Self::InvalidJson(error) => {
                return Cow::Owned(format!("The body of the request is no valid JSON: {error}."));
            }
            Self::WrongShape(wanted) => return Cow::Owned(format!("The body of the request must be {wanted}.")),
            Self::NotMessage => "The body of the request must be message/rfc822 or application/json.",
            Self::InvalidMessage(why) => return Cow::Owned(format!("The body of the request makes no mail: {why}.")),
            Self::Refused(Refusal { code, text }) => {
                return Cow::Owned(format!("The mail is refused, as it is over SMTP: {code} {text}"));
            }
            Self::TooFewMessages { found: came, expected: wanted } => {
                return Cow::Owned(format!("{came} of {wanted} matching messages came in time."));
            }
            Self::UnexpectedMessage => "A matching message came, and none was expected.",
            Self::Disconnected => {
                "The client has closed its side of the connection, so its answer is not waited for any longer."
            }
            Self::TooMany(TooMany::InTotal) => "The server has too many connections.",
            Self::TooMany(TooMany::FromPeer) => "This client has too many connections or requests open.",
            Self::TooManySubscribers => "Too many listen to the live monitor already.",
            Self::TooManyWaits => "Too many wait for mail already.",
            Self::TooManyUploads => {
                "Other clients hand in large mails at the moment, and there is no room for this one."
            }
            Self::NotReady(NotReady::ShuttingDown) => "The server is about to end.",
            Self::NotReady(NotReady::NotAccepting) => "The server cannot accept connections at the moment.",
            Self::OverBudget(_) => {
                "Other clients are taking large answers at the moment, and there is no room for this one."
            }
            Self::NoWorkPermit => {
                "Large messages are being read by others at the moment, and this one's turn did not come."
            }
            Self::Store(StoreError::NoSpace(_)) => "The store is full.",
            Self::Store(StoreError::Unavailable(_)) => "The store cannot be reached at the moment.",
            Self::Store(StoreError::Broken(_)) => "The store could not do its work.",
            Self::Internal(_) => "The server made a mistake.",
        })
    }

    /// When it is worth while to ask again, in seconds; nothing where that is not known.
    pub(crate) fn retry_after(&self) -> Option<&'static str> {
        match self {
            // Places come and go.
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
            | Self::Store(StoreError::NoSpace(_) | StoreError::Unavailable(_)) => Some("5"),
            _ => None,
        }
    }

    /// The denial that this is, if it is one, for whoever tells of it.
    fn denial(&self) -> Option<Denied> {
        match self {
            Self::Denied(denied, _) => Some(denied.clone()),
            Self::MissingScope(_) => Some(DenialReason::Scope.into()),
            Self::MailboxNotAllowed => Some(DenialReason::Mailbox.into()),
            _ => None,
        }
    }

    /// Writes it into the log if it is a fault of the server. That the store failed is told of at the door: the answer carries
    /// it there.
    fn log(&self) {
        match self {
            Self::Search(error @ SearchError::Unavailable(_)) => tracing::error!(%error, "HTTP request failed"),
            Self::Internal(error) => tracing::error!(%error, "HTTP request failed by a fault of the server"),
            _ => {}
        }
    }

    /// Returns the body of the response.
    pub(crate) fn body(&self) -> Bytes {
        // Texts and numbers can always be serialised.
        let mut body = to_vec(&self.document()).unwrap_or_default();
        body.push(b'\n');
        body.into()
    }

    /// Returns the problem document, to which members of its own may be added (RFC 9457 section 3.2).
    pub(crate) fn document(&self) -> ProblemDocument {
        let status = self.status();
        ProblemDocument {
            kind: "about:blank",
            // A problem without a type of its own has the phrase of its status as title (RFC 9457 section 4.2.1).
            title: status.canonical_reason().unwrap_or_default(),
            status: status.as_u16(),
            detail: self.detail().into_owned(),
            position: if let Self::InvalidQuery(error) = self { Some(error.position()) } else { None },
        }
    }
}

/// Why a request is not answered as asked (RFC 9457).
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct ProblemDocument {
    /// Always `about:blank`: the status says what kind of problem it is.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The phrase of the status.
    title: &'static str,
    /// The status.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// A sentence for people.
    detail: String,
    /// Of a query that cannot be understood, how many characters stand before the place.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>, nullable = false)]
    position: Option<usize>,
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        self.log();
        let mut response = Response::new(Body::from(self.body()));
        *response.status_mut() = self.status();
        if let Some(denied) = self.denial() {
            response.extensions_mut().insert(denied);
        }
        if let Self::Store(error) = &self {
            response.extensions_mut().insert(error.clone());
        }
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        // What is missing now may be there at the next look.
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = self.retry_after() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static(seconds));
        }
        if let Self::WebSocketRequired = self {
            // What is required must be named (RFC 9110 section 15.5.22, RFC 6455 section 4.4).
            headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
            headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
            headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        }
        if let Self::Denied(_, challenge) = self
            && response.status() == StatusCode::UNAUTHORIZED
        {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge.header_value()));
        }
        response
    }
}

/// Returns the problem for a bug of the server, with its cause for the log.
pub(crate) fn internal_error(error: &dyn Display) -> Problem {
    Problem::Internal(error.to_string())
}

/// Refuses a connection above the limits with a problem document, before a request is read.
pub async fn refuse_connection<S: AsyncRead + AsyncWrite + Unpin>(stream: S, too_many: TooMany) {
    refuse(stream, &whole_response(&too_many.into())).await;
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
