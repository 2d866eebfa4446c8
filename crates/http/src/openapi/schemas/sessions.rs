//! What was said when mail came in.

use utoipa::ToSchema;

use crate::openapi::schemas::changes::Identifier;

/// Some of the sessions, the latest first.
#[derive(ToSchema)]
pub(in crate::openapi) struct Sessions {
    sessions: Vec<Session>,
    /// What to give as `before` to get those that follow; null when these were the last ones.
    #[schema(required)]
    next: Option<String>,
}

/// A session, and what was said in it.
#[derive(ToSchema)]
pub(in crate::openapi) struct Transcript {
    session: Session,
    lines: Vec<Line>,
}

/// A session of a client that brings mail, or wants to.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::openapi) struct Session {
    #[schema(pattern = "^[0-9]+$")]
    id: String,
    protocol: Protocol,
    /// The IP address of the client; null at a unix socket.
    #[schema(required)]
    client: Option<String>,
    /// The name that the client gave itself.
    #[schema(required)]
    helo: Option<String>,
    #[schema(required)]
    tls: Option<Tls>,
    /// Who has logged in.
    #[schema(required)]
    user: Option<String>,
    #[schema(format = DateTime)]
    started: String,
    /// The same, in milliseconds since 1970.
    started_millis: i64,
    /// When it ended; null as long as it has not, or where nobody saw it.
    #[schema(required)]
    ended_millis: Option<i64>,
    /// How it ended.
    #[schema(required)]
    ending: Option<String>,
    transactions: Vec<Transaction>,
    /// How many commands were refused.
    refused: u64,
}

/// What a session speaks.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::openapi) enum Protocol {
    Smtp,
    Lmtp,
}

/// What keeps a session from being read by others.
#[derive(ToSchema)]
pub(in crate::openapi) struct Tls {
    version: String,
    cipher: String,
}

/// A mail that a session brought, or wanted to.
#[derive(ToSchema)]
pub(in crate::openapi) struct Transaction {
    /// The sender of the envelope; empty for a bounce.
    from: String,
    /// The recipients of the envelope.
    to: Vec<String>,
    parameters: Parameters,
    outcome: Outcome,
    /// What the server said to it in the end.
    #[schema(required)]
    reply: Option<String>,
    /// Where the mail is, of the mailboxes that the credentials reach.
    messages: Vec<Identifier>,
}

/// What stood behind the addresses, such as `SIZE`, `RET`, `ENVID`, `NOTIFY` and `ORCPT`.
#[derive(ToSchema)]
pub(in crate::openapi) struct Parameters {
    mail: String,
    /// One for each recipient.
    rcpt: Vec<String>,
}

/// What became of a mail.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::openapi) enum Outcome {
    Stored,
    Discarded,
    Refused,
    Aborted,
}

/// A line that was said. Secrets are left out.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::openapi) struct Line {
    #[schema(format = DateTime)]
    at: String,
    /// The same, in milliseconds since 1970.
    posix_millis: i64,
    /// The same, in milliseconds since the session began.
    after_millis: u64,
    from: Side,
    text: String,
}

/// Who says something.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::openapi) enum Side {
    Client,
    Server,
}
