//! Tests of the real program over SMTP, LMTP, POP3 and IMAP: sessions, clients, proxies, signals, transcripts, and scripts that decide about
//! messages.

mod clients;
mod conversations;
mod imap;
mod pop3;
mod process;
mod projects;
mod proxies;
mod ready;
mod scripting;
mod session_endings;
mod smtp;
mod transcripts;
