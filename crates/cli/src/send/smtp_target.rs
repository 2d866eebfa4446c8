//! Where a mail goes, and whether one has to log in there. How it is handed over is known to `smtp`.

use serde_json::Value;

use crate::error::CommandError;
use crate::options::{SMTP_VARIABLE, SmtpOptions, env_variable};
use crate::server::{ApiRequest, Server};

/// Where mail goes when nobody knows better.
const DEFAULT_ADDR: &str = "localhost:2500";
const DEFAULT_PORT: u16 = 2500;

/// The way to a mail server.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SmtpTarget {
    /// Host and port.
    pub(super) addr: String,
    /// Whether credentials are of use there. A token that only reads would be refused where none is needed.
    pub(super) use_credentials: bool,
}

impl SmtpTarget {
    /// The way that was named, or that the server tells: it knows its port, also when the system has chosen it. A server that
    /// somebody named has to tell, so that no mail goes elsewhere; otherwise a mail server may be there alone.
    pub(super) fn find(smtp: Option<&str>, server: &Server, mailing: SmtpOptions) -> Result<Self, CommandError> {
        if let Some(place) = smtp.map(ToOwned::to_owned).or_else(|| env_variable(SMTP_VARIABLE)) {
            return Ok(Self { addr: with_port(place), use_credentials: true });
        }
        let about = match server.get(ApiRequest { path: &["api", "v2", "server"], ..ApiRequest::default() }) {
            Ok(about) => about,
            Err(CommandError::NotFound(_)) => Value::Null,
            Err(failure) if mailing.is_server_named => return Err(failure),
            Err(_) => Value::Null,
        };
        let smtp = &about["smtp"];
        match (server.host(), smtp["port"].as_u64()) {
            (Some(host), Some(port)) => {
                let logs_in = mailing.has_user || smtp["auth-required"] != false;
                Ok(Self { addr: format!("{host}:{port}"), use_credentials: logs_in })
            }
            _ if mailing.is_server_named => {
                Err(CommandError::Server("The server does not tell where it takes mail: use --smtp.".to_owned()))
            }
            _ => Ok(Self { addr: DEFAULT_ADDR.to_owned(), use_credentials: true }),
        }
    }
}

fn with_port(place: String) -> String {
    let has_port = place
        .rsplit_once(':')
        .is_some_and(|(host, port)| port.parse::<u16>().is_ok() && (!host.contains(':') || host.starts_with('[')));
    if has_port { place } else { format!("{place}:{DEFAULT_PORT}") }
}
