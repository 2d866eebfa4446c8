//! The HTTP APIs of mail providers with real SDKs. Every SDK sends the same messages and checks the answers; then the stored messages
//! are compared with those in `messages.json`.
//!
//! `install` downloads the SDKs; without them a test is skipped, or fails if `REQUIRE_PROVIDER_CLIENTS` is set (for Go:
//! `REQUIRE_GO`), as in CI.

mod messages;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use restante_testdir::{TestDir, skip};

use crate::support::{Server, command};
use messages::Difference::{NoInlineImage, NoSenderName, Template};
use messages::{Difference, Sdk, assert_stored};

/// The environment variable that makes a missing SDK an error.
const REQUIRED: &str = "REQUIRE_PROVIDER_CLIENTS";
/// The same for the SDKs in Go, which need a newer Go than some systems have.
const GO_REQUIRED: &str = "REQUIRE_GO";

const fn sdk(name: &'static str, differs: &'static [Difference]) -> Sdk {
    Sdk { name, differs }
}

/// Returns a command that runs in the folder of a language.
fn command_for(language: &str, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/providers").join(language));
    // Settings of this machine must not change where and how the SDKs send.
    for (name, _) in std::env::vars_os() {
        let prefixes = ["AWS_", "RESEND_", "SENDGRID_", "MG_", "MAILGUN_", "DJANGO_"];
        if name.to_str().is_some_and(|name| prefixes.iter().any(|prefix| name.starts_with(prefix))) {
            command.env_remove(name);
        }
    }
    command.env("AWS_EC2_METADATA_DISABLED", "true").env("NO_PROXY", "*");
    command
}

/// Returns the path of something that `install` has downloaded.
fn downloaded(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/provider-clients").join(path)
}

/// Returns whether the SDKs of a language can be used: whether the command succeeds. Otherwise the test is skipped.
fn is_installed(language: &str, command: &mut Command) -> bool {
    let is_installed = command.output().is_ok_and(|output| output.status.success());
    if !is_installed {
        let reason = format!("{command:?} failed: run crates/restante/tests/clients/providers/install {language}");
        skip(&reason, if language == "go" { GO_REQUIRED } else { REQUIRED });
    }
    is_installed
}

/// Runs another program. Its output is shown if it fails.
fn assert_succeeds(command: &mut Command) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let report = [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).join("\n");
    assert!(status.success(), "{command:?}: {report}");
}

/// Starts a server, lets the command send the messages to it, and checks what is stored.
fn test_sdks(command: &mut Command, sdks: &[Sdk]) {
    let server = Server::start(&[]);
    assert_succeeds(command.env("PROVIDERS_URL", server.url("")));
    assert_stored(&server.url(""), None, sdks, None);
}

/// Returns a command that runs `node/run.mjs`, if the SDKs are installed.
fn node(arguments: &[&str]) -> Option<Command> {
    let import = ["--input-type=module", "--eval", "await import('postmark')"];
    is_installed("node", command_for("node", "node").args(import)).then(|| {
        let mut command = command_for("node", "node");
        command.arg("run.mjs").args(arguments);
        command
    })
}

fn test_node(name: &str, sdk: Sdk) {
    if let Some(mut command) = node(&[name]) {
        test_sdks(&mut command, &[sdk]);
    }
}

#[test]
fn sesv2_for_node() {
    test_node("sesv2", sdk("node-sesv2", &[Template]));
}

#[test]
fn ses_for_node() {
    test_node("ses", sdk("node-ses", &[Template]));
}

#[test]
fn nodemailer_with_ses() {
    test_node("nodemailer", sdk("node-nodemailer", &[]));
}

#[test]
fn resend_for_node() {
    test_node("resend", sdk("node-resend", &[Template]));
}

#[test]
fn sendgrid_for_node() {
    test_node("sendgrid", sdk("node-sendgrid", &[Template]));
}

#[test]
fn postmark_for_node() {
    test_node("postmark", sdk("node-postmark", &[Template]));
}

#[test]
fn mailgun_for_node() {
    test_node("mailgun", sdk("node-mailgun", &[]));
}

#[test]
fn brevo_for_node() {
    test_node("brevo", sdk("node-brevo", &[NoInlineImage]));
}

#[test]
fn mailersend_for_node() {
    test_node("mailersend", sdk("node-mailersend", &[]));
}

#[test]
fn azure_for_node() {
    test_node("azure", sdk("node-azure", &[NoSenderName]));
}

/// The SDK insists on HTTPS. The certificate is one of `restante ca`.
#[test]
fn mailjet_for_node_over_https() {
    let Some(mut client) = node(&["mailjet"]) else { return };
    let directory = TestDir::new();
    let file = |name: &str| directory.path().join(name).display().to_string();
    assert_succeeds(command().args(["ca", "--dir", &file(""), "localhost"]).stdout(Stdio::piped()));
    let (certificate, key) = (file("server.crt"), file("server.key"));
    let tls = ["--web-tlscert", &certificate, "--web-tlsprivkey", &key];
    let mut server = Server::start(&[&tls[..], &["--web-listeners", "127.0.0.1:0 tls providers"]].concat());
    let port = server.address_of("HTTPS APIs listening on tcp4 ").port();
    client.env("PROVIDERS_URL", format!("https://localhost:{port}")).env("NODE_EXTRA_CA_CERTS", file("ca.crt"));
    assert_succeeds(&mut client);
    assert_stored(&server.url(""), None, &[sdk("node-mailjet", &[])], None);
}

