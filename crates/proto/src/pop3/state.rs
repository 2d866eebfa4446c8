//! The states of a session, as listed in the tables of [`super`]. Data exists only in the states in which it is valid:
//! there is no mailbox without a login and no user name after it.

use crate::sasl::{Exchange, Mechanism};

use super::Refusal;
use super::maildrop::Maildrop;
use super::multiline::MultilineReply;
use super::request::FetchRequest;

/// The state of a session; see the tables of [`super`].
#[derive(Debug)]
pub(super) enum State {
    /// A command is expected.
    Idle(Idle),
    AuthExchange(AnonymousClient, AuthExchange),
    /// With the mechanism of AUTH, if the client used it.
    OpeningMailbox(AnonymousClient, Option<Mechanism>),
    Fetching(Maildrop, FetchRequest),
    Sending(Maildrop, MultilineReply),
    Updating,
    Quitting,
    StartingTls,
    Closed,
}

/// What AUTH waits for.
#[derive(Debug)]
pub(super) enum AuthExchange {
    /// The next message of the client.
    Sasl(Exchange),
    /// Any line. The client was sent the reason why its bearer token is refused, and this is the reply after it.
    Refused(Refusal),
}

/// The states in which commands are accepted.
#[derive(Debug)]
pub(super) enum Idle {
    Authorization(AnonymousClient),
    Transaction(Maildrop),
}

/// A client that has not logged in.
#[derive(Debug, Default)]
pub(super) struct AnonymousClient {
    /// The argument of USER, while PASS may follow.
    pub(super) user: Option<String>,
    /// Whether it has sent the command UTF8. Messages are sent as stored in both cases.
    pub(super) is_utf8: bool,
}
