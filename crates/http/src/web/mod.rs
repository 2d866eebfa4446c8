//! The web interface, and the paths of Inbucket's.
//!
//! - `pages`, `greeting`: the pages and their files
//! - `login`: login and logout
//! - `plain_page`: the pages that need no scripts: the login form, and the page for an unknown path
//! - `message`, `preview`: a message for Inbucket's page, and the HTML of a message for a frame
//! - `attachments`: attachments as files

pub(crate) mod attachments;
pub(crate) mod greeting;
pub(crate) mod login;
pub(crate) mod message;
pub(crate) mod pages;
pub(crate) mod plain_page;
pub(crate) mod preview;
