//! Where a mail goes, and whether one has to log in there. How it is handed over is known to `smtp`.

use serde_json::Value;

use crate::failure::Failure;
use crate::options::{Mailing, SMTP, variable};
use crate::server::{Question, Server};

/// Where mail goes when nobody knows better.
const DEFAULT_PLACE: &str = "localhost:2500";
const DEFAULT_PORT: u16 = 2500;

/// The way to a mail server.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Route {
    /// Host and port.
    pub(super) place: String,
    /// Whether credentials are of use there. A token that only reads would be refused where none is needed.
    pub(super) logs_in: bool,
}

impl Route {
    /// The way that was named, or that the server tells: it knows its port, also when the system has chosen it. A server that
    /// somebody named has to tell, so that no mail goes elsewhere; otherwise a mail server may be there alone.
    pub(super) fn find(smtp: Option<&str>, server: &Server, mailing: Mailing) -> Result<Self, Failure> {
        if let Some(place) = smtp.map(ToOwned::to_owned).or_else(|| variable(SMTP)) {
            return Ok(Self { place: with_port(place), logs_in: true });
        }
        let about = match server.get(Question { path: &["api", "v2", "server"], ..Question::default() }) {
            Ok(about) => about,
            Err(Failure::Nothing(_)) => Value::Null,
            Err(failure) if mailing.named => return Err(failure),
            Err(_) => Value::Null,
        };
        let smtp = &about["smtp"];
        match (server.host(), smtp["port"].as_u64()) {
            (Some(host), Some(port)) => {
                let logs_in = mailing.as_user || smtp["auth-required"] != false;
                Ok(Self { place: format!("{host}:{port}"), logs_in })
            }
            _ if mailing.named => {
                Err(Failure::Server("The server does not tell where it takes mail: use --smtp.".to_owned()))
            }
            _ => Ok(Self { place: DEFAULT_PLACE.to_owned(), logs_in: true }),
        }
    }
}

fn with_port(place: String) -> String {
    let has_port = place
        .rsplit_once(':')
        .is_some_and(|(host, port)| port.parse::<u16>().is_ok() && (!host.contains(':') || host.starts_with('[')));
    if has_port { place } else { format!("{place}:{DEFAULT_PORT}") }
}
