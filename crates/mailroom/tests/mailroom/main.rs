//! Tests of the mailroom over stores in memory.

mod cancellation;
mod delivery;
mod shared_store;
mod waiting;
