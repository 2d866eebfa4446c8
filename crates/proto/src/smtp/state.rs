//! Where a conversation can stand, as the tables of [`super`] say. What is known exists only in the states in which it
//! is valid: there is no sender without MAIL and no name without a greeting.

use restante_mail::address::Alphabet;
use restante_mail::envelope::{Envelope, Peer};

use super::auth::Exchange;
use super::body::Body;
use super::chunk::Chunk;
use super::data::DataReader;
use super::reply::ErrorReply;

/// Where the conversation stands; see the tables of [`super`].
#[derive(Debug)]
pub(super) enum State {
    /// A command is due.
    Idle(Idle),
    Challenge(Client, Exchange),
    /// CRAM-MD5 waits for a challenge of the driver.
    Challenging(Client),
    Login(Client),
    Sender(Transaction),
    Recipient(Transaction),
    Data(Transaction, DataReader),
    Chunk(Transaction, Body, Chunk),
    Swallow(Idle, Chunk, ErrorReply),
    /// With the number of replies that the peer waits for.
    Delivering(Client, usize),
    Tls,
    Closed,
}

/// The states in which commands are taken.
#[derive(Debug)]
pub(super) enum Idle {
    Fresh,
    Ready(Client),
    Mail(Transaction),
    Chunked(Transaction, Body),
}

/// A peer that gave its name.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) peer: Peer,
    pub(super) trust: Trust,
}

/// Whether the peer has proved who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    Anonymous,
    Authenticated,
}

/// A mail under way.
#[derive(Debug)]
pub(super) struct Transaction {
    pub(super) envelope: Envelope,
    pub(super) trust: Trust,
    pub(super) announced: usize,
    pub(super) alphabet: Alphabet,
}

impl Transaction {
    pub(super) fn into_client(self) -> Client {
        Client { peer: self.envelope.peer, trust: self.trust }
    }
}
