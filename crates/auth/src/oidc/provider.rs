//! The identity provider: its metadata (OpenID Connect Discovery 1.0) and keys, which are cached, and the requests to it. The
//! operator has chosen the provider, so it may have a private address. Redirects are not followed.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use restante_http_client::{
    BodyMode, ClientPolicy, HttpClient, HttpService, Request, Response, Url, form_urlencoded, parse_url,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::{Mutex, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::id_token::{self, Expected, Keys, TokenError};
use super::login_state::LoginValues;
use super::{OidcSettings, is_secure};
use crate::claim_grants::Claims;

/// The path of the metadata, below the URL of the provider.
const METADATA_PATH: &str = "/.well-known/openid-configuration";
/// The maximum sizes of responses in bytes: of the metadata, of the keys, and of all others.
const MAX_METADATA_BYTES: usize = 64 * 1024;
const MAX_KEYS_BYTES: usize = 256 * 1024;
const MAX_RESPONSE_BYTES: usize = 64 * 1024;
/// The timeout of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of concurrent requests.
const MAX_CONCURRENT_REQUESTS: usize = 4;
/// The age at which metadata and keys are requested again.
const MAX_AGE: Duration = Duration::from_hours(1);
/// The age at which keys are requested again if a token is signed with an unknown one.
const MIN_KEYS_AGE: Duration = Duration::from_mins(1);
/// The time after a failure in which metadata and keys are not requested again.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// The maximum length of the provider's text in an error, in characters.
pub(crate) const MAX_ERROR_CHARS: usize = 300;
/// The error of the provider if an authorization code is invalid, expired, or of another login (RFC 6749 section 5.2).
const INVALID_GRANT: &str = "invalid_grant";

/// An identity provider.
pub(crate) struct Provider {
    pub(crate) settings: OidcSettings,
    http: Arc<dyn HttpService>,
    permits: Arc<Semaphore>,
    metadata: Mutex<Cached<Metadata>>,
    keys: Mutex<Cached<Keys>>,
    /// When an error was last logged because of a bearer token.
    last_logged: parking_lot::Mutex<Option<Instant>>,
}

/// The reason why an authorization code gives no claims.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ExchangeError {
    /// The provider does not accept the code.
    InvalidCode,
    /// The provider cannot be reached, refuses this server, or sends an invalid response. The text is for the operator.
    Provider(String),
}

impl From<String> for ExchangeError {
    fn from(error: String) -> Self {
        Self::Provider(error)
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    userinfo_endpoint: Option<String>,
    end_session_endpoint: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// Whether the provider names itself in the response to the browser (RFC 9207).
    #[serde(default)]
    pub(crate) authorization_response_iss_parameter_supported: bool,
}

#[derive(Deserialize)]
struct TokenResponse {
    id_token: String,
    access_token: Option<String>,
}

#[derive(Default, Deserialize)]
struct ErrorResponse {
    #[serde(default)]
    error: String,
    #[serde(default)]
    error_description: String,
}

impl Provider {
    pub(crate) fn new(settings: OidcSettings) -> Self {
        let policy = ClientPolicy {
            allow_private_addresses: true,
            use_proxies: true,
            max_redirects: 0,
            body_mode: BodyMode::Full { max_bytes: MAX_KEYS_BYTES as u64 },
            retry_all_methods: false,
        };
        Self {
            settings,
            http: Arc::new(HttpClient::new(policy)),
            permits: Arc::new(Semaphore::new(MAX_CONCURRENT_REQUESTS)),
            metadata: Mutex::default(),
            keys: Mutex::default(),
            last_logged: parking_lot::Mutex::default(),
        }
    }

    /// Returns the metadata. The error is for the operator.
    pub(crate) async fn metadata(&self) -> Result<Arc<Metadata>, String> {
        let fetch = async {
            let url = format!("{}{METADATA_PATH}", self.settings.issuer.trim_end_matches('/'));
            let metadata: Metadata = parse(&self.get(&url, MAX_METADATA_BYTES, None).await?)?;
            metadata.check(&self.settings.issuer).map_err(|error| format!("{url} {error}")).map(|()| metadata)
        };
        self.metadata.lock().await.get(MAX_AGE, fetch).await
    }

    /// Returns the keys, which are requested again if they have this age.
    async fn keys(&self, max_age: Duration, metadata: &Metadata) -> Result<Arc<Keys>, String> {
        let fetch = async {
            let url = &metadata.jwks_uri;
            Keys::parse(&self.get(url, MAX_KEYS_BYTES, None).await?.body).map_err(|error| format!("{url} {error}"))
        };
        self.keys.lock().await.get(max_age, fetch).await
    }

    /// Returns the URL at which a user logs in. The provider redirects to `redirect_uri` then.
    pub(crate) async fn authorization_url(&self, redirect_uri: &str, values: &LoginValues) -> Result<String, String> {
        let parameters = [
            ("response_type", "code"),
            ("client_id", &self.settings.client_id),
            ("redirect_uri", redirect_uri),
            ("scope", &self.settings.scopes),
            ("state", &values.state),
            ("nonce", &values.nonce),
            ("code_challenge", &values.challenge()),
            ("code_challenge_method", "S256"),
        ];
        with_query(&self.metadata().await?.authorization_endpoint, &parameters)
    }

