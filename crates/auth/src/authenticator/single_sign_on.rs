//! Logins of accounts that are managed elsewhere: with an identity provider, or by a header field of an authenticating proxy.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use subtle::ConstantTimeEq as _;

use super::{Authenticator, UserHeaders, VerifiedLogin};
use crate::claim_grants::Claims;
use crate::client::Client;
use crate::denied::{DenialReason, Denied};
use crate::oidc::login_state::{LIFETIME_SECONDS, LoginState};
use crate::oidc::provider::{ExchangeError, MAX_ERROR_CHARS, Provider};
use crate::session::{FINGERPRINT_BYTES, Identity};

/// The maximum length of the name of an account in bytes.
const MAX_NAME_BYTES: usize = 255;
/// The maximum number of groups that a proxy names.
const MAX_GROUPS: usize = 1000;
/// The error of the provider if the user does not permit the login (RFC 6749 section 4.1.2.1). Others are for the operator.
const ACCESS_DENIED: &str = "access_denied";
/// The claims that can be the name of an account in the web interface and in the log. The first valid one is used.
const NAME_CLAIMS: [&str; 3] = ["preferred_username", "email", "sub"];

/// A login that continues at the identity provider.
pub struct StartedLogin {
    /// The URL at the provider.
    pub url: String,
    /// The value of a cookie that the browser must return after the login.
    pub cookie: String,
    /// How long the cookie is valid.
    pub lifetime: Duration,
}

/// A login that the identity provider has confirmed.
pub struct CompletedLogin {
    /// The login.
    pub login: VerifiedLogin,
    /// The page to return to, as it was given at the start.
    pub next: String,
}

/// The parameters with which the identity provider redirects the browser back (OpenID Connect Core, section 3.1.2.5).
#[derive(Clone, Copy, Debug, Default)]
pub struct AuthorizationResponse<'a> {
    /// The value that the login was started with.
    pub state: &'a str,
    /// The authorization code.
    pub code: Option<&'a str>,
    /// The reason why there is no code.
    pub error: Option<&'a str>,
    /// The reason as a text.
    pub error_description: Option<&'a str>,
    /// The provider (RFC 9207).
    pub issuer: Option<&'a str>,
}

/// The reason why a login with the identity provider failed.
#[derive(Debug)]
pub enum SingleSignOnError {
    /// The account has no access, or the login was not completed.
    Denied(Denied),
    /// The provider cannot be reached, refuses this server, or sends an invalid response. The text is for the operator.
    Provider(String),
}

impl From<DenialReason> for SingleSignOnError {
    fn from(reason: DenialReason) -> Self {
        Self::Denied(reason.into())
    }
}

impl Authenticator {
    /// Returns true if an identity provider is configured.
    pub fn has_single_sign_on(&self) -> bool {
        self.provider.is_some()
    }

    /// Starts a login with the identity provider, which redirects the browser to `redirect_uri` then. `next` is the page to return
    /// to, of at most 2 KiB.
    pub async fn start_single_sign_on(
        &self,
        redirect_uri: &str,
        next: &str,
    ) -> Result<StartedLogin, SingleSignOnError> {
        let provider = self.provider()?;
        let state = LoginState::new(next).map_err(|_| SingleSignOnError::Provider("no random bytes".to_owned()))?;
        let url = provider.authorization_url(redirect_uri, &state.values(&self.sessions)).await;
        Ok(StartedLogin {
            url: url.map_err(SingleSignOnError::Provider)?,
            cookie: state.to_cookie(&self.sessions, Timestamp::now()),
            lifetime: Duration::from_secs(LIFETIME_SECONDS),
        })
    }

