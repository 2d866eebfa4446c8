//! `restante run`: runs a command with a leased run.

use std::ffi::OsString;
use std::process::Command;
use std::time::Duration;

use clap::Parser;
use restante_platform::{exit_code, run_in_foreground};
use serde::Deserialize;
use serde_json::json;

use crate::error::CommandError;
use crate::options::{
    DOMAIN_VARIABLE, PASSWORD_VARIABLE, PROJECT_VARIABLE, SERVER_VARIABLE, SMTP_VARIABLE, TOKEN_VARIABLE,
    USER_VARIABLE, parse_duration,
};
use crate::server::decode;
use crate::{CommandContext, Task, print_note};

/// Runs a command with a leased run, whose mail no other run sees.
#[derive(Parser)]
#[command(
    name = "run",
    long_about = "Leases a run: a project of its own with a limited lifetime. Runs a command that sends mail to this project \
        and reads its mail only, and then deletes the mail. The command has the variables RESTANTE_SERVER and RESTANTE_TOKEN, \
        which the commands and clients of Restante use; SMTP_HOST, SMTP_PORT, SMTP_USERNAME and SMTP_PASSWORD, whose login \
        delivers to the project; and RESTANTE_PROJECT and RESTANTE_DOMAIN: mail to all addresses of this domain is delivered to \
        the project without a login.",
    after_help = "The exit code is that of the command. If it cannot be run: 2 wrong usage, 3 server not reachable, 4 credentials \
        missing or refused, 5 error of the server or of this machine."
)]
pub(super) struct Run {
    /// The time after which the mail is deleted if the command still runs, at most 24h [default: 1h]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    expires: Option<Duration>,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// A leased run, as the server describes it.
#[derive(Deserialize)]
struct LeasedRun {
    project: String,
    token: String,
    domain: String,
    smtp: RunSmtp,
}

#[derive(Deserialize)]
struct RunSmtp {
    host: String,
    port: Option<u16>,
    username: String,
    password: String,
}

impl Task for Run {
    fn run(&self, context: &mut CommandContext<'_>) -> Result<(), CommandError> {
        let server = &context.server;
        let body =
            self.expires.map_or_else(|| json!({}), |time| json!({ "expires-in": format!("{}s", time.as_secs()) }));
        let run: LeasedRun = decode(&server.post(&["api", "v2", "runs"], &body)?)?;
        let server = server.for_run(&run.token);
        let status = run_in_foreground(self.command(server.url(), &run));
        // The server deletes the mail when the run expires, at the latest.
        if let Err(error) = server.delete(&["api", "v2", "runs", "current"]) {
            print_note(&format!("The mail of {} is deleted later: {error}", run.project));
        }
        let name = self.command.first().map(|name| name.to_string_lossy()).unwrap_or_default();
        let status = status.map_err(|error| CommandError::Local(format!("{name} cannot be run: {error}.")))?;
        match exit_code(status) {
            0 => Ok(()),
            code => Err(CommandError::CommandFailed(code)),
        }
    }
}

impl Run {
    /// Returns the command with its environment.
    fn command(&self, server: &str, run: &LeasedRun) -> Command {
        let (name, arguments) = self.command.split_first().map_or((None, &[][..]), |(name, rest)| (Some(name), rest));
        let mut command = Command::new(name.cloned().unwrap_or_default());
        command.args(arguments).env_remove(USER_VARIABLE).env_remove(PASSWORD_VARIABLE);
        command.envs([
            (SERVER_VARIABLE, server),
            (TOKEN_VARIABLE, &run.token),
            (PROJECT_VARIABLE, &run.project),
            (DOMAIN_VARIABLE, &run.domain),
        ]);
        if let RunSmtp { host, port: Some(port), username, password } = &run.smtp {
            let address = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
            command.envs([("SMTP_HOST", host), ("SMTP_PORT", &port.to_string()), (SMTP_VARIABLE, &address)]);
            command.envs([("SMTP_USERNAME", username), ("SMTP_PASSWORD", password)]);
        }
        command
    }
}
