//! Webhooks: tells other programs by HTTP of mail that was stored or deleted, without ever delaying a delivery.
//!
//! An event goes through four hands. [`Webhooks`] hears of it from the mailroom, takes a place for it in the `lane` of each target
//! that wants it, and leaves it in the `intake`. The `clerk`, a thread, writes it into the `outbox` on its `shelf`, when there is
//! a data directory, and puts it into the `line` of each lane. A lane has threads of its own that make the attempts, so that a
//! dead target delays no other. Everything that waits is bounded. After a crash, `search` finds what nobody was told of.

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
