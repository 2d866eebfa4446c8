//! `restante user`: writes users into their file. A server that runs with the same file knows of it within a second.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::process::ExitCode;

use restante_auth::users;
use restante_settings::Config;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::command_line::UserTask;

/// The longest line that is read as a password, in bytes.
const MAX_LINE_BYTES: u64 = 1024;

/// Does what the command line asks for.
pub fn run(config: &Config, UserTask::Add(name): &UserTask) -> ExitCode {
    match add(config, name) {
        Ok(note) => {
            // Whoever closed the pipe has seen enough, here as below.
            let _ = writeln!(io::stderr(), "{note}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            let _ = writeln!(io::stderr(), "restante: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn add(config: &Config, name: &str) -> Result<String, String> {
    let path = config.auth.users.as_ref().ok_or("there is no file of users: name one by --auth-users")?;
    users::check_name(name)?;
    let is_new = users::add(path, name, &read_password()?)?;
    let path = path.display();
    Ok(if is_new {
        format!("User {name} is in {path}.")
    } else {
        format!("User {name} has another password in {path}.")
    })
}

/// The password: from a terminal twice and unseen, from anything else its first line.
fn read_password() -> Result<String, String> {
    let told = |error: io::Error| format!("the password cannot be read: {error}");
    if !io::stdin().is_terminal() {
        return read_line().map_err(told);
    }
    let _unseen = EchoOff::start().map_err(told)?;
    let first = prompt("Password: ").map_err(told)?;
    if prompt("The same again: ").map_err(told)? != first {
        return Err("the passwords differ".to_owned());
    }
    if first.chars().any(char::is_control) {
        return Err("the password has a control character".to_owned());
    }
    Ok(first)
}

fn prompt(question: &str) -> io::Result<String> {
    write!(io::stderr(), "{question}")?;
    let line = read_line();
    writeln!(io::stderr())?;
    line
}

fn read_line() -> io::Result<String> {
    let mut line = String::new();
    io::Read::take(io::stdin().lock(), MAX_LINE_BYTES).read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// A terminal that does not show what is typed, as long as this is there. Ctrl-C is a letter meanwhile, and one that no
/// password has: a program that is ended would leave the terminal as it is.
struct EchoOff(Termios);

impl EchoOff {
    fn start() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut now = before.clone();
        now.local_modes -= LocalModes::ECHO | LocalModes::ISIG;
        tcsetattr(io::stdin(), OptionalActions::Flush, &now)?;
        Ok(Self(before))
    }
}

impl Drop for EchoOff {
    fn drop(&mut self) {
        // There is nothing else to try.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}
