//! Parses the targets: `NAME URL [OPTION=VALUE ...]`.

use std::path::PathBuf;
use std::time::Duration;

use restante_http_client::parse_url;
use restante_proto::Secret;
use restante_relay::{Login, Mechanism, Password, Target, TargetTls, Verification};

use super::{MAX_NAME_CHARS, Options, decode, is_name, parse_address, split_words};
use crate::values::{duration_between, host_of, is_authority, number, parse_boolean, parse_entries};

const ALLOW: &str = "allow";
const BLOCK: &str = "block";
const STARTTLS: &str = "starttls";
const VERIFY: &str = "verify";
const CA: &str = "ca";
const AUTH: &str = "auth";
const USER: &str = "user";
const PASSWORD_FILE: &str = "passwordfile";
const UNENCRYPTED_LOGIN: &str = "unencryptedlogin";
const TIMEOUT: &str = "timeout";
const CONNECTIONS: &str = "connections";
const RETURN_PATH: &str = "returnpath";
const FROM: &str = "from";

const OPTIONS: &[&str] = &[
    ALLOW,
    BLOCK,
    STARTTLS,
    VERIFY,
    CA,
    AUTH,
    USER,
    PASSWORD_FILE,
    UNENCRYPTED_LOGIN,
    TIMEOUT,
    CONNECTIONS,
    RETURN_PATH,
    FROM,
];

/// The example in error messages.
const EXAMPLE: &str = "staging smtp://user:password@smtp.example.org:587 allow=*@example.org|qa@x.org";
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
const DEFAULT_CONNECTIONS: usize = 4;
const SMTP_PORT: u16 = 25;
const SMTPS_PORT: u16 = 465;

/// Parses a list of targets.
pub(crate) fn parse_targets(text: &str) -> Result<Vec<Target>, String> {
    let targets = parse_entries(text, parse_target)?;
    for (index, target) in targets.iter().enumerate() {
        if targets[..index].iter().any(|earlier| earlier.name == target.name) {
            return Err(format!("entry {} has the same name as an earlier entry", index + 1));
        }
    }
    Ok(targets)
}

/// Parses one entry. The error is appended to the number of the entry.
fn parse_target(entry: &str) -> Result<Target, String> {
    let words = split_words(entry)?;
    let [name, url, options @ ..] = &words[..] else {
        return Err(format!("is not of the form NAME URL (a comma is written %2C); an example is {EXAMPLE}"));
    };
    if !is_name(name) {
        return Err(format!(
            "has an invalid name: at most {MAX_NAME_CHARS} letters, digits, - and _ (a comma is written %2C); an \
             example is {EXAMPLE}"
        ));
    }
    let server = Server::parse(url)?;
    let options = Options::parse(options, OPTIONS, EXAMPLE)?;
    let tls = parse_tls(&server, &options)?;
    let target = Target {
        name: name.clone(),
        verification: parse_verification(&options)?,
        login: parse_login(&server, tls, &options)?,
        host: server.host,
        port: server.port,
        tls,
        timeout: options.parsed(TIMEOUT, |text| duration_between(text, "1s", "10m"))?.unwrap_or(DEFAULT_TIMEOUT),
        connections: options.parsed(CONNECTIONS, |text| number(text, 1..=64))?.unwrap_or(DEFAULT_CONNECTIONS),
        return_path: options.parsed(RETURN_PATH, parse_address)?,
        from: options.parsed(FROM, parse_address)?,
        allowed: options.recipients(ALLOW)?,
        blocked: options.recipients(BLOCK)?,
    };
    Ok(target)
}

/// The parts of a URL.
struct Server {
    has_implicit_tls: bool,
    host: String,
    port: u16,
    user: Option<String>,
    password: Option<String>,
}

