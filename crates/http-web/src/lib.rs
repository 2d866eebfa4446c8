//! The web interface.
//!
//! - `pages`, `greeting`: the pages and their files
//! - `embedded_assets`: the files, as the build script packs them
//! - `login`: login and logout
//! - `plain_page`: the pages that need no scripts: the login form, and the page for an unknown path
//! - `routes`: the table of routes

pub mod embedded_assets;
mod greeting;
mod login;
mod pages;
mod plain_page;
mod routes;

pub use pages::redirect_to_home;
pub use plain_page::not_found;
pub use routes::{api, root_routes};
