//! Login with an identity provider: the authorization code flow of OpenID Connect, with PKCE (RFC 7636).
//!
//! - `provider`: the provider's metadata and keys, and the requests to it
//! - `id_token`: verifies ID tokens, and bearer tokens of mail clients
//! - `login_state`: what a browser keeps in a cookie while its user logs in at the provider

pub(crate) mod id_token;
pub(crate) mod login_state;
pub(crate) mod provider;
#[cfg(test)]
mod tests;

use std::net::{Ipv4Addr, Ipv6Addr};

use restante_http_client::{Host, Url, parse_url};

/// The settings of the login with an identity provider.
#[derive(Clone, Default)]
pub struct OidcSettings {
    /// The URL of the provider, exactly as it names itself. Empty if there is none.
    pub issuer: String,
    /// The id of this server at the provider.
    pub client_id: String,
    /// The secret of this server at the provider. Public clients have none.
    pub client_secret: Option<String>,
    /// The scopes that are requested, separated by spaces.
    pub scopes: String,
}

impl OidcSettings {
    /// Returns true if an identity provider is configured.
    pub fn is_enabled(&self) -> bool {
        !self.issuer.is_empty()
    }
}

/// Parses the URL of an identity provider. It is used exactly as it is written. Empty means none.
pub fn parse_issuer(text: &str) -> Result<String, String> {
    let is_plain = |url: &Url| url.query().is_none() && !text.contains('#');
    let is_valid = parse_url(text).is_ok_and(|url| is_plain(&url) && is_secure(&url, &url));
    if text.is_empty() || is_valid {
        return Ok(text.to_owned());
    }
    Err("must be an https URL without user, query and fragment, such as https://login.example.org/realms/acme; http is \
         accepted for localhost and loopback addresses"
        .to_owned())
}

/// Returns true if requests to a URL can be neither read nor changed on their way: it is https or, for a provider with http on this
/// machine, on this machine.
fn is_secure(url: &Url, issuer: &Url) -> bool {
    let has_user = !url.username().is_empty() || url.password().is_some();
    !has_user && (url.scheme() == "https" || issuer.scheme() == "http" && is_loopback(url))
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => Ipv4Addr::is_loopback(&address),
        Some(Host::Ipv6(address)) => Ipv6Addr::is_loopback(&address),
        None => false,
    }
}

#[cfg(test)]
mod issuer_tests {
    use super::*;

    #[test]
    fn issuers_use_https_or_loopback() {
        for text in [
            "",
            "https://login.example.org",
            "https://login.example.org/realms/acme/",
            "http://localhost:8080/realms/acme",
            "http://127.0.0.1:8080",
            "http://[::1]:8080",
        ] {
            assert_eq!(parse_issuer(text).as_deref(), Ok(text));
        }
        for text in [
            "login.example.org",
            "http://login.example.org",
            "http://10.0.0.1",
            "http://localhost.example.org",
            "https://user@login.example.org",
            "https://login.example.org/?x=1",
            "https://login.example.org/#x",
            "ftp://localhost",
        ] {
            assert!(parse_issuer(text).unwrap_err().starts_with("must be an https URL"), "{text}");
        }
    }
}