impl Server {
    fn parse(url: &str) -> Result<Self, String> {
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        let has_implicit_tls = match scheme.to_ascii_lowercase().as_str() {
            "smtp" => false,
            "smtps" => true,
            _ => return Err(format!("has no URL that begins with smtp:// or smtps://; an example is {EXAMPLE}")),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (login, authority) = match rest.rsplit_once('@') {
            Some((login, authority)) => (Some(login), authority),
            None => (None, rest),
        };
        let host = host_of(authority);
        // The second check finds numbers that are not addresses, such as 1.2.3.256.
        if !is_authority(authority) || parse_url(&format!("http://{host}/")).is_err() {
            return Err(format!(
                "has a URL without a valid host and port (in user and password, %40 is @, %2F is /, %3A is :); an \
                 example is {EXAMPLE}"
            ));
        }
        let default_port = if has_implicit_tls { SMTPS_PORT } else { SMTP_PORT };
        let port = authority[host.len()..].strip_prefix(':').and_then(|port| port.parse().ok());
        let (user, password) = match login.map(|login| login.split_once(':').unwrap_or((login, ""))) {
            Some((user, password)) => (decode(user)?, decode(password)?),
            None => (String::new(), String::new()),
        };
        Ok(Self {
            has_implicit_tls,
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: port.unwrap_or(default_port),
            user: Some(user).filter(|user| !user.is_empty()),
            password: Some(password).filter(|password| !password.is_empty()),
        })
    }
}

fn parse_tls(server: &Server, options: &Options) -> Result<TargetTls, String> {
    let parse = |text: &str| match text {
        "required" => Ok(TargetTls::StartTls),
        "optional" => Ok(TargetTls::Optional),
        "never" => Ok(TargetTls::None),
        _ => Err("must be required, optional or never".to_owned()),
    };
    match (options.parsed(STARTTLS, parse)?, server.has_implicit_tls) {
        (Some(_), true) => Err(format!("has {STARTTLS}, but smtps:// uses TLS from the first byte")),
        (None, true) => Ok(TargetTls::Implicit),
        (starttls, false) => Ok(starttls.unwrap_or(TargetTls::StartTls)),
    }
}

fn parse_verification(options: &Options) -> Result<Verification, String> {
    let verifies = options.parsed(VERIFY, parse_boolean)?.unwrap_or(true);
    match options.text(CA)? {
        Some(_) if !verifies => Err(format!("has {CA}, but {VERIFY}=false")),
        Some(path) => Ok(Verification::Ca(PathBuf::from(path))),
        None if verifies => Ok(Verification::System),
        None => Ok(Verification::None),
    }
}

fn parse_login(server: &Server, tls: TargetTls, options: &Options) -> Result<Option<Login>, String> {
    let user = match (&server.user, options.text(USER)?) {
        (Some(_), Some(_)) => return Err(format!("has a user in its URL and {USER}")),
        (in_url, option) => in_url.clone().or(option),
    };
    let password = match (&server.password, options.text(PASSWORD_FILE)?) {
        (Some(_), Some(_)) => return Err(format!("has a password in its URL and {PASSWORD_FILE}")),
        (Some(password), None) => Some(Password::Text(Secret::new(password))),
        (None, path) => path.map(|path| Password::File(PathBuf::from(path))),
    };
    let mechanism = options.parsed(AUTH, parse_mechanism)?;
    let allow_unencrypted = options.parsed(UNENCRYPTED_LOGIN, parse_boolean)?;
    match (user, password) {
        (Some(_), Some(_)) if tls == TargetTls::None && allow_unencrypted != Some(true) => Err(format!(
            "has a password and {STARTTLS}=never: add {UNENCRYPTED_LOGIN}=true to send the password unencrypted"
        )),
        (Some(user), Some(password)) => {
            let allow_unencrypted = allow_unencrypted.unwrap_or(false);
            Ok(Some(Login { user, password, mechanism, allow_unencrypted }))
        }
        (Some(_), None) => {
            Err(format!("has a user without a password: write it in the URL or a file, with {PASSWORD_FILE}"))
        }
        (None, Some(_)) => Err(format!("has a password without a user: write the user in the URL, or as {USER}")),
        (None, None) if mechanism.is_some() || allow_unencrypted.is_some() => {
            Err(format!("has {AUTH} or {UNENCRYPTED_LOGIN}, but no user and password"))
        }
        (None, None) => Ok(None),
    }
}

fn parse_mechanism(text: &str) -> Result<Mechanism, String> {
    Mechanism::from_name(text)
        .ok_or_else(|| format!("must be one of {}", Mechanism::ALL.map(Mechanism::name).join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn target(text: &str) -> Target {
        let mut targets = parse_targets(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(targets.len(), 1, "{text}");
        targets.remove(0)
    }

    #[test]
    fn parses_servers() {
        use TargetTls::{Implicit, None, Optional, StartTls};
        let table = [
            ("a smtp://mx.example.org", "mx.example.org", 25, StartTls),
            ("a SMTP://Mx.Example.org:587/", "Mx.Example.org", 587, StartTls),
            ("a smtps://mx", "mx", 465, Implicit),
            ("a smtps://mx:25", "mx", 25, Implicit),
            ("a smtp://192.0.2.1:25", "192.0.2.1", 25, StartTls),
            ("a smtp://[2001:db8::1]", "2001:db8::1", 25, StartTls),
            ("a smtps://u:p@[2001:db8::1]:8465", "2001:db8::1", 8465, Implicit),
            ("a smtp://h starttls=required", "h", 25, StartTls),
            ("a smtp://h starttls=optional", "h", 25, Optional),
            (" a\tsmtp://h  starttls=never ,", "h", 25, None),
        ];
        for (text, host, port, tls) in table {
            let target = target(text);
            assert_eq!((target.host.as_str(), target.port, target.tls), (host, port, tls), "{text}");
            assert_eq!(target.name, "a");
        }
        assert_eq!(parse_targets("").map(|targets| targets.len()), Ok(0));
        assert_eq!(parse_targets("a smtp://h,A smtp://h,a_1-b smtps://h").map(|targets| targets.len()), Ok(3));
    }

    #[test]
    fn parses_options() {
        let target = target(
            "staging smtps://mx.example.org allow=*@example.org|qa@x.org|/^(a%7Cb){1%2C2}@/ block=ceo@* ca=/etc/my%20ca.pem \
             timeout=1m30s connections=64 returnpath=bounce@x.org from=Dev@x.org",
        );
        assert_eq!(target.allowed.texts(), ["*@example.org", "qa@x.org", "/^(a|b){1,2}@/"]);
        assert_eq!(target.blocked.texts(), ["ceo@*"]);
        assert_eq!(target.verification, Verification::Ca(PathBuf::from("/etc/my ca.pem")));
        assert_eq!((target.timeout, target.connections), (Duration::from_secs(90), 64));
        let addresses = [&target.return_path, &target.from].map(|address| address.as_ref().map(ToString::to_string));
        assert_eq!(addresses, [Some("bounce@x.org".to_owned()), Some("Dev@x.org".to_owned())]);

        let plain = super::tests::target("a smtp://h");
        assert!(plain.allowed.is_empty() && plain.blocked.is_empty() && plain.login.is_none());
        assert!(plain.return_path.is_none() && plain.from.is_none());
        assert_eq!(plain.verification, Verification::System);
        assert_eq!((plain.timeout, plain.connections), (Duration::from_secs(30), 4));
        assert_eq!(super::tests::target("a smtp://h verify=false").verification, Verification::None);
    }

    #[test]
    fn parses_logins() {
        let table = [
            ("a smtp://me%40x.org:p%40s%3A%2Cs@h", "me@x.org", "p@s:,s", None, false),
            ("a smtp://u:a:b@h auth=login", "u", "a:b", Some(Mechanism::Login), false),
            ("a smtp://:p@h user=me@x.org auth=plain", "me@x.org", "p", Some(Mechanism::Plain), false),
            ("a smtps://u@h passwordfile=/run/t auth=xoauth2", "u", "/run/t", Some(Mechanism::Xoauth2), false),
            (
                "a smtp://h user=u passwordfile=/run/p starttls=never unencryptedlogin=true auth=cram-md5",
                "u",
                "/run/p",
                Some(Mechanism::CramMd5),
                true,
            ),
        ];
        for (text, user, password, mechanism, allow_unencrypted) in table {
            let login = target(text).login.expect(text);
            let given = match &login.password {
                Password::Text(secret) => secret.expose().to_owned(),
                Password::File(path) => path.display().to_string(),
            };
            assert_eq!((login.user.as_str(), given.as_str()), (user, password), "{text}");
            assert_eq!((login.mechanism, login.allow_unencrypted), (mechanism, allow_unencrypted), "{text}");
        }
    }

    #[test]
    fn errors_do_not_contain_the_entry() {
        let table = [
            ("token", "entry 1 is not of the form NAME URL"),
            ("smtp://token", "entry 1 is not of the form NAME URL"),
            ("a smtp://h,token", "entry 2 is not of the form NAME URL (a comma is written %2C)"),
            ("smtp://token smtp://h", "entry 1 has an invalid name"),
            ("token.x smtp://h", "entry 1 has an invalid name"),
            ("a token", "entry 1 has no URL that begins with smtp:// or smtps://"),
            ("a http://token", "entry 1 has no URL that begins"),
            ("a smtp://", "entry 1 has a URL without a valid host and port"),
            ("a smtp://u:p/token@h/x", "entry 1 has a URL without a valid host and port"),
            ("a smtp://token:0", "entry 1 has a URL without a valid host and port"),
            ("a smtp://token:70000", "entry 1 has a URL without a valid host and port"),
            ("a smtp://1.2.3.256", "entry 1 has a URL without a valid host and port"),
            ("a smtp://u:token%@h", "entry 1 has a % without two hexadecimal digits"),
            ("a smtp://u:token%0d%0a@h", "entry 1 has a control character"),
            ("a smtp://u:%ff@h", "entry 1 has a value that is not UTF-8"),
            (
                "a smtp://h token",
                "entry 1 has an unknown option: the options are allow, block, starttls, verify, ca, auth, user, \
                 passwordfile, unencryptedlogin, timeout, connections, returnpath, from; an example is staging smtp://",
            ),
            ("a smtp://h token=1", "entry 1 has an unknown option"),
            ("a smtp://h Allow=*", "entry 1 has an unknown option"),
            ("a smtp://h allow=* allow=token", "entry 1 repeats the option allow; an example is staging"),
            ("a smtp://h allow=", "entry 1 has an empty value of allow"),
            ("a smtp://h allow=token|", "entry 1 has an empty value of allow"),
            ("a smtp://h allow=/(token/", "entry 1 has an invalid regular expression in allow"),
            ("a smtp://h allow=/token|b/", "entry 1 has an invalid pattern in allow: a regular expression is between"),
            ("a smtp://h allow=//", "entry 1 has an invalid pattern in allow"),
            ("a smtp://h block=%token", "entry 1 has a % without two hexadecimal digits (a % is written %25) in block"),
            (
                "a smtp://h starttls=token",
                "entry 1 has an invalid value of starttls: must be required, optional or never",
            ),
            ("a smtps://h starttls=required", "entry 1 has starttls, but smtps:// uses TLS from the first byte"),
            ("a smtp://h verify=token", "entry 1 has an invalid value of verify: must be true or false"),
            ("a smtp://h verify=false ca=token", "entry 1 has ca, but verify=false"),
            ("a smtp://u:token@h user=u", "entry 1 has a user in its URL and user"),
            ("a smtp://u:token@h passwordfile=x", "entry 1 has a password in its URL and passwordfile"),
            ("a smtp://token@h", "entry 1 has a user without a password"),
            ("a smtp://:token@h", "entry 1 has a password without a user"),
            ("a smtp://h passwordfile=token", "entry 1 has a password without a user"),
            ("a smtp://h auth=plain", "entry 1 has auth or unencryptedlogin, but no user and password"),
            ("a smtp://h unencryptedlogin=false", "entry 1 has auth or unencryptedlogin, but no user and password"),
            (
                "a smtp://u:token@h auth=token",
                "entry 1 has an invalid value of auth: must be one of plain, login, cram",
            ),
            (
                "a smtp://u:token@h starttls=never",
                "entry 1 has a password and starttls=never: add unencryptedlogin=true",
            ),
            ("a smtp://h timeout=999ms", "entry 1 has an invalid value of timeout: must be a duration from 1s to 10m"),
            ("a smtp://h timeout=token", "entry 1 has an invalid value of timeout: must be a duration such as"),
            ("a smtp://h connections=65", "entry 1 has an invalid value of connections: must be a whole number from 1"),
            ("a smtp://h returnpath=token", "entry 1 has an invalid value of returnpath: the domain is missing"),
            ("a smtp://h from=token@", "entry 1 has an invalid value of from: the domain"),
            ("a smtp://h,b smtp://h,a smtp://token", "entry 3 has the same name as an earlier entry"),
        ];
        for (text, expected) in table {
            let error = parse_targets(text).expect_err(text);
            assert!(error.starts_with(expected) && !error.contains("token"), "{text}: {error}");
        }
        let error = parse_targets("x,a smtp://h,y z").expect_err("two mistakes");
        assert!(error.contains("entry 1 ") && error.contains("; entry 3 "), "{error}");
        assert!(parse_targets(&format!("{} smtp://h", "x".repeat(65))).is_err());
        let shown = format!("{:?}", parse_targets("a smtp://u:token@h"));
        assert!(!shown.contains("token"), "{shown}");
    }
}
