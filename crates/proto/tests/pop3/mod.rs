//! Tests of the POP3 session from the outside: conversations kept as text, attacks by name, and random input.

mod attacks;
mod conversations;
mod driver;
mod portions;
mod soup;
