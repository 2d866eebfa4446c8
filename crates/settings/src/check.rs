//! What settings mean together: contradictions that stop the start, values that follow from others, and what the
//! operator should be warned of.

mod access;
mod storage;

use std::io;
use std::path::Path;

use restante_logging::Output as LogOutput;
use restante_net::{Certificate, ListenAddr, Network};
use rustix::fs::{Access, access};

use super::ReadFile;
use super::credential::MailboxPassword;
use super::problem::{Origin, Problem};
use super::setting::{Setting, Status};
use super::sources::Sources;
use super::table::{SETTINGS, row};
use super::types::{Config, Tls, Webhooks};
use super::values::host_of;

const LOG_FILE: &Setting = row("logfile");
const PID_FILE: &Setting = row("pidfile");
const SMTP_ADDR: &Setting = row("smtp.addr");
const SMTP_TLS_ADDR: &Setting = row("smtp.tlsaddr");
const SMTP_TLS: &Setting = row("smtp.tlsenabled");
const SMTP_FORCE_TLS: &Setting = row("smtp.forcetls");
const SMTP_CERT: &Setting = row("smtp.tlscert");
const SMTP_KEY: &Setting = row("smtp.tlsprivkey");
const LMTP_ADDR: &Setting = row("lmtp.addr");
const POP3_ADDR: &Setting = row("pop3.addr");
const POP3_TLS_ADDR: &Setting = row("pop3.tlsaddr");
const POP3_TLS: &Setting = row("pop3.tlsenabled");
const POP3_FORCE_TLS: &Setting = row("pop3.forcetls");
const POP3_CERT: &Setting = row("pop3.tlscert");
const POP3_KEY: &Setting = row("pop3.tlsprivkey");
const POP3_CREDENTIALS: &Setting = row("pop3.credentials");
const WEB_ADDR: &Setting = row("web.addr");
const WEB_TLS_ADDR: &Setting = row("web.tlsaddr");
const WEB_TLS: &Setting = row("web.tlsenabled");
const WEB_CERT: &Setting = row("web.tlscert");
const WEB_KEY: &Setting = row("web.tlsprivkey");
const GREETING_FILE: &Setting = row("web.greetingfile");
const WEBHOOK_URLS: &Setting = row("webhook.urls");
const WEBHOOK_SECRET: &Setting = row("webhook.secret");
const WEBHOOK_PRIVATE: &Setting = row("webhook.private");
const SMTP_PROXIES: &Setting = row("smtp.proxyprotocol");
const POP3_PROXIES: &Setting = row("pop3.proxyprotocol");
const WEB_PROXIES: &Setting = row("web.proxyprotocol");
const WEB_TRUSTED: &Setting = row("web.trustedproxies");

/// Where the container image looks for a greeting. It is for those who have one; nobody has to.
const IMAGE_GREETING_FILE: &str = "/config/greeting.html";

/// What a configuration is wanted for. What nobody is going to use need not be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To serve.
    Serve,
    /// To put mail into the data directory.
    Write,
    /// To read the data directory, which may be another user's, or on a file system that cannot be written.
    Read,
    /// To try a script, away from all mail.
    Script,
}

/// Everything that cannot be right about the settings as a whole. Settings that have a problem already are left alone:
/// what they should have been is not known. What can be understood only together is put into the configuration.
pub(super) fn find_problems(
    config: &mut Config,
    sources: &Sources,
    known: &[Problem],
    purpose: Purpose,
    read_file: ReadFile<'_>,
) -> Vec<Problem> {
    let mut found = Checker { sources, earlier_problems: known, problems: Vec::new() };
    // HTTP has no TLS on demand: there is a use for a certificate where a listener always has it.
    let web = &mut config.web;
    web.tls.enabled = web.tls.force || !web.tls_addr.is_empty();
    if purpose == Purpose::Serve {
        found.check_service(config, read_file);
    }
    if purpose != Purpose::Script {
        found.check_storage(config, purpose, read_file);
    }
    found.problems
}