/// Returns a command that runs `python/run.py`, if the SDKs are installed.
fn python(arguments: &[&str]) -> Option<Command> {
    let python = downloaded("python/bin/python");
    is_installed("python", command_for("python", &python).args(["-c", "import anymail, mailgun, sendgrid"])).then(
        || {
            let mut command = command_for("python", &python);
            command.arg("run.py").args(arguments).env("PYTHONDONTWRITEBYTECODE", "1");
            command
        },
    )
}

fn test_python(name: &str, sdks: &[Sdk]) {
    if let Some(mut command) = python(&[name]) {
        test_sdks(&mut command, sdks);
    }
}

#[test]
fn boto3() {
    test_python("boto3", &[sdk("python-sesv2", &[Template]), sdk("python-ses", &[])]);
}

#[test]
fn resend_for_python() {
    test_python("resend", &[sdk("python-resend", &[])]);
}

#[test]
fn sendgrid_for_python() {
    test_python("sendgrid", &[sdk("python-sendgrid", &[])]);
}

#[test]
fn mailgun_for_python() {
    test_python("mailgun", &[sdk("python-mailgun", &[])]);
}

#[test]
fn anymail() {
    let sdks = [
        sdk("python-anymail-amazon_ses", &[]),
        sdk("python-anymail-brevo", &[NoInlineImage]),
        sdk("python-anymail-mailersend", &[]),
        sdk("python-anymail-mailgun", &[]),
        sdk("python-anymail-mailjet", &[]),
        sdk("python-anymail-mailtrap", &[]),
        sdk("python-anymail-mailtrap-sandbox", &[]),
        sdk("python-anymail-mandrill", &[]),
        sdk("python-anymail-postal", &[NoInlineImage]),
        sdk("python-anymail-postmark", &[]),
        sdk("python-anymail-postmark-bulk", &[]),
        sdk("python-anymail-resend", &[]),
        sdk("python-anymail-scaleway", &[NoInlineImage]),
        sdk("python-anymail-sendgrid", &[]),
        sdk("python-anymail-sparkpost", &[]),
    ];
    test_python("anymail", &sdks);
}

#[test]
fn sdks_for_go() {
    let go = |arguments: &[&str]| {
        let mut command = command_for("go", "go");
        command.args(["run", "."]).args(arguments);
        command.env("GOMODCACHE", downloaded("go/modules")).env("GOCACHE", downloaded("go/build"));
        // Without network access: the modules have to be downloaded.
        command.env("GOFLAGS", "-modcacherw").env("GOTOOLCHAIN", "auto").env("GOPROXY", "off");
        command
    };
    if is_installed("go", &mut go(&[])) {
        let sdks = [sdk("go-sesv2", &[]), sdk("go-resend", &[]), sdk("go-mailgun", &[])];
        test_sdks(&mut go(&["sesv2", "resend", "mailgun"]), &sdks);
    }
}

#[test]
fn sesv2_for_java() {
    let class_path = fs::read_to_string(downloaded("classpath")).unwrap_or_default();
    let class = "software.amazon.awssdk.services.sesv2.SesV2Client";
    if is_installed("java", command_for("java", "javap").args(["-cp", class_path.trim(), class])) {
        let mut command = command_for("java", "java");
        command.args(["-cp", class_path.trim(), "SesV2.java"]);
        test_sdks(&mut command, &[sdk("java-sesv2", &[])]);
    }
}

/// Sends one message with a key that the server accepts, and one with another key.
fn test_keys(client: impl Fn(&[&str]) -> Option<Command>, name: &str, accepted: Sdk) {
    let Some(mut send) = client(&["--only", "basic", name]) else { return };
    let Some(mut send_refused) = client(&["--refused", name]) else { return };
    let directory = TestDir::new();
    let tokens = directory.path().join("tokens.toml").display().to_string();
    let create = ["token", "create", "ci", "--scope", "read,write", "--auth-tokens", &tokens];
    let output = Command::new(env!("CARGO_BIN_EXE_restante")).args(create).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let token = String::from_utf8(output.stdout).unwrap();
    let server = Server::start(&["--auth-tokens", &tokens]);
    assert_succeeds(send_refused.env("PROVIDERS_URL", server.url("")).env("PROVIDERS_KEY", "other"));
    assert_succeeds(send.env("PROVIDERS_URL", server.url("")).env("PROVIDERS_KEY", token.trim()));
    assert_stored(&server.url(""), Some(token.trim()), &[accepted], Some("basic"));
}

#[test]
fn a_token_is_the_key_of_resend() {
    test_keys(node, "resend", sdk("node-resend", &[]));
}

#[test]
fn a_token_is_the_access_key_of_boto3() {
    test_keys(python, "boto3-sesv2", sdk("python-sesv2", &[]));
}

/// With a signing key, the signatures of requests are verified.
#[test]
fn signatures_of_boto3_are_verified() {
    let Some(mut send) = python(&["--only", "basic", "boto3-sesv2"]) else { return };
    let Some(mut send_refused) = python(&["--refused", "boto3"]) else { return };
    let server = Server::start(&["--providers-signingkeys", "AKIDEXAMPLE:right"]);
    for (command, secret) in [(&mut send_refused, "wrong"), (&mut send, "right")] {
        command.env("PROVIDERS_URL", server.url("")).env("PROVIDERS_KEY", "AKIDEXAMPLE");
        assert_succeeds(command.env("PROVIDERS_SECRET", secret));
    }
    assert_stored(&server.url(""), None, &[sdk("python-sesv2", &[])], Some("basic"));
}
