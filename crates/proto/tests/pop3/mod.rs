//! Tests of the public POP3 session: conversations stored as text, attacks, and random input.

mod attacks;
mod conversations;
mod driver;
mod partial_replies;
mod random_input;
