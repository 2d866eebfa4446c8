//! Tests of the public IMAP session: conversations stored as text, and random input.

mod conversations;
mod driver;
mod random_input;
mod responses;
mod store;
