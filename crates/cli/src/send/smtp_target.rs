//! Finds the SMTP server to send to, and whether to authenticate there. `smtp` sends the message.

use std::net::Ipv6Addr;

use serde_json::Value;

use super::stream::UNIX_PREFIX;
use crate::error::CommandError;
use crate::options::{Options, SMTP_VARIABLE, env_variable};
use crate::server::Server;

/// The address if neither the user nor the server gives one.
const DEFAULT_ADDR: &str = "localhost:2500";
const DEFAULT_PORT: u16 = 2500;

/// An SMTP server.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SmtpTarget {
    /// Host and port, or `unix:/path`.
    pub(super) addr: String,
    /// True if credentials should be sent: they are required, or choose the project of the message. A read-only token would be
    /// refused even if no authentication is required.
    pub(super) use_credentials: bool,
}

impl SmtpTarget {
    /// Returns the address given by the user, or the one reported by the server, which knows its port even if the
    /// system has chosen it. A server given by the user must report its port, so that messages are not sent to another
    /// server. If the user gives no server, the default address is used: there may be an SMTP server without an API.
    pub(super) fn find(smtp: Option<&str>, server: &Server, options: &Options) -> Result<Self, CommandError> {
        if let Some(addr) = smtp.map(ToOwned::to_owned).or_else(|| env_variable(SMTP_VARIABLE)) {
            let addr = with_port(&addr).map_err(|reason| {
                CommandError::Usage(format!(
                    "The address of the SMTP server {addr:?} is invalid: {reason}. Use HOST or HOST:PORT, for example \
                     localhost:2500."
                ))
            })?;
            return Ok(Self { addr, use_credentials: true });
        }
        let info = match server.get(&["api", "v2", "server"], &[]) {
            Ok(info) => info,
            Err(CommandError::NotFound(_)) => Value::Null,
            Err(error) if options.is_server_named() => return Err(error),
            Err(_) => Value::Null,
        };
        let smtp = &info["smtp"];
        match (server.host(), smtp["port"].as_u64()) {
            (Some(host), Some(port)) => {
                let has_project = info["project"].is_string();
                let use_credentials = options.user.is_some() || has_project || smtp["auth-required"] != false;
                Ok(Self { addr: format!("{host}:{port}"), use_credentials })
            }
            _ if options.is_server_named() => {
                Err(CommandError::Server("The server does not report an SMTP port: use --smtp.".to_owned()))
            }
            _ => Ok(Self { addr: DEFAULT_ADDR.to_owned(), use_credentials: true }),
        }
    }
}

/// Returns the address with a port. Fails if it is not `HOST`, `HOST:PORT` or `unix:/path`.
fn with_port(addr: &str) -> Result<String, String> {
    if addr.starts_with(UNIX_PREFIX) {
        return Ok(addr.to_owned());
    }
    if addr.contains('/') {
        return Err("it must not be a URL".to_owned());
    }
    if addr.parse::<Ipv6Addr>().is_ok() {
        return Ok(format!("[{addr}]:{DEFAULT_PORT}"));
    }
    let (host, port) = match addr.rsplit_once(':') {
        Some((host, port)) if !addr.ends_with(']') => (host, Some(port)),
        _ => (addr, None),
    };
    if host.is_empty() {
        return Err("the host is missing".to_owned());
    }
    match port {
        None => Ok(format!("{host}:{DEFAULT_PORT}")),
        Some(port) if port.parse::<u16>().is_ok_and(|port| port > 0) => Ok(addr.to_owned()),
        Some(port) => Err(format!("{port:?} is not a port")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_the_port() {
        let table = [
            ("ci.test", Ok("ci.test:2500")),
            ("ci.test:25", Ok("ci.test:25")),
            ("127.0.0.1", Ok("127.0.0.1:2500")),
            ("::1", Ok("[::1]:2500")),
            ("[::1]", Ok("[::1]:2500")),
            ("[::1]:25", Ok("[::1]:25")),
            ("unix:/run/smtp.sock", Ok("unix:/run/smtp.sock")),
            ("smtp://ci.test:25", Err("it must not be a URL")),
            ("ci.test:99999", Err("\"99999\" is not a port")),
            ("ci.test:smtp", Err("\"smtp\" is not a port")),
            ("ci.test:0", Err("\"0\" is not a port")),
            (":25", Err("the host is missing")),
            ("", Err("the host is missing")),
        ];
        for (addr, expected) in table {
            assert_eq!(with_port(addr).as_deref().map_err(String::as_str), expected, "{addr}");
        }
    }
}
