//! `restante user`: adds users to the user file. A running server with the same file notices it within a second.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::process::ExitCode;

use restante_auth::users;
use restante_platform::read_passwords;
use restante_settings::Config;

use crate::command_line::UserTask;
use crate::exit::Exit;

/// The maximum length of a password that is read, in bytes.
const MAX_LINE_BYTES: u64 = 1024;

/// Runs the command.
pub fn run(config: &Config, UserTask::Add { name }: &UserTask) -> ExitCode {
    match add(config, name) {
        Ok(note) => {
            // A failed write does not matter: the reader has closed the pipe.
            let _ = writeln!(io::stderr(), "{note}");
            ExitCode::SUCCESS
        }
        Err(error) => Exit::error(&error, 1).print(),
    }
}

fn add(config: &Config, name: &str) -> Result<String, String> {
    let path = config.auth.users.as_ref().ok_or("there is no user file: set --auth-users FILE")?;
    users::check_name(name)?;
    let is_new = users::add(path, name, &read_password()?)?;
    let path = path.display();
    Ok(if is_new {
        format!("Added user {name} to {path}.")
    } else {
        format!("Changed the password of user {name} in {path}.")
    })
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
