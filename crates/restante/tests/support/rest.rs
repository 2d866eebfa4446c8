//! One who asks the REST API and does not take it amiss when the server is gone.

use std::io;
use std::net::SocketAddr;

use serde_json::Value;

use super::LONG;

/// Asks the REST API. Errors are those of connections that break because the server was killed, or of a list that it
/// could not read in its last moment.
pub(crate) struct Reader {
    agent: ureq::Agent,
    base: String,
}

impl Reader {
    pub(crate) fn new(http: SocketAddr) -> Self {
        let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(LONG)).build();
        Self { agent: config.into(), base: format!("http://{http}/api") }
    }

    /// The summaries of a mailbox.
    pub(crate) fn list(&self, mailbox: &str) -> io::Result<Vec<Value>> {
        let (status, text) = self.ask("GET", mailbox)?;
        if status != 200 {
            let problem = String::from_utf8_lossy(&text);
            return Err(io::Error::other(format!("{mailbox} cannot be listed: {problem}")));
        }
        Ok(serde_json::from_slice(&text)?)
    }

    /// Asks for something in a mailbox; the status and the text of the answer.
    pub(crate) fn ask(&self, method: &str, path: &str) -> io::Result<(u16, Vec<u8>)> {
        let url = format!("{}/v1/mailbox/{path}", self.base);
        match method {
            "DELETE" => Self::read(self.agent.delete(url).call()),
            "PATCH" => Self::read(self.agent.patch(url).send_empty()),
            _ => Self::read(self.agent.get(url).call()),
        }
    }

    /// The status and the text of the answer to a GET.
    pub(crate) fn get(&self, path: &str) -> io::Result<(u16, Vec<u8>)> {
        Self::read(self.agent.get(format!("{}/{path}", self.base)).call())
    }

    fn read(answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> io::Result<(u16, Vec<u8>)> {
        let mut answer = answer.map_err(io::Error::other)?;
        let bytes = answer.body_mut().read_to_vec().map_err(io::Error::other)?;
        Ok((answer.status().as_u16(), bytes))
    }
}
