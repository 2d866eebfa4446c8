//! The configuration of one of Mailpit's servers, from variables and a file, and its form in the settings.

use std::path::Path;

use restante_settings::{Origin, ReadFile, parse_boolean};

use super::{address, encode, regex_pattern};
use crate::mailpit::mapped::{Given, GivenValues, Mapped, origin, problem};
use crate::mailpit::options::SENT_LATER;
use crate::mailpit::yaml;

/// The keys of the configuration file of both.
const KEYS: &[&str] = &[
    "host",
    "port",
    "starttls",
    "tls",
    "allow-insecure",
    "auth",
    "username",
    "password",
    "secret",
    "return-path",
    "override-from",
    SMTP_ERRORS,
];
/// The further keys of the relay.
const RELAY_KEYS: &[&str] =
    &["allowed-recipients", "blocked-recipients", "preserve-message-ids", OLD_ALLOWED_RECIPIENTS];
/// The further keys of forwarding.
const FORWARD_KEYS: &[&str] = &["to"];
const NOT_AN_ADDRESS: &str = "must be a mail address such as ann@example.org";
const SMTP_ERRORS: &str = "forward-smtp-errors";
/// The deprecated key of the allowed recipients.
const OLD_ALLOWED_RECIPIENTS: &str = "recipient-allowlist";

/// The port of Mailpit, also with TLS.
const DEFAULT_PORT: u16 = 25;
/// The hosts to which Go's SMTP client sends a password without TLS with AUTH PLAIN.
const LOCAL_HOSTS: &[&str] = &["localhost", "127.0.0.1", "::1", "[::1]"];

/// What a server is used for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Relay,
    Forward,
}

impl Kind {
    /// Returns the name of the target.
    fn name(self) -> &'static str {
        match self {
            Self::Relay => "relay",
            Self::Forward => "forward",
        }
    }

    fn keys(self) -> impl Iterator<Item = &'static str> {
        let own = match self {
            Self::Relay => RELAY_KEYS,
            Self::Forward => FORWARD_KEYS,
        };
        KEYS.iter().chain(own).copied()
    }

    /// Returns the variable that corresponds to a key.
    fn variable(self, key: &str) -> String {
        let key = if key == SMTP_ERRORS { "fwd-smtp-errors" } else { key };
        format!("MP_SMTP_{}_{}", self.name(), key.replace('-', "_")).to_ascii_uppercase()
    }
}

