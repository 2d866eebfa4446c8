//! Clients of Mailpit against the program, with their tests in `clients/`. `clients/install` downloads the clients; without them a
//! test is skipped, or fails if `REQUIRE_MAILPIT_CLIENTS` is set (for Go: `REQUIRE_GO`), as in CI.
//!
//! If `MAILPIT_BIN` is the path of a real Mailpit, the same tests run against it first: a test that fails there is wrong.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use restante_testdir::skip;
use restante_testpg::ReservedPort;

use crate::server::{Program, Server};

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

/// Returns the directory of the tests of a client. If one of the commands fails there, skips the test and returns `None`.
fn installed(client: &str, commands: &[&[&str]]) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mailpit/clients").join(client);
    for command in commands {
        let output = Command::new(command[0]).args(&command[1..]).current_dir(&folder).output();
        if !output.is_ok_and(|output| output.status.success()) {
            let reason =
                format!("{} failed: run crates/restante/tests/mailpit/clients/install {client}", command.join(" "));
            skip(&reason, if client == "go" { GO_REQUIRED } else { REQUIRED });
            return None;
        }
    }
    Some(folder)
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

/// Runs a test file of `clients/node`.
fn node(file: &str) {
    let modules = "node_modules/.package-lock.json";
    let Some(folder) = installed("node", &[&["node", "--version"], &["test", "-e", modules]]) else { return };
    test_servers(&VARIABLES, |_| {
        let mut tests = Command::new("node");
        tests.args(["--test", file]).current_dir(&folder);
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

/// Runs a test file of `clients/python`.
fn python(file: &str) {
    let python = ".venv/bin/python";
    let Some(folder) = installed("python", &[&[python, "-c", "import pytest_mailpit, mailpit"]]) else { return };
    test_servers(&VARIABLES, |_| {
        let mut tests = Command::new(folder.join(python));
        tests.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", file]).current_dir(&folder);
        tests.env("PYTHONDONTWRITEBYTECODE", "1");
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
    let Some(folder) = installed("java", &[&["java", "-version"], &["test", "-s", "target/classpath"]]) else { return };
    let class_path = std::fs::read_to_string(folder.join("target/classpath")).unwrap();
    let webroot = ("MP_WEBROOT", "/q/mailpit");
    test_servers(&[&VARIABLES[..], &[webroot]].concat(), |server| {
        let mut tests = Command::new("java");
        tests.args(["-cp", class_path.trim(), &format!("-Dmailpit.http.server=http://{}", server.http())]);
        tests.arg("QuarkusMailbox.java").current_dir(&folder);
        tests.env(webroot.0, webroot.1).env("MAILPIT_PICTURE", folder.join("../picture.png"));
        tests
    });
}

/// The Go tests start the program themselves, with the variables of the module.
#[test]
fn testcontainers_for_go() {
    // Without network access: the modules have to be downloaded.
    let Some(folder) = installed("go", &[&["env", "GOPROXY=off", "go", "vet", "./..."]]) else { return };
    for program in programs() {
        let (smtp, http) = (ReservedPort::new(), ReservedPort::new());
        let mut tests = Command::new("go");
        tests.args(["test", "-count=1", "./..."]).current_dir(&folder).env("GOPROXY", "off");
        tests.env("MAILPIT_PROGRAM", program.words().join(" ".as_ref()));
        tests.env("MAILPIT_SMTP", smtp.address().to_string()).env("MAILPIT_HTTP", http.address().to_string());
        assert_succeeds(&program, &mut tests);
    }
}
