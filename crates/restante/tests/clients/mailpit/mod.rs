//! The API of Mailpit and the program as a replacement for Mailpit: clients written for Mailpit, a comparison of all answers with
//! those of a real Mailpit, and what the tests of Mailpit check.
//!
//! The clients have their tests in a folder per language. `install` downloads the clients; without them a test is skipped, or fails
//! if `REQUIRE_MAILPIT_CLIENTS` is set (for Go: `REQUIRE_GO`), as in CI.
//!
//! If `MAILPIT_BIN` is the path of a real Mailpit, the same tests run against it first: a test that fails there is wrong.

mod checks;
mod differential;
mod server;
mod testcontainers_java;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use restante_testdir::skip;
use restante_testpg::ReservedPort;

use crate::mailpit::server::{Program, Server};

/// The environment variable that makes a missing client an error.
const REQUIRED: &str = "REQUIRE_MAILPIT_CLIENTS";
/// The same for the client in Go, which needs a newer Go than some systems have.
const GO_REQUIRED: &str = "REQUIRE_GO";
/// Login and password of the API.
const LOGIN: (&str, &str) = ("user", "secret");
/// The variables of the server, except for the addresses.
const VARIABLES: [(&str, &str); 4] = [
    ("MP_UI_AUTH", "user:secret"),
    ("MP_ENABLE_CHAOS", "true"),
    ("MP_SMTP_AUTH_ACCEPT_ANY", "true"),
    ("MP_SMTP_AUTH_ALLOW_INSECURE", "true"),
];

/// Returns a command that runs in the directory with the tests of a client.
fn command_for(client: &str, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/mailpit").join(client));
    command
}

/// Returns the path of something that `install` has downloaded.
fn downloaded(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/mailpit-clients").join(path)
}

/// Returns whether a client can be used: whether the command succeeds. Otherwise the test is skipped.
fn is_installed(client: &str, command: &mut Command) -> bool {
    let is_installed = command.output().is_ok_and(|output| output.status.success());
    if !is_installed {
        let reason = format!("{command:?} failed: run crates/restante/tests/clients/mailpit/install {client}");
        skip(&reason, if client == "go" { GO_REQUIRED } else { REQUIRED });
    }
    is_installed
}

/// Returns the programs to test.
fn programs() -> impl Iterator<Item = Program> {
    Program::mailpit().into_iter().chain([Program::Restante])
}

/// Starts each program with the variables, and runs the tests that `tests` returns for it.
fn test_servers(variables: &[(&str, &'static str)], mut tests: impl FnMut(&Server) -> Command) {
    for program in programs() {
        let server = Server::start(&program, variables);
        let mut command = tests(&server);
        command.env("MAILPIT_URL", server.url("")).env("MAILPIT_SMTP", server.smtp().to_string());
        command.env("MAILPIT_USERNAME", LOGIN.0).env("MAILPIT_PASSWORD", LOGIN.1);
        assert_succeeds(&program, &mut command);
    }
}

/// Runs another test program. Its output is shown if it fails.
fn assert_succeeds(program: &Program, tests: &mut Command) {
    let Output { status, stdout, stderr } = tests.output().unwrap();
    let report = [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).join("\n");
    assert!(status.success(), "{:?}: {report}", program.words());
}

/// Runs a test file in `node`.
fn node(file: &str) {
    let import = "await import('mailpit-api')";
    if !is_installed("node", command_for("node", "node").args(["--input-type=module", "--eval", import])) {
        return;
    }
    test_servers(&VARIABLES, |_| {
        let mut tests = command_for("node", "node");
        tests.args(["--test", "--test-timeout=120000", file]);
        tests
    });
}

#[test]
fn mailpit_api_for_node() {
    node("mailpit-api.test.mjs");
}

#[test]
fn events_of_mailpit_api_for_node() {
    node("events.test.mjs");
}

#[test]
fn cypress_mailpit() {
    node("cypress-mailpit.test.mjs");
}

/// Runs a test file in `python`.
fn python(file: &str) {
    let python = downloaded("python/bin/python");
    if !is_installed("python", command_for("python", &python).args(["-c", "import pytest_mailpit, mailpit"])) {
        return;
    }
    test_servers(&VARIABLES, |_| {
        let mut tests = command_for("python", &python);
        tests.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", file]).env("PYTHONDONTWRITEBYTECODE", "1");
        tests
    });
}

#[test]
fn mailpit_api_client_for_python() {
    python("test_mailpit_api_client.py");
}

#[test]
fn pytest_mailpit() {
    python("test_pytest_mailpit.py");
}

/// Quarkus starts Mailpit with a web root.
#[test]
fn quarkus_mailpit() {
    let class_path = std::fs::read_to_string(downloaded("classpath")).unwrap_or_default();
    let class = "io.quarkiverse.mailpit.test.Mailbox";
    if !is_installed("java", command_for("java", "javap").args(["-cp", class_path.trim(), class])) {
        return;
    }
    let webroot = ("MP_WEBROOT", "/q/mailpit");
    test_servers(&[&VARIABLES[..], &[webroot]].concat(), |server| {
        let mut tests = command_for("java", "java");
        tests.args(["-cp", class_path.trim(), &format!("-Dmailpit.http.server=http://{}", server.http())]);
        tests.arg("QuarkusMailbox.java").env(webroot.0, webroot.1).env("MAILPIT_PICTURE", "../picture.png");
        tests
    });
}

/// The Go tests start the program themselves, with the variables of the module.
#[test]
fn testcontainers_for_go() {
    let go = |arguments: &[&str]| {
        let mut command = command_for("go", "go");
        command.args(arguments).env("GOMODCACHE", downloaded("go/modules")).env("GOCACHE", downloaded("go/build"));
        // Without network access: the modules have to be downloaded.
        command.env("GOFLAGS", "-modcacherw").env("GOTOOLCHAIN", "auto").env("GOPROXY", "off");
        command
    };
    if !is_installed("go", &mut go(&["vet", "./..."])) {
        return;
    }
    for program in programs() {
        let (smtp, http) = (ReservedPort::new(), ReservedPort::new());
        let mut tests = go(&["test", "-count=1", "./..."]);
        tests.env("MAILPIT_PROGRAM", program.words().join(" ".as_ref()));
        tests.env("MAILPIT_SMTP", smtp.address().to_string()).env("MAILPIT_HTTP", http.address().to_string());
        assert_succeeds(&program, &mut tests);
    }
}
