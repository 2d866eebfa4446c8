//! `restante ca`: its files, and a server and a client that use them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use restante_testdir::TestDir;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

use crate::support::tls::ClientStream;
use crate::support::{LineConnection, Server, command, connect};

const FILES: [&str; 4] = ["ca.crt", "ca.key", "server.crt", "server.key"];

fn ca(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_restante"))
        .args([&["ca"], arguments].concat())
        .env_clear()
        .current_dir(dir)
        .output()
        .unwrap()
}

/// Runs the command and returns the JSON that it prints.
fn ca_json(dir: &Path, arguments: &[&str]) -> Value {
    let output = ca(dir, &[&["--json"], arguments].concat());
    assert!(output.status.success(), "{arguments:?} {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn certificates(path: &Path) -> Vec<Certificate> {
    let chain = CertificateDer::pem_file_iter(path).unwrap();
    chain.map(|der| Certificate::from_der(&der.unwrap()).unwrap()).collect()
}

#[test]
fn files_are_created_and_the_certificate_is_renewed() {
    let dir = TestDir::new();
    let path = |name: &str| dir.path().join("restante-ca").join(name);
    let read = |name: &str| fs::read_to_string(path(name)).unwrap();
    let names = ["localhost", "127.0.0.1", "::1", "api.resend.com", "*.example.test", "192.0.2.7"];
    let created =
        ca_json(dir.path(), &["API.Resend.com", "*.example.test", "192.0.2.7", "localhost", "api.resend.com"]);
    assert_eq!(created["names"], json!(names));
    let before = FILES.map(read);
    let (certificate, chain) = (&certificates(&path("ca.crt"))[0], certificates(&path("server.crt")));
    assert_eq!((chain.len(), &chain[1]), (2, certificate));
    for (name, mode) in FILES.into_iter().zip([0o644, 0o600, 0o644, 0o600]) {
        let found = fs::metadata(path(name)).unwrap().permissions().mode() & 0o777;
        // The umask applies to files that are not private.
        assert_eq!(found & !0o022, mode & !0o022, "{name}: {found:o}");
    }
    assert_eq!(fs::read_dir(path("")).unwrap().count(), FILES.len());
    assert_eq!(fs::metadata(path("")).unwrap().permissions().mode() & 0o777, 0o700);

    // A file that everyone can read becomes private again.
    fs::set_permissions(path("server.key"), fs::Permissions::from_mode(0o644)).unwrap();
    let renewed = ca_json(dir.path(), &[]);
    assert_eq!(renewed["names"], json!(names));
    let after = FILES.map(read);
    assert_eq!((&before[..2], before[2] == after[2], before[3] == after[3]), (&after[..2], false, false));
    assert_eq!(fs::metadata(path("server.key")).unwrap().permissions().mode() & 0o777, 0o600);
    let serial = |chain: &[Certificate]| chain[0].tbs_certificate.serial_number.clone();
    let new_chain = certificates(&path("server.crt"));
    assert_ne!(serial(&chain), serial(&new_chain));
    let validity = new_chain[0].tbs_certificate.validity;
    let [start, end] = [validity.not_before, validity.not_after].map(|time| time.to_unix_duration().as_secs());
    assert_eq!(end - start + 1, 398 * 24 * 3600);

    // Names that are given replace those of the certificate. Those below a permitted name are permitted too.
    let other = ca_json(dir.path(), &["eu.api.resend.com", "--days", "1"]);
    assert_eq!(other["names"], json!(["localhost", "127.0.0.1", "::1", "eu.api.resend.com"]));
    assert_eq!(read("ca.crt"), before[0]);
}

#[test]
fn lines_to_copy_are_printed() {
    let dir = TestDir::new();
    let output = ca(dir.path(), &["--dir", "it's here", "api.resend.com", "*.example.test", "192.0.2.7"]);
    assert!(output.status.success(), "{output:?}");
    let (text, note) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    let folder = fs::canonicalize(dir.path()).unwrap().join("it's here");
    let note_start =
        format!("Created a CA and a certificate in {} for localhost, 127.0.0.1, ::1, api", folder.display());
    assert!(note.starts_with(&note_start), "{note}");
    let file = |name: &str| format!("'{}'", folder.join(name).display().to_string().replace('\'', "'\\''"));
    let (ca_file, store) = (file("ca.crt"), file("restante.p12"));
    let lines = [
        format!("export RESTANTE_WEB_TLSCERT={}", file("server.crt")),
        format!("export RESTANTE_WEB_TLSPRIVKEY={}", file("server.key")),
        "export RESTANTE_WEB_LISTENERS='localhost:9443 tls providers'".to_owned(),
        "export RESTANTE_WEB_HOSTS='api.resend.com'".to_owned(),
        format!("export NODE_EXTRA_CA_CERTS={ca_file}"),
        format!("export SSL_CERT_FILE={ca_file}"),
        format!("export REQUESTS_CA_BUNDLE={ca_file}"),
        format!("export AWS_CA_BUNDLE={ca_file}"),
        format!("export CURL_CA_BUNDLE={ca_file}"),
        format!(
            "keytool -importcert -noprompt -alias restante -file {ca_file} -keystore {store} -storetype PKCS12 -storepass changeit"
        ),
        "extra_hosts:".to_owned(),
        "  - \"api.resend.com:host-gateway\"".to_owned(),
    ];
    let printed: Vec<&str> = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    assert_eq!(printed, lines);
    let plain = ca(dir.path(), &[]);
    let text = String::from_utf8(plain.stdout).unwrap();
    assert!(!text.contains("HOSTS") && !text.contains("extra_hosts"), "{text}");
}

/// The files to replace, the arguments, and the error.
type Row<'r> = (&'r [(&'r str, Option<&'r [u8]>)], &'r [&'r str], &'r str);

