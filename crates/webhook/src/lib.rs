//! Webhooks: sends HTTP requests to other programs when messages are stored or deleted. Never delays a delivery.
//!
//! An event passes through four components. [`Webhooks`] gets it from the mailroom, reserves a slot in the
//! `target_queue` of each matching target, and puts it into the `inbox`. The `persist_worker` thread writes it to the
//! `outbox` file, if there is a data directory, and passes it to the target queues. Each queue has its own threads and
//! a `retry_schedule`, so that an unavailable target does not delay the others. All queues are bounded. After a crash,
//! `missed_messages` finds stored messages for which no event was recorded.

mod attempt_result;
mod backoff;
mod counts;
mod endpoint;
mod filter;
mod inbox;
mod key;
mod missed_messages;
mod outbox;
mod outbox_file;
mod payload;
mod persist_worker;
mod retry_schedule;
mod settings;
mod target_queue;
#[cfg(test)]
mod tests;
mod webhooks;

pub use counts::Counts;
pub use key::Key;
pub use settings::{Event, Settings, Target};
pub use webhooks::Webhooks;
