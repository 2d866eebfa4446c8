//! Tests of the commands against a fake server, including responses that a real server does not send on demand. Tests
//! with a real server are in the crate `restante`.

mod all_mail;
mod errors;
mod fake;
mod html_check;
mod reading;
mod relay;
mod sending;
mod watching;
mod webhook;