#[test]
fn invalid_names_and_unusable_folders_are_refused() {
    let dir = TestDir::new();
    for name in ["a b", "ü.test", "", "*", "*.test", "a.*.test", "x.test.", "http://x.test", "x.test:443", "10.0.0.0/8"]
    {
        let output = ca(dir.path(), &[name]);
        assert_eq!(output.status.code(), Some(2), "{name} {output:?}");
    }
    for arguments in [["--days", "0"], ["--days", "399"]] {
        assert_eq!(ca(dir.path(), &arguments).status.code(), Some(2), "{arguments:?}");
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);

    ca_json(dir.path(), &["api.resend.com"]);
    ca_json(dir.path(), &["--dir", "other"]);
    let (ca_dir, other) = (dir.path().join("restante-ca"), dir.path().join("other"));
    let original = FILES.map(|name| fs::read(ca_dir.join(name)).unwrap());
    let foreign = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let foreign = [foreign.cert.pem().into_bytes(), foreign.signing_key.serialize_pem().into_bytes()];
    let other = ["ca.crt", "ca.key"].map(|name| fs::read(other.join(name)).unwrap());
    let unknown = "ca.crt and ca.key do not belong together, or this command has not created them: choose another folder \
                   with --dir, or delete ";
    let table: [Row<'_>; 11] = [
        (
            &[],
            &["api.resend.com", "x.test", "1.2.3.4"],
            "the CA was created for other names than x.test, 1.2.3.4: choose",
        ),
        (&[("ca.key", None)], &[], "cannot be used: ca.key is missing"),
        (&[("ca.crt", None)], &[], "cannot be used: ca.crt is missing"),
        (&[("ca.crt", None), ("ca.key", None)], &[], "server.key: the folder has no CA"),
        (&[("server.key", Some(&foreign[1]))], &[], "server.key: the CA in the folder has not issued"),
        (&[("ca.key", Some(b"x"))], &[], "cannot be used: ca.key contains no private key in PEM"),
        (&[("ca.crt", Some(b"x"))], &[], "cannot be used: ca.crt contains no certificate"),
        (
            &[("ca.crt", Some(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))],
            &[],
            "cannot be used: ca.crt contains no valid certificate",
        ),
        (&[("ca.key", Some(b"\xff"))], &[], "ca.key: "),
        (&[("ca.crt", Some(&other[0]))], &[], unknown),
        (&[("ca.crt", Some(&foreign[0])), ("ca.key", Some(&foreign[1]))], &[], unknown),
    ];
    for (files, arguments, expected) in table {
        for (name, content) in files {
            let path = ca_dir.join(name);
            content.map_or_else(|| fs::remove_file(&path), |content| fs::write(&path, content)).unwrap();
        }
        let output = ca(dir.path(), arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && text.contains(expected), "{expected}: {output:?}");
        for (name, content) in FILES.iter().zip(&original) {
            let is_replaced = files.iter().any(|(replaced, _)| replaced == name);
            assert!(is_replaced || fs::read(ca_dir.join(name)).unwrap() == *content, "{name} was changed: {expected}");
            fs::write(ca_dir.join(name), content).unwrap();
        }
    }
    fs::write(dir.path().join("file"), "x").unwrap();
    for folder in ["file", "file/below", "/proc/x"] {
        let output = ca(dir.path(), &["--dir", folder]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && text.starts_with("restante: /"), "{output:?}");
    }
    ca_json(dir.path(), &["api.resend.com"]);
}

#[test]
fn clients_that_trust_only_the_ca_accept_the_server() {
    let dir = TestDir::new();
    let created = ca_json(dir.path(), &["api.resend.com", "*.example.test"]);
    let (ca_file, server) = (fs::read(created["ca"].as_str().unwrap()).unwrap(), &created["server"]);
    let variables = server.as_object().unwrap().iter().map(|(name, value)| (name, value.as_str().unwrap()));
    let mut command = command();
    command.envs(variables).env("RESTANTE_WEB_LISTENERS", "localhost:0 tls rest");
    let mut server = Server::spawn(&mut command);
    let https = server.address_of("HTTPS APIs listening on tcp4 ");
    for name in ["localhost", "127.0.0.1", "api.resend.com", "shop.example.test"] {
        let mut stream = ClientStream::Plain(connect(https));
        stream.start_trusting_tls(&ca_file, name).unwrap();
        let mut connection = LineConnection::new(stream);
        connection.send(format!("GET /api/v1/mailbox/bob HTTP/1.1\r\nHost: {name}\r\n\r\n"));
        // Only the names of the printed setting are accepted as hosts of requests.
        let expected = if name == "shop.example.test" { "421 Misdirected Request" } else { "200 OK" };
        assert_eq!(connection.line().unwrap(), format!("HTTP/1.1 {expected}"), "{name}");
    }
    ca_json(dir.path(), &["--dir", "other"]);
    let other = fs::read(dir.path().join("other/ca.crt")).unwrap();
    for (trusted, name, expected) in [
        (&ca_file, "api.sendgrid.com", "NotValidForName"),
        (&ca_file, "example.test", "NotValidForName"),
        (&other, "localhost", "UnknownIssuer"),
    ] {
        let mut stream = ClientStream::Plain(connect(https));
        let error = format!("{:?}", stream.start_trusting_tls(trusted, name).unwrap_err());
        assert!(error.contains(expected), "{name}: {error}");
    }
}
