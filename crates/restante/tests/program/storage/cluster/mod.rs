//! Several real nodes on one PostgreSQL: every node has the messages of all others, even if nodes or the database are killed,
//! disconnected or hang. Every test has its own database and nodes. Without PostgreSQL on this machine the tests are skipped with a
//! message.

mod events;
mod messages;
mod nodes;
mod random_failures;
mod reading;
mod retention;
mod stop_flag;
mod subscribers;