/// The configuration of a server: its keys with their values, which are not empty.
pub(super) struct Server {
    kind: Kind,
    /// The file, or the variable with the host.
    given: Given,
    values: Vec<(&'static str, Given)>,
}

impl Server {
    /// Collects the values of variables and file. Returns `None` if there is no host, or if the file is invalid.
    pub(super) fn collect(
        kind: Kind,
        given: &GivenValues,
        read_file: ReadFile<'_>,
        mapped: &mut Mapped,
    ) -> Option<Self> {
        let variable = |key: &'static str| Some((key, given.get(kind.variable(key).as_str())?.clone()));
        let mut values: Vec<(&'static str, Given)> = kind.keys().filter_map(variable).collect();
        let file = given.get(format!("smtp-{}-config", kind.name()).as_str());
        if let Some(file) = file {
            let entries = match read_entries(file, read_file) {
                Ok(entries) => entries,
                Err(error) => {
                    mapped.problems.push(problem(file, &error));
                    return None;
                }
            };
            let mut unknown = Vec::new();
            for yaml::YamlEntry { line, key, value } in entries {
                let Some(key) = kind.keys().find(|known| *known == key) else {
                    unknown.push(key);
                    continue;
                };
                if key == SMTP_ERRORS && parse_boolean(&value) == Ok(true) {
                    mapped.warnings.push(format!("no effect because {SENT_LATER}: {key} in {}", file.value));
                }
                values.retain(|(known, _)| *known != key);
                if !value.is_empty() {
                    values.push((key, Given { value, source: format!("{key} in line {line} of {}", file.value) }));
                }
            }
            if !unknown.is_empty() {
                mapped.warnings.push(format!("unknown keys in {} are ignored: {}", file.value, unknown.join(", ")));
            }
        }
        let host = values.iter().find(|(key, _)| *key == "host").map(|(_, host)| host.clone());
        match (file, host) {
            (Some(file), Some(_)) => Some(Self { kind, given: file.clone(), values }),
            (None, Some(host)) => Some(Self { kind, given: host, values }),
            (Some(file), None) => {
                mapped.problems.push(problem(file, "the file has no host"));
                None
            }
            (None, None) => None,
        }
    }

    pub(super) fn origin(&self) -> Origin {
        origin(&self.given)
    }

    fn get(&self, key: &str) -> Option<&Given> {
        self.values.iter().find(|(known, _)| *known == key).map(|(_, given)| given)
    }

    fn text(&self, key: &str) -> &str {
        self.get(key).map_or("", |given| given.value.as_str())
    }

    /// Returns a boolean. Those of variables were checked before.
    fn is_on(&self, key: &str, mapped: &mut Mapped) -> bool {
        let Some(given) = self.get(key) else { return false };
        parse_boolean(&given.value).unwrap_or_else(|error| {
            mapped.problems.push(problem(given, &error));
            false
        })
    }

    /// Returns the target with the options that both kinds have. Returns `None` if there is a problem.
    pub(super) fn target(&self, mapped: &mut Mapped) -> Option<String> {
        let problems = mapped.problems.len();
        let (tls, starttls) = (self.is_on("tls", mapped), self.is_on("starttls", mapped));
        let allow_insecure = self.is_on("allow-insecure", mapped);
        let name = self.kind.name();
        if tls && starttls {
            mapped.problems.push(format!("TLS and STARTTLS of the {name} server exclude each other"));
        }
        let login = self.login().unwrap_or_else(|problem| {
            mapped.problems.push(problem);
            None
        });
        let host = self.host(mapped);
        let (scheme, encryption, is_verified) = match (tls, starttls, &login) {
            (true, ..) => ("smtps", "", !allow_insecure),
            (_, true, _) => ("smtp", " starttls=required", !allow_insecure),
            // Go refuses AUTH PLAIN without TLS, except on the same machine.
            (.., Some(login)) if login.mechanism == "plain" && !LOCAL_HOSTS.contains(&host) => {
                ("smtp", " starttls=optional", !allow_insecure)
            }
            // Mailpit sends these passwords without TLS. So a certificate that cannot be verified is better than none.
            (.., Some(_)) => ("smtp", " starttls=optional unencryptedlogin=true", false),
            (.., None) => ("smtp", " starttls=never", true),
        };
        let verification = if is_verified { "" } else { " verify=false" };
        let (credentials, auth) = login.map_or_else(Default::default, |login| {
            let Login { mechanism, user, password } = login;
            (format!("{}:{}@", encode(user), encode(password)), format!(" auth={mechanism}"))
        });
        let return_path = self.address_option("return-path", "returnpath", mapped);
        let from = self.address_option("override-from", "from", mapped);
        let port = self.port(mapped);
        let target =
            format!("{name} {scheme}://{credentials}{host}:{port}{encryption}{verification}{auth}{return_path}{from}");
        (mapped.problems.len() == problems).then_some(target)
    }

    fn host(&self, mapped: &mut Mapped) -> &str {
        let host = self.get("host");
        if let Some(given) = host.filter(|given| given.value.contains([',', '/', '@', ' ', '\t'])) {
            mapped.problems.push(problem(given, "must be a host name such as smtp.example.org"));
        }
        host.map_or("", |given| given.value.as_str())
    }

    fn port(&self, mapped: &mut Mapped) -> u16 {
        let Some(given) = self.get("port") else { return DEFAULT_PORT };
        match given.value.parse() {
            Ok(0) => DEFAULT_PORT,
            Ok(port) => port,
            Err(_) => {
                mapped.problems.push(problem(given, "must be a port from 1 to 65535"));
                DEFAULT_PORT
            }
        }
    }

    /// Returns an option with an address, or an empty text.
    fn address_option(&self, key: &str, option: &str, mapped: &mut Mapped) -> String {
        let Some(given) = self.get(key) else { return String::new() };
        address(&given.value).map_or_else(
            || {
                mapped.problems.push(problem(given, NOT_AN_ADDRESS));
                String::new()
            },
            |address| format!(" {option}={}", encode(&address)),
        )
    }

    /// Returns the recipients that messages may be relayed to. Without a list, Mailpit allows all.
    pub(super) fn recipients(&self) -> String {
        let allowed = match (self.text("allowed-recipients"), self.text(OLD_ALLOWED_RECIPIENTS)) {
            ("", "") => "*".to_owned(),
            ("", old) => regex_pattern(old),
            (allowed, _) => regex_pattern(allowed),
        };
        match self.text("blocked-recipients") {
            "" => format!("allow={allowed}"),
            blocked => format!("allow={allowed} block={}", regex_pattern(blocked)),
        }
    }

    /// Returns the mechanism and the credentials. The error does not contain them.
    fn login(&self) -> Result<Option<Login<'_>>, String> {
        let auth = self.text("auth").to_ascii_lowercase();
        let (mechanism, key) = match auth.as_str() {
            "" | "none" | "false" => return Ok(None),
            "plain" => ("plain", "password"),
            "login" => ("login", "password"),
            cram if cram.starts_with("cram") => ("cram-md5", "secret"),
            _ => {
                let error = "must be none, plain, login or cram-md5";
                return Err(self.get("auth").map_or_else(String::new, |given| problem(given, error)));
            }
        };
        let (user, password) = (self.text("username"), self.text(key));
        if user.is_empty() || password.is_empty() {
            let name = self.kind.name();
            return Err(format!("the {name} server needs a username and a {key} for the authentication {mechanism}"));
        }
        Ok(Some(Login { mechanism, user, password }))
    }

    /// Returns the addresses that all messages are forwarded to.
    pub(super) fn forward_addresses(&self, mapped: &mut Mapped) -> Option<Vec<String>> {
        let Some(given) = self.get("to") else {
            mapped.problems.push(
                "messages can be forwarded only to addresses: set MP_SMTP_FORWARD_TO, or to in the file".to_owned(),
            );
            return None;
        };
        let addresses: Option<Vec<String>> = given.value.split(',').map(address).collect();
        if addresses.is_none() {
            mapped.problems.push(problem(given, NOT_AN_ADDRESS));
        }
        addresses
    }
}

/// Credentials of a server.
struct Login<'a> {
    mechanism: &'static str,
    user: &'a str,
    password: &'a str,
}

fn read_entries(file: &Given, read_file: ReadFile<'_>) -> Result<Vec<yaml::YamlEntry>, String> {
    let content = read_file(Path::new(&file.value)).map_err(|error| format!("the file cannot be read: {error}"))?;
    let text = String::from_utf8(content).map_err(|_| "the file is not UTF-8".to_owned())?;
    yaml::parse(&text)
}
