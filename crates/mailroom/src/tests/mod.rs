//! Tests of the mailroom with stores in memory.

mod cancellation;
mod delivery;
mod import;
mod messages;
mod projects;
mod shared_store;
mod waiting;
