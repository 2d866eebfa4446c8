//! The IMAP server session (RFC 3501, RFC 9051) without I/O.

pub mod command;
