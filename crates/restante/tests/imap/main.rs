//! IMAP with the real program and real clients.

mod clients;
#[path = "../support/mod.rs"]
mod support;
