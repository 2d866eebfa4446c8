//! Who may do what: users and tokens, and what they are allowed. How a protocol asks for credentials, and what it answers
//! when they are wrong, is its own business.

mod grant;

pub use grant::{Grant, Scope, Scopes};
