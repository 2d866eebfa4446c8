//! Checks of the settings as a whole: conflicts that prevent the start, values that are derived from other settings,
//! and warnings.

mod access;
mod relay;
mod script;
mod storage;

use std::io;
use std::path::Path;

use restante_logging::Output as LogOutput;
use restante_net::{Certificate, ListenAddr, Network};
use restante_platform::{Access, check_access};

use super::ReadFile;
use super::api_mount::ambiguous_addr;
use super::credential::MailboxPassword;
use super::problem::{Origin, Problem};
use super::protocols::ProtocolListeners;
use super::setting::{Setting, Status};
use super::sources::Sources;
use super::table::{SETTINGS, row};
use super::types::{Config, Tls};
use super::values::host_of;

const POP3_CREDENTIALS: &Setting = row("pop3.credentials");
const IMAP_CREDENTIALS: &Setting = row("imap.credentials");
const LOG_FILE: &Setting = row("logfile");
const PID_FILE: &Setting = row("pidfile");
const GREETING_FILE: &Setting = row("web.greetingfile");
const WEBHOOK_URLS: &Setting = row("webhook.urls");
const WEBHOOK_SECRET: &Setting = row("webhook.secret");
const WEBHOOK_PRIVATE: &Setting = row("webhook.private");
const WEB_LISTENERS: &Setting = row("web.listeners");
const WEB_TRUSTED: &Setting = row("web.trustedproxies");

/// The greeting file of the container image. It is optional, so there is no warning if it does not exist.
const IMAGE_GREETING_FILE: &str = "/config/greeting.html";

/// What a configuration is loaded for. Checks that do not matter for the purpose are skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To run the server.
    Serve,
    /// To write messages to the data directory.
    Write,
    /// To read the data directory. It may belong to another user, or be on a read-only file system.
    Read,
    /// To test a script or rules, without stored messages.
    Script,
    /// To check the health of a running server.
    Check,
}

/// Returns the problems of the settings as a whole. Settings that already have a problem are skipped, because their
/// values are unknown. Values that depend on several settings are stored in the configuration.
pub(super) fn find_problems(
    config: &mut Config,
    sources: &Sources,
    earlier_problems: &[Problem],
    purpose: Purpose,
    read_file: ReadFile<'_>,
) -> Vec<Problem> {
    let mut checker = Checker { sources, earlier_problems, problems: Vec::new() };
    // HTTP cannot switch to TLS on a plain connection, so a certificate is used only if a listener always has TLS.
    let web = &mut config.web;
    web.tls.enabled = web.tls.force || !web.tls_addr.is_empty() || web.listeners.iter().any(|mount| mount.tls);
    if purpose == Purpose::Serve {
        checker.check_service(config, read_file);
    }
    if !matches!(purpose, Purpose::Script | Purpose::Check) {
        checker.check_storage(config, purpose, read_file);
    }
    checker.problems
}

/// Fills in values that are derived from other settings.
pub(super) fn complete(config: &mut Config, sources: &mut Sources) {
    storage::complete(&mut config.storage, sources);
    access::complete(config, sources);
    script::complete(&mut config.scripting, sources);

    // A message larger than the budget could never be received.
    let smtp = &mut config.smtp;
    smtp.max_inflight_bytes = smtp.max_inflight_bytes.max(smtp.max_message_bytes);
    config.relay.domain.clone_from(&smtp.domain);
    config.auth.signing_key_ids = config.signing_keys.iter().map(|key| key.id.clone()).collect();

    // Requests for the host of the public URL are accepted.
    let public_host = config.web.public_url.as_deref().and_then(|url| {
        let (_, rest) = url.split_once("://")?;
        rest.split('/').next().map(host_of)
    });
    if let Some(host) = public_host {
        config.web.hosts.add(host);
    }
}

