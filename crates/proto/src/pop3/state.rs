//! Where a conversation can stand, as the tables of [`super`] say. What is known exists only in the states in which it
//! is valid: there is no mailbox without a login and no user name behind it.

use super::answer::Answer;
use super::maildrop::Maildrop;
use super::request::Request;

/// Where the conversation stands; see the tables of [`super`].
#[derive(Debug)]
pub(super) enum State {
    /// A command is due.
    Idle(Idle),
    Challenge(Visitor),
    Opening(Visitor),
    Fetching(Maildrop, Request),
    Sending(Maildrop, Answer),
    Updating,
    Leaving,
    Tls,
    Closed,
}

/// The states in which commands are taken.
#[derive(Debug)]
pub(super) enum Idle {
    Authorization(Visitor),
    Transaction(Maildrop),
}

/// A peer that has not logged in.
#[derive(Debug, Default)]
pub(super) struct Visitor {
    /// What USER said, as long as PASS may follow.
    pub(super) user: Option<String>,
    pub(super) mode: Mode,
}

/// Whether the peer gave the command UTF8. Messages go out as they came in either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    #[default]
    Plain,
    Utf8,
}
