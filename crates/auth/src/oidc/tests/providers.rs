//! Logins with providers that respond wrongly, are slow, or change their keys.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::advance;

use super::KEYS;
use crate::authenticator::{AuthorizationResponse, Settings, SingleSignOnError, UserHeaders};
use crate::grant::Scope;
use crate::oidc::OidcSettings;
use crate::{Authenticator, Client, DenialReason};

const CALLBACK: &str = "http://localhost:9000/login/oidc/callback";
const METADATA: &str = "/.well-known/openid-configuration";

/// A provider on this machine. Its documents can be replaced.
pub(super) struct TestProvider {
    pub(super) issuer: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// The status and the body of the response for each path.
    documents: HashMap<String, (u16, String)>,
    /// The requests so far: method and path, authorization and body.
    requests: Vec<(String, String, String)>,
}

impl TestProvider {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let state: Arc<Mutex<State>> = Arc::default();
        let provider = Self { issuer: issuer.clone(), state: state.clone() };
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut reader = BufReader::new(stream);
                let lines: Vec<String> =
                    reader.by_ref().lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
                let header = |name: &str| {
                    let values = lines.iter().filter_map(|line| line.split_once(": "));
                    values.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).next()
                };
                let mut body = vec![0; header("content-length").map_or(0, |length| length.parse().unwrap())];
                reader.read_exact(&mut body).unwrap();
                let request = lines.first().map_or("", |line| line.trim_end_matches(" HTTP/1.1")).to_owned();
                let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
                let mut state = state.lock();
                let body = String::from_utf8(body).unwrap();
                state.requests.push((request, header("authorization").unwrap_or_default(), body));
                let (status, body) = state.documents.get(&path).cloned().unwrap_or((404, String::new()));
                let location = format!("{issuer}/elsewhere");
                let head = format!("HTTP/1.1 {status} X\r\nLocation: {location}\r\nContent-Length: {}\r\n", body.len());
                // A client that reads only a part of a long response disconnects.
                let _ = write!(reader.get_mut(), "{head}Connection: close\r\n\r\n{body}");
            }
        });
        provider.set(METADATA, 200, &provider.metadata(&json!({})));
        provider.set("/keys", 200, &json!({"keys": KEYS.list()}));
        provider
    }

    /// Returns the metadata with changes.
    fn metadata(&self, changes: &Value) -> Value {
        let url = |path: &str| format!("{}/{path}", self.issuer);
        let mut metadata = json!({
            "issuer": self.issuer,
            "authorization_endpoint": url("authorize?tenant=a"),
            "token_endpoint": url("token"),
            "jwks_uri": url("keys"),
            "end_session_endpoint": url("logout"),
        });
        for (name, value) in changes.as_object().unwrap() {
            metadata[name] = value.clone();
        }
        metadata
    }

    pub(super) fn set(&self, path: &str, status: u16, document: &Value) {
        self.state.lock().documents.insert(path.to_owned(), (status, document.to_string()));
    }

    /// Returns the number of requests with this method and path.
    pub(super) fn count(&self, request: &str) -> usize {
        self.state.lock().requests.iter().filter(|(sent, ..)| sent == request).count()
    }

    /// Returns the authorization and the body of the last request to the token endpoint.
    fn token_request(&self) -> (String, String) {
        let state = self.state.lock();
        let (_, authorization, body) = state.requests.iter().rfind(|(request, ..)| request == "POST /token").unwrap();
        (authorization.clone(), body.clone())
    }

    pub(super) fn authenticator(&self) -> Authenticator {
        self.authenticator_with(Some("se cret"), "groups=qa -> read shop:*; email=*@acme.test -> all")
    }

    fn authenticator_with(&self, secret: Option<&str>, grants: &str) -> Authenticator {
        let oidc = OidcSettings {
            issuer: self.issuer.clone(),
            client_id: "restante".to_owned(),
            client_secret: secret.map(str::to_owned),
            scopes: "openid email".to_owned(),
        };
        let (session_time, grants) = (Duration::from_hours(1), grants.parse().unwrap());
        let secret = Some(vec![7; 32]);
        Authenticator::open(Settings { session_time, secret, oidc, grants, ..Settings::default() }).unwrap()
    }

    /// Lets the token endpoint return an ID token for this nonce, with changes. A null removes a claim.
    fn issue(&self, nonce: &str, changes: &Value) {
        self.issue_signed("ed25519", "ed25519", nonce, changes);
    }

    fn issue_signed(&self, kind: &str, key_id: &str, nonce: &str, changes: &Value) {
        let mut changes = changes.clone();
        changes["nonce"] = nonce.into();
        let token = self.token(kind, &json!({"kid": key_id}), &changes);
        self.set("/token", 200, &json!({"id_token": token, "access_token": "access", "token_type": "Bearer"}));
    }

    /// Returns a token for this server that is signed with the key of this kind, with changes of the header and of the claims. A null
    /// removes a claim.
    pub(super) fn token(&self, kind: &str, header: &Value, changes: &Value) -> String {
        let now = Timestamp::now().as_second();
        let mut claims = json!({
            "iss": self.issuer, "aud": "restante", "sub": "7", "iat": now, "exp": now + 300,
            "preferred_username": "ann", "groups": ["qa"]
        });
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        let algorithm = if kind == "rsa" { "RS256" } else { "EdDSA" };
        let mut all_headers = json!({"alg": algorithm, "kid": kind});
        for (name, value) in header.as_object().unwrap() {
            all_headers[name] = value.clone();
        }
        KEYS.sign(kind, &all_headers, &claims)
    }
}

