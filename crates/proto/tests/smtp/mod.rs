//! Tests of the SMTP session from the outside: conversations kept as text, attacks by name, and random input.

mod attacks;
mod conversations;
mod driver;
mod record;
mod refusals;
mod soup;