/// Returns warnings for the operator about a valid configuration.
pub(super) fn warnings(config: &Config, sources: &Sources) -> Vec<String> {
    // A repeated default and the host name have no effect and cause no warning.
    let changed = |setting: &Setting| {
        let given = sources.effective(setting)?;
        let has_no_effect = given.origin == Origin::HostName || given.value == setting.default;
        (!has_no_effect).then_some(given)
    };
    let ignored: Vec<String> = SETTINGS
        .iter()
        .filter(|setting| setting.status == Status::Ignored)
        .filter_map(|setting| Some(format!("{} ({})", setting.key, changed(setting)?.origin)))
        .collect();
    let mut warnings = Vec::new();
    if !ignored.is_empty() {
        warnings.push(format!("settings without effect: {}", ignored.join(", ")));
    }
    for TlsSettings { tls, enabled, cert, key, .. } in tls_settings(config) {
        let has_certificate = [cert, key].into_iter().any(|setting| changed(setting).is_some());
        if !tls.enabled && has_certificate {
            warnings.push(format!("TLS is off although a certificate is set: to turn it on, set {}", enabled.key));
        }
    }
    warnings.extend(storage::warnings(config, sources));
    warnings.extend(greeting_warning(config, sources));
    warnings.extend(access::session_key_warning(config));
    warnings.extend(access::no_grants_warning(config));
    warnings.extend(open_listeners_warning(config));
    warnings.extend(open_proxies_warning(config));
    warnings.extend(unused_secret_warning(&config.webhooks));
    warnings.extend(private_webhooks_warning(&config.webhooks));
    warnings.extend(relay::warnings(&config.relay));
    warnings.extend(script::unused_script_warning(sources));
    warnings
}

/// Warns if the greeting file cannot be read.
fn greeting_warning(config: &Config, sources: &Sources) -> Option<String> {
    let path = config.web.greeting_file.as_deref()?;
    let error = match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && path == Path::new(IMAGE_GREETING_FILE) => return None,
        Err(error) => error,
        Ok(metadata) if !metadata.is_file() => io::Error::other("not a regular file"),
        Ok(_) => check_access(path, Access::Read).err()?,
    };
    let (path, origin) = (path.display(), sources.origin(GREETING_FILE));
    Some(format!("the built-in greeting is shown: {path} ({}, {origin}) cannot be read: {error}", GREETING_FILE.key))
}

/// Warns about lists of proxies that contain all addresses.
fn open_proxies_warning(config: &Config) -> Option<String> {
    let protocols = config.protocols();
    let lists = protocols.iter().filter_map(|protocol| Some((protocol.setting("proxyprotocol")?, protocol.proxies)));
    let open: Vec<&str> = lists
        .chain([(WEB_TRUSTED, config.web.trusted_proxies.as_slice())])
        .filter(|(_, networks)| networks.iter().any(Network::contains_all_addresses))
        .map(|(setting, _)| setting.key)
        .collect();
    (!open.is_empty()).then(|| {
        let open = open.join(", ");
        format!("every client is trusted as a proxy and can claim any address: restrict {open}")
    })
}

/// Warns about a webhook key without webhooks.
fn unused_secret_warning(webhooks: &restante_webhook::Settings) -> Option<String> {
    let is_unused = webhooks.secret.is_some() && webhooks.targets.is_empty();
    is_unused.then(|| format!("{} has no effect without {}", WEBHOOK_SECRET.key, WEBHOOK_URLS.key))
}

/// Warns about webhooks at private addresses that are not allowed. The addresses of host names are not known here.
fn private_webhooks_warning(webhooks: &restante_webhook::Settings) -> Option<String> {
    if webhooks.private_addresses {
        return None;
    }
    let entries: Vec<String> = webhooks
        .targets
        .iter()
        .zip(1..)
        .filter(|(target, _)| target.has_private_host())
        .map(|(_, number): (_, usize)| number.to_string())
        .collect();
    (!entries.is_empty()).then(|| {
        let (urls, private, entries) = (WEBHOOK_URLS.key, WEBHOOK_PRIVATE.key, entries.join(", "));
        format!("webhooks at private addresses receive no events unless {private} is true: {urls}, entry {entries}")
    })
}

