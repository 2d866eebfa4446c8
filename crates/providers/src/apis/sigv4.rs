//! Signatures of requests to AWS, Signature Version 4. Requests with their signature in the query are not supported.

use std::fmt::Write as _;

use axum::http::{HeaderMap, header};
use data_encoding::HEXLOWER;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use restante_http_connection::clean_path::clean_path;
use restante_http_core::server::SigningKey;
use ring::{digest, hmac};

use crate::failure::{Failure, FailureKind, MISSING_KEY};
use crate::incoming::Incoming;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// The algorithm of requests to several regions, Signature Version 4A.
const ASYMMETRIC_ALGORITHM: &str = "AWS4-ECDSA-P256-SHA256";
/// The end of the scope of a signature.
const TERMINATOR: &str = "aws4_request";
/// The maximum difference between the time of a signature and that of the server.
const MAX_SKEW: SignedDuration = SignedDuration::from_mins(15);
/// The characters that are encoded: all but the unreserved ones (RFC 3986 section 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// [`Failure::field`] of a request with a wrong signature.
pub(crate) const SIGNATURE: &str = "Signature";

/// A header field Authorization with a signature.
struct Authorization<'r> {
    algorithm: &'r str,
    key_id: &'r str,
    /// The date, the region, the service and the terminator.
    scope: &'r str,
    signed_headers: &'r str,
    signature: &'r str,
}

impl<'r> Authorization<'r> {
    fn parse(headers: &'r HeaderMap) -> Option<Self> {
        let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
        let (algorithm, rest) = value.trim().split_once(' ')?;
        if ![ALGORITHM, ASYMMETRIC_ALGORITHM].contains(&algorithm) {
            return None;
        }
        let part = |name: &str| {
            let mut parts = rest.split(',').filter_map(|part| part.trim().split_once('='));
            parts.find(|(known, _)| *known == name).map(|(_, value)| value)
        };
        let credential = part("Credential")?;
        // The scope of an asymmetric signature has no region.
        let scope_parts = if algorithm == ALGORITHM { 4 } else { 3 };
        let (slash, _) = credential.rmatch_indices('/').nth(scope_parts - 1)?;
        let (key_id, scope) = (&credential[..slash], &credential[slash + 1..]);
        Some(Self { algorithm, key_id, scope, signed_headers: part("SignedHeaders")?, signature: part("Signature")? })
    }
}

/// Returns the access key id of a signed request.
pub(crate) fn access_key_id(headers: &HeaderMap) -> Option<String> {
    Authorization::parse(headers).map(|authorization| authorization.key_id.to_owned())
}

/// Verifies the signature of a request, if there are keys. Returns the access key id.
pub(crate) fn verify(incoming: &Incoming, keys: &[SigningKey]) -> Result<Option<String>, Failure> {
    if keys.is_empty() { Ok(None) } else { verify_at(incoming, keys, Timestamp::now()).map(Some) }
}

