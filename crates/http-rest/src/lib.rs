//! The REST API and live events.
//!
//! - `v1`, `v2`: the versions of the REST API
//! - `live`: live events
//! - `attachments`, `preview`: attachments as files, and the HTML of a message for a frame
//! - `serve`: the paths of Inbucket's web interface
//! - `schemas`: the schemas of responses, for the description of the API
//! - `routes`: the table of routes

mod attachments;
mod live;
mod preview;
mod routes;
mod schemas;
mod serve;
mod v1;
mod v2;

pub use routes::{Descriptions, api};
pub use schemas::schemas;
pub use serve::status::Status;
pub use v2::about::{About, Port};