/// Warns about listeners that other machines can reach without authentication.
fn open_listeners_warning(config: &Config) -> Option<String> {
    let open: Vec<String> = config
        .protocols()
        .into_iter()
        .filter(|protocol| !protocol.requires_credentials)
        .flat_map(listeners)
        .flat_map(|(setting, addrs)| addrs.into_iter().map(move |addr| (setting.key, addr)))
        .filter(|(_, addr)| !addr.is_loopback())
        .map(|(key, addr)| format!("{key} {addr}"))
        .collect();
    (!open.is_empty()).then(|| {
        let open = open.join(", ");
        format!("other machines reach this server without credentials: {open}")
    })
}

/// Returns the addresses of a protocol with their settings.
fn listeners(protocol: ProtocolListeners<'_>) -> impl Iterator<Item = (&'static Setting, Vec<&ListenAddr>)> {
    let settings = ["addr", "tlsaddr", "listeners"].map(|name| protocol.setting(name));
    let addrs = [protocol.addrs.iter().collect(), protocol.tls_addrs.iter().collect(), protocol.other_addrs()];
    settings.into_iter().zip(addrs).filter_map(|(setting, addrs)| Some((setting?, addrs)))
}

/// The TLS of a protocol, and the settings it comes from.
struct TlsSettings<'a> {
    protocol: ProtocolListeners<'a>,
    tls: &'a Tls,
    enabled: &'static Setting,
    cert: &'static Setting,
    key: &'static Setting,
}

fn tls_settings(config: &Config) -> impl Iterator<Item = TlsSettings<'_>> {
    config.protocols().into_iter().filter_map(|protocol| {
        Some(TlsSettings {
            protocol,
            tls: protocol.tls?,
            enabled: protocol.setting("tlsenabled")?,
            cert: protocol.setting("tlscert")?,
            key: protocol.setting("tlsprivkey")?,
        })
    })
}

/// Collects problems, and adds the origin of each value.
struct Checker<'a> {
    sources: &'a Sources,
    /// The problems found before.
    earlier_problems: &'a [Problem],
    problems: Vec<Problem>,
}

