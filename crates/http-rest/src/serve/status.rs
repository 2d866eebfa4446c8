//! The response for the status page of Inbucket's web interface: the version, and settings that are of interest to
//! users.

use std::sync::Arc;

use axum::Extension;
use axum::response::Response;
use jiff::Timestamp;
use restante_http_core::extractors::parameters::RequireAdmin;
use restante_http_core::response::problem::Problem;
use restante_http_core::response::success;
use restante_mail::duration;
use restante_mailroom::policy::{Domains, Policy};
use restante_net::ListenAddr;
use restante_settings::{Config, Storage};
use serde::Serialize;

/// The path of the handler.
pub(crate) const STATUS_PATH: &str = "/serve/status";

/// The response to `/serve/status`.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Status {
    version: &'static str,
    build_date: String,
    pop3_listener: String,
    imap_listener: String,
    web_listener: String,
    smtp_config: SmtpConfig,
    storage_config: StorageConfig,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
struct SmtpConfig {
    addr: String,
    default_accept: bool,
    accept_domains: Vec<String>,
    reject_domains: Vec<String>,
    default_store: bool,
    store_domains: Vec<String>,
    discard_domains: Vec<String>,
    reject_origin_domains: Vec<String>,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
struct StorageConfig {
    /// Zero means no limit.
    mailbox_msg_cap: usize,
    store_type: &'static str,
    /// Empty means forever.
    retention_period: String,
}

impl Status {
    /// Creates the status of a server with this configuration.
    pub fn from_config(config: &Config) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            build_date: build_date(),
            pop3_listener: listeners(&config.pop3.addr),
            imap_listener: listeners(&config.imap.addr),
            web_listener: listeners(&config.web.addr),
            smtp_config: SmtpConfig::new(&config.smtp.addr, &config.smtp.policy),
            storage_config: StorageConfig::new(&config.storage),
        }
    }
}

impl SmtpConfig {
    fn new(addr: &[ListenAddr], policy: &Policy) -> Self {
        let list = |domains: &Domains| domains.entries().collect();
        Self {
            addr: listeners(addr),
            default_accept: policy.default_accept,
            accept_domains: list(&policy.accept_domains),
            reject_domains: list(&policy.reject_domains),
            default_store: policy.default_store,
            store_domains: list(&policy.store_domains),
            discard_domains: list(&policy.discard_domains),
            reject_origin_domains: list(&policy.reject_origin_domains),
        }
    }
}

impl StorageConfig {
    fn new(storage: &Storage) -> Self {
        Self {
            mailbox_msg_cap: storage.mailbox_msg_cap.unwrap_or(0),
            store_type: storage.kind.name(),
            retention_period: storage.retention_period.map(duration::format).unwrap_or_default(),
        }
    }
}

/// Returns the status as JSON.
pub(crate) async fn status(_: RequireAdmin, Extension(status): Extension<Arc<Status>>) -> Result<Response, Problem> {
    success::no_store_json(&*status)
}

/// Returns the time of the build in the format of RFC 3339.
pub(crate) fn build_date() -> String {
    let second = env!("BUILD_SECOND").parse().ok();
    second.and_then(|second| Timestamp::from_second(second).ok()).unwrap_or_default().to_string()
}

fn listeners(addrs: &[ListenAddr]) -> String {
    let texts: Vec<String> = addrs.iter().map(ListenAddr::to_string).collect();
    texts.join(",")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    #[test]
    fn json_for_inbucket() {
        let mut config = Config::default();
        config.smtp.addr = vec![ListenAddr::Localhost(2500), ListenAddr::Any(25)];
        config.web.addr = vec![ListenAddr::Any(9000)];
        config.pop3.addr = Vec::new();
        config.imap.addr = Vec::new();
        config.smtp.policy = Policy { reject_domains: ["*.Deny.org"].into_iter().collect(), ..Policy::default() };
        config.storage.mailbox_msg_cap = Some(500);
        config.storage.retention_period = Some(Duration::from_hours(72));
        let mut status = serde_json::to_value(Status::from_config(&config)).unwrap();
        let date = status["build-date"].take();
        assert!(date.as_str().unwrap().parse::<Timestamp>().is_ok_and(|date| date.as_second() > 0), "{date}");
        let expected = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "build-date": null,
            "pop3-listener": "",
            "imap-listener": "",
            "web-listener": ":9000",
            "smtp-config": {
                "addr": "localhost:2500,:25",
                "default-accept": true,
                "accept-domains": [],
                "reject-domains": ["*.deny.org"],
                "default-store": true,
                "store-domains": [],
                "discard-domains": [],
                "reject-origin-domains": [],
            },
            "storage-config": { "mailbox-msg-cap": 500, "store-type": "memory", "retention-period": "72h0m0s" },
        });
        assert_eq!(status, expected);
    }
}
