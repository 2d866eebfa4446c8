//! Tests of the public IMAP session: conversations stored as text, attacks, random input, and the view of a client.

mod attacks;
mod client_view;
mod conversations;
mod driver;
mod random_input;
mod responses;
mod store;
