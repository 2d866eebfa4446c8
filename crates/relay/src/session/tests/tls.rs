//! TLS from the first byte and with STARTTLS, and the verification of certificates.

use std::fs;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use restante_proto::Secret;
use restante_testdir::TestDir;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;

use super::{OPENING, Server, connect, conversation, test_target};
use crate::settings::{Login, Mechanism, Password, Target, TargetTls, Verification};

const STARTTLS: &str =
    "S: 220 mx\nC: EHLO relay.test\nS: 250-mx\nS: 250-AUTH PLAIN\nS: 250 STARTTLS\nC: STARTTLS\nS: 220 go\n";
const MESSAGE: &str = "C: MAIL FROM:<>\nS: 550 no\n";

/// A certificate authority whose certificate is in a file.
struct Authority {
    dir: TestDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let dir = TestDir::new();
        fs::write(dir.path().join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
        Self { dir, issuer: Issuer::new(params, key) }
    }

    fn verification(&self) -> Verification {
        Verification::Ca(self.dir.path().join("ca.pem"))
    }

    /// Returns the configuration of a server with a certificate for this name or address.
    fn server_config(&self, name: &str, is_expired: bool) -> ServerConfig {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        if is_expired {
            params.not_after = date_time_ymd(2001, 1, 1);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        builder.with_single_cert(vec![certificate.der().clone()], key).unwrap()
    }
}

fn target(tls: TargetTls, verification: Verification) -> Target {
    Target { tls, verification, ..test_target() }
}

/// Opens a session and sends a message. Returns the conversation, or the error.
async fn converse(script: &str, config: ServerConfig, target: Target) -> Result<String, String> {
    let server = Server::start(script, Some(config)).await;
    let result = match connect(&server, target).await {
        Ok(mut session) => Ok(conversation(&session.send("", &["a@x.org"], b"x\r\n").await.transcript)),
        Err(error) => Err(error.text),
    };
    server.finish().await;
    result
}

#[tokio::test]
async fn encrypts_sessions() {
    let authority = Authority::new();
    let config = || authority.server_config("127.0.0.1", false);
    for tls in [TargetTls::StartTls, TargetTls::Optional] {
        // The server is greeted again, and its first offer of AUTH is forgotten.
        let script = format!("{STARTTLS}TLS\nC: EHLO relay.test\nS: 250 mx\n{MESSAGE}");
        let transcript = converse(&script, config(), target(tls, authority.verification())).await.unwrap();
        assert_eq!(transcript, script.replace("TLS\nC: EHLO", "C: EHLO"));
        let password = Password::Text(Secret::new("hunter-2"));
        let login = Some(Login { user: "ann".to_owned(), password, mechanism: None, allow_unencrypted: false });
        let target = Target { login, ..target(tls, authority.verification()) };
        let script = format!("{STARTTLS}TLS\nC: EHLO relay.test\nS: 250 mx\n");
        let error = converse(&script, config(), target.clone()).await.unwrap_err();
        assert_eq!(error, "the server offers no login mechanism that can be used");
        let script = format!(
            "{STARTTLS}TLS\nC: EHLO relay.test\nS: 250-mx\nS: 250 AUTH PLAIN\nC: AUTH PLAIN AGFubgBodW50ZXItMg==\n\
             S: 235 ok\n{MESSAGE}"
        );
        assert!(converse(&script, config(), target).await.unwrap().contains("AUTH PLAIN ***"));
    }
    let script = format!("TLS\n{OPENING}{MESSAGE}");
    let result = converse(&script, config(), target(TargetTls::Implicit, authority.verification())).await;
    assert_eq!(result.unwrap(), format!("{OPENING}{MESSAGE}"));
    // Without TLS, an offer is ignored.
    let script = format!("S: 220 mx\nC: EHLO relay.test\nS: 250-mx\nS: 250 STARTTLS\n{MESSAGE}");
    assert!(converse(&script, config(), target(TargetTls::None, Verification::System)).await.is_ok());
}

#[tokio::test]
async fn no_mechanism_logs_in_before_starttls() {
    let config = || Authority::new().server_config("127.0.0.1", false);
    let offer = "S: 250-mx\nS: 250-AUTH PLAIN LOGIN CRAM-MD5\nS: 250 STARTTLS\n";
    let table = [
        (Mechanism::Plain, "C: AUTH PLAIN AGFubgBodW50ZXItMg==\n"),
        (Mechanism::Login, "C: AUTH LOGIN\nS: 334 \nC: YW5u\nS: 334 \nC: aHVudGVyLTI=\n"),
        (
            Mechanism::CramMd5,
            "C: AUTH CRAM-MD5\nS: 334 PDEuMkBteD4=\nC: YW5uIDY2ODFjNzM1NGQ2ZGZkYTMyZWIzMDJmOTA5YzIzN2Uw\n",
        ),
    ];
    for (mechanism, login) in table {
        let password = Password::Text(Secret::new("hunter-2"));
        let credentials =
            Login { user: "ann".to_owned(), password, mechanism: Some(mechanism), allow_unencrypted: true };
        let target = Target { login: Some(credentials), ..target(TargetTls::Optional, Verification::None) };
        let greeting = format!("S: 220 mx\nC: EHLO relay.test\n{offer}");
        let script =
            format!("{greeting}C: STARTTLS\nS: 220 go\nTLS\nC: EHLO relay.test\n{offer}{login}S: 235 ok\n{MESSAGE}");
        assert!(converse(&script, config(), target.clone()).await.is_ok(), "{mechanism:?}");
        // If TLS is offered and fails, nothing else is sent.
        let refused = format!("{greeting}C: STARTTLS\nS: 454 no\n");
        assert!(converse(&refused, config(), target.clone()).await.is_err(), "{mechanism:?}");
        // Without the offer, the password is sent, because the target permits it.
        let script = format!("{}{login}S: 235 ok\n{MESSAGE}", greeting.replace("STARTTLS", "HELP"));
        assert!(converse(&script, config(), target).await.is_ok(), "{mechanism:?}");
    }
}

#[tokio::test]
async fn verifies_certificates() {
    let (authority, other) = (Authority::new(), Authority::new());
    let (valid, expired, named) = (
        || authority.server_config("127.0.0.1", false),
        || authority.server_config("127.0.0.1", true),
        || authority.server_config("localhost", false),
    );
    let missing = Verification::Ca(authority.dir.path().join("missing.pem"));
    let table = [
        (valid(), other.verification(), "127.0.0.1", Some("TLS failed with 127.0.0.1: invalid peer certificate")),
        (valid(), Verification::System, "127.0.0.1", Some("UnknownIssuer")),
        (valid(), missing, "127.0.0.1", Some("cannot use the certificates in ")),
        (expired(), authority.verification(), "127.0.0.1", Some("expired")),
        (named(), authority.verification(), "127.0.0.1", Some("not valid for name")),
        (named(), authority.verification(), "localhost", None),
        (valid(), Verification::None, "127.0.0.1", None),
        (expired(), Verification::None, "127.0.0.1", None),
        (named(), Verification::None, "127.0.0.1", None),
    ];
    for (config, verification, host, expected) in table {
        let script = format!("{STARTTLS}TLS\nC: EHLO relay.test\nS: 250 mx\n{MESSAGE}");
        let target = Target { host: host.to_owned(), ..target(TargetTls::StartTls, verification) };
        match (converse(&script, config, target).await, expected) {
            (Ok(_), None) => {}
            (Err(error), Some(expected)) if error.contains(expected) => {}
            (result, _) => panic!("{result:?} instead of {expected:?}"),
        }
    }
}

#[tokio::test]
async fn unencrypted_replies_after_starttls_are_refused() {
    let authority = Authority::new();
    let script = format!("{STARTTLS}S: 250 injected\nTLS\n");
    let config = authority.server_config("127.0.0.1", false);
    let error = converse(&script, config, target(TargetTls::StartTls, authority.verification())).await.unwrap_err();
    assert_eq!(error, "the server sent unencrypted data after its reply to STARTTLS");
    let script = STARTTLS.replace("220 go", "454 not now");
    let config = authority.server_config("127.0.0.1", false);
    let error = converse(&script, config, target(TargetTls::Optional, authority.verification())).await.unwrap_err();
    assert_eq!(error, "the server refused STARTTLS: 454 not now");
}