fn verify_at(incoming: &Incoming, keys: &[SigningKey], now: Timestamp) -> Result<String, Failure> {
    let Some(authorization) = Authorization::parse(&incoming.headers) else {
        return Err(unauthorized(Some(MISSING_KEY), "The request has no signature of version 4 of AWS."));
    };
    if authorization.algorithm == ASYMMETRIC_ALGORITHM {
        return Err(wrong("This server cannot verify version 4A of signatures. Use an endpoint of one region."));
    }
    let Some(key) = keys.iter().find(|key| key.id == authorization.key_id) else {
        return Err(unauthorized(None, "The security token included in the request is invalid."));
    };
    let time = incoming.header("x-amz-date").unwrap_or_default();
    let signed_at = DateTime::strptime("%Y%m%dT%H%M%SZ", time)
        .and_then(|time| time.to_zoned(TimeZone::UTC))
        .map_err(|_| wrong("The header field X-Amz-Date must have the form 20150830T123600Z."))?;
    if now.duration_since(signed_at.timestamp()).abs() > MAX_SKEW {
        return Err(wrong(format!(
            "Signature expired: the time {time} differs by more than 15 minutes from that of the server."
        )));
    }
    let mut scope = authorization.scope.split('/');
    if !scope.next().is_some_and(|date| time.starts_with(date) && date.len() == 8)
        || scope.next_back() != Some(TERMINATOR)
    {
        return Err(wrong(format!("The scope of the credential must begin with the date and end with {TERMINATOR}.")));
    }
    let payload_hash = sha256_hex(&incoming.body);
    if incoming.header("x-amz-content-sha256").is_some_and(|sent| sent != payload_hash) {
        return Err(wrong("The header field X-Amz-Content-Sha256 is not the hash of the body."));
    }
    let request = canonical_request(incoming, authorization.signed_headers, &payload_hash);
    let text = format!("{ALGORITHM}\n{time}\n{}\n{}", authorization.scope, sha256_hex(request.as_bytes()));
    let mut secret = format!("AWS4{}", key.secret.expose()).into_bytes();
    for part in authorization.scope.split('/') {
        secret = hmac::sign(&hmac_key(&secret), part.as_bytes()).as_ref().to_vec();
    }
    let signature = HEXLOWER.decode(authorization.signature.as_bytes()).unwrap_or_default();
    hmac::verify(&hmac_key(&secret), text.as_bytes(), &signature).map_err(|_| {
        wrong("The signature of the request does not match. Check the secret access key and the signing method.")
    })?;
    Ok(key.id.clone())
}

/// Returns a request in the form that is signed.
fn canonical_request(incoming: &Incoming, signed_headers: &str, payload_hash: &str) -> String {
    let path = incoming.uri.path();
    let path = clean_path(path).unwrap_or_else(|| path.to_owned());
    let encode = |text: &[u8]| percent_encode(text, RESERVED).to_string();
    // Services except for S3 encode the path of a request, which is encoded already, again.
    let path: Vec<_> = path.split('/').map(|segment| encode(segment.as_bytes())).collect();
    let recode = |text: &str| encode(&percent_decode_str(text).collect::<Vec<_>>());
    let pairs = incoming.uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let mut query: Vec<_> = pairs.map(|(name, value)| (recode(name), recode(value))).collect();
    query.sort_unstable();
    let query: Vec<_> = query.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut text = format!("{}\n{}\n{}\n", incoming.method, path.join("/"), query.join("&"));
    for name in signed_headers.split(';') {
        let _ = writeln!(text, "{name}:{}", header_value(incoming, name));
    }
    let _ = write!(text, "\n{signed_headers}\n{payload_hash}");
    text
}

/// Returns the values of a header field in the form that is signed: with single spaces, and with commas between them.
fn header_value(incoming: &Incoming, name: &str) -> String {
    // The authority of the URI is the host that the client has sent, also with HTTP/2 and through a proxy.
    if name == header::HOST.as_str()
        && let Some(authority) = incoming.uri.authority()
    {
        return authority.to_string();
    }
    let values = incoming.headers.get_all(name).iter().map(|value| {
        let value = String::from_utf8_lossy(value.as_bytes());
        value.split([' ', '\t']).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    });
    values.collect::<Vec<_>>().join(",")
}

fn sha256_hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn hmac_key(secret: &[u8]) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, secret)
}

/// Returns the failure of a request with a wrong signature.
fn wrong(message: impl Into<String>) -> Failure {
    unauthorized(Some(SIGNATURE), message)
}

fn unauthorized(field: Option<&str>, message: impl Into<String>) -> Failure {
    Failure { field: field.map(str::to_owned), ..Failure::new(FailureKind::Unauthorized, message) }
}

#[cfg(test)]
mod tests {
    use axum::http::{Method, Request};

    use super::*;

    const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
    const TIME: &str = "20150830T123600Z";
    const AWS_HOST: &str = "example.amazonaws.com";
    const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
    const NO_HEADERS: &[(&str, &str)] = &[];

    fn keys() -> Vec<SigningKey> {
        let text = |text: &str| text.to_owned();
        [("OTHER", "x"), ("AKIDEXAMPLE", SECRET)]
            .map(|(id, secret)| SigningKey { id: text(id), secret: restante_proto::Secret::new(secret) })
            .into()
    }

