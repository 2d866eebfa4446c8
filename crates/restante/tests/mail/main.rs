//! Tests of the real program over SMTP, LMTP and POP3: sessions, clients and proxies, signals, transcripts, and scripts that decide
//! about mail.

mod clients;
mod conversations;
mod pop3;
mod process;
mod proxies;
mod scripting;
mod session_endings;
mod smtp;
#[path = "../support/mod.rs"]
mod support;
mod transcripts;
