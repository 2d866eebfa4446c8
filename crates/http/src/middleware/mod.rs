//! Middleware: processes every request before it reaches its handler.
//!
//! - `request_checks`: host and origin checks, security headers, request metrics; calls the others
//! - `forwarded`: clients of trusted proxies
//! - `cors`: cross-origin requests of permitted web pages
//! - `authentication`, `credentials`: the identity of the client

pub(crate) mod authentication;
pub(crate) mod cors;
pub(crate) mod credentials;
pub(crate) mod forwarded;
pub(crate) mod request_checks;
