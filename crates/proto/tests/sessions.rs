//! Tests of the public interface: conversations stored as text, attacks, and random input.

#[path = "script/cuts.rs"]
mod cuts;
mod imap;
mod pop3;
mod proxy;
mod script;
mod smtp;
