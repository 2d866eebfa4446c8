//! The states of a session, as listed in the tables of [`super`]. Data exists only in the states in which it is valid:
//! there is no mailbox without a login and no user name after it.

use super::maildrop::Maildrop;
use super::multiline::MultilineReply;
use super::request::FetchRequest;

/// The state of a session; see the tables of [`super`].
#[derive(Debug)]
pub(super) enum State {
    /// A command is expected.
    Idle(Idle),
    AuthExchange(AnonymousClient),
    OpeningMailbox(AnonymousClient),
    Fetching(Maildrop, FetchRequest),
    Sending(Maildrop, MultilineReply),
    Updating,
    Quitting,
    StartingTls,
    Closed,
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
