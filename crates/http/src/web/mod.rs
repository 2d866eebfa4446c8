//! The web interface, and the paths of Inbucket's.
//!
//! - `pages`, `assets`, `greeting`: the pages and their files
//! - `login`, `login_page`: the login form
//! - `not_found`: the response to an unknown path
//! - `plain_page`: the frame of the pages that need no scripts
//! - `message`, `preview`: a message for Inbucket's page, and the HTML of a message for a frame
//! - `attachments`: attachments as files

pub(crate) mod assets;
pub(crate) mod attachments;
pub(crate) mod greeting;
pub(crate) mod login;
mod login_page;
pub(crate) mod message;
pub(crate) mod not_found;
pub(crate) mod pages;
mod plain_page;
pub(crate) mod preview;
