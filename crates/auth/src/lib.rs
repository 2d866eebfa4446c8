//! Authentication and authorization: users, tokens and their grants. How a protocol requests credentials, and how it
//! replies if they are wrong, is in the crates of the protocols.
//!
//! [`Authenticator`] checks all logins. The files of `users` and `tokens` are `reloading_file`s. `verified_cache`
//! caches successful logins, `login_throttle` delays logins after failures, and `session` creates the cookies of the
//! web interface. The commands that change the files use [`tokens`] and [`users`], which write the file with `replace`.
//! [`runs`] are projects with a limited lifetime and a signed token. [`Rights`] are what an operator grants to a user or token, and a
//! [`Grant`] is what they mean for a request. `oidc` logs in accounts of an identity provider, and [`ClaimGrants`] are the rights of
//! these and of the users of an authenticating proxy.

mod auth;
mod authenticator;
mod claim_grants;
mod client;
mod denied;
mod grant;
mod hash;
mod hash_memory;
mod login_throttle;
pub mod oidc;
mod reloading_file;
mod replace;
mod rights;
pub mod runs;
mod session;
pub mod tokens;
pub mod users;
mod verified_cache;

pub use auth::AuthService;
pub use authenticator::{
    Authenticator, AuthorizationResponse, CompletedLogin, ConfiguredLogin, Settings, SingleSignOnError, StartedLogin,
    UserHeaders, VerifiedLogin,
};
pub use claim_grants::ClaimGrants;
pub use client::Client;
pub use denied::{DenialReason, Denied};
pub use grant::{Grant, Scope, Scopes};
pub use hash::PasswordHash;
pub use rights::{Rights, patterns_in_projects};
