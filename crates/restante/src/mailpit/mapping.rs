//! Maps Mailpit's flags and variables to settings. Some options depend on each other, as in Mailpit: logins
//! without TLS must be allowed, POP3 needs credentials, and a certificate needs a key. Single values are converted in
//! `conversions`, relay and forwarding in `relay`.

use std::collections::BTreeMap;
use std::path::Path;

use restante_settings::{Origin, ReadFile, parse_boolean};
use restante_transfer::{is_sqlite, mailpit_table_prefix};

use super::conversions::{data_directory, database_file, listen_addr};
use super::mapped::{Given, GivenValues, Mapped, origin, problem};
use super::options::{Effect, Kind, MailpitOption, OPTIONS};
use super::relay;

/// The name of the program in the origin of defaults.
const PROGRAM: &str = "mailpit";
/// The address of POP3 in Mailpit, on all interfaces.
const POP3_ADDR: &str = ":1110";

/// The settings that have other defaults if the server replaces Mailpit.
const DEFAULTS: &[(&str, &str)] = &[
    ("logfile", "stdout"),
    ("smtp.addr", ":1025"),
    ("smtp.maxrecipients", "100"),
    ("smtp.maxmessagebytes", "52428800"),
    ("smtp.disabledcommands", "HELP,VRFY"),
    // Mailpit has no scripts.
    ("lua.path", ""),
    // Mailpit starts POP3 only with credentials.
    ("pop3.addr", ""),
    // Mailpit has no IMAP.
    ("imap.addr", ""),
    ("web.addr", ":8025"),
    ("storage.retentionperiod", "0"),
    ("storage.mailboxmsgcap", "0"),
    ("storage.maxmessages", "500"),
    ("tags.plusheader", "true"),
];

/// Maps all given values.
pub(super) fn map(given: &GivenValues, read_file: ReadFile<'_>) -> Mapped {
    let mut mapped = Mapped::default();
    for (key, value) in DEFAULTS {
        mapped.add(key, (*value).to_owned(), Origin::EmulatedProgram(PROGRAM));
    }
    let mut ignored: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for option in OPTIONS {
        let Some(given) = given.get(option.name()) else { continue };
        if let Err(error) = check_kind(option, &given.value) {
            mapped.problems.push(problem(given, &error));
            continue;
        }
        match option.effect {
            Effect::Setting(key) => mapped.add(key, given.value.clone(), origin(given)),
            Effect::Converted(keys, convert) => match convert(keys, &given.value) {
                Ok(settings) => {
                    for (key, value) in settings {
                        mapped.add(key, value, origin(given));
                    }
                }
                Err(error) => mapped.problems.push(problem(given, &error)),
            },
            Effect::Ignored(reason) if !is_off(option, &given.value) => {
                ignored.entry(reason).or_default().push(&given.source);
            }
            Effect::Used(_) | Effect::Always(_) | Effect::Ignored(_) => {}
        }
    }
    for (reason, sources) in ignored {
        mapped.warnings.push(format!("no effect because {reason}: {}", sources.join(", ")));
    }
    let mut dependent = Dependent { given, read_file, mapped: &mut mapped };
    dependent.map_database_file();
    dependent.map_web_login();
    dependent.map_smtp_login();
    dependent.map_pop3();
    dependent.check_certificates();
    dependent.check_metrics();
    relay::map(given, read_file, &mut mapped);
    mapped
}

/// Returns a problem if credentials are given for the send API only. They would have no effect, and the API would be open.
pub(super) fn send_api_problem(given: &GivenValues) -> Option<String> {
    let given = given.get("send-api-auth-file").or_else(|| given.get("MP_SEND_API_AUTH"))?;
    Some(format!(
        "{}: credentials for the send API alone are not supported: set MP_UI_AUTH or --ui-auth-file, whose users may also \
         send, or remove it",
        given.source
    ))
}

/// Checks booleans and numbers, also of options without effect.
fn check_kind(option: &MailpitOption, value: &str) -> Result<(), String> {
    match option.kind {
        Kind::Bool => parse_boolean(value).map(drop),
        Kind::Int => value.parse::<u64>().map(drop).map_err(|_| "must be a whole number such as 100".to_owned()),
        Kind::Text => Ok(()),
    }
}

/// Returns true if the value requests nothing.
fn is_off(option: &MailpitOption, value: &str) -> bool {
    option.kind == Kind::Bool && parse_boolean(value) == Ok(false)
}

/// The options that depend on each other, or on files.
struct Dependent<'a> {
    given: &'a GivenValues,
    read_file: ReadFile<'a>,
    mapped: &'a mut Mapped,
}