/// A login that continues at the provider.
struct Started {
    cookie: String,
    parameters: HashMap<String, String>,
}

async fn start(authenticator: &Authenticator) -> Result<Started, SingleSignOnError> {
    let started = authenticator.start_single_sign_on(CALLBACK, "m/ann").await?;
    let url = restante_http_client::parse_url(&started.url).unwrap();
    Ok(Started { cookie: started.cookie, parameters: url.query_pairs().into_owned().collect() })
}

fn client() -> Client {
    Some([192, 0, 2, 1].into()).into()
}

/// Completes a login, and returns the name and the scopes in the mailbox `shop:a`, or the error.
async fn complete(authenticator: &Authenticator, started: &Started) -> Result<(String, Vec<Scope>), String> {
    let response = AuthorizationResponse {
        state: &started.parameters["state"],
        code: Some("code"),
        ..AuthorizationResponse::default()
    };
    complete_with(authenticator, started, response).await
}

async fn complete_with(
    authenticator: &Authenticator,
    started: &Started,
    response: AuthorizationResponse<'_>,
) -> Result<(String, Vec<Scope>), String> {
    let cookies = &["other", started.cookie.as_str()];
    let completed = authenticator.complete_single_sign_on(CALLBACK, cookies, response, client()).await;
    let completed = completed.map_err(|error| match error {
        SingleSignOnError::Denied(denied) => denied.reason.as_str().to_owned(),
        SingleSignOnError::Provider(error) => error,
    })?;
    assert_eq!(completed.next, "m/ann");
    let grant = &completed.login.grant;
    let scopes = Scope::ALL.into_iter().filter(|scope| grant.allows(*scope, &"shop:a".to_owned().into())).collect();
    Ok((grant.name().unwrap().to_owned(), scopes))
}

#[tokio::test]
async fn logs_in_with_a_code() {
    let provider = TestProvider::start();
    let authenticator = provider.authenticator();
    let started = start(&authenticator).await.unwrap();
    let value = |name: &str| started.parameters[name].as_str();
    assert_eq!(["tenant", "response_type", "client_id"].map(value), ["a", "code", "restante"]);
    assert_eq!(["redirect_uri", "scope", "code_challenge_method"].map(value), [CALLBACK, "openid email", "S256"]);
    provider.issue(value("nonce"), &json!({}));
    assert_eq!(complete(&authenticator, &started).await, Ok(("ann".to_owned(), vec![Scope::Read])));
    let (authorization, body) = provider.token_request();
    // "restante:se+cret", as RFC 6749 section 2.3.1 encodes it.
    assert_eq!(authorization, "Basic cmVzdGFudGU6c2UrY3JldA==");
    assert!(body.starts_with("grant_type=authorization_code&code=code&redirect_uri=http%3A%2F%2Flocalhost"), "{body}");
    assert!(body.contains("&code_verifier=") && !body.contains("client_id"), "{body}");

    // The response must belong to this login of this browser.
    let other = start(&authenticator).await.unwrap();
    let denied = Err(DenialReason::SingleSignOn.as_str().to_owned());
    let mixed = Started { cookie: other.cookie.clone(), parameters: started.parameters.clone() };
    assert_eq!(complete(&authenticator, &mixed).await, denied);
    let error = complete(&authenticator, &other).await.unwrap_err();
    assert_eq!(error, "the ID token is not valid: it was issued for another login (nonce)");
    let state = started.parameters["state"].as_str();
    let table = [
        (Some("access_denied"), None, None, DenialReason::SingleSignOn.as_str()),
        (Some("invalid_scope"), Some("no"), None, "the provider refused the login: invalid_scope no"),
        (None, None, Some("https://evil.example"), DenialReason::SingleSignOn.as_str()),
        (None, None, None, DenialReason::SingleSignOn.as_str()),
    ];
    for (error, error_description, issuer, expected) in table {
        let response = AuthorizationResponse { state, code: None, error, error_description, issuer };
        assert_eq!(complete_with(&authenticator, &started, response).await, Err(expected.to_owned()), "{error:?}");
    }
    assert_eq!(provider.count(&format!("GET {METADATA}")), 1);
    assert_eq!(provider.count("GET /keys"), 1);
    let logout = authenticator.provider_logout_url("http://localhost:9000/login").await.unwrap().unwrap();
    let expected = "/logout?client_id=restante&post_logout_redirect_uri=http%3A%2F%2Flocalhost%3A9000%2Flogin";
    assert_eq!(logout, format!("{}{expected}", provider.issuer));
}