/// Fills in what follows from other settings.
pub(super) fn complete(config: &mut Config, sources: &mut Sources) {
    storage::complete(&mut config.storage, sources);
    access::complete(config, sources);

    // With less room than one message needs, that message could never be received.
    let smtp = &mut config.smtp;
    smtp.max_inflight_bytes = smtp.max_inflight_bytes.max(smtp.max_message_bytes);

    // Whoever configures a public URL wants it to be answered.
    let public_host = config.web.public_url.as_deref().and_then(|url| {
        let (_, rest) = url.split_once("://")?;
        rest.split('/').next().map(host_of)
    });
    if let Some(host) = public_host {
        config.web.hosts.add(host);
    }
}

/// What the operator should know about a configuration that can be used.
pub(super) fn warnings(config: &Config, sources: &Sources) -> Vec<String> {
    // Repeating a default or having a host name changes nothing and needs no warning.
    let changed = |setting: &Setting| {
        let given = sources.effective(setting)?;
        let without_effect = given.origin == Origin::HostName || given.value == setting.default;
        (!without_effect).then_some(given)
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
    for TlsSettings { tls, enabled, cert, key } in tls_settings(config) {
        let certificate = [cert, key].into_iter().any(|setting| changed(setting).is_some());
        if !tls.enabled && certificate {
            warnings.push(format!("TLS is off although a certificate is set: see {}", enabled.key));
        }
    }
    warnings.extend(storage::warnings(config, sources));
    warnings.extend(greeting_warning(config, sources));
    warnings.extend(access::session_key_warning(config));
    warnings.extend(open_listeners_warning(config));
    warnings.extend(open_proxies_warning(config));
    warnings.extend(unused_secret_warning(&config.webhooks));
    warnings.extend(private_webhooks_warning(&config.webhooks));
    warnings
}

/// The warning about a greeting that is not shown as it was meant.
fn greeting_warning(config: &Config, sources: &Sources) -> Option<String> {
    let path = config.web.greeting_file.as_deref()?;
    let error = match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && path == Path::new(IMAGE_GREETING_FILE) => return None,
        Err(error) => error,
        Ok(found) if !found.is_file() => io::Error::other("it is no file"),
        Ok(_) => access(path, Access::READ_OK).err()?.into(),
    };
    let (path, origin) = (path.display(), sources.origin(GREETING_FILE));
    Some(format!("the built-in greeting is shown: {path} ({}, {origin}) cannot be read: {error}", GREETING_FILE.key))
}

/// The warning about lists of proxies that leave nobody out.
fn open_proxies_warning(config: &Config) -> Option<String> {
    let Config { smtp, pop3, web, .. } = config;
    let lists = [
        (SMTP_PROXIES, &smtp.proxies),
        (POP3_PROXIES, &pop3.proxies),
        (WEB_PROXIES, &web.proxies),
        (WEB_TRUSTED, &web.trusted_proxies),
    ];
    let open: Vec<&str> = lists
        .into_iter()
        .filter(|(_, networks)| networks.iter().any(Network::is_everything))
        .map(|(setting, _)| setting.key)
        .collect();
    (!open.is_empty()).then(|| {
        let open = open.join(", ");
        format!("whoever connects is believed to be a proxy, and can claim to be anybody: {open}")
    })
}

/// The warning about a key that there is nothing to sign with.
fn unused_secret_warning(webhooks: &Webhooks) -> Option<String> {
    let idle = webhooks.secret.is_some() && webhooks.targets.is_empty();
    idle.then(|| format!("{} has no effect without {}", WEBHOOK_SECRET.key, WEBHOOK_URLS.key))
}

