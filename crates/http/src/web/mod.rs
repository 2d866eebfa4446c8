//! The web interface, and the paths of Inbucket's.
//!
//! - `pages`, `assets`, `greeting`: the pages and their files
//! - `login`, `login_page`: the login form
//! - `message`, `preview`: a message for Inbucket's page, and the HTML of a message for a frame
//! - `attachments`: attachments as files

pub(crate) mod assets;
pub(crate) mod attachments;
pub(crate) mod greeting;
pub(crate) mod login;
mod login_page;
pub(crate) mod message;
pub(crate) mod pages;
pub(crate) mod preview;
