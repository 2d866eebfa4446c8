//! Tests of codes and links with whole mails.

mod corpus;
mod hostile;
