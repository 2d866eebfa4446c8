//! `mailpit readyz`: checks whether a server is ready, once or until it is.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use restante_mail::duration;
use restante_settings::{Config, Flags, Origin, Problem, Purpose, ReadFile, SETTINGS, parse_boolean};

use super::arguments::{self, FlagSpec};
use super::conversions;
use super::mapped::GivenValues;
use super::mapping;
use super::{add_variables, configuration_errors, failure, help};
use crate::exit::Exit;
use crate::health;

/// The default of `--timeout`.
const DEFAULT_WAIT: Duration = Duration::from_secs(30);

const FLAGS: &[FlagSpec] = &[
    FlagSpec { name: "listen", long: "listen", short: Some('l'), is_bool: false },
    FlagSpec { name: "webroot", long: "webroot", short: None, is_bool: false },
    FlagSpec { name: "https", long: "https", short: None, is_bool: true },
    FlagSpec { name: "wait", long: "wait", short: None, is_bool: true },
    FlagSpec { name: "timeout", long: "timeout", short: None, is_bool: false },
];

/// A health check.
#[derive(Debug)]
pub struct Readyz {
    config: Box<Config>,
    /// The maximum time to wait for the server. `None` means that it is checked once.
    wait: Option<Duration>,
}

/// Parses the flags, and loads the settings of the server, so that all of its variables and its file select the same
/// address. Only the options of the web interface matter: the others may be flags of the server, which are not known here.
pub(super) fn parse(args: &[String], env: Vec<(OsString, OsString)>, read_file: ReadFile<'_>) -> Result<Readyz, Exit> {
    let parsed = arguments::parse(args, FLAGS).map_err(|error| failure(&error))?;
    if parsed.help {
        return Err(Exit { text: help::readyz(), code: 0 });
    }
    let flag = |name: &str| parsed.flags.iter().rfind(|flag| flag.name == name).map(|flag| flag.value.clone());
    let is_on = |name| flag(name).map(|value| parse_boolean(&value)).transpose();
    let invalid = |name: &str, error: String| failure(&format!("--{name}: {error}"));
    let https = is_on("https").map_err(|error| invalid("https", error))?;
    let wait = is_on("wait").map_err(|error| invalid("wait", error))?;
    let timeout = flag("timeout").map(|text| duration::parse(&text)).transpose();
    let timeout = timeout.map_err(|error| invalid("timeout", error))?.unwrap_or(DEFAULT_WAIT).min(health::MAX_WAIT);

    let mut config = load(env, read_file)?;
    let mut apply = |name: &str, key: &str, value: &str| match SETTINGS.iter().find(|setting| setting.key == key) {
        Some(setting) => (setting.apply)(&mut config, value).map_err(|error| invalid(name, error)),
        None => Ok(()),
    };
    if let Some(listen) = flag("listen") {
        let addr = conversions::listen_addr(&listen).map_err(|error| invalid("listen", error))?;
        apply("listen", "web.addr", &addr)?;
    }
    if let Some(webroot) = flag("webroot") {
        apply("webroot", "web.basepath", &webroot)?;
    }
    if let Some(https) = https {
        config.web.tls.force = https;
    }
    Ok(Readyz { config: Box::new(config), wait: wait.unwrap_or(false).then_some(timeout) })
}

/// Loads the settings that select the server.
fn load(env: Vec<(OsString, OsString)>, read_file: ReadFile<'_>) -> Result<Config, Exit> {
    let mut given = GivenValues::new();
    // The server warns about deprecated and unknown variables.
    add_variables(&env, &mut given, &mut Vec::new());
    let certificate = given.remove("ui-tls-cert");
    given.retain(|name, _| ["listen", "webroot"].contains(name));
    let mut mapped = mapping::map(&given, read_file);
    if !mapped.problems.is_empty() {
        let problems: Vec<Problem> = mapped.problems.into_iter().map(Problem::new).collect();
        return Err(configuration_errors(&problems));
    }
    if let Some(certificate) = certificate {
        mapped.add("web.tlsenabled", "true".to_owned(), Origin::Foreign(certificate.source));
    }
    let flags = Flags { presets: mapped.presets, ..Flags::default() };
    let loaded = restante_settings::load(&flags, env, restante_cli::ENVIRONMENT_VARIABLES, read_file, Purpose::Check);
    loaded.map(|loaded| loaded.config).map_err(|problems| configuration_errors(&problems))
}

impl Readyz {
    /// Checks the server. Prints a line to standard error and fails if it is not ready.
    pub fn run(&self) -> ExitCode {
        match health::check_until_ready(&self.config, self.wait) {
            Ok(_) => ExitCode::SUCCESS,
            Err(reason) => {
                // The exit code reports the result too.
                let _ = writeln!(std::io::stderr(), "{reason}");
                ExitCode::FAILURE
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Arguments, variables, and the expected address, path and scheme.
    type Case<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], &'a str);

    #[test]
    fn flags_and_variables_select_the_server() {
        let table: &[Case<'_>] = &[
            (&[], &[], ":8025 http"),
            (&["-l", "127.0.0.1:80", "--https"], &[], "127.0.0.1:80 https"),
            (&[], &[("MP_UI_BIND_ADDR", "[::]:81"), ("MP_WEBROOT", "mp")], ":81/mp http"),
            (&["--webroot=a"], &[("MP_WEBROOT", "mp"), ("MP_UI_TLS_CERT", "x.pem")], ":8025/a https"),
            (&[], &[("MP_UI_SSL_CERT", "x.pem")], ":8025 https"),
            (&["--https=false"], &[("MP_UI_SSL_CERT", "x.pem")], ":8025 http"),
            (&[], &[("MP_UI_TLS_CERT", "")], ":8025 http"),
            // Settings of Restante override those of Mailpit, and flags override both.
            (&[], &[("RESTANTE_WEB_ADDR", ":80"), ("RESTANTE_WEB_BASEPATH", "/x"), ("MP_WEBROOT", "y")], ":80/x http"),
            (&[], &[("RESTANTE_WEB_TLSENABLED", "true")], ":8025 https"),
            (&["-l", ":81", "--https=0"], &[("RESTANTE_CONFIG", "r.toml")], ":81/file http"),
            (&[], &[("RESTANTE_CONFIG", "r.toml")], ":82/file https"),
            // Options of the server that are only valid together with its flags.
            (&[], &[("MP_SMTP_AUTH", "a:b"), ("MP_POP3_TLS_CERT", "x.pem"), ("MP_UI_AUTH_FILE", "x")], ":8025 http"),
        ];
        let read_file = |path: &Path| match path.to_str() {
            Some("r.toml") => Ok(b"[web]\naddr = \":82\"\nbasepath = \"/file\"\ntlsenabled = true\n".to_vec()),
            _ => Err(std::io::ErrorKind::NotFound.into()),
        };
        for (args, env, expected) in table {
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            let env: Vec<_> = env.iter().map(|(name, value)| (name.into(), value.into())).collect();
            let web = parse(&args, env.clone(), &read_file).unwrap().config.web;
            let scheme = if web.tls.force { "https" } else { "http" };
            assert_eq!(format!("{}{} {scheme}", web.addr[0], web.base_path), *expected, "{args:?} {env:?}");
        }
    }
}
