//! The API of Mailpit and the program as a replacement for Mailpit: clients written for Mailpit, and a comparison of all answers with
//! those of a real Mailpit.

mod clients;
mod differential;
mod server;
#[path = "../support/mod.rs"]
mod support;
mod testcontainers_java;
