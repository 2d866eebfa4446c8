//! Tests of the example scripts, and fakes for the tests of several modules.

mod examples;
pub(crate) mod fake_mail;
