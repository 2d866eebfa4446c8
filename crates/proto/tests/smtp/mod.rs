//! Tests of the public SMTP session: conversations stored as text, attacks, and random input.

mod attacks;
mod conversations;
mod driver;
mod random_input;
mod refusals;
mod transcript;
