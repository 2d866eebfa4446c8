//! The configuration of Mailpit's web interface. Clients read from it which features are enabled.

use std::sync::Arc;

use axum::extract::State;
use restante_auth::Scope;
use restante_http_core::extractors::parameters::RequestGrant;
use restante_http_core::server::Server;
use restante_mail::address::Address;
use restante_relay::{RecipientPatterns, Target};
use serde::Serialize;

use crate::error::HandlerResult;
use crate::release;
use crate::success;

/// Returns the configuration. There is no SpamAssassin. A client that may not relay messages gets no details of the relay.
pub(crate) async fn webui(State(server): State<Arc<Server>>, RequestGrant(grant): RequestGrant) -> HandlerResult {
    let target = release::target(&server).filter(|_| grant.allows_somewhere(Scope::Relay));
    success::json(&WebUi {
        message_relay: target.map(MessageRelay::new).unwrap_or_default(),
        chaos_enabled: server.mailroom.chaos().is_some(),
        ..WebUi::default()
    })
}

#[derive(Default, Serialize)]
#[serde(rename_all = "PascalCase")]
#[expect(clippy::struct_excessive_bools, reason = "the format of Mailpit")]
struct WebUi {
    label: &'static str,
    message_relay: MessageRelay,
    spam_assassin: bool,
    chaos_enabled: bool,
    duplicates_ignored: bool,
    hide_delete_all_button: bool,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "PascalCase")]
struct MessageRelay {
    enabled: bool,
    #[serde(rename = "SMTPServer")]
    smtp_server: String,
    return_path: String,
    /// A regular expression; empty for all recipients.
    allowed_recipients: String,
    /// A regular expression; empty for none.
    blocked_recipients: String,
    override_from: String,
    #[serde(rename = "PreserveMessageIDs")]
    preserve_message_ids: bool,
    recipient_allowlist: String,
}

impl MessageRelay {
    /// Describes a target. Without allowed recipients it is not enabled.
    fn new(target: &Target) -> Self {
        if target.allowed.is_empty() {
            return Self::default();
        }
        let address = |address: &Option<Address>| address.as_ref().map(Address::text).unwrap_or_default();
        let is_all = target.allowed.texts().iter().any(|pattern| pattern == "*");
        let allowed_recipients = if is_all { String::new() } else { regular_expression(&target.allowed) };
        let Target { host, port, .. } = target;
        Self {
            enabled: true,
            smtp_server: if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") },
            return_path: address(&target.return_path),
            recipient_allowlist: allowed_recipients.clone(),
            allowed_recipients,
            blocked_recipients: regular_expression(&target.blocked),
            override_from: address(&target.from),
            preserve_message_ids: true,
        }
    }
}

/// Returns a regular expression that matches the same addresses, apart from upper and lower case.
fn regular_expression(patterns: &RecipientPatterns) -> String {
    let expression = |pattern: &String| match pattern.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
        Some(expression) => expression.to_owned(),
        None => format!("^{}$", pattern.chars().map(wildcard_expression).collect::<String>()),
    };
    patterns.texts().iter().map(expression).collect::<Vec<_>>().join("|")
}

/// Returns the regular expression for a character of a pattern with wildcards.
fn wildcard_expression(c: char) -> String {
    match c {
        '*' => ".*".to_owned(),
        '?' => ".".to_owned(),
        '\\' | '.' | '+' | '(' | ')' | '|' | '[' | ']' | '{' | '}' | '^' | '$' => format!("\\{c}"),
        _ => c.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_become_one_regular_expression() {
        let table: [(&[&str], &str); 4] = [
            (&[], ""),
            (&["/@example[.]org$/"], "@example[.]org$"),
            (&["*@example.org"], r"^.*@example\.org$"),
            (&["qa?@x.org", "/^a|b/"], r"^qa.@x\.org$|^a|b"),
        ];
        for (patterns, expected) in table {
            assert_eq!(regular_expression(&RecipientPatterns::parse(patterns).unwrap()), expected, "{patterns:?}");
        }
    }
}
