//! Connections to a real server with a certificate, and to one without.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use restante_testdir::TestDir;
use restante_testpg::Postgres;

use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};

use super::super::Address;
use super::super::error::describe;
use super::{ServerVerifier, TrustedCertificates, Verification};

/// One database requires a client certificate; all others require TLS only.
const ACCESS: &str = "hostssl template1 all 127.0.0.1/32 cert\nhostssl all all 127.0.0.1/32 trust\n";

/// A certificate and its key, in PEM.
struct Pair {
    certificate: String,
    key: String,
}

/// A certificate authority.
struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.self_signed(&key).unwrap().pem();
        Self { certificate, issuer: Issuer::new(params, key) }
    }

    /// Signs a certificate for these hosts with this common name.
    fn sign(&self, hosts: &[&str], name: &str) -> Pair {
        let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
        let mut params = CertificateParams::new(hosts).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        Pair { certificate: params.signed_by(&key, &self.issuer).unwrap().pem(), key: key.serialize_pem() }
    }
}

/// Returns whether a connection is encrypted, or the error.
async fn connect(url: &str) -> Result<bool, String> {
    let address: Address = url.parse()?;
    let connected = address.config.connect(address.tls.clone()).await;
    let (client, connection) = connected.map_err(|error| describe(&error))?;
    tokio::spawn(connection);
    let query = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    // A server rejects the client's certificate only after the handshake.
    Ok(client.query_one(query, &[]).await.map_err(|error| describe(&error))?.get(0))
}

#[tokio::test]
async fn verifies_server_certificate() {
    let (trusted_authority, other_authority) = (Authority::new("ours"), Authority::new("theirs"));
    let (server, client, stranger) = (
        trusted_authority.sign(&["localhost"], "server"),
        trusted_authority.sign(&[], "restante"),
        other_authority.sign(&[], "restante"),
    );
    let files = [
        ("server.crt", &*server.certificate),
        ("server.key", &server.key),
        ("root.crt", &trusted_authority.certificate),
        ("pg_hba.conf", ACCESS),
    ];
    let Some(postgres) = Postgres::start_with_files(&files, &["ssl=on", "ssl_ca_file=root.crt"]) else { return };
    let dir = TestDir::new();
    for (name, content) in [
        ("ours", &trusted_authority.certificate),
        ("theirs", &other_authority.certificate),
        ("server", &server.certificate),
        ("client", &client.certificate),
        ("client.key", &client.key),
        ("stranger", &stranger.certificate),
        ("stranger.key", &stranger.key),
    ] {
        fs::write(dir.path().join(name), content).unwrap();
    }
    let (by_name, by_address) = ("localhost", "127.0.0.1");
    let unknown = "not signed by a trusted authority: sslrootcert must name";
    let cases: &[(&str, &str, Result<bool, &str>)] = &[
        (by_address, "postgres", Ok(true)),
        (by_address, "postgres?sslmode=disable", Err("no encryption")),
        (by_address, "postgres?sslmode=allow", Ok(true)),
        (by_address, "postgres?sslmode=require", Ok(true)),
        // With roots, the chain is verified in every mode; the name only in one.
        (by_address, "postgres?sslmode=require&sslrootcert={dir}/ours", Ok(true)),
        (by_address, "postgres?sslmode=require&sslrootcert={dir}/theirs", Err(unknown)),
        (by_address, "postgres?sslrootcert={dir}/theirs", Err(unknown)),
        (by_address, "postgres?sslmode=verify-ca", Err(unknown)),
        (by_address, "postgres?sslmode=verify-ca&sslrootcert={dir}/ours", Ok(true)),
        (by_address, "postgres?sslmode=verify-full&sslrootcert={dir}/ours", Err("certificate not valid for name")),
        (by_name, "postgres?sslmode=verify-full&sslrootcert={dir}/ours", Ok(true)),
        (by_name, "postgres?sslmode=verify-full&sslrootcert={dir}/theirs", Err(unknown)),
        (by_name, "postgres?sslrootcert=system", Err(unknown)),
        // The certificate itself can be used instead of its authority's.
        (by_name, "postgres?sslmode=verify-full&sslrootcert={dir}/server", Ok(true)),
        (by_address, "postgres?sslmode=verify-full&sslrootcert={dir}/server", Err("certificate not valid for name")),
        // Files with other contents.
        (by_name, "postgres?sslmode=verify-ca&sslrootcert={dir}/client.key", Err("client.key contains no certificate")),
        (by_name, "postgres?sslcert={dir}/client&sslkey={dir}/ours", Err("ours contains no private key")),
        (by_name, "postgres?sslcert={dir}/client&sslkey={dir}/stranger.key", Err("cannot be used with sslkey")),
        // The database that requires a client certificate.
        (by_name, "template1?sslmode=require", Err("requires a valid client certificate")),
        (by_name, "template1?sslmode=require&sslcert={dir}/client&sslkey={dir}/client.key", Ok(true)),
        (by_name, "template1?sslmode=require&sslcert={dir}/stranger&sslkey={dir}/stranger.key", Err("")),
    ];
    for (host, database, expected) in cases {
        let database = database.replace("{dir}", &dir.path().display().to_string());
        let url = format!("postgres://restante@{host}:{}/{database}", postgres.port());
        match (connect(&url).await, expected) {
            (Ok(encrypted), Ok(expected)) => assert_eq!(encrypted, *expected, "{url}"),
            (Err(error), Err(expected)) => assert!(error.contains(expected), "{url}: {error}"),
            (outcome, _) => panic!("{url}: {outcome:?}"),
        }
    }
}

#[test]
fn trusts_pinned_self_signed_certificate() {
    let provider = Arc::new(ring::default_provider());
    let (trusted_authority, other_authority) = (Authority::new("ours"), Authority::new("theirs"));
    for (trusted, expected) in [(&trusted_authority, true), (&other_authority, false)] {
        let pem = trusted.certificate.clone().into_bytes();
        let trusted = TrustedCertificates::from_file(Path::new("root.crt"), &|_| Ok(pem.clone())).unwrap();
        let verifier = ServerVerifier { verification: Verification::Chain(trusted), provider: provider.clone() };
        let certificate = CertificateDer::from_pem_slice(trusted_authority.certificate.as_bytes()).unwrap();
        let name = "localhost".try_into().unwrap();
        let result = verifier.verify_server_cert(&certificate, &[], &name, &[], UnixTime::now());
        assert_eq!(result.is_ok(), expected);
        let is_explained = result.err().is_none_or(|error| error.to_string().contains("if it is self-signed"));
        assert!(is_explained, "the error says what to do");
    }
}

#[tokio::test]
async fn requires_tls_if_configured() {
    let Some(postgres) = Postgres::shared() else { return };
    let url = postgres.url();
    for options in ["", "?sslmode=prefer", "?sslmode=allow", "?sslmode=disable"] {
        assert_eq!(connect(&format!("{url}{options}")).await, Ok(false), "{options}");
    }
    for mode in ["require", "verify-ca", "verify-full"] {
        let error = connect(&format!("{url}?sslmode={mode}")).await.expect_err(mode);
        assert!(error.contains("server does not support TLS"), "{mode}: {error}");
    }
}