    /// A request with a signature.
    struct Signed<'r> {
        method: Method,
        host: &'r str,
        path: &'r str,
        headers: &'r [(&'r str, &'r str)],
        body: &'r str,
        service: &'r str,
        signature: &'r str,
    }

    impl Signed<'_> {
        fn authorization(&self) -> String {
            let mut names: Vec<_> = self.headers.iter().map(|(name, _)| *name).chain(["host", "x-amz-date"]).collect();
            names.sort_unstable();
            let Self { service, signature, .. } = self;
            format!(
                "{ALGORITHM} Credential=AKIDEXAMPLE/20150830/us-east-1/{service}/aws4_request, SignedHeaders={}, \
                 Signature={signature}",
                names.join(";")
            )
        }

        /// Returns the request. A header field with this name and value replaces that of the request.
        fn with(&self, name: &str, value: &str) -> Incoming {
            let authorization = self.authorization();
            let fields = [("x-amz-date", TIME), ("authorization", &authorization)];
            let mut request = Request::builder()
                .method(&self.method)
                .uri(format!("http://{}{}", self.host, self.path))
                .body(())
                .unwrap();
            for (name, value) in self.headers.iter().chain(&fields).chain([&(name, value)]) {
                let name: axum::http::HeaderName = name.parse().unwrap();
                request.headers_mut().insert(name, value.parse().unwrap());
            }
            Incoming::new(&request.into_parts().0, Vec::new(), self.body.into())
        }
    }

    fn verify_in_time(incoming: &Incoming) -> Result<String, Failure> {
        verify_at(incoming, &keys(), "2015-08-30T12:36:00Z".parse().unwrap())
    }

    /// The first three are of the test suite of AWS: `get-vanilla`, `get-vanilla-query-order-key-case` and
    /// `post-x-www-form-urlencoded`. The others were signed by botocore 1.43.
    fn examples() -> [Signed<'static>; 8] {
        let get = |host, path, service, signature| {
            let (method, headers, body) = (Method::GET, NO_HEADERS, "");
            Signed { method, host, path, headers, body, service, signature }
        };
        let post = |host, path, headers, body, service, signature| {
            let method = Method::POST;
            Signed { method, host, path, headers, body, service, signature }
        };
        let local = "localhost:9000";
        [
            get(AWS_HOST, "/", "service", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
            get(
                AWS_HOST,
                "/?Param2=value2&Param1=value1",
                "service",
                "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
            ),
            post(
                AWS_HOST,
                "/",
                &[FORM],
                "Param1=value1",
                "service",
                "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
            ),
            post(
                local,
                "/",
                &[("content-type", "application/x-www-form-urlencoded; charset=utf-8")],
                "Action=GetSendQuota&Version=2010-12-01",
                "ses",
                "0b0ddae4b7e4c507d1e5b7b282cf690f9738c065f461af1308c795c0ca2e285c",
            ),
            post(
                local,
                "/v2/email/outbound-emails",
                &[("content-type", "application/json"), ("x-extra", "  two   words ")],
                r#"{"Content":{}}"#,
                "ses",
                "7d275a9b37a35e280920bf7df9ea3deffe2aafb46d170295b8c76a8a36357a1d",
            ),
            get(
                local,
                "/v2/email/identities/ann%40example.org",
                "ses",
                "246ba2ba6989ed48ae9bfe57afe5c085b414aae6b55a55175a58144712191903",
            ),
            get(
                local,
                "/p/shop/v2/email/templates?PageSize=10&NextToken=a%20b%2Fc",
                "ses",
                "268f9d27ba406532e56b5acf069095e8ea49008b9576c07e3376113c094792f7",
            ),
            Signed {
                method: Method::GET,
                host: local,
                path: "/v2/email/account",
                headers: &[("x-amz-security-token", "TOKEN/x==")],
                body: "",
                service: "ses",
                signature: "95092e901cd2c6458f46d0867850089ac0d3a90c3f6747fc15b2d93192ac3ae3",
            },
        ]
    }

    #[test]
    fn signatures_of_aws_and_botocore_are_valid() {
        for example in examples() {
            let incoming = example.with("x-unsigned", "x");
            assert_eq!(verify_in_time(&incoming), Ok("AKIDEXAMPLE".to_owned()), "{}", example.path);
            assert_eq!(access_key_id(&incoming.headers).as_deref(), Some("AKIDEXAMPLE"));
            let mut changed = example.with("x-unsigned", "x");
            changed.body = "{}".into();
            assert_eq!(verify_in_time(&changed).unwrap_err().field.as_deref(), Some(SIGNATURE), "{}", example.path);
            for at in ["2015-08-30T12:51:00Z", "2015-08-30T12:21:00Z"] {
                assert!(verify_at(&incoming, &keys(), at.parse().unwrap()).is_ok(), "{at}");
            }
            for at in ["2015-08-30T12:51:01Z", "2015-08-30T12:20:59Z"] {
                assert!(verify_at(&incoming, &keys(), at.parse().unwrap()).is_err(), "{at}");
            }
        }
    }

    #[test]
    fn other_signatures_are_refused() {
        let example = &examples()[5];
        let authorization = example.authorization();
        let replaced = |from: &str, to: &str| authorization.replace(from, to);
        let table = [
            ("x-amz-date", "20150830T123601Z".to_owned(), Some(SIGNATURE)),
            ("x-amz-date", "2015-08-30T12:36:00Z".to_owned(), Some(SIGNATURE)),
            ("x-amz-content-sha256", "UNSIGNED-PAYLOAD".to_owned(), Some(SIGNATURE)),
            ("authorization", replaced("20150830/", "20150829/"), Some(SIGNATURE)),
            ("authorization", replaced("20150830/us-east-1", "2015083/us-east-1"), Some(SIGNATURE)),
            ("authorization", replaced("us-east-1", "us-west-1"), Some(SIGNATURE)),
            ("authorization", replaced("aws4_request", "aws4"), Some(SIGNATURE)),
            ("authorization", replaced("Signature=2", "Signature="), Some(SIGNATURE)),
            ("authorization", replaced("Signature=2", "Signature=ü"), Some(MISSING_KEY)),
            ("authorization", replaced("SignedHeaders=host;", "SignedHeaders=host;x-none;"), Some(SIGNATURE)),
            ("authorization", replaced("AKIDEXAMPLE", "OTHER"), Some(SIGNATURE)),
            ("authorization", replaced("AKIDEXAMPLE", "UNKNOWN"), None),
            ("authorization", replaced("SignedHeaders", "Headers"), Some(MISSING_KEY)),
            ("authorization", replaced("/us-east-1/ses", ""), Some(MISSING_KEY)),
            ("authorization", "Bearer x".to_owned(), Some(MISSING_KEY)),
            ("authorization", replaced(ALGORITHM, ASYMMETRIC_ALGORITHM), Some(SIGNATURE)),
        ];
        for (name, value, field) in table {
            let failure = verify_in_time(&example.with(name, &value)).unwrap_err();
            assert_eq!((failure.kind, failure.field.as_deref()), (FailureKind::Unauthorized, field), "{name}: {value}");
        }
        let hash = sha256_hex(b"");
        assert!(verify_in_time(&example.with("x-amz-content-sha256", &hash)).is_ok());
        assert_eq!(verify(&example.with("authorization", "Bearer x"), &[]), Ok(None));
    }

    #[test]
    fn key_ids_are_read_from_both_versions() {
        let table = [
            ("AWS4-HMAC-SHA256 Credential=a/b/20150830/r/ses/aws4_request,SignedHeaders=host,Signature=0", Some("a/b")),
            (
                "AWS4-ECDSA-P256-SHA256 Credential=AKID/20150830/ses/aws4_request, SignedHeaders=host, Signature=0",
                Some("AKID"),
            ),
            ("AWS4-HMAC-SHA256 Credential=AKID, SignedHeaders=host, Signature=0", None),
            ("AWS4-HMAC-SHA256", None),
            ("", None),
        ];
        for (value, expected) in table {
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, value.parse().unwrap())]);
            assert_eq!(access_key_id(&headers).as_deref(), expected, "{value}");
        }
    }
}
