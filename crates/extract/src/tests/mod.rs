//! Tests of codes and links with whole messages.

mod corpus;
mod hostile;
