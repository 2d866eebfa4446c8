//! `restante project`: tests the rules that choose projects, without a server.

use std::fmt::Write as _;
use std::process::ExitCode;

use restante_mail::envelope::{Envelope, Peer};
use restante_settings::Config;

use crate::command_line::ProjectTask;
use crate::exit::Exit;

/// Runs the command.
pub fn run(config: &Config, task: &ProjectTask) -> ExitCode {
    match test(config, task) {
        Ok(text) => Exit { text, code: 0 },
        Err(error) => Exit::error(&error, 1),
    }
    .print()
}

/// Returns a line for each recipient.
fn test(config: &Config, task: &ProjectTask) -> Result<String, String> {
    let ProjectTask::Test { login, key, listener, client, helo, from, recipients, header } = task;
    let envelope = Envelope {
        peer: Peer { ip: *client, helo: helo.clone().unwrap_or_default() },
        login: login.clone(),
        key: key.as_deref().map(Into::into),
        listener: listener.as_ref().map(|addr| addr.to_string().into()),
        from: from.clone(),
        recipients: Vec::new(),
    };
    let source = format!("{}\r\n\r\n", header.join("\r\n"));
    let mut lines = String::new();
    for address in recipients {
        let mailbox = config.mailbox_naming.mailbox_for(address).map_err(|error| format!("{address}: {error}"))?;
        // Writing to a string cannot fail.
        let _ = match config.projects.choose(&envelope, address, source.as_bytes()) {
            Some((project, rule, number)) => {
                let mailbox = mailbox.in_project(&project);
                writeln!(lines, "{address}  {mailbox}  {project} (rule {number}: {rule})")
            }
            None => writeln!(lines, "{address}  {mailbox}  none: no rule matches"),
        };
    }
    Ok(lines)
}
