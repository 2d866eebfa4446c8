//! Tests of the MIME view with whole messages.

mod corpus;
mod hostile;
mod preview;
