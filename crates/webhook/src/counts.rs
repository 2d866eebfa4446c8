//! Delivery statistics.

/// Delivery statistics of one target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Scheme, host and port of the target. The rest of its URL may be a secret.
    pub target: String,
    /// Events in the queue. In a shared database they are those of all nodes.
    pub waiting: u64,
    /// Events that the target accepted.
    pub delivered: u64,
    /// Attempts that failed and will be repeated.
    pub retried: u64,
    /// Events that were given up.
    pub failed: u64,
    /// Events that were dropped because the queue was full or the server was shutting down.
    pub dropped: u64,
}