    /// Returns the URL at which a user logs out, if the provider has one. It redirects to `redirect_uri` then.
    pub(crate) async fn end_session_url(&self, redirect_uri: &str) -> Result<Option<String>, String> {
        let parameters = [("client_id", self.settings.client_id.as_str()), ("post_logout_redirect_uri", redirect_uri)];
        let metadata = self.metadata().await?;
        metadata.end_session_endpoint.as_deref().map(|url| with_query(url, &parameters)).transpose()
    }

    /// Exchanges an authorization code for the claims of the account: those of the ID token, and others that the provider returns
    /// separately.
    pub(crate) async fn claims(
        &self,
        code: &str,
        redirect_uri: &str,
        values: &LoginValues,
    ) -> Result<Claims, ExchangeError> {
        let metadata = self.metadata().await?;
        let TokenResponse { id_token, access_token } =
            self.exchange_code(&metadata, code, redirect_uri, &values.verifier).await?;
        let verified = self.verify(&metadata, &id_token, Some(&values.nonce)).await?;
        let id_claims = verified.map_err(|error| format!("the ID token is not valid: {error}"))?;
        let mut claims = Claims::new();
        if let (Some(url), Some(token)) = (&metadata.userinfo_endpoint, access_token) {
            claims = parse(&self.get(url, MAX_RESPONSE_BYTES, Some(format!("Bearer {token}"))).await?)?;
            if claims.get("sub") != id_claims.get("sub") {
                return Err(format!("{url} responded with the claims of another subject").into());
            }
        }
        claims.extend(id_claims);
        remove_unverified_email(&mut claims);
        Ok(claims)
    }

    /// Returns the claims of an access token or ID token with which a mail client logs in. The outer error is for the operator: the
    /// provider cannot be used.
    pub(crate) async fn bearer_claims(&self, token: &str) -> Result<Result<Claims, TokenError>, String> {
        let mut verified = self.verify(&*self.metadata().await?, token, None).await?;
        if let Ok(claims) = &mut verified {
            remove_unverified_email(claims);
        }
        Ok(verified)
    }

    /// Logs that the provider cannot be used for a login that any client can try. Logs it once for each attempt to reach the provider.
    pub(crate) fn log_failed_bearer_check(&self, error: &str) {
        let now = Instant::now();
        let mut last_logged = self.last_logged.lock();
        if last_logged.is_none_or(|last| now.duration_since(last) >= RETRY_INTERVAL) {
            *last_logged = Some(now);
            tracing::error!(setting = "auth.oidcissuer", error, "the identity provider cannot be used");
        }
    }

    /// Verifies a token. Requests the keys again if it is signed with an unknown one.
    async fn verify(
        &self,
        metadata: &Metadata,
        token: &str,
        nonce: Option<&str>,
    ) -> Result<Result<Claims, TokenError>, String> {
        let OidcSettings { issuer, client_id, .. } = &self.settings;
        let expected = Expected { issuer, client_id, nonce, now: Timestamp::now() };
        match id_token::verify(token, &*self.keys(MAX_AGE, metadata).await?, &expected) {
            Err(TokenError::UnknownKey) => {
                Ok(id_token::verify(token, &*self.keys(MIN_KEYS_AGE, metadata).await?, &expected))
            }
            verified => Ok(verified),
        }
    }

