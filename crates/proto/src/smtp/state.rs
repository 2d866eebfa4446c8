//! The states of a session, as listed in the tables of [`super`]. Data exists only in the states in which it is valid:
//! there is no sender without MAIL and no client name without a greeting.

use restante_mail::address::Alphabet;
use restante_mail::envelope::{Envelope, Peer};

use crate::sasl::Mechanism;

use super::auth::AuthExchange;
use super::body::BodyBuffer;
use super::chunk::Chunk;
use super::data::DataReader;
use super::reply::ErrorReply;

/// The state of a session; see the tables of [`super`].
#[derive(Debug)]
pub(super) enum State {
    /// A command is expected.
    Idle(Idle),
    AuthExchange(Client, AuthExchange),
    /// CRAM-MD5 waits for a challenge from the driver.
    AwaitingChallenge(Client),
    CheckingLogin {
        client: Client,
        /// The name that the client logs in with.
        user: String,
        /// The mechanism, except for CRAM-MD5.
        mechanism: Option<Mechanism>,
    },
    CheckingSender(Transaction),
    CheckingRecipient(Transaction),
    ReceivingData(Transaction, DataReader),
    ReceivingChunk(Transaction, BodyBuffer, Chunk),
    DiscardingChunk(Idle, Chunk, ErrorReply),
    /// With the number of replies that the client expects.
    Delivering(Client, usize),
    StartingTls,
    Closed,
}

/// The states in which commands are accepted.
#[derive(Debug)]
pub(super) enum Idle {
    BeforeHello,
    Ready(Client),
    Mail(Transaction),
    Chunked(Transaction, BodyBuffer),
}

/// A client that has sent its greeting.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) peer: Peer,
    /// The name with which it has logged in.
    pub(super) login: Option<String>,
}

/// A mail transaction.
#[derive(Debug)]
pub(super) struct Transaction {
    pub(super) envelope: Envelope,
    pub(super) announced_size: usize,
    pub(super) alphabet: Alphabet,
}

impl Transaction {
    pub(super) fn into_client(self) -> Client {
        Client { peer: self.envelope.peer, login: self.envelope.login }
    }
}
