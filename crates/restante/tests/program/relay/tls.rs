//! Targets with TLS: a Postfix with the certificate of its own authority.

use std::fs;
use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use restante_testdir::TestDir;
use serde_json::json;

use super::postfix::{Certificate, Postfix};
use super::queue::{Queue, latest, send, start};

/// Writes the certificate of an authority, and a certificate for `localhost` that it has signed, with its key.
fn create_certificates(directory: &TestDir, name: &str) -> [PathBuf; 3] {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap().pem();
    let write = |kind: &str, text: String| {
        let path = directory.path().join(format!("{name}-{kind}.pem"));
        fs::write(&path, text).unwrap();
        path
    };
    [write("ca", authority), write("certificate", certificate), write("key", key.serialize_pem())]
}

#[test]
fn certificate_of_the_target_is_verified() {
    let directory = TestDir::new();
    let [ca, chain, key] = create_certificates(&directory, "own");
    let [other_ca, ..] = create_certificates(&directory, "other");
    let Some(postfix) = Postfix::start_with_tls(&Certificate { chain: &chain, key: &key }) else { return };
    let Some(without_tls) = Postfix::start() else { return };
    let (smtp, smtps, plain) = (postfix.port(), postfix.tls_port(), without_tls.port());
    let (ca, other_ca) = (ca.display(), other_ca.display());
    // A target, the state of its entry, and a part of the last reply.
    let table = [
        (format!("smtp://localhost:{smtp} ca={ca}"), "delivered", "queued as"),
        (format!("smtp://localhost:{smtp} ca={ca} starttls=optional"), "delivered", "queued as"),
        (format!("smtps://localhost:{smtps} ca={ca}"), "delivered", "queued as"),
        (format!("smtp://127.0.0.1:{smtp} verify=false"), "delivered", "queued as"),
        (format!("smtp://localhost:{smtp}"), "queued", "certificate"),
        (format!("smtps://localhost:{smtps}"), "queued", "certificate"),
        (format!("smtp://localhost:{smtp} ca={other_ca}"), "queued", "certificate"),
        (format!("smtp://127.0.0.1:{smtp} ca={ca}"), "queued", "certificate"),
        (format!("smtps://127.0.0.1:{smtps} ca={ca}"), "queued", "certificate"),
        (format!("smtp://localhost:{smtp} starttls=never"), "failed", "STARTTLS"),
        (format!("smtp://localhost:{plain} ca={ca}"), "queued", "STARTTLS"),
        (format!("smtp://localhost:{plain} starttls=optional"), "delivered", "queued as"),
    ];
    let targets: Vec<String> =
        table.iter().enumerate().map(|(number, (url, ..))| format!("t{number} {url} allow=*")).collect();
    let server = start(&targets.iter().map(String::as_str).collect::<Vec<_>>(), &[]);
    let queue = Queue::of(&server);
    send(&server, "ann@example.org", "Hello");
    let message = latest(&server);
    let ids: Vec<String> = (0..table.len())
        .map(|number| {
            queue
                .release(&message, &json!({ "target": format!("t{number}"), "to": [format!("r{number}@example.org")] }))
        })
        .collect();
    for (id, (target, state, reply)) in ids.iter().zip(&table) {
        let entry = queue.wait_for(id, state);
        assert!(entry["last-reply"].as_str().unwrap().contains(reply), "{target}: {entry}");
    }
    let arrived: Vec<String> = postfix.wait_for(4).into_iter().map(|mail| mail.recipient).collect();
    assert_eq!(arrived, ["r0@example.org", "r1@example.org", "r2@example.org", "r3@example.org"]);
    assert_eq!(without_tls.wait_for(1)[0].recipient, "r11@example.org");
    // Postfix adds the protocol to Received: S stands for TLS.
    assert!(postfix.mails().iter().all(|mail| mail.text.contains("with ESMTPS id")));
}