#[tokio::test]
async fn credentials_are_sent_as_the_provider_accepts_them() {
    let methods = json!({"token_endpoint_auth_methods_supported": ["client_secret_post", "private_key_jwt"]});
    for (secret, expected) in [(Some("s&"), "&client_id=restante&client_secret=s%26"), (None, "&client_id=restante")] {
        let provider = TestProvider::start();
        provider.set(METADATA, 200, &provider.metadata(&methods));
        let authenticator = provider.authenticator_with(secret, "groups=qa -> all");
        let started = start(&authenticator).await.unwrap();
        provider.issue(&started.parameters["nonce"], &json!({}));
        complete(&authenticator, &started).await.unwrap();
        let (authorization, body) = provider.token_request();
        assert!(body.ends_with(expected) && authorization.is_empty(), "{body}");
    }
}

#[tokio::test]
async fn claims_are_those_of_the_token_and_of_userinfo() {
    let no_access = DenialReason::NoAccess.as_str();
    let (reader, owner) = (Ok(vec![Scope::Read]), Ok(Scope::ALL.to_vec()));
    // The changed claims of the ID token, those of userinfo, and what is granted.
    let table = [
        (json!({"groups": []}), json!({"sub": "7", "groups": ["qa"]}), Err(no_access)),
        (json!({"groups": null}), json!({"sub": "7", "groups": ["qa"]}), reader.clone()),
        (json!({"groups": [], "email": "a@acme.test"}), json!({"sub": "7"}), Err(no_access)),
        (json!({"groups": [], "email": "a@acme.test", "email_verified": "true"}), json!({"sub": "7"}), owner.clone()),
        (json!({"groups": []}), json!({"sub": "7", "email": "a@acme.test", "email_verified": true}), owner),
        (json!({"groups": []}), json!({"sub": "7", "email": "a@acme.test", "email_verified": false}), Err(no_access)),
        (json!({}), json!({"sub": "7", "preferred_username": "other"}), reader),
        (json!({}), json!({"sub": "8"}), Err("userinfo responded with the claims of another subject")),
        (json!({}), json!({}), Err("userinfo responded with the claims of another subject")),
        (json!({}), json!([]), Err("userinfo responded with invalid JSON: ")),
    ];
    for (token, userinfo, expected) in table {
        let provider = TestProvider::start();
        let endpoint = format!("{}/userinfo", provider.issuer);
        provider.set(METADATA, 200, &provider.metadata(&json!({"userinfo_endpoint": endpoint})));
        provider.set("/userinfo", 200, &userinfo);
        let authenticator = provider.authenticator();
        let started = start(&authenticator).await.unwrap();
        provider.issue(&started.parameters["nonce"], &token);
        match (complete(&authenticator, &started).await, expected) {
            (Ok((name, scopes)), Ok(expected)) => assert_eq!((name.as_str(), scopes), ("ann", expected), "{userinfo}"),
            (Err(error), Err(expected)) => assert!(error.contains(expected), "{userinfo}: {error}"),
            (completed, _) => panic!("{userinfo}: {completed:?}"),
        }
        assert_eq!(provider.state.lock().requests.last().unwrap().1, "Bearer access");
    }
}

