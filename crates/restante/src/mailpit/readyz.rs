//! `mailpit readyz`: checks whether a server is ready, once or until it is.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use restante_settings::{Config, SETTINGS, parse_boolean, parse_duration};

use super::arguments::{self, FlagSpec};
use super::conversions;
use super::mapping::GivenValues;
use super::{add_variables, failure, help};
use crate::command_line::Exit;
use crate::health;

/// The pause between two checks.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The default of `--timeout`.
const DEFAULT_WAIT: Duration = Duration::from_secs(30);
/// The maximum of `--timeout`.
const MAX_WAIT: Duration = Duration::from_hours(24);

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

/// Parses the flags and the variables of Mailpit's web interface.
pub(super) fn parse(args: &[String], env: &[(OsString, OsString)]) -> Result<Readyz, Exit> {
    let parsed = arguments::parse(args, FLAGS).map_err(|error| failure(&error))?;
    if parsed.help {
        return Err(Exit { text: help::readyz(), code: 0 });
    }
    let mut given = GivenValues::new();
    // The server warns about deprecated and unknown variables.
    add_variables(env, &mut given, &mut Vec::new());
    let variable = |option: &str| given.get(option).map(|given| given.value.clone());
    let flag = |name: &str| parsed.flags.iter().rfind(|flag| flag.name == name).map(|flag| flag.value.clone());
    let listen = flag("listen").or_else(|| variable("listen")).unwrap_or_else(|| ":8025".to_owned());
    let webroot = flag("webroot").or_else(|| variable("webroot")).unwrap_or_default();
    let is_on = |name| flag(name).map(|value| parse_boolean(&value)).transpose();
    let invalid = |name: &str, error: String| failure(&format!("--{name}: {error}"));
    let https = is_on("https").map_err(|error| invalid("https", error))?;
    let wait = is_on("wait").map_err(|error| invalid("wait", error))?;
    let timeout = flag("timeout").map(|text| parse_duration(&text)).transpose();
    let timeout = timeout.map_err(|error| invalid("timeout", error))?.unwrap_or(DEFAULT_WAIT).min(MAX_WAIT);

    let mut config = Config::default();
    let mut settings = conversions::web_addr(&listen).map_err(|error| invalid("listen", error))?;
    settings.push(("web.basepath", webroot));
    for (key, value) in settings {
        if let Some(setting) = SETTINGS.iter().find(|setting| setting.key == key) {
            (setting.apply)(&mut config, &value).map_err(|error| failure(&error))?;
        }
    }
    config.web.tls.force = https.unwrap_or_else(|| variable("ui-tls-cert").is_some());
    let wait = wait.unwrap_or(false).then_some(timeout);
    Ok(Readyz { config: Box::new(config), wait })
}

impl Readyz {
    /// Checks the server. Prints a line to standard error and fails if it is not ready.
    pub(super) fn run(&self) -> ExitCode {
        let started = Instant::now();
        loop {
            let Err(reason) = health::check(&self.config, health::TIMEOUT) else { return ExitCode::SUCCESS };
            if self.wait.is_none_or(|wait| started.elapsed() >= wait) {
                // The exit code reports the result too.
                let _ = writeln!(std::io::stderr(), "{reason}");
                return ExitCode::FAILURE;
            }
            sleep(POLL_INTERVAL);
        }
    }
}

#[cfg(test)]
mod tests {
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
        ];
        for (args, env, expected) in table {
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            let env: Vec<_> = env.iter().map(|(name, value)| (name.into(), value.into())).collect();
            let web = parse(&args, &env).unwrap().config.web;
            let scheme = if web.tls.force { "https" } else { "http" };
            assert_eq!(format!("{}{} {scheme}", web.addr[0], web.base_path), *expected, "{args:?} {env:?}");
        }
    }
}
