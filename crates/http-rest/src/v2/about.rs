//! The description of the server for the web interface, beyond `/serve/status` for clients of Inbucket: how to send and
//! fetch mail, with the ports that are really bound.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use restante_auth::{Grant, Scope};
use restante_http_core::response::problem::Problem;
use restante_http_core::response::success;
use restante_http_core::server::{Server, Settings};
use restante_mail::naming::Project;
use restante_settings::{Config, Tls};
use serde::Serialize;
use utoipa::ToSchema;

use crate::serve::status::build_date;

/// The path of the handler.
pub(crate) const ABOUT_PATH: &str = "/api/v2/server";

/// The part of the description that does not change while the server runs.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct About {
    version: &'static str,
    #[schema(format = DateTime)]
    build_date: String,
    started_millis: i64,
    /// What mailboxes are named after: `local`, `full` or `domain`.
    mailbox_naming: String,
    /// Whether the web interface shows the monitor and the list of mailboxes.
    monitor_visible: bool,
    pub(super) smtp: Smtp,
    pop3: Pop3,
    imap: Imap,
}

/// How to send mail to the server.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Smtp {
    #[schema(required)]
    pub(super) port: Option<u16>,
    domain: String,
    /// `off`, `starttls` (offered) or `implicit`.
    pub(super) tls: &'static str,
    auth_required: bool,
    max_message_bytes: usize,
    max_recipients: usize,
}

/// How to fetch mail from the server by POP3.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
struct Pop3 {
    #[schema(required)]
    port: Option<u16>,
    /// `off`, `starttls` (offered) or `implicit`.
    tls: &'static str,
}

/// How to read mail on the server by IMAP.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
struct Imap {
    #[schema(required)]
    port: Option<u16>,
    /// `off`, `starttls` (offered) or `implicit`.
    tls: &'static str,
}

/// A TCP port of a mail protocol.
#[derive(Clone, Copy, Debug)]
pub struct Port {
    /// The port number.
    pub number: u16,
    /// Whether TLS starts with the first byte.
    pub implicit_tls: bool,
}

impl About {
    /// Creates the description of a server with this configuration. `smtp` and those of POP3 and IMAP are its ports, if any,
    /// and `started` is its start time.
    pub fn new(config: &Config, smtp: Option<Port>, [pop3, imap]: [Option<Port>; 2], started: Timestamp) -> Self {
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
                max_message_bytes: config.effective_max_message_bytes(),
                max_recipients: config.smtp.max_recipients,
            },
            pop3: Pop3 { port: pop3.map(|port| port.number), tls: tls(pop3, &config.pop3.tls) },
            imap: Imap { port: imap.map(|port| port.number), tls: tls(imap, &config.imap.tls) },
        }
    }
}

/// Returns how a client uses TLS on a port.
fn tls(port: Option<Port>, tls: &Tls) -> &'static str {
    match port {
        Some(Port { implicit_tls: true, .. }) => "implicit",
        Some(_) if tls.enabled => "starttls",
        _ => "off",
    }
}

/// The version and the settings of the server, and how to send and fetch mail.
#[derive(Serialize, ToSchema)]
#[schema(as = Server)]
pub(crate) struct AboutResponse<'a> {
    #[serde(flatten)]
    about: &'a About,
    // The script can be replaced after the start, so it is not in `About`.
    /// The file name of the Lua script, or null without a script.
    #[schema(required)]
    script: Option<String>,
    /// The number of webhook targets.
    webhooks: usize,
    /// The names of the relay targets that the credentials allow to send messages to.
    relay: Vec<&'a str>,
    /// Whether failures of SMTP can be simulated.
    chaos: bool,
    /// The project of mailboxes that are named without one, or null. Responses leave it out of the names of mailboxes.
    #[schema(required)]
    project: Option<&'a str>,
    /// The authenticated user, or null without authentication.
    #[schema(required)]
    user: Option<&'a str>,
    /// Whether requests must be authenticated.
    locked: bool,
}

/// Returns the description of the server as JSON.
pub(crate) async fn about(
    State(server): State<Arc<Server>>,
    Extension(about): Extension<Arc<About>>,
    Extension(grant): Extension<Grant>,
) -> Result<Response, Problem> {
    let Settings { services, .. } = &server.settings;
    let (script, webhooks) =
        (services.script_name(), services.webhooks.as_ref().map_or(0, |webhooks| webhooks.target_count()));
    let can_release = grant.allows_somewhere(Scope::Relay) && grant.allows_somewhere(Scope::Read);
    let relay = services.relay.iter().filter(|_| can_release).flat_map(|relay| relay.targets());
    success::no_store_json(&AboutResponse {
        about: &about,
        script,
        webhooks,
        relay: relay.map(|target| target.name.as_str()).collect(),
        chaos: server.mailroom.chaos().is_some(),
        project: grant.home().map(Project::as_str),
        user: grant.name(),
        locked: server.settings.required_auth().is_some(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn about(config: &Config, [smtp, pop3, imap]: [Option<Port>; 3]) -> Value {
        let mut about =
            serde_json::to_value(About::new(config, smtp, [pop3, imap], Timestamp::UNIX_EPOCH)).expect("JSON");
        let date = about["build-date"].take();
        assert!(date.as_str().is_some_and(|date| date.parse::<Timestamp>().is_ok()), "{date}");
        about
    }

    #[test]
    fn json_for_web_interface() {
        let config = Config::default();
        let port = |number| Some(Port { number, implicit_tls: false });
        let expected = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "build-date": null,
            "started-millis": 0,
            "mailbox-naming": "local",
            "monitor-visible": true,
            "smtp": {
                "port": 2500,
                "domain": "localhost",
                "tls": "off",
                "auth-required": false,
                "max-message-bytes": 10_240_000,
                "max-recipients": 200,
            },
            "pop3": { "port": 1100, "tls": "off" },
            "imap": { "port": 1143, "tls": "off" },
        });
        assert_eq!(about(&config, [2500, 1100, 1143].map(port)), expected);
    }

    #[test]
    fn tls_depends_on_port() {
        let mut config = Config::default();
        let plain = Some(Port { number: 25, implicit_tls: false });
        let secure = Some(Port { number: 465, implicit_tls: true });
        let table = [
            (false, plain, "off"),
            (true, plain, "starttls"),
            (true, secure, "implicit"),
            (true, None, "off"),
            (false, None, "off"),
        ];
        for (enabled, port, expected) in table {
            config.smtp.tls.enabled = enabled;
            config.pop3.tls.enabled = enabled;
            config.imap.tls.enabled = enabled;
            let about = about(&config, [port; 3]);
            for protocol in ["smtp", "pop3", "imap"] {
                assert_eq!(about[protocol]["tls"], expected, "{protocol}");
            }
            assert_eq!(about["smtp"]["port"], json!(port.map(|port| port.number)));
        }
    }

    #[test]
    fn max_message_size_is_limited_by_store() {
        let mut config = Config::default();
        config.storage.max_bytes = 64_000;
        assert_eq!(about(&config, [None; 3])["smtp"]["max-message-bytes"], 63_000);
    }
}