#[tokio::test]
async fn the_first_valid_claim_is_the_name() {
    let long = "x".repeat(256);
    let table = [
        (json!({"preferred_username": "bob"}), "bob"),
        (json!({"preferred_username": "", "email": "b@acme.test", "email_verified": true}), "b@acme.test"),
        (json!({"preferred_username": "", "email": "b@acme.test"}), "7"),
        (json!({"preferred_username": "a\nb", "email": 7}), "7"),
        (json!({"preferred_username": long, "sub": "subject"}), "subject"),
    ];
    let provider = TestProvider::start();
    let authenticator = provider.authenticator();
    for (claims, expected) in table {
        let started = start(&authenticator).await.unwrap();
        provider.issue(&started.parameters["nonce"], &claims);
        assert_eq!(complete(&authenticator, &started).await.unwrap().0, expected);
    }
}

#[tokio::test]
async fn wrong_metadata_is_refused() {
    // A change of the metadata, the status, and the error after the URL.
    let table: [(u16, Value, &str); 9] = [
        (200, json!({"issuer": "http://127.0.0.1"}), " is of the issuer \"http://127.0.0.1\", not of \""),
        (
            200,
            json!({"token_endpoint": "http://192.0.2.1/token"}),
            " has the URL \"http://192.0.2.1/token\", which is not",
        ),
        (200, json!({"jwks_uri": "file:///etc/passwd"}), " has the URL \"file:///etc/passwd\", which is not"),
        (200, json!({"authorization_endpoint": "javascript:alert(1)"}), " has the URL \"javascript:alert(1)\""),
        (200, json!({"userinfo_endpoint": "http://u@localhost/"}), " has the URL \"http://u@localhost/\""),
        (200, json!({"end_session_endpoint": "x"}), " has the URL \"x\""),
        (200, json!({"token_endpoint": null}), " responded with invalid JSON: "),
        (200, json!({"x": "x".repeat(65_536)}), " responded with more than 65536 bytes"),
        (302, json!({}), " responded with status 302"),
    ];
    for (status, changes, expected) in table {
        let provider = TestProvider::start();
        provider.set(METADATA, status, &provider.metadata(&changes));
        let error = start(&provider.authenticator()).await.err();
        let expected = format!("{}{METADATA}{expected}", provider.issuer);
        let matches = matches!(&error, Some(SingleSignOnError::Provider(error)) if error.starts_with(&expected));
        assert!(matches, "{expected}: {error:?}");
        assert_eq!(provider.count("GET /elsewhere"), 0);
    }
    let huge = TestProvider::start();
    huge.set(METADATA, 200, &json!({"x": "x".repeat(1 << 20)}));
    let error = start(&huge.authenticator()).await.err();
    let expected = format!("{}{METADATA}: the response is too large", huge.issuer);
    assert!(matches!(&error, Some(SingleSignOnError::Provider(error)) if *error == expected), "{error:?}");
}

#[tokio::test]
async fn wrong_responses_are_refused() {
    // The path, the status, the response, and the error.
    let table = [
        ("/token", 302, json!({}), "/token responded with status 302: "),
        (
            "/token",
            401,
            json!({"error": "invalid_client", "error_description": "wrong secret"}),
            "/token responded with status 401: invalid_client wrong secret",
        ),
        ("/token", 400, json!({"error": "invalid_grant"}), DenialReason::SingleSignOn.as_str()),
        ("/token", 200, json!({"access_token": "x"}), "/token responded with invalid JSON: missing field `id_token`"),
        ("/token", 200, json!({"id_token": "x".repeat(65_536)}), "/token responded with more than 65536 bytes"),
        ("/keys", 302, json!({}), "/keys responded with status 302"),
        ("/keys", 200, json!({"keys": 7}), "/keys is not a key set: "),
        (
            "/keys",
            200,
            json!({"keys": []}),
            "the ID token is not valid: it is signed with a key that the provider does not list",
        ),
        ("/keys", 200, json!({"keys": [], "x": "x".repeat(262_144)}), "/keys: the response is too large"),
    ];
    for (path, status, response, expected) in table {
        let provider = TestProvider::start();
        let authenticator = provider.authenticator();
        let started = start(&authenticator).await.unwrap();
        provider.issue(&started.parameters["nonce"], &json!({}));
        provider.set(path, status, &response);
        let error = complete(&authenticator, &started).await.unwrap_err();
        assert!(error.contains(expected), "{error}");
        assert_eq!(provider.count("GET /elsewhere"), 0);
    }
    // Nothing listens there.
    let provider = TestProvider::start();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{closed}/token");
    provider.set(METADATA, 200, &provider.metadata(&json!({"token_endpoint": url})));
    let authenticator = provider.authenticator();
    let started = start(&authenticator).await.unwrap();
    assert_eq!(complete(&authenticator, &started).await, Err(format!("{url}: connection refused")));
}

