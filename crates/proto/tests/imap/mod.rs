//! Tests of the public IMAP session: conversations stored as text, attacks, and random input.

mod attacks;
mod conversations;
mod driver;
mod random_input;
mod responses;
mod store;
