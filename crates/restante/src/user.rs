//! `restante user`: adds and lists the users of the user file. A running server with the same file notices it within a second.

use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::Path;
use std::process::ExitCode;

use restante_auth::{Rights, Scope, patterns_in_projects, users};
use restante_platform::read_passwords;
use restante_settings::Config;
use serde_json::{Value, json};

use crate::command_line::UserTask;
use crate::exit::print_output;
use crate::token::{format_table, mailboxes_text, scopes_text};

/// The maximum length of a password that is read, in bytes.
const MAX_LINE_BYTES: u64 = 1024;

/// Runs the command.
pub fn run(config: &Config, task: &UserTask) -> ExitCode {
    let output = match &config.auth.users {
        Some(path) => run_task(path, task),
        None => Err("there is no user file: set --auth-users FILE".to_owned()),
    };
    print_output(output)
}

/// Returns the result for programs, and a note for people.
fn run_task(path: &Path, task: &UserTask) -> Result<(String, String), String> {
    match task {
        UserTask::Add { name, scopes, mailboxes, projects, all_rights } => {
            users::check_name(name)?;
            let is_limited = scopes.is_some() || !mailboxes.is_empty() || !projects.is_empty();
            let limited = || Rights {
                scopes: scopes.unwrap_or_else(|| [Scope::Read].into_iter().collect()),
                mailboxes: patterns_in_projects(projects, mailboxes),
            };
            let rights = if *all_rights { Some(Rights::EVERYTHING) } else { is_limited.then(limited) };
            rights.as_ref().map_or(Ok(()), Rights::check)?;
            let is_new = users::add(path, name, &read_password()?, rights.as_ref())?;
            let path = path.display();
            let change = match (is_new, rights.is_some()) {
                (true, _) => format!("Added user {name} to"),
                (false, true) => format!("Changed the password and the rights of user {name} in"),
                (false, false) => format!("Changed the password of user {name} in"),
            };
            Ok((String::new(), format!("{change} {path}.\n")))
        }
        UserTask::List { json: true } => {
            let users: Vec<Value> = users::list(path)?.iter().map(|(name, rights)| user_json(name, rights)).collect();
            let text = serde_json::to_string_pretty(&users).map_err(|error| error.to_string())?;
            Ok((format!("{text}\n"), String::new()))
        }
        UserTask::List { json: false } => {
            let row = |(name, rights): (String, Rights)| {
                [name, scopes_text(rights.scopes), mailboxes_text(&rights.mailboxes)]
            };
            Ok((format_table(["NAME", "SCOPES", "MAILBOXES"], users::list(path)?.into_iter().map(row)), String::new()))
        }
    }
}

fn user_json(name: &str, rights: &Rights) -> Value {
    let scopes: Vec<&str> = rights.scopes.iter().map(Scope::name).collect();
    json!({ "name": name, "scopes": scopes, "mailboxes": rights.mailboxes })
}

/// Reads the password: from a terminal twice and without echo, otherwise the first line.
fn read_password() -> Result<String, String> {
    let read_error = |error: io::Error| format!("the password cannot be read: {error}");
    if !io::stdin().is_terminal() {
        return read_line().map_err(read_error);
    }
    let [first, second] = read_passwords(["Password: ", "Repeat the password: "]).map_err(read_error)?;
    if first != second {
        return Err("the passwords differ".to_owned());
    }
    if first.chars().any(char::is_control) {
        return Err("the password contains a control character".to_owned());
    }
    Ok(first)
}

fn read_line() -> io::Result<String> {
    let mut line = String::new();
    io::Read::take(io::stdin().lock(), MAX_LINE_BYTES).read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
