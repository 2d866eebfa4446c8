//! Webhooks: sends HTTP requests to other programs when messages are stored or deleted. Never delays a delivery.
//!
//! [`Webhooks`] gets an event from the mailroom and puts it into the `inbox`, which is in memory and bounded. The `writer`
//! adds an entry for each matching target to the queue (`restante_queue`), and records the results of the senders. Each
//! target has its own senders, so that an unavailable target does not delay the others. They use the `transport`.
//!
//! **No event of a stored message is lost while there is room.** The writer records a checkpoint in the queue: all events of
//! messages up to it were queued. If the process or the node dies, the next start or another node reads the messages above
//! the checkpoint from the store and queues their events, unless they exist. The key of an entry is the id of its event, so
//! an event is not queued twice while its entry exists: the last 10,000 finished entries are kept. Every node queues the
//! events of its own changes, in their order. Deletions, and messages that were deleted meanwhile, cannot be found again.
//! Neither can changes of a database that were made although their reply was lost, unless the node dies afterwards.

mod attempt_result;
mod backoff;
mod counts;
mod endpoint;
mod filter;
mod inbox;
mod key;
mod payload;
mod settings;
mod target;
#[cfg(test)]
mod tests;
mod transport;
mod webhooks;
mod writer;

pub use counts::Counts;
pub use filter::Filter;
pub use key::Key;
pub use payload::event_of;
pub use restante_queue::{Entry, EntryFilter, EntryId, EntryState, Selection};
pub use settings::{EventKind, QUEUE, QUEUE_LIMITS, Settings, Target};
pub use target::TargetStatus;
pub use webhooks::Webhooks;