impl Checker<'_> {
    /// Checks what only the server needs, apart from storage.
    fn check_service(&mut self, config: &mut Config, read_file: ReadFile<'_>) {
        for TlsSettings { protocol, tls, enabled, .. } in tls_settings(config) {
            let need_tls = [
                ("forcetls", tls.force),
                ("requirestarttls", config.smtp.require_starttls),
                ("tlsaddr", !protocol.tls_addrs.is_empty()),
            ];
            for (name, is_on) in need_tls {
                if let Some(setting) = protocol.setting(name)
                    && is_on
                    && !tls.enabled
                    && self.is_valid(enabled)
                {
                    self.add(setting, &format!("requires {} = true", enabled.key));
                }
            }
        }
        for settings in tls_settings(config) {
            self.check_certificate(&settings, read_file);
        }
        match MailboxPassword::from_credentials(&config.pop3.credentials, config.mailbox_naming) {
            Ok(passwords) => config.pop3.mailbox_passwords = passwords,
            Err(error) => self.add(POP3_CREDENTIALS, &error),
        }
        match MailboxPassword::from_credentials(&config.imap.credentials, config.mailbox_naming) {
            Ok(passwords) => config.imap.mailbox_passwords = passwords,
            Err(error) => self.add(IMAP_CREDENTIALS, &error),
        }
        self.check_access(config, read_file);
        self.check_relay(&config.relay, read_file);
        self.check_script(&config.scripting);
        if let LogOutput::File(path) = &config.log.output {
            self.check_writable(LOG_FILE, path);
        }
        if let Some(path) = &config.pidfile {
            self.check_writable(PID_FILE, path);
        }
        self.check_listeners(config);
    }

    fn add(&mut self, setting: &Setting, message: &str) {
        if self.is_valid(setting) {
            let (value, origin) = (self.sources.value(setting), self.sources.origin(setting));
            self.problems.push(Problem::with_value(setting, value, origin, message));
        }
    }

    /// Returns true if all values of a setting were parsed without an error.
    fn is_valid(&self, setting: &Setting) -> bool {
        !self.earlier_problems.iter().any(|problem| problem.is_about(setting))
    }

    /// Checks that certificate and key can be read and belong together.
    fn check_certificate(&mut self, settings: &TlsSettings<'_>, read_file: ReadFile<'_>) {
        let Some(Certificate::Files { cert, key }) = settings.tls.certificate() else { return };
        if ![settings.enabled, settings.cert, settings.key].into_iter().all(|setting| self.is_valid(setting)) {
            return;
        }
        let read = |path| read_file(path).map_err(|error| format!("cannot be read: {error}"));
        let chain = read(cert).and_then(|pem| restante_net::Tls::parse_chain(&pem));
        let private_key = read(key).and_then(|pem| restante_net::Tls::parse_private_key(&pem));
        for (setting, error) in [(settings.cert, chain.as_ref().err()), (settings.key, private_key.as_ref().err())] {
            if let Some(error) = error {
                self.add(setting, error);
            }
        }
        if let (Ok(chain), Ok(private_key)) = (chain, private_key)
            && let Err(error) = restante_net::Tls::server_config(chain, private_key)
        {
            self.add(settings.cert, &format!("cannot be used with {}: {error}", settings.key.key));
        }
    }

    fn check_writable(&mut self, setting: &Setting, path: &Path) {
        if let Err(error) = check_file_writable(path) {
            self.add(setting, &format!("cannot be written: {error}"));
        }
    }

    /// Checks that no two listeners have the same address, and that there is at least one listener.
    fn check_listeners(&mut self, config: &Config) {
        if let Some(addr) = ambiguous_addr(&config.web.listeners) {
            self.add(
                WEB_LISTENERS,
                &format!("{addr} has entries with and without tls: write it in all of them or in none"),
            );
        }
        let lists: Vec<_> = config.protocols().into_iter().flat_map(listeners).collect();
        let all_valid = lists.iter().all(|(setting, _)| self.is_valid(setting));
        if all_valid && lists.iter().all(|(_, addrs)| addrs.is_empty()) {
            let keys: Vec<&str> = lists.iter().map(|(setting, _)| setting.key).collect();
            let keys = keys.join(", ");
            self.problems.push(Problem::new(format!(
                "no address to listen on: set at least one of {keys}, for example --smtp-addr localhost:2500"
            )));
        }
        let mut seen: Vec<(&Setting, &ListenAddr)> = Vec::new();
        for (setting, addrs) in lists {
            if !self.is_valid(setting) {
                continue;
            }
            for addr in addrs {
                if let Some((first, _)) = seen.iter().find(|(_, other)| other.conflicts_with(addr)) {
                    self.add(setting, &format!("{addr} is already used by {}", first.key));
                }
                seen.push((setting, addr));
            }
        }
    }
}

/// Checks whether a file can be written or created. Nothing is opened: a check must not leave traces.
fn check_file_writable(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(_) => check_access(path, Access::Write),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
            check_access(dir, Access::ChangeDirectory)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_that_accept_any_login_are_open() {
        for (require_auth, accept_any_login, is_open) in
            [(false, false, true), (false, true, true), (true, false, false), (true, true, true)]
        {
            let mut config = Config::default();
            (row("smtp.addr").apply)(&mut config, "0.0.0.0:2500").unwrap();
            (config.smtp.require_auth, config.smtp.accept_any_login) = (require_auth, accept_any_login);
            let warning = open_listeners_warning(&config);
            let expected = "other machines reach this server without credentials: smtp.addr 0.0.0.0:2500";
            assert_eq!(warning.as_deref(), is_open.then_some(expected), "{require_auth} {accept_any_login}");
        }
    }
}