    /// Completes a login with the identity provider. `cookies` must contain the cookie of the started login, and `redirect_uri` must
    /// be the same. A code that the provider does not accept delays the next attempts of the client.
    pub async fn complete_single_sign_on(
        &self,
        redirect_uri: &str,
        cookies: &[&str],
        response: AuthorizationResponse<'_>,
        client: Client,
    ) -> Result<CompletedLogin, SingleSignOnError> {
        let provider = self.provider()?;
        let now = Timestamp::now();
        let mut started = cookies.iter().filter_map(|cookie| {
            let state = LoginState::parse_cookie(&self.sessions, cookie, now)?;
            let values = state.values(&self.sessions);
            let is_same = bool::from(values.state.as_bytes().ct_eq(response.state.as_bytes()));
            is_same.then_some((state, values))
        });
        let (state, values) = started.next().ok_or(DenialReason::SingleSignOn)?;
        let metadata = provider.metadata().await.map_err(SingleSignOnError::Provider)?;
        let is_issuer = match response.issuer {
            Some(issuer) => issuer == provider.settings.issuer,
            None => !metadata.authorization_response_iss_parameter_supported,
        };
        if !is_issuer || response.error == Some(ACCESS_DENIED) {
            return Err(DenialReason::SingleSignOn.into());
        }
        if let Some(error) = response.error {
            let text = format!("{error} {}", response.error_description.unwrap_or_default());
            let text: String = text.chars().take(MAX_ERROR_CHARS).collect();
            return Err(SingleSignOnError::Provider(format!("the provider refused the login: {}", text.trim())));
        }
        let code = response.code.ok_or(DenialReason::SingleSignOn)?;
        let attempt = self.throttle.begin_code_attempt(client).await.map_err(|_| DenialReason::TooMany)?;
        let claims = provider.claims(code, redirect_uri, &values).await;
        if claims != Err(ExchangeError::InvalidCode) {
            // Also after an error of the provider: the client did not cause it.
            attempt.succeeded();
        }
        let claims = claims.map_err(|error| match error {
            ExchangeError::InvalidCode => DenialReason::SingleSignOn.into(),
            ExchangeError::Provider(error) => SingleSignOnError::Provider(error),
        })?;
        let login = self.login_by_claims(&account_name(&claims), &claims).map_err(SingleSignOnError::Denied)?;
        Ok(CompletedLogin { login, next: state.next })
    }

    /// Returns the URL at which a user logs out at the identity provider, if it has one. The error is for the operator.
    pub async fn provider_logout_url(&self, redirect_uri: &str) -> Result<Option<String>, String> {
        match &self.provider {
            Some(provider) => provider.end_session_url(redirect_uri).await,
            None => Ok(None),
        }
    }

    /// Returns the header fields of an authenticating proxy, if it is configured.
    pub fn user_headers(&self) -> Option<&UserHeaders> {
        Some(&self.headers).filter(|headers| !headers.user.is_empty())
    }

    /// Checks the user of a request as a trusted proxy names it. `groups` are separated by commas.
    pub fn check_proxy_user(&self, user: &str, groups: &str) -> Result<VerifiedLogin, Denied> {
        if !is_name(user) {
            return Err(DenialReason::NoCredentials.into());
        }
        let groups: Vec<&str> =
            groups.split(',').map(str::trim).filter(|group| !group.is_empty()).take(MAX_GROUPS).collect();
        let claims = [("user", json!(user)), ("groups", json!(groups))];
        self.login_by_claims(user, &claims.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    fn provider(&self) -> Result<&Provider, SingleSignOnError> {
        self.provider.as_ref().ok_or_else(|| SingleSignOnError::Provider("no provider is configured".to_owned()))
    }

    pub(super) fn login_by_claims(&self, name: &str, claims: &Claims) -> Result<VerifiedLogin, Denied> {
        let fingerprint = self.grants.find(claims).and_then(|rule| self.grant_fingerprints.get(rule));
        let login = fingerprint.and_then(|fingerprint| self.account_login(name, fingerprint));
        login.ok_or_else(|| Denied::new(Some(name), DenialReason::NoAccess))
    }

    /// Returns the login of an account to which the rule with this fingerprint grants rights.
    pub(super) fn account_login(&self, name: &str, fingerprint: &[u8; FINGERPRINT_BYTES]) -> Option<VerifiedLogin> {
        let mut rules = self.grant_fingerprints.iter().zip(self.grants.rights());
        let (_, rights) = rules.find(|(rule, _)| *rule == fingerprint)?;
        Some(VerifiedLogin {
            grant: rights.grant(name),
            identity: Identity::Account(name.to_owned()),
            fingerprint: *fingerprint,
            session: None,
        })
    }
}

/// Returns the name of the account with these claims.
pub(super) fn account_name(claims: &Claims) -> String {
    let mut names = NAME_CLAIMS.iter().filter_map(|name| claims.get(*name).and_then(Value::as_str));
    names.find(|name| is_name(name)).unwrap_or_default().to_owned()
}

fn is_name(text: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&text.len()) && !text.chars().any(char::is_control)
}
