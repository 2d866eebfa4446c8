//! The responses for Inbucket's web interface: a message, and the status of the server.

pub(crate) mod message;
pub(crate) mod status;
