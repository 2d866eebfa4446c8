//! The API of Mailpit and the program as a replacement for Mailpit: clients written for Mailpit, a comparison of all answers with
//! those of a real Mailpit, and what the tests of Mailpit check.

mod checks;
mod clients;
mod differential;
mod server;
#[path = "../support/mod.rs"]
mod support;
mod testcontainers_java;
