//! The HTTP APIs of mail providers with real SDKs. Every SDK sends the same messages and checks the answers; then the stored
//! messages are compared with those in `clients/messages.json`.

mod clients;
mod messages;
#[path = "../support/mod.rs"]
mod support;