impl Dependent<'_> {
    fn get(&self, name: &str) -> Option<&Given> {
        self.given.get(name)
    }

    fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some_and(|given| parse_boolean(&given.value) == Ok(true))
    }

    /// Selects the data directory of a tenant. Warns if there is a database of Mailpit, which is neither read nor changed,
    /// and the data directory does not exist yet.
    fn map_database_file(&mut self) {
        let Some(given) = self.get("database") else { return };
        let tenant = self.get("tenant-id").cloned();
        let name = tenant.as_ref().map_or("", |tenant| tenant.value.as_str());
        let (file, dir) = (database_file(&given.value), data_directory(&given.value, name));
        if let Some(tenant) = &tenant {
            self.mapped.add("storage.path", dir.display().to_string(), origin(tenant));
        }
        if !dir.exists() && is_sqlite(&file) {
            let (file, dir) = (file.display(), dir.display());
            // The name of the tables is safe in a shell.
            let (flag, note) = match mailpit_table_prefix(name) {
                prefix if prefix.is_empty() => (String::new(), ", which imports the messages of all tenants"),
                prefix => (format!(" --tenant {prefix}"), ""),
            };
            self.mapped.warnings.push(format!(
                "the Mailpit database {file} is not used: to move its messages, stop the server and run restante import \
                 --from {file}{flag} --data {dir}{note}; to keep more than 500, set MP_MAX_MESSAGES to a higher number \
                 or 0 before the next start"
            ));
        }
    }

    fn map_web_login(&mut self) {
        if let Some((credentials, origin)) = self.credentials("ui-auth-file", "MP_UI_AUTH") {
            self.mapped.add("auth.credentials", credentials, origin);
        }
    }

    fn map_smtp_login(&mut self) {
        let credentials = self.credentials("smtp-auth-file", "MP_SMTP_AUTH");
        let allows_insecure = self.is_on("smtp-auth-allow-insecure");
        let has_certificate = self.get("smtp-tls-cert").is_some();
        let (starttls, tls) = (self.is_on("smtp-require-starttls"), self.is_on("smtp-require-tls"));
        let needs_login = credentials.is_some() || self.is_on("smtp-auth-accept-any");
        if needs_login && !has_certificate && !allows_insecure {
            self.mapped.problems.push(
                "logins by SMTP need TLS: set MP_SMTP_TLS_CERT and MP_SMTP_TLS_KEY, or allow logins without TLS with \
                 MP_SMTP_AUTH_ALLOW_INSECURE=true or --smtp-auth-allow-insecure"
                    .to_owned(),
            );
        }
        if (starttls || tls) && allows_insecure {
            self.mapped.problems.push("TLS cannot be required together with --smtp-auth-allow-insecure".to_owned());
        }
        if starttls && tls {
            self.mapped.problems.push("--smtp-require-starttls and --smtp-require-tls exclude each other".to_owned());
        }
        if (starttls || tls) && !has_certificate {
            self.mapped.problems.push(
                "TLS cannot be required without a certificate: set MP_SMTP_TLS_CERT and MP_SMTP_TLS_KEY".to_owned(),
            );
        }
        let Some((credentials, origin)) = credentials else { return };
        self.mapped.add("smtp.credentials", credentials, origin.clone());
        self.mapped.add("smtp.requireauth", "true".to_owned(), origin.clone());
        // As in Mailpit, only a file of passwords implies it.
        if self.get("smtp-auth-file").is_some() && !allows_insecure && !tls {
            self.mapped.add("smtp.requirestarttls", "true".to_owned(), origin);
        }
    }

    fn map_pop3(&mut self) {
        let Some((credentials, origin)) = self.credentials("pop3-auth-file", "MP_POP3_AUTH") else { return };
        self.mapped.add("pop3.credentials", credentials, origin.clone());
        match self.get("pop3").map(|given| (listen_addr(&given.value), given.clone())) {
            Some((Ok(addr), given)) => self.mapped.add("pop3.addr", addr, Origin::Foreign(given.source)),
            Some((Err(error), given)) => self.mapped.problems.push(problem(&given, &error)),
            None => self.mapped.add("pop3.addr", POP3_ADDR.to_owned(), origin),
        }
    }

    /// Returns the credentials of a password file, or of a variable, in the form of the settings.
    fn credentials(&mut self, file: &str, variable: &str) -> Option<(String, Origin)> {
        let (text, given) = match (self.get(file), self.get(variable)) {
            (Some(given), _) => {
                let given = given.clone();
                let content = (self.read_file)(Path::new(&given.value)).map_err(|error| error.to_string());
                let text =
                    content.and_then(|content| String::from_utf8(content).map_err(|_| "it is not UTF-8".to_owned()));
                match text {
                    Ok(text) => (text, given),
                    Err(error) => {
                        let error = format!("the password file cannot be read: {error}");
                        self.mapped.problems.push(problem(&given, &error));
                        return None;
                    }
                }
            }
            (None, Some(given)) => (given.value.clone(), given.clone()),
            (None, None) => return None,
        };
        let entries: Vec<String> = text.split_whitespace().map(|entry| entry.replace(',', "%2C")).collect();
        if entries.is_empty() {
            // Without an error, the server would accept every login.
            self.mapped.problems.push(problem(&given, "must contain at least one USER:PASSWORD"));
            return None;
        }
        Some((entries.join(","), origin(&given)))
    }

    /// Checks that certificates and keys are given together.
    fn check_certificates(&mut self) {
        for (cert, key) in
            [("smtp-tls-cert", "smtp-tls-key"), ("ui-tls-cert", "ui-tls-key"), ("pop3-tls-cert", "pop3-tls-key")]
        {
            if self.get(cert).is_some() != self.get(key).is_some() {
                self.mapped.problems.push(format!("--{cert} and --{key} must be given together"));
            }
        }
    }

    /// Warns about an address for metrics.
    fn check_metrics(&mut self) {
        let Some(given) = self.get("enable-prometheus") else { return };
        if parse_boolean(&given.value).is_err() {
            self.mapped.warnings.push(format!(
                "there is no separate address for metrics: they are served at /metrics on the address of the web \
                 interface ({})",
                given.source
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use restante_settings::SETTINGS;

    use super::*;

    #[test]
    fn every_key_of_the_tables_is_a_setting() {
        let converted = OPTIONS.iter().flat_map(|option| match option.effect {
            Effect::Setting(key) => vec![key],
            Effect::Converted(keys, _) => keys.to_vec(),
            _ => Vec::new(),
        });
        for key in DEFAULTS.iter().map(|(key, _)| *key).chain(converted) {
            assert!(SETTINGS.iter().any(|setting| setting.key == key), "{key}");
        }
    }
}
