//! Several nodes on one PostgreSQL, as the real programs: what one of them takes all of them have, whatever is killed, cut off or
//! hangs meanwhile. Every test has a database and nodes of its own. Without PostgreSQL on this machine they say that they were
//! skipped.

mod end;
mod events;
mod letters;
mod listeners;
mod nodes;
mod reading;
mod retention;
mod storms;
#[path = "../support/mod.rs"]
mod support;
