//! Finds the SMTP server to send to, and whether to authenticate there. `smtp` sends the message.

use serde_json::Value;

use super::stream::UNIX_PREFIX;
use crate::error::CommandError;
use crate::options::{SMTP_VARIABLE, SmtpOptions, env_variable};
use crate::server::{ApiRequest, Server};

/// The address if neither the user nor the server gives one.
const DEFAULT_ADDR: &str = "localhost:2500";
const DEFAULT_PORT: u16 = 2500;

/// An SMTP server.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SmtpTarget {
    /// Host and port, or `unix:/path`.
    pub(super) addr: String,
    /// True if credentials should be sent. A read-only token would be refused even if no authentication is required.
    pub(super) use_credentials: bool,
}

impl SmtpTarget {
    /// Returns the address given by the user, or the one reported by the server, which knows its port even if the
    /// system has chosen it. A server given by the user must report its port, so that messages are not sent to another
    /// server. If the user gives no server, the default address is used: there may be an SMTP server without an API.
    pub(super) fn find(smtp: Option<&str>, server: &Server, options: SmtpOptions) -> Result<Self, CommandError> {
        if let Some(addr) = smtp.map(ToOwned::to_owned).or_else(|| env_variable(SMTP_VARIABLE)) {
            return Ok(Self { addr: with_port(addr), use_credentials: true });
        }
        let info = match server.get(ApiRequest { path: &["api", "v2", "server"], ..ApiRequest::default() }) {
            Ok(info) => info,
            Err(CommandError::NotFound(_)) => Value::Null,
            Err(error) if options.is_server_named => return Err(error),
            Err(_) => Value::Null,
        };
        let smtp = &info["smtp"];
        match (server.host(), smtp["port"].as_u64()) {
            (Some(host), Some(port)) => {
                let use_credentials = options.has_user || smtp["auth-required"] != false;
                Ok(Self { addr: format!("{host}:{port}"), use_credentials })
            }
            _ if options.is_server_named => {
                Err(CommandError::Server("The server does not report an SMTP port: use --smtp.".to_owned()))
            }
            _ => Ok(Self { addr: DEFAULT_ADDR.to_owned(), use_credentials: true }),
        }
    }
}

fn with_port(addr: String) -> String {
    let has_port = addr
        .rsplit_once(':')
        .is_some_and(|(host, port)| port.parse::<u16>().is_ok() && (!host.contains(':') || host.starts_with('[')));
    if has_port || addr.starts_with(UNIX_PREFIX) { addr } else { format!("{addr}:{DEFAULT_PORT}") }
}