#[tokio::test]
async fn the_provider_must_name_itself_if_it_says_so() {
    let provider = TestProvider::start();
    let says = json!({"authorization_response_iss_parameter_supported": true});
    provider.set(METADATA, 200, &provider.metadata(&says));
    let authenticator = provider.authenticator();
    let started = start(&authenticator).await.unwrap();
    provider.issue(&started.parameters["nonce"], &json!({}));
    let error = complete(&authenticator, &started).await.unwrap_err();
    assert_eq!(error, DenialReason::SingleSignOn.as_str());
    let response = AuthorizationResponse {
        state: &started.parameters["state"],
        code: Some("code"),
        issuer: Some(&provider.issuer),
        ..AuthorizationResponse::default()
    };
    assert!(complete_with(&authenticator, &started, response).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn new_keys_are_requested_at_most_once_a_minute() {
    let provider = TestProvider::start();
    let authenticator = provider.authenticator();
    let log_in = async |kind: &str, key_id: &str| {
        let started = start(&authenticator).await.unwrap();
        provider.issue_signed(kind, key_id, &started.parameters["nonce"], &json!({}));
        let completed = complete(&authenticator, &started).await;
        (completed.is_ok(), provider.count("GET /keys"))
    };
    assert_eq!(log_in("ed25519", "ed25519").await, (true, 1));
    // The provider has a new key.
    let mut keys = KEYS.list();
    keys[0]["kid"] = "new".into();
    provider.set("/keys", 200, &json!({"keys": keys}));
    assert_eq!(log_in("rsa", "new").await, (false, 1), "the keys are less than a minute old");
    advance(Duration::from_mins(1)).await;
    assert_eq!(log_in("rsa", "new").await, (true, 2));
    for _ in 0..3 {
        assert_eq!(log_in("rsa", "unknown").await, (false, 2));
    }
    advance(Duration::from_mins(1)).await;
    assert_eq!(log_in("rsa", "unknown").await, (false, 3));
    // A key that the provider does not list any more is not accepted forever.
    keys.truncate(1);
    provider.set("/keys", 200, &json!({"keys": keys}));
    assert_eq!(log_in("ed25519", "ed25519").await, (true, 3));
    advance(Duration::from_hours(1)).await;
    assert_eq!(log_in("ed25519", "ed25519").await, (false, 4));
    assert_eq!(provider.count(&format!("GET {METADATA}")), 2);
}

#[tokio::test(start_paused = true)]
async fn failed_requests_for_metadata_are_repeated_after_ten_seconds() {
    let provider = TestProvider::start();
    provider.set(METADATA, 500, &json!({}));
    let authenticator = provider.authenticator();
    let request = format!("GET {METADATA}");
    for _ in 0..3 {
        assert!(start(&authenticator).await.is_err());
    }
    assert_eq!(provider.count(&request), 1);
    advance(Duration::from_secs(10)).await;
    assert!(start(&authenticator).await.is_err());
    assert_eq!(provider.count(&request), 2);
    provider.set(METADATA, 200, &provider.metadata(&json!({})));
    assert!(start(&authenticator).await.is_err());
    advance(Duration::from_secs(10)).await;
    assert!(start(&authenticator).await.is_ok());
    assert!(start(&authenticator).await.is_ok());
    assert_eq!(provider.count(&request), 3);
}

#[tokio::test(start_paused = true)]
async fn invalid_codes_are_delayed_and_errors_of_the_provider_are_not() {
    let provider = TestProvider::start();
    let authenticator = provider.authenticator();
    let started = start(&authenticator).await.unwrap();
    let elapsed = async || {
        let before = tokio::time::Instant::now();
        assert!(complete(&authenticator, &started).await.is_err());
        before.elapsed().as_millis()
    };
    provider.set("/token", 500, &json!({}));
    for _ in 0..3 {
        assert_eq!(elapsed().await, 0);
    }
    provider.set("/token", 400, &json!({"error": "invalid_grant"}));
    for expected in [0, 200, 400, 800] {
        assert_eq!(elapsed().await, expected);
    }
}

#[tokio::test]
async fn sessions_of_accounts_end_with_a_change_of_the_settings() {
    let provider = TestProvider::start();
    let grants = "groups=qa -> read shop:*; email=* -> all";
    let authenticator = provider.authenticator_with(None, grants);
    let started = start(&authenticator).await.unwrap();
    provider.issue(&started.parameters["nonce"], &json!({}));
    let response = AuthorizationResponse {
        state: &started.parameters["state"],
        code: Some("code"),
        ..AuthorizationResponse::default()
    };
    let cookies = &[started.cookie.as_str()];
    let completed = authenticator.complete_single_sign_on(CALLBACK, cookies, response, client()).await;
    let login = completed.map_err(|_| ()).unwrap().login;
    let (cookie, _) = authenticator.create_session_cookie(&login).unwrap();
    let checked = authenticator.check_cookie(&cookie).await.unwrap();
    assert_eq!((checked.grant.name(), checked.grant.allows_somewhere(Scope::Write)), (Some("ann"), false));
    assert!(authenticator.is_still_valid(&checked).await);
    let unchanged = provider.authenticator_with(Some("new"), grants);
    assert!(unchanged.check_cookie(&cookie).await.is_ok(), "another server with the same settings accepts it");
    for changed in ["", "groups=qa -> read,write shop:*; email=* -> all", "groups=x -> relay; groups=qa -> read shop:*"]
    {
        let refused = provider.authenticator_with(None, changed).check_cookie(&cookie).await;
        assert_eq!(refused.unwrap_err().reason, DenialReason::Expired, "{changed}");
    }
    let other_provider = TestProvider::start().authenticator_with(None, grants);
    assert_eq!(other_provider.check_cookie(&cookie).await.unwrap_err().reason, DenialReason::Expired);
    assert!(authenticator.log_out(&cookie) && !authenticator.log_out("other"));
    assert_eq!(authenticator.check_cookie(&cookie).await.unwrap_err().reason, DenialReason::Expired);
}

#[test]
fn proxy_users_get_the_rights_of_their_groups() {
    let headers = UserHeaders { user: "remote-user".to_owned(), groups: "remote-groups".to_owned() };
    let grants = "groups=qa -> read shop:*; user=root -> all".parse().unwrap();
    let authenticator = Authenticator::open(Settings { headers, grants, ..Settings::default() }).unwrap();
    assert!(authenticator.is_enabled() && !authenticator.has_users());
    let long = "x".repeat(256);
    let many = format!("{}qa", "x,".repeat(1000));
    let table = [
        ("ann", "dev, qa", Ok(false)),
        ("root", "", Ok(true)),
        ("root", "qa", Ok(false)),
        ("ann", "", Err(DenialReason::NoAccess)),
        ("ann", "q,a", Err(DenialReason::NoAccess)),
        ("ann", &many, Err(DenialReason::NoAccess)),
        ("", "qa", Err(DenialReason::NoCredentials)),
        (&long, "qa", Err(DenialReason::NoCredentials)),
        ("a\tb", "qa", Err(DenialReason::NoCredentials)),
    ];
    for (user, groups, expected) in table {
        let login = authenticator.check_proxy_user(user, groups);
        let is_admin = login.as_ref().map(|login| login.grant.allows_everywhere(Scope::Admin));
        assert_eq!(is_admin.map_err(|denied| denied.reason), expected, "{user} {groups}");
        assert!(login.is_err() || login.unwrap().grant.name() == Some(user));
    }
}

#[test]
fn a_proxy_user_without_groups_matches_no_group() {
    let headers = UserHeaders { user: "remote-user".to_owned(), groups: "remote-groups".to_owned() };
    let grants = "groups=* -> read".parse().unwrap();
    let authenticator = Authenticator::open(Settings { headers, grants, ..Settings::default() }).unwrap();
    for (groups, has_access) in [("", false), (" , ,", false), ("qa", true), (",qa", true)] {
        assert_eq!(authenticator.check_proxy_user("ann", groups).is_ok(), has_access, "{groups}");
    }
}
