//! What tests want out of a mail: its links, the one-time codes in it, and the ways to unsubscribe.

mod written;

pub use written::Written;
