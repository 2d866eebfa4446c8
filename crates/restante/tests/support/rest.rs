//! A client of the REST API that reports a killed server as an error.

use std::io;
use std::net::SocketAddr;

use serde_json::Value;

use super::TEST_TIMEOUT;

/// A client of the REST API. Errors are broken connections because the server was killed, and lists that it could not read while
/// it was being killed.
pub(crate) struct Reader {
    agent: ureq::Agent,
    base: String,
}

impl Reader {
    pub(crate) fn new(http: SocketAddr) -> Self {
        let config =
            ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(TEST_TIMEOUT)).build();
        Self { agent: config.into(), base: format!("http://{http}/api") }
    }

    /// Returns the summaries of a mailbox.
    pub(crate) fn list(&self, mailbox: &str) -> io::Result<Vec<Value>> {
        let (status, text) = self.request("GET", mailbox)?;
        if status != 200 {
            let problem = String::from_utf8_lossy(&text);
            return Err(io::Error::other(format!("{mailbox} cannot be listed: {problem}")));
        }
        Ok(serde_json::from_slice(&text)?)
    }

    /// Sends a request about a mailbox. Returns the status and the body of the response.
    pub(crate) fn request(&self, method: &str, path: &str) -> io::Result<(u16, Vec<u8>)> {
        let url = format!("{}/v1/mailbox/{path}", self.base);
        match method {
            "DELETE" => Self::read(self.agent.delete(url).call()),
            "PATCH" => Self::read(self.agent.patch(url).send_empty()),
            _ => Self::read(self.agent.get(url).call()),
        }
    }

    /// Sends a GET. Returns the status and the body of the response.
    pub(crate) fn get(&self, path: &str) -> io::Result<(u16, Vec<u8>)> {
        Self::read(self.agent.get(format!("{}/{path}", self.base)).call())
    }

    fn read(response: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> io::Result<(u16, Vec<u8>)> {
        let mut response = response.map_err(io::Error::other)?;
        let bytes = response.body_mut().read_to_vec().map_err(io::Error::other)?;
        Ok((response.status().as_u16(), bytes))
    }
}
