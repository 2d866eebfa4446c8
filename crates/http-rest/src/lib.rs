//! The REST API, live events and the description of the API.
//!
//! - `v1`, `v2`: the versions of the REST API
//! - `live`: live events
//! - `attachments`, `preview`: attachments as files, and the HTML of a message for a frame
//! - `serve`: the paths of Inbucket's web interface
//! - `openapi`: the description of the API
//! - `routes`: the table of routes

mod attachments;
mod live;
mod openapi;
mod preview;
mod routes;
mod serve;
mod v1;
mod v2;

pub use openapi::openapi;
pub use routes::{Descriptions, api};
pub use serve::status::Status;
pub use v2::about::{About, Port};
