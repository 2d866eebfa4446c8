//! Where a conversation can stand, as the tables of [`super`] say. What is known exists only in the states in which it
//! is valid: there is no sender without MAIL and no name without a greeting.

use restante_mail::address::Alphabet;
use restante_mail::envelope::{Envelope, Peer};

use super::auth::AuthExchange;
use super::body::BodyBuffer;
use super::chunk::Chunk;
use super::data::DataReader;
use super::reply::ErrorReply;

/// Where the conversation stands; see the tables of [`super`].
#[derive(Debug)]
pub(super) enum State {
    /// A command is due.
    Idle(Idle),
    AuthExchange(Client, AuthExchange),
    /// CRAM-MD5 waits for a challenge of the driver.
    AwaitingChallenge(Client),
    CheckingLogin(Client),
    CheckingSender(Transaction),
    CheckingRecipient(Transaction),
    ReceivingData(Transaction, DataReader),
    ReceivingChunk(Transaction, BodyBuffer, Chunk),
    DiscardingChunk(Idle, Chunk, ErrorReply),
    /// With the number of replies that the peer waits for.
    Delivering(Client, usize),
    StartingTls,
    Closed,
}

/// The states in which commands are taken.
#[derive(Debug)]
pub(super) enum Idle {
    BeforeHello,
    Ready(Client),
    Mail(Transaction),
    Chunked(Transaction, BodyBuffer),
}

/// A peer that gave its name.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) peer: Peer,
    pub(super) auth_status: AuthStatus,
}

/// Whether the peer has proved who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AuthStatus {
    Anonymous,
    Authenticated,
}

/// A mail under way.
#[derive(Debug)]
pub(super) struct Transaction {
    pub(super) envelope: Envelope,
    pub(super) auth_status: AuthStatus,
    pub(super) announced_size: usize,
    pub(super) alphabet: Alphabet,
}

impl Transaction {
    pub(super) fn into_client(self) -> Client {
        Client { peer: self.envelope.peer, auth_status: self.auth_status }
    }
}
