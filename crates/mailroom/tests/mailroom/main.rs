//! Tests of the mailroom with stores in memory.

mod cancellation;
mod delivery;
mod shared_store;
mod waiting;
