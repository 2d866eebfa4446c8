//! Counters of the relay, for metrics.

use std::sync::atomic::Ordering::Relaxed;

use restante_queue::{StateCount, TargetState};

/// The counters of the relay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The counters of each target, in the order of the settings.
    pub targets: Vec<TargetCounts>,
    /// The number of entries by target and state, when the queue was last read. In a shared database they are those of
    /// all nodes.
    pub entries: Vec<StateCount>,
    /// The messages that matched a rule and were not forwarded because they are in a loop.
    pub loops: u64,
    /// The recipients that matched a rule and that the target does not allow.
    pub recipients_not_allowed: u64,
}

/// The counters of a target on this node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetCounts {
    /// The name.
    pub target: String,
    /// The attempts after which all recipients were delivered.
    pub delivered: u64,
    /// The attempts after which the entry waits for a retry.
    pub deferred: u64,
    /// The attempts after which the entry has failed.
    pub failed: u64,
    /// The failures of connections.
    pub connection_failures: u64,
    /// Whether the target is paused because it cannot be reached.
    pub is_paused: bool,
}

impl TargetCounts {
    pub(crate) fn new(state: &TargetState) -> Self {
        Self {
            target: state.name.clone(),
            delivered: state.delivered.load(Relaxed),
            deferred: state.deferred.load(Relaxed),
            failed: state.failed.load(Relaxed),
            connection_failures: state.contact_failures.load(Relaxed),
            is_paused: state.is_paused(),
        }
    }
}
