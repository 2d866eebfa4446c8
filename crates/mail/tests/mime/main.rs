//! Tests of the MIME view with whole mails.

mod corpus;
mod hostile;
