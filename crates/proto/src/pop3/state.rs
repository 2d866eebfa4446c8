//! Where a conversation can stand, as the tables of [`super`] say. What is known exists only in the states in which it
//! is valid: there is no mailbox without a login and no user name behind it.

use super::maildrop::Maildrop;
use super::multiline::MultilineReply;
use super::request::FetchRequest;

/// Where the conversation stands; see the tables of [`super`].
#[derive(Debug)]
pub(super) enum State {
    /// A command is due.
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

/// The states in which commands are taken.
#[derive(Debug)]
pub(super) enum Idle {
    Authorization(AnonymousClient),
    Transaction(Maildrop),
}

/// A peer that has not logged in.
#[derive(Debug, Default)]
pub(super) struct AnonymousClient {
    /// What USER said, as long as PASS may follow.
    pub(super) user: Option<String>,
    pub(super) utf8_mode: Utf8Mode,
}

/// Whether the peer gave the command UTF8. Messages go out as they came in either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Utf8Mode {
    #[default]
    Off,
    On,
}
