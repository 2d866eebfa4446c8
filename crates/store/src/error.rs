//! What can go wrong in a store. None of it is the peer's fault: a missing message is an answer, not an error.

use std::fmt;

/// The result of asking a store.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Why a store could not do its work. The text is for the log; peers get a plain sentence.
#[derive(Clone, Debug)]
pub enum StoreError {
    /// There is no room: the disk is full or a quota is reached. The operator can help, and the peer may try again.
    NoSpace(String),
    /// It cannot be reached or does not answer now. The peer may try again.
    Unavailable(String),
    /// What it holds is damaged, or we made a mistake.
    Broken(String),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSpace(cause) => write!(f, "no space left in the store: {cause}"),
            Self::Unavailable(cause) => write!(f, "store unavailable: {cause}"),
            Self::Broken(cause) => write!(f, "store broken: {cause}"),
        }
    }
}

impl std::error::Error for StoreError {}
