//! The web interface.
//!
//! - `pages`, `greeting`: the pages and their files
//! - `embedded_assets`: the files, as the build script packs them
//! - `login`: login and logout
//! - `single_sign_on`: login and logout with an identity provider
//! - `plain_page`: the pages that need no scripts: the login form, and messages such as that for an unknown path
//! - `routes`: the table of routes

#[cfg(test)]
mod build_tests;
pub mod embedded_assets;
mod greeting;
mod login;
mod pages;
mod plain_page;
mod routes;
mod single_sign_on;

pub use pages::redirect_to_home;
pub use plain_page::{no_access, not_found};
pub use routes::{api, root_routes};
