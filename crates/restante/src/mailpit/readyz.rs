//! `mailpit readyz`: checks whether a server is ready, once or until it is.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use restante_settings::{Config, SETTINGS, parse_boolean, parse_duration};

use super::arguments::{self, FlagSpec};
use super::conversions;
use super::{failure, help};
use crate::command_line::Exit;
use crate::health;

/// The pause between two checks.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// How long a server is waited for.
const DEFAULT_WAIT: Duration = Duration::from_secs(30);
/// The longest time that a server is waited for.
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
    /// How long the server is waited for; `None` means that it is checked once.
    wait: Option<Duration>,
}

/// Parses the flags and the variables of Mailpit's web interface.
pub(super) fn parse(args: &[String], env: &[(OsString, OsString)]) -> Result<Readyz, Exit> {
    let parsed = arguments::parse(args, FLAGS).map_err(|error| failure(&error))?;
    if parsed.help {
        return Err(Exit { text: help::readyz(), code: 0 });
    }
    let variable = |name: &str| {
        let value = env.iter().find(|(variable, _)| variable == name).map(|(_, value)| value.to_string_lossy());
        value.filter(|value| !value.is_empty()).map(std::borrow::Cow::into_owned)
    };
    let flag = |name: &str| parsed.flags.iter().rfind(|flag| flag.name == name).map(|flag| flag.value.clone());
    let listen = flag("listen").or_else(|| variable("MP_UI_BIND_ADDR")).unwrap_or_else(|| ":8025".to_owned());
    let webroot = flag("webroot").or_else(|| variable("MP_WEBROOT")).unwrap_or_default();
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
    config.web.tls.force = https.unwrap_or_else(|| variable("MP_UI_TLS_CERT").is_some());
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
