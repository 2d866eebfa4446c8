//! Who may do what: users and tokens, and what they are allowed. How a protocol asks for credentials, and what it answers
//! when they are wrong, is its own business.
//!
//! [`Keeper`] checks all logins. `users` and `tokens` are the two files, each `watched` for changes; `memory` remembers recent
//! successful logins, `login_throttle` delays logins after failed ones, and `session` is the cookie of a login by the web page.
//! [`tokens`] and [`users`] are also what the commands use that change the files, by way of `replace`.

mod client;
mod denied;
mod grant;
mod hash;
mod keeper;
mod locks;
mod login_throttle;
mod memory;
mod replace;
mod session;
pub mod tokens;
pub mod users;
mod watched;

pub use client::Client;
pub use denied::{Denied, Reason};
pub use grant::{Grant, Scope, Scopes};
pub use keeper::{Configured, Keeper, Pass, Settings};
pub use locks::Locks;
