//! Tests of the POP3 session from the outside: conversations kept as text, attacks by name, and random input.

mod attacks;
mod conversations;
#[path = "../script/cuts.rs"]
mod cuts;
mod driver;
mod portions;
#[path = "../script/mod.rs"]
mod script;
mod soup;
