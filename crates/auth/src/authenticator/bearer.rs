//! Bearer tokens of mail clients (XOAUTH2 and OAUTHBEARER): the tokens of this server and of leased runs, the passwords in the
//! setting of the protocol, and tokens of the identity provider. The passwords of users are no tokens.

use super::single_sign_on::account_name;
use super::{Authenticator, ConfiguredLogin};
use crate::client::Client;
use crate::denied::{DenialReason, Denied};
use crate::grant::Grant;
use crate::oidc::id_token::{self, TokenError};
use crate::tokens;

impl Authenticator {
    /// Checks a bearer token over a mail protocol. Failures count together with those of all other protocols, except for tokens that
    /// have expired. The user only selects a password of the setting: other tokens are accepted with any name.
    pub async fn check_bearer(
        &self,
        user: &str,
        token: &str,
        client: Client,
        configured: &ConfiguredLogin<'_>,
    ) -> Result<Grant, Denied> {
        let has_form_of_jwt = id_token::has_form_of_token(token);
        if has_form_of_jwt && let Some(checked) = self.check_provider_token(token).await {
            return checked;
        }
        let verified = if has_form_of_jwt || tokens::looks_like_token(token) {
            self.verify_token(token, client, Some(configured)).await?
        } else {
            self.verify_chosen_bearer(user, token, client, configured).await?
        };
        Ok(verified.map_or(Grant::EVERYTHING, |login| login.grant))
    }

    /// Checks an access token or ID token of the identity provider. Returns `None` if it is not a valid one.
    async fn check_provider_token(&self, token: &str) -> Option<Result<Grant, Denied>> {
        let provider = self.provider.as_ref()?;
        match provider.bearer_claims(token).await {
            Ok(Ok(claims)) => Some(self.login_by_claims(&account_name(&claims), &claims).map(|login| login.grant)),
            Ok(Err(TokenError::Expired)) => Some(Err(DenialReason::Expired.into())),
            Ok(Err(error)) => {
                tracing::debug!(%error, "a token is not one of the identity provider");
                None
            }
            Err(error) => {
                provider.log_failed_bearer_check(&error);
                Some(Err(DenialReason::SingleSignOn.into()))
            }
        }
    }
}
