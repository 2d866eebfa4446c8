//! What the web interface asks about the server, beside what `/serve/status` tells clients of Inbucket: how to send mail
//! here and how to fetch it, as the server really listens.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use serde::Serialize;

use super::problem::Problem;
use super::status::build_date;
use super::{Server, fault, reply};
use crate::config::{Config, Tls};

/// Where it is asked for.
pub(super) const SERVER: &str = "/api/v2/server";

/// The answer to `/api/v2/server`.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct About {
    version: &'static str,
    build_date: String,
    started_millis: i64,
    mailbox_naming: String,
    monitor_visible: bool,
    smtp: Smtp,
    pop3: Pop3,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Smtp {
    port: Option<u16>,
    domain: String,
    tls: &'static str,
    auth_required: bool,
    max_message_bytes: usize,
    max_recipients: usize,
}

#[derive(Clone, Debug, Default, Serialize)]
struct Pop3 {
    port: Option<u16>,
    tls: &'static str,
}

/// A TCP port that a mail protocol is served on.
#[derive(Clone, Copy, Debug)]
pub struct Port {
    /// Its number.
    pub number: u16,
    /// Whether it speaks TLS from the first byte.
    pub implicit_tls: bool,
}

impl About {
    /// About a server with this configuration, which listens on these ports, if any, since then.
    pub fn of(config: &Config, smtp: Option<Port>, pop3: Option<Port>, started: Timestamp) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            build_date: build_date(),
            started_millis: started.as_millisecond(),
            mailbox_naming: config.mailbox_naming.to_string(),
            monitor_visible: config.web.monitor_visible,
            smtp: Smtp {
                port: smtp.map(|port| port.number),
                domain: config.smtp.domain.clone(),
                tls: tls(smtp, &config.smtp.tls),
                auth_required: config.smtp.require_auth,
                max_message_bytes: config.largest_message(),
                max_recipients: config.smtp.max_recipients,
            },
            pop3: Pop3 { port: pop3.map(|port| port.number), tls: tls(pop3, &config.pop3.tls) },
        }
    }
}

/// How a client gets TLS at a port.
fn tls(port: Option<Port>, tls: &Tls) -> &'static str {
    match port {
        Some(Port { implicit_tls: true, .. }) => "implicit",
        Some(_) if tls.enabled => "starttls",
        _ => "off",
    }
}

/// About this server, as JSON.
pub(super) async fn server(State(server): State<Arc<Server>>) -> Result<Response, Problem> {
    reply::current(&server.settings.about).map_err(|error| fault(&error))
}