/// The warning about webhooks that will never get through. Where other names lead is known only when they are looked up.
fn private_webhooks_warning(webhooks: &Webhooks) -> Option<String> {
    if webhooks.private_addresses {
        return None;
    }
    let entries: Vec<String> = webhooks
        .targets
        .iter()
        .zip(1..)
        .filter(|(target, _)| target.is_plainly_private())
        .map(|(_, number): (_, usize)| number.to_string())
        .collect();
    (!entries.is_empty()).then(|| {
        let (urls, private, entries) = (WEBHOOK_URLS.key, WEBHOOK_PRIVATE.key, entries.join(", "));
        format!(
            "webhooks at addresses that are not public are not told of anything without {private}: {urls}, entry {entries}"
        )
    })
}

/// The warning about listeners that other machines reach without having to authenticate.
fn open_listeners_warning(config: &Config) -> Option<String> {
    let asks_for_credentials = |setting: &Setting| match setting.section() {
        "SMTP" | "LMTP" => config.smtp.require_auth,
        "POP3" => !config.pop3.credentials.is_empty() || config.auth.is_enabled(),
        _ => config.auth.is_enabled(),
    };
    let open: Vec<String> = listeners(config)
        .into_iter()
        .filter(|(setting, _)| !asks_for_credentials(setting))
        .flat_map(|(setting, addrs)| addrs.iter().map(move |addr| (setting.key, addr)))
        .filter(|(_, addr)| !addr.is_loopback())
        .map(|(key, addr)| format!("{key} {addr}"))
        .collect();
    (!open.is_empty()).then(|| {
        let open = open.join(", ");
        format!("other machines reach this server without credentials: {open}")
    })
}

/// The listeners, by their settings.
fn listeners(config: &Config) -> [(&'static Setting, &[ListenAddr]); 7] {
    [
        (SMTP_ADDR, &config.smtp.addr),
        (SMTP_TLS_ADDR, &config.smtp.tls_addr),
        (LMTP_ADDR, &config.lmtp.addr),
        (POP3_ADDR, &config.pop3.addr),
        (POP3_TLS_ADDR, &config.pop3.tls_addr),
        (WEB_ADDR, &config.web.addr),
        (WEB_TLS_ADDR, &config.web.tls_addr),
    ]
}

/// The TLS of a protocol, and the settings it comes from.
struct TlsSettings<'a> {
    tls: &'a Tls,
    enabled: &'static Setting,
    cert: &'static Setting,
    key: &'static Setting,
}

fn tls_settings(config: &Config) -> [TlsSettings<'_>; 3] {
    [
        TlsSettings { tls: &config.smtp.tls, enabled: SMTP_TLS, cert: SMTP_CERT, key: SMTP_KEY },
        TlsSettings { tls: &config.pop3.tls, enabled: POP3_TLS, cert: POP3_CERT, key: POP3_KEY },
        TlsSettings { tls: &config.web.tls, enabled: WEB_TLS, cert: WEB_CERT, key: WEB_KEY },
    ]
}

/// Collects problems and looks up where the value in question came from.
struct Checker<'a> {
    sources: &'a Sources,
    /// What was wrong before.
    earlier_problems: &'a [Problem],
    problems: Vec<Problem>,
}

