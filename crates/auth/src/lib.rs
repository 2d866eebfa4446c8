//! Who may do what: users and tokens, and what they are allowed. How a protocol asks for credentials, and what it answers
//! when they are wrong, is its own business.
//!
//! [`Keeper`] checks all logins. `users` and `tokens` are the two files, each `watched` for changes; `memory` remembers recent
//! successful logins, `login_throttle` delays logins after failed ones, and `session` is the cookie of a login by the web page.
//! [`tokens`] and [`users`] are also what the commands use that change the files, by way of `replace`.

mod auth;
mod authenticator;
mod client;
mod denied;
mod grant;
mod hash;
mod login_throttle;
mod reloading_file;
mod replace;
mod session;
pub mod tokens;
pub mod users;
mod verified_cache;

pub use auth::AuthService;
pub use authenticator::{Authenticator, ConfiguredLogin, Settings, VerifiedLogin};
pub use client::Client;
pub use denied::{DenialReason, Denied};
pub use grant::{Grant, Scope, Scopes};
