//! The commands that use a server, with the real program on both sides.

mod all_mail;
mod demo;
mod documentation;
mod extracting;
mod inbucket;
mod reading;
mod reference;
mod relay;
#[cfg(unix)]
mod run;
mod sending;
mod shell_words;
mod webhook;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::Server;

/// Returns the program at this path, with an environment that names only this server.
fn program(path: &Path, server: &str) -> Command {
    let mut command = Command::new(path);
    command.env_clear().env("RESTANTE_SERVER", server).env("USER", "tester").stdin(Stdio::null());
    command
}

fn restante(server: &Server) -> Command {
    program(Path::new(env!("CARGO_BIN_EXE_restante")), &server.url(""))
}

/// Runs a command. Returns its exit code, standard output and standard error.
fn run(command: &mut Command) -> (i32, String, String) {
    into_result(command.output().unwrap())
}

/// Like `run`, with this standard input.
fn run_with(command: &mut Command, input: &[u8]) -> (i32, String, String) {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A command that has already failed does not read it.
    let _ = child.stdin.take().unwrap().write_all(input);
    into_result(child.wait_with_output().unwrap())
}

fn into_result(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Runs the program, which must succeed, and returns its standard output.
#[track_caller]
fn run_successfully(server: &Server, args: &[&str]) -> String {
    let (code, out, stderr) = run(restante(server).args(args));
    assert_eq!((code, stderr.as_str()), (0, ""), "{args:?}");
    out
}