impl Checker<'_> {
    /// What the server needs, wherever it keeps its mail.
    fn check_service(&mut self, config: &mut Config, read_file: ReadFile<'_>) {
        let Config { smtp, pop3, .. } = &*config;
        let needs = [
            (smtp.tls.force, SMTP_FORCE_TLS, smtp.tls.enabled, SMTP_TLS),
            (!smtp.tls_addr.is_empty(), SMTP_TLS_ADDR, smtp.tls.enabled, SMTP_TLS),
            (pop3.tls.force, POP3_FORCE_TLS, pop3.tls.enabled, POP3_TLS),
            (!pop3.tls_addr.is_empty(), POP3_TLS_ADDR, pop3.tls.enabled, POP3_TLS),
        ];
        for (on, setting, needed_on, needed) in needs {
            if on && !needed_on && self.is_valid(needed) {
                self.add(setting, &format!("needs {}", needed.key));
            }
        }
        for rows in tls_settings(config) {
            self.check_certificate(&rows, read_file);
        }
        match MailboxPassword::from_credentials(&config.pop3.credentials, config.mailbox_naming) {
            Ok(keys) => config.pop3.mailbox_passwords = keys,
            Err(error) => self.add(POP3_CREDENTIALS, &error),
        }
        self.check_access(config, read_file);
        if let LogOutput::File(path) = &config.log.output {
            self.check_writable(LOG_FILE, path);
        }
        if let Some(path) = &config.pidfile {
            self.check_writable(PID_FILE, path);
        }
        self.check_listeners(config);
    }

    fn add(&mut self, setting: &Setting, message: &str) {
        if !self.is_valid(setting) {
            return;
        }
        let problem = match self.sources.effective(setting) {
            Some(given) => Problem::with_value(setting, &given.value, &given.origin, message),
            None => Problem::with_value(setting, setting.default, &Origin::Default, message),
        };
        self.problems.push(problem);
    }

    /// Whether every value given for a setting could be understood.
    fn is_valid(&self, setting: &Setting) -> bool {
        !self.earlier_problems.iter().any(|problem| problem.is_about(setting))
    }

    /// Certificate and key can be read, and belong together.
    fn check_certificate(&mut self, rows: &TlsSettings<'_>, read_file: ReadFile<'_>) {
        let Some(Certificate::Files { cert, key }) = rows.tls.certificate() else { return };
        if ![rows.enabled, rows.cert, rows.key].into_iter().all(|setting| self.is_valid(setting)) {
            return;
        }
        let read = |path| read_file(path).map_err(|error| format!("cannot be read: {error}"));
        let chain = read(cert).and_then(|pem| restante_net::Tls::parse_chain(&pem));
        let private = read(key).and_then(|pem| restante_net::Tls::parse_private_key(&pem));
        for (setting, error) in [(rows.cert, chain.as_ref().err()), (rows.key, private.as_ref().err())] {
            if let Some(error) = error {
                self.add(setting, error);
            }
        }
        if let (Ok(chain), Ok(private)) = (chain, private)
            && let Err(error) = restante_net::Tls::server_config(chain, private)
        {
            self.add(rows.cert, &format!("cannot be used with {}: {error}", rows.key.key));
        }
    }

    fn check_writable(&mut self, setting: &Setting, path: &Path) {
        if let Err(error) = check_file_writable(path) {
            self.add(setting, &format!("cannot be written: {error}"));
        }
    }

    /// No two listeners at one address, and at least one listener at all.
    fn check_listeners(&mut self, config: &Config) {
        let lists = listeners(config);
        let all_sound = lists.iter().all(|(setting, _)| self.is_valid(setting));
        if all_sound && lists.iter().all(|(_, addrs)| addrs.is_empty()) {
            let keys = lists.map(|(setting, _)| setting.key).join(", ");
            self.problems.push(Problem::new(format!("nothing to serve: {keys} are all empty")));
        }
        let mut seen: Vec<(&Setting, &ListenAddr)> = Vec::new();
        for (setting, addrs) in lists {
            if !self.is_valid(setting) {
                continue;
            }
            for addr in addrs {
                if let Some((first, _)) = seen.iter().find(|(_, other)| other.clashes_with(addr)) {
                    self.add(setting, &format!("{addr} is taken by {} already", first.key));
                }
                seen.push((setting, addr));
            }
        }
    }
}

/// Whether a file can be written or, where there is none, made. Nothing is opened: a check must not leave traces.
fn check_file_writable(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(_) => Ok(access(path, Access::WRITE_OK)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
            Ok(access(dir, Access::WRITE_OK | Access::EXEC_OK)?)
        }
        Err(error) => Err(error),
    }
}
