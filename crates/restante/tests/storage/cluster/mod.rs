//! Several nodes on one PostgreSQL, as the real programs: what one of them takes all of them have, whatever is killed, cut off or
//! hangs meanwhile. Every test has a database and nodes of its own. Without PostgreSQL on this machine they say that they were
//! skipped.

mod events;
mod listeners;
mod messages;
mod nodes;
mod random_failures;
mod reading;
mod retention;
mod stop_flag;
