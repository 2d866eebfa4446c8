//! The certificates of a local CA. Nothing is stored about a CA except for its certificate and its key: what a certificate contains
//! about its issuer follows from the key.

use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose, NameConstraints, date_time_ymd,
};
use restante_net::Tls;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::{CertificateDer, DnsName, ServerName, UnixTime};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// The names that every certificate is for.
const LOCAL_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
/// How long a CA is valid.
const CA_LIFETIME: Duration = Duration::from_hours(24 * 3650);
/// How long before now a certificate becomes valid, for clients whose clock is behind.
const CLOCK_TOLERANCE: Duration = Duration::from_hours(1);

/// A name that a certificate is for: a DNS name in lower case, a wildcard such as `*.example.test`, or an IP address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CertificateName(String);

impl CertificateName {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name if it is a DNS name without a wildcard that only some certificates have.
    pub(super) fn as_host(&self) -> Option<&str> {
        let is_host = !self.0.starts_with('*') && self.0.parse::<IpAddr>().is_err();
        Some(self.as_str()).filter(|name| is_host && !LOCAL_NAMES.contains(name))
    }

    /// Returns what a CA that may sign for this name is limited to. For a DNS name this includes all names below it (RFC 5280
    /// section 4.2.1.10).
    fn subtree(&self) -> GeneralSubtree {
        match self.0.parse::<IpAddr>() {
            Ok(ip) => GeneralSubtree::IpAddress(CidrSubnet::from_addr_prefix(ip, if ip.is_ipv4() { 32 } else { 128 })),
            Err(_) => GeneralSubtree::DnsName(self.0.trim_start_matches("*.").to_owned()),
        }
    }
}

impl FromStr for CertificateName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(ip) = text.parse::<IpAddr>() {
            return Ok(Self(ip.to_string()));
        }
        let name = text.to_ascii_lowercase();
        let suffix = name.strip_prefix("*.");
        if suffix.is_some_and(|suffix| !suffix.contains('.')) {
            return Err("a wildcard needs two labels after it, such as *.example.test, because clients refuse others");
        }
        let is_name = DnsName::try_from(suffix.unwrap_or(&name)).is_ok() && !name.ends_with('.');
        is_name.then_some(Self(name)).ok_or(
            "must be a DNS name in ASCII such as api.example.test, a wildcard such as *.example.test, or an IP address",
        )
    }
}

