//! Fakes for the tests of several modules.

pub(crate) mod fake_mail;
