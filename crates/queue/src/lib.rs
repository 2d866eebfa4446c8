//! A durable queue of entries that are sent to targets, such as messages to mail servers or events to webhooks.
//!
//! A [`Queue`] stores the entries: in an SQLite file, in memory, or in a PostgreSQL database that several nodes share. A
//! [`Sender`] claims entries of one target, sends them with a [`Transport`], and reports the results, which the user of
//! the crate records. While a target cannot be reached, its [`TargetState`] lets its entries wait.
//!
//! Delivery is at least once: an entry that was sent, but whose result could not be recorded, is sent again.

mod context;
mod entry;
mod postgres;
mod queue;
mod room;
mod sender;
mod sqlite;
mod target_state;
#[cfg(test)]
mod tests;
mod waiting;

pub use context::{Context, Stage, create_runtime};
pub use entry::{
    AttemptOutcome, AttemptRecord, Entry, EntryFilter, EntryId, EntryState, NewEntry, Selection, StateCount,
};
pub use postgres::PostgresQueue;
pub use queue::{
    AbandonedCheckpoint, AddError, EntryControl, ForwardOutcome, Limits, Queue, QueueKind, TargetLimits, TargetRecord,
};
pub use sender::{Attempt, Contact, Sender, Transport};
pub use sqlite::SqliteQueue;
pub use target_state::TargetState;
