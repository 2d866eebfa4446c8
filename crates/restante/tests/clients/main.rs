//! Programs and libraries of others that use the real program: clients of Mailpit, SDKs of mail providers, and IMAP clients. Each folder
//! has its clients by language, and the script `install`, which downloads them.

mod imap;
mod mailpit;
mod providers;
#[path = "../support/mod.rs"]
mod support;