    /// Sends an authorization code to the provider (RFC 6749 section 4.1.3).
    async fn exchange_code(
        &self,
        metadata: &Metadata,
        code: &str,
        redirect_uri: &str,
        verifier: &str,
    ) -> Result<TokenResponse, ExchangeError> {
        let OidcSettings { client_id, client_secret, .. } = &self.settings;
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect_uri),
            ("code_verifier", verifier),
        ];
        let mut headers = vec![("content-type".to_owned(), "application/x-www-form-urlencoded".to_owned())];
        match client_secret {
            Some(secret) if metadata.accepts_basic() => headers.push(basic_credentials(client_id, secret)),
            Some(secret) => fields.extend([("client_id", client_id.as_str()), ("client_secret", secret)]),
            None => fields.push(("client_id", client_id)),
        }
        let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let (url, body) = (metadata.token_endpoint.clone(), Some(form.into_bytes()));
        let response = self.send("POST", &url, headers, body, MAX_RESPONSE_BYTES).await?;
        if response.status == 200 {
            return Ok(parse(&response)?);
        }
        let ErrorResponse { error, error_description } = parse(&response).unwrap_or_default();
        if error == INVALID_GRANT {
            return Err(ExchangeError::InvalidCode);
        }
        let text: String = format!("{error} {error_description}").chars().take(MAX_ERROR_CHARS).collect();
        Err(format!("{url} responded with status {}: {}", response.status, text.trim()).into())
    }

    /// Sends a GET and returns the successful response.
    async fn get(&self, url: &str, max_bytes: usize, authorization: Option<String>) -> Result<Response, String> {
        let headers = authorization.map(|value| ("authorization".to_owned(), value)).into_iter().collect();
        let response = self.send("GET", url, headers, None, max_bytes).await?;
        if response.status == 200 {
            Ok(response)
        } else {
            Err(format!("{url} responded with status {}", response.status))
        }
    }

    async fn send(
        &self,
        method: &str,
        url: &str,
        mut headers: Vec<(String, String)>,
        body: Option<Vec<u8>>,
        max_bytes: usize,
    ) -> Result<Response, String> {
        headers.push(("accept".to_owned(), "application/json".to_owned()));
        let (method, timeout) = (method.to_owned(), REQUEST_TIMEOUT);
        let request = Request { method, url: url.to_owned(), headers, body, timeout };
        let (http, permits) = (self.http.clone(), self.permits.clone());
        let permit = permits.acquire_owned().await.map_err(|error| error.to_string())?;
        let sent = spawn_blocking(move || {
            // Held until the request ends, even if the caller is gone.
            let _permit = permit;
            http.send(&request)
        });
        let response = sent.await.map_err(|error| error.to_string())?.map_err(|error| format!("{url}: {error}"))?;
        let is_small = response.body.len() <= max_bytes;
        if is_small { Ok(response) } else { Err(format!("{url} responded with more than {max_bytes} bytes")) }
    }
}

impl Metadata {
    /// Checks that the metadata is that of this issuer, and that its URLs are secure.
    fn check(&self, issuer: &str) -> Result<(), String> {
        if self.issuer != issuer {
            return Err(format!(
                "is of the issuer {:?}, not of {issuer:?}: both must be exactly the same",
                self.issuer
            ));
        }
        let issuer = parse_url(issuer).map_err(|error| error.to_string())?;
        let required = [&self.authorization_endpoint, &self.token_endpoint, &self.jwks_uri];
        let mut urls = required.into_iter().chain(&self.userinfo_endpoint).chain(&self.end_session_endpoint);
        match urls.find(|url| !parse_url(url).is_ok_and(|url| is_secure(&url, &issuer))) {
            Some(url) => Err(format!("has the URL {url:?}, which is not a valid https URL")),
            None => Ok(()),
        }
    }

    /// Returns whether this server sends its secret in the header, which is the default. Otherwise it is sent in the form.
    fn accepts_basic(&self) -> bool {
        let methods = self.token_endpoint_auth_methods_supported.as_ref();
        methods.is_none_or(|methods| methods.iter().any(|method| method == "client_secret_basic"))
    }
}

/// Removes an address that the provider has not verified: users can often enter any.
fn remove_unverified_email(claims: &mut Claims) {
    if claims.get("email_verified").is_none_or(|verified| *verified != true && *verified != "true") {
        claims.remove("email");
    }
}

/// Returns the header with the credentials of this server (RFC 6749 section 2.3.1).
fn basic_credentials(client_id: &str, secret: &str) -> (String, String) {
    let [client_id, secret] =
        [client_id, secret].map(|text| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>());
    ("authorization".to_owned(), format!("Basic {}", STANDARD.encode(format!("{client_id}:{secret}"))))
}

fn with_query(url: &str, parameters: &[(&str, &str)]) -> Result<String, String> {
    let mut url: Url = parse_url(url).map_err(|error| error.to_string())?;
    url.query_pairs_mut().extend_pairs(parameters);
    Ok(url.into())
}

fn parse<T: DeserializeOwned>(response: &Response) -> Result<T, String> {
    serde_json::from_slice(&response.body)
        .map_err(|error| format!("{} responded with invalid JSON: {error}", response.url))
}

/// A document of the provider, or the error of the last request for it.
struct Cached<T> {
    document: Option<(Arc<T>, Instant)>,
    failure: Option<(String, Instant)>,
}

impl<T> Default for Cached<T> {
    fn default() -> Self {
        Self { document: None, failure: None }
    }
}

impl<T> Cached<T> {
    /// Returns the document. `fetch` requests it if it has the maximum age, and if the last request has not just failed.
    async fn get(
        &mut self,
        max_age: Duration,
        fetch: impl Future<Output = Result<T, String>>,
    ) -> Result<Arc<T>, String> {
        let now = Instant::now();
        match (&self.document, &self.failure) {
            (Some((document, since)), _) if now.duration_since(*since) < max_age => return Ok(document.clone()),
            (_, Some((error, since))) if now.duration_since(*since) < RETRY_INTERVAL => return Err(error.clone()),
            _ => {}
        }
        let fetched = fetch.await.map(Arc::new);
        let now = Instant::now();
        match &fetched {
            Ok(document) => *self = Self { document: Some((document.clone(), now)), failure: None },
            Err(error) => self.failure = Some((error.clone(), now)),
        }
        fetched
    }
}
