//! Maps Mailpit's relay and forwarding to settings of the relay. Both are configured by variables and a file, whose
//! values override those of the variables. The relay becomes the target `relay`, forwarding the target `forward`.

mod server;
#[cfg(test)]
mod tests;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use restante_mail::address::{Address, Alphabet};
use restante_settings::{Origin, ReadFile, parse_boolean};

use super::mapped::{GivenValues, Mapped};
use server::{Kind, Server};

/// Maps relay and forwarding.
pub(super) fn map(given: &GivenValues, read_file: ReadFile<'_>, mapped: &mut Mapped) {
    let is_on = |name: &str| given.get(name).is_some_and(|given| parse_boolean(&given.value) == Ok(true));
    // The effect of the variable is to disable the relay.
    if is_on("MP_DEMO_MODE") {
        return;
    }
    let mut settings = RelaySettings::default();
    let problems = mapped.problems.len();
    if let Some(server) = Server::collect(Kind::Relay, given, read_file, mapped) {
        let matching = given.get("smtp-relay-matching");
        let rule = if is_on("smtp-relay-all") {
            if matching.is_some() {
                mapped.warnings.push("smtp-relay-matching has no effect together with smtp-relay-all".to_owned());
            }
            Some("relay".to_owned())
        } else {
            matching.map(|matching| format!("relay recipients={}", regex_pattern(&matching.value)))
        };
        if let Some(target) = server.target(mapped) {
            settings.add(server.origin(), format!("{target} {}", server.recipients()), rule);
        }
    } else if mapped.problems.len() == problems
        && (is_on("smtp-relay-all") || given.contains_key("smtp-relay-matching"))
    {
        mapped.problems.push(
            "messages can be relayed only with a relay: set MP_SMTP_RELAY_HOST or MP_SMTP_RELAY_CONFIG".to_owned(),
        );
    }
    if let Some(server) = Server::collect(Kind::Forward, given, read_file, mapped)
        && let Some((to, target)) = server.forward_addresses(mapped).zip(server.target(mapped))
    {
        // Nothing else can be sent to this target.
        let is_pattern = |address: &String| address.contains(['*', '?']) || address.starts_with('/');
        let to_list = to.iter().map(|address| encode(address)).collect::<Vec<_>>().join("|");
        let allowed = if to.iter().any(is_pattern) { "*" } else { &to_list };
        settings.add(server.origin(), format!("{target} allow={allowed}"), Some(format!("forward to={to_list}")));
    }
    settings.add_to(mapped);
}

/// Targets and rules in the form of the settings.
#[derive(Default)]
struct RelaySettings {
    origin: Option<Origin>,
    targets: Vec<String>,
    rules: Vec<String>,
}

impl RelaySettings {
    fn add(&mut self, origin: Origin, target: String, rule: Option<String>) {
        self.origin.get_or_insert(origin);
        self.targets.push(target);
        self.rules.extend(rule);
    }

    fn add_to(self, mapped: &mut Mapped) {
        let Some(origin) = self.origin else { return };
        mapped.add("relay.targets", self.targets.join(","), origin.clone());
        mapped.add("relay.forward", self.rules.join(","), origin.clone());
        // Mailpit sends to all addresses.
        mapped.add("relay.private", "true".to_owned(), origin);
    }
}

/// Returns the address in `ann@example.org` or `Ann <ann@example.org>`.
fn address(text: &str) -> Option<String> {
    let text = text.trim();
    let address = text.strip_suffix('>').and_then(|text| text.rsplit_once('<')).map_or(text, |(_, address)| address);
    Address::parse(address.trim(), Alphabet::Utf8).ok().map(|address| address.text())
}

/// Returns a regular expression as a pattern of the settings.
fn regex_pattern(expression: &str) -> String {
    format!("/{}/", encode(expression))
}

/// Percent-encodes everything that has a meaning in the settings.
fn encode(text: &str) -> String {
    const MEANINGFUL: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    utf8_percent_encode(text, MEANINGFUL).to_string()
}