/// Returns these names and those that every certificate is for, each once.
pub(super) fn with_local_names(names: Vec<CertificateName>) -> Vec<CertificateName> {
    let mut all = LOCAL_NAMES.map(|name| CertificateName(name.to_owned())).to_vec();
    for name in names {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

/// Returns the names of the first certificate in a PEM file, without those that are not valid.
pub(super) fn names_of(pem: &str) -> Vec<CertificateName> {
    let chain = Tls::parse_chain(pem.as_bytes()).unwrap_or_default();
    let certificate = chain.first().and_then(|der| Certificate::from_der(der).ok());
    let names = certificate.and_then(|certificate| certificate.tbs_certificate.get::<SubjectAltName>().ok().flatten());
    let text = |name: &GeneralName| match name {
        GeneralName::DnsName(name) => Some(name.to_string()),
        GeneralName::IpAddress(bytes) => {
            let v4 = <[u8; 4]>::try_from(bytes.as_bytes()).map(IpAddr::from);
            v4.or_else(|_| <[u8; 16]>::try_from(bytes.as_bytes()).map(IpAddr::from)).ok().map(|ip| ip.to_string())
        }
        _ => None,
    };
    names.iter().flat_map(|(_, names)| &names.0).filter_map(text).filter_map(|name| name.parse().ok()).collect()
}

/// A CA.
pub(super) struct Authority {
    pem: String,
    der: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
    expires: Timestamp,
}

/// A server certificate.
pub(super) struct ServerCertificate {
    /// The certificate and that of the CA, in PEM.
    pub(super) chain: String,
    /// The private key in PEM.
    pub(super) key: String,
    pub(super) expires: Timestamp,
}

impl Authority {
    /// Creates a CA that can sign only for these names and those below them, if clients check this. All of them check that it is
    /// used for servers and signs no other CA.
    pub(super) fn create(names: &[CertificateName], now: Timestamp) -> Result<Self, String> {
        let key = generate_key()?;
        let mut params = authority_params(&key);
        set_validity(&mut params, now, CA_LIFETIME);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let permitted_subtrees = names.iter().map(CertificateName::subtree).collect();
        params.name_constraints = Some(NameConstraints { permitted_subtrees, excluded_subtrees: Vec::new() });
        let pem = params.self_signed(&key).map_err(creation_error)?.pem();
        Self::load(pem, &key.serialize_pem())
    }

    /// Returns the CA with this certificate and this key in PEM. The error says which of them cannot be used.
    pub(super) fn load(pem: String, key: &str) -> Result<Self, String> {
        let chain = Tls::parse_chain(pem.as_bytes()).map_err(|error| format!("ca.crt {error}"))?;
        let der = chain.into_iter().next().ok_or("ca.crt contains no certificate")?;
        let certificate = Certificate::from_der(&der).map_err(|_| "ca.crt contains no valid certificate")?;
        let expires = timestamp(certificate.tbs_certificate.validity.not_after.to_unix_duration())?;
        let key = KeyPair::from_pem(key).map_err(|_| "ca.key contains no private key in PEM")?;
        Ok(Self { pem, der, expires, issuer: Issuer::new(authority_params(&key), key) })
    }

    /// Returns whether this CA has issued a server certificate with this key.
    pub(super) fn has_issued(&self, chain: &str, key: &str) -> bool {
        let chain = Tls::parse_chain(chain.as_bytes()).unwrap_or_default();
        let ([certificate, issuer], Ok(key)) = (&chain[..], KeyPair::from_pem(key)) else { return false };
        // The certificate contains the public key (RFC 5280 section 4.1).
        let public_key = key.public_key_raw();
        *issuer == self.der && certificate.windows(public_key.len()).any(|part| part == public_key)
    }

    /// Returns the certificate of the CA in PEM.
    pub(super) fn pem(&self) -> &str {
        &self.pem
    }

    /// Returns the private key of the CA in PEM.
    pub(super) fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// Issues a server certificate, and checks that a client which trusts the CA accepts it.
    pub(super) fn issue(
        &self,
        names: &[CertificateName],
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<ServerCertificate, String> {
        let expires = timestamp(set_validity(&mut CertificateParams::default(), now, lifetime))?;
        if self.expires < expires {
            return Err(format!("the CA expires at {}, before the certificate", self.expires));
        }
        let key = generate_key()?;
        let sign = |names: &[CertificateName]| {
            let texts: Vec<String> = names.iter().map(|name| name.0.clone()).collect();
            let mut params = CertificateParams::new(texts).map_err(creation_error)?;
            set_validity(&mut params, now, lifetime);
            params.distinguished_name = common_name("Restante".to_owned());
            // This also identifies the key. The serial number is a hash of the key, which is new for every certificate.
            params.is_ca = IsCa::ExplicitNoCa;
            params.use_authority_key_identifier_extension = true;
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
            params.signed_by(&key, &self.issuer).map_err(creation_error)
        };
        let local = with_local_names(Vec::new());
        if !self.verifies(sign(&local)?.der(), now) {
            return Err("ca.crt and ca.key do not belong together, or this command has not created them".to_owned());
        }
        let mut refused = Vec::new();
        for name in names {
            let certificate = sign(&with_local_names(vec![name.clone()]))?;
            refused.extend((!self.verifies(certificate.der(), now)).then_some(name.as_str()));
        }
        if !refused.is_empty() {
            return Err(format!("the CA was created for other names than {}", refused.join(", ")));
        }
        let chain = format!("{}{}", sign(names)?.pem(), self.pem);
        Ok(ServerCertificate { chain, key: key.serialize_pem(), expires })
    }

    /// Returns whether a client that trusts the CA accepts a certificate for localhost, with all its names.
    fn verifies(&self, certificate: &CertificateDer<'_>, now: Timestamp) -> bool {
        let mut roots = RootCertStore::empty();
        let Ok(()) = roots.add(self.der.clone()) else { return false };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let Ok(verifier) = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build() else {
            return false;
        };
        let Ok(localhost) = ServerName::try_from(LOCAL_NAMES[0]) else { return false };
        let now = UnixTime::since_unix_epoch(since_epoch(now));
        verifier.verify_server_cert(certificate, &[], &localhost, &[], now).is_ok()
    }
}

/// Returns what a CA with this key is called in the certificates that it issues, and the use of its key.
fn authority_params(key: &KeyPair) -> CertificateParams {
    let mut params = CertificateParams::default();
    let id = params.key_identifier(key).iter().take(4).fold(0_u32, |id, byte| id << 8 | u32::from(*byte));
    params.distinguished_name = common_name(format!("Restante CA {id:08x}"));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn common_name(text: String) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, text);
    name
}

/// Sets the first and the last second of a certificate. Returns the last one as the time since 1970.
fn set_validity(params: &mut CertificateParams, now: Timestamp, lifetime: Duration) -> Duration {
    let start = since_epoch(now).saturating_sub(CLOCK_TOLERANCE);
    let end = (start + lifetime).saturating_sub(Duration::from_secs(1));
    params.not_before = date_time_ymd(1970, 1, 1) + start;
    params.not_after = date_time_ymd(1970, 1, 1) + end;
    end
}

fn since_epoch(time: Timestamp) -> Duration {
    Duration::from_secs(u64::try_from(time.as_second()).unwrap_or_default())
}

fn timestamp(since_epoch: Duration) -> Result<Timestamp, String> {
    Timestamp::try_from(SystemTime::UNIX_EPOCH + since_epoch).map_err(|error| error.to_string())
}

fn generate_key() -> Result<KeyPair, String> {
    KeyPair::generate().map_err(creation_error)
}

#[expect(clippy::needless_pass_by_value, reason = "the type that map_err needs")]
fn creation_error(error: rcgen::Error) -> String {
    format!("the certificate cannot be created: {error}")
}
