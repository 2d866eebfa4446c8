//! What settings mean together: contradictions that stop the start, values that follow from others, and what the
//! operator should be warned of.

use std::path::Path;

use super::ReadFile;
use super::address::ListenAddr;
use super::problem::{Origin, Problem};
use super::setting::{Setting, Status};
use super::sources::Sources;
use super::table::{SETTINGS, find};
use super::types::{Certificate, Config, Hosts, StoreKind};
use super::values::host_of;

const MEMORY_ONLY: &str = "this version has only the memory store";

/// Everything that cannot be right about the settings as a whole.
pub(super) fn problems(config: &Config, sources: &Sources, read_file: ReadFile<'_>) -> Vec<Problem> {
    let mut found = Found { sources, problems: Vec::new() };
    let smtp = &config.smtp;
    if !smtp.tls.enabled {
        let needs_tls = "needs smtp.tlsenabled = true";
        if smtp.tls.force {
            found.add("smtp.forcetls", needs_tls);
        }
        if !smtp.tls_addr.is_empty() {
            found.add("smtp.tlsaddr", needs_tls);
        }
    }
    if let Some(Certificate::Files { cert, key }) = smtp.tls.certificate() {
        found.readable("smtp.tlscert", cert, read_file);
        found.readable("smtp.tlsprivkey", key, read_file);
    }
    if smtp.require_auth && smtp.credentials.is_empty() {
        found.add("smtp.requireauth", "needs smtp.credentials");
    }
    if config.storage.kind != StoreKind::Memory {
        found.add("storage.type", MEMORY_ONLY);
    }
    if config.storage.path.is_some() {
        found.add("storage.path", MEMORY_ONLY);
    }
    if config.storage.url.is_some() {
        found.add("storage.url", MEMORY_ONLY);
    }
    found.listeners(config);
    found.problems
}

/// Fills in what follows from other settings.
pub(super) fn complete(config: &mut Config) {
    // With less room than one message needs, that message could never be received.
    let smtp = &mut config.smtp;
    smtp.max_inflight_bytes = smtp.max_inflight_bytes.max(smtp.max_message_bytes);

    // Whoever configures a public URL wants it to be answered.
    let public_host = config.web.public_url.as_deref().and_then(|url| {
        let (_, rest) = url.split_once("://")?;
        rest.split('/').next().map(host_of)
    });
    if let (Some(host), Hosts::Only(names)) = (public_host, &mut config.web.hosts)
        && !names.iter().any(|name| name == host)
    {
        names.push(host.to_owned());
    }
}

/// What the operator should know about a configuration that can be used.
pub(super) fn warnings(config: &Config, sources: &Sources) -> Vec<String> {
    // Repeating a default, or having a host name, changes nothing and needs no warning.
    let changed = |setting: &Setting| {
        let given = sources.get(setting.key)?;
        (given.origin != Origin::HostName && given.value != setting.default).then_some(given)
    };
    let of_status = |status: Status| {
        let names: Vec<String> = SETTINGS
            .iter()
            .filter(|setting| setting.status == status)
            .filter_map(|setting| Some(format!("{} ({})", setting.key, changed(setting)?.origin)))
            .collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let mut warnings = Vec::new();
    if let Some(names) = of_status(Status::Ignored) {
        warnings.push(format!("settings without effect: {names}"));
    }
    if let Some(names) = of_status(Status::Reserved) {
        warnings.push(format!("settings that take effect in a later version only: {names}"));
    }
    let certificate =
        ["smtp.tlscert", "smtp.tlsprivkey"].into_iter().filter_map(find).any(|row| changed(row).is_some());
    if !config.smtp.tls.enabled && certificate {
        warnings.push("TLS is off although a certificate is set: see smtp.tlsenabled".to_owned());
    }
    if config.storage.params_path.is_some() {
        warnings.push("the path in storage.params has no effect on the memory store".to_owned());
    }
    if config.storage.max_bytes < config.smtp.max_message_bytes as u64 {
        warnings.push("maxkb in storage.params is less than one message of smtp.maxmessagebytes needs".to_owned());
    }
    warnings.extend(open_to_all(config));
    warnings
}

/// The warning about listeners that other machines reach without having to authenticate.
fn open_to_all(config: &Config) -> Option<String> {
    let mail =
        [("smtp.addr", &config.smtp.addr), ("smtp.tlsaddr", &config.smtp.tls_addr), ("lmtp.addr", &config.lmtp.addr)];
    let mail = mail.into_iter().filter(|_| !config.smtp.require_auth);
    let open: Vec<String> = mail
        .chain([("web.addr", &config.web.addr)])
        .flat_map(|(key, addrs)| addrs.iter().map(move |addr| (key, addr)))
        .filter(|(_, addr)| !addr.is_loopback())
        .map(|(key, addr)| format!("{key} {addr}"))
        .collect();
    (!open.is_empty()).then(|| {
        let open = open.join(", ");
        format!("other machines reach this server without credentials: {open}")
    })
}

/// Collects problems and looks up where the value in question came from.
struct Found<'a> {
    sources: &'a Sources,
    problems: Vec<Problem>,
}

impl Found<'_> {
    fn add(&mut self, key: &str, message: &str) {
        let Some(setting) = find(key) else {
            return;
        };
        let problem = match self.sources.get(key) {
            Some(given) => Problem::value(setting, &given.value, &given.origin, message),
            None => Problem::value(setting, setting.default, &Origin::Default, message),
        };
        self.problems.push(problem);
    }

    fn readable(&mut self, key: &str, path: &Path, read_file: ReadFile<'_>) {
        if let Err(error) = read_file(path) {
            self.add(key, &format!("cannot be read: {error}"));
        }
    }

    /// No two listeners at one address, and at least one listener at all.
    fn listeners(&mut self, config: &Config) {
        let lists = [
            ("smtp.addr", &config.smtp.addr),
            ("smtp.tlsaddr", &config.smtp.tls_addr),
            ("lmtp.addr", &config.lmtp.addr),
            ("web.addr", &config.web.addr),
        ];
        let mut seen: Vec<(&str, &ListenAddr)> = Vec::new();
        for (key, addrs) in lists {
            for addr in addrs {
                if let Some((first, _)) = seen.iter().find(|(_, other)| other.clashes_with(addr)) {
                    self.add(key, &format!("{addr} is taken by {first} already"));
                }
                seen.push((key, addr));
            }
        }
        if seen.is_empty() {
            self.problems
                .push(Problem::new("nothing to serve: smtp.addr, smtp.tlsaddr, lmtp.addr and web.addr are all empty"));
        }
    }
}
