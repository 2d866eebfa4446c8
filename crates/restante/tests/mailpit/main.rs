//! The API of Mailpit and the program as a replacement for Mailpit: clients written for Mailpit, comparisons of all answers and of
//! other behavior with those of a real Mailpit, and what the tests of Mailpit check.

mod checks;
mod clients;
mod differential;
mod outside_the_api;
mod server;
#[path = "../support/mod.rs"]
mod support;
mod testcontainers_java;
