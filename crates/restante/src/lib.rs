//! Restante: a mail server that keeps instead of sends.
//!
//! This crate is the outermost one: configuration, listeners, TLS, the protocol servers, and the wiring between them.
//! What a mail is, what SMTP says, where mail is kept and who hears of it live in the crates below.

pub mod command_line;
pub mod config;
mod constant_time;
pub mod extensions;
pub mod health;
pub mod html;
pub mod http;
pub mod mailserver;
pub mod manual;
pub mod metrics;
pub mod net;
pub mod pop3;
pub mod process;
pub mod script;
pub mod serve;
pub mod smtp;
pub mod storage;
pub mod token;
pub mod transfer;
pub mod user;
