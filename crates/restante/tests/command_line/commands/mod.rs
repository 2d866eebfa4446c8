//! The commands that talk to a server as people and scripts meet them: the real program on both sides.

mod extracting;
mod inbucket;
mod reading;
mod reference;
mod sending;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::Server;

/// The program under a name, with an environment in which only this server is named.
fn program(path: &Path, server: &str) -> Command {
    let mut command = Command::new(path);
    command.env_clear().env("RESTANTE_SERVER", server).env("USER", "tester").stdin(Stdio::null());
    command
}

fn restante(server: &Server) -> Command {
    program(Path::new(env!("CARGO_BIN_EXE_restante")), &server.url(""))
}

/// Runs a command, and returns its exit code and what it wrote on standard output and standard error.
fn run(command: &mut Command) -> (i32, String, String) {
    ended(command.output().unwrap())
}

/// The same with something on standard input.
fn run_with(command: &mut Command, input: &[u8]) -> (i32, String, String) {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Who has decided already does not read it.
    let _ = child.stdin.take().unwrap().write_all(input);
    ended(child.wait_with_output().unwrap())
}

fn ended(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Runs the program, which must be content, and returns what it printed.
#[track_caller]
fn done(server: &Server, args: &[&str]) -> String {
    let (code, out, told) = run(restante(server).args(args));
    assert_eq!((code, told.as_str()), (0, ""), "{args:?}");
    out
}
