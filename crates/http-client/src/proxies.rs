//! The proxies that the environment defines, and the selection of a proxy for a request. The rules are those of Go:
//! HTTP_PROXY and HTTPS_PROXY for URLs of that scheme, and NO_PROXY, each also in lower case. Requests to loopback
//! addresses use no proxy.

use std::env;
use std::net::IpAddr;

use ureq::{Proxy, ProxyProtocol};
use url::{Host, Url};

use crate::HttpError;

/// The proxies by scheme, and the hosts that are reached directly.
#[derive(Debug, Default)]
pub(crate) struct Proxies {
    http: Option<Result<Proxy, HttpError>>,
    https: Option<Result<Proxy, HttpError>>,
    no_proxy: Vec<NoProxyRule>,
}

impl Proxies {
    /// Reads the proxies from the environment.
    pub(crate) fn from_env() -> Self {
        Self::new(|name| env::var(name).ok())
    }

    pub(crate) fn new(variable: impl Fn(&str) -> Option<String>) -> Self {
        let find_variable = |name: &str| {
            [name.to_owned(), name.to_ascii_lowercase()].into_iter().find_map(|name| {
                let value = variable(&name)?;
                (!value.is_empty()).then_some((name, value))
            })
        };
        let proxy = |name| find_variable(name).map(|(name, value)| parse_proxy(&name, &value));
        let no_proxy = find_variable("NO_PROXY").map(|(_, value)| value).unwrap_or_default();
        let no_proxy = no_proxy.split(',').filter_map(NoProxyRule::parse).collect();
        Self { http: proxy("HTTP_PROXY"), https: proxy("HTTPS_PROXY"), no_proxy }
    }

    /// Returns the proxy for a request, or `None` if it is sent directly.
    pub(crate) fn proxy_for(&self, url: &Url) -> Result<Option<Proxy>, HttpError> {
        let proxy = if url.scheme() == "https" { &self.https } else { &self.http };
        match (proxy, url.host()) {
            (Some(proxy), Some(host)) if !is_loopback_host(&host) => {
                let is_excluded = self.no_proxy.iter().any(|rule| rule.matches(&host, url.port_or_known_default()));
                if is_excluded { Ok(None) } else { proxy.clone().map(Some) }
            }
            _ => Ok(None),
        }
    }
}

/// An entry of NO_PROXY: hosts that are reached directly.
#[derive(Debug)]
struct NoProxyRule {
    hosts: HostPattern,
    /// Any port if `None`.
    port: Option<u16>,
}

#[derive(Debug)]
enum HostPattern {
    All,
    /// Addresses that share a prefix of this length.
    Block(IpAddr, u32),
    /// A name and its subdomains.
    Domain(String),
    /// The subdomains of a name.
    Subdomains(String),
}

impl NoProxyRule {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        let any_port = |hosts| Some(Self { hosts, port: None });
        if text == "*" {
            return any_port(HostPattern::All);
        }
        if let Some((address, prefix)) = text.split_once('/') {
            return any_port(HostPattern::Block(address.parse().ok()?, prefix.parse().ok()?));
        }
        if let Ok(address) = text.parse() {
            return any_port(HostPattern::Block(address, u32::MAX));
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().ok()?)),
            None => (text.as_str(), None),
        };
        let host = host.strip_prefix('*').unwrap_or(host);
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let hosts = match (bare.parse(), host.strip_prefix('.')) {
            (Ok(address), _) => HostPattern::Block(address, u32::MAX),
            (_, Some(domain)) => HostPattern::Subdomains(domain.to_owned()),
            _ => HostPattern::Domain(host.to_owned()),
        };
        (!host.is_empty()).then_some(Self { hosts, port })
    }

    fn matches(&self, host: &Host<&str>, port: Option<u16>) -> bool {
        let is_below = |name: &str, domain: &str| name.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
        let is_match = match (&self.hosts, host) {
            (HostPattern::All, _) => true,
            (HostPattern::Block(block, prefix), Host::Ipv4(address)) => {
                shares_prefix(IpAddr::V4(*address), *block, *prefix)
            }
            (HostPattern::Block(block, prefix), Host::Ipv6(address)) => {
                shares_prefix(IpAddr::V6(*address), *block, *prefix)
            }
            (HostPattern::Domain(domain), Host::Domain(name)) => name == domain || is_below(name, domain),
            (HostPattern::Subdomains(domain), Host::Domain(name)) => is_below(name, domain),
            _ => false,
        };
        is_match && (self.port.is_none() || self.port == port)
    }
}

/// Returns whether two addresses share a prefix of this length. If the length exceeds that of the address, the whole
/// address is compared.
fn shares_prefix(address: IpAddr, block: IpAddr, prefix: u32) -> bool {
    match (address, block) {
        (IpAddr::V4(address), IpAddr::V4(block)) => {
            (address.to_bits() ^ block.to_bits()).leading_zeros() >= prefix.min(32)
        }
        (IpAddr::V6(address), IpAddr::V6(block)) => {
            (address.to_bits() ^ block.to_bits()).leading_zeros() >= prefix.min(128)
        }
        _ => false,
    }
}

fn is_loopback_host(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}

/// Parses the URL of a proxy; the scheme is optional. An error is reported when the proxy is used, without the URL,
/// which may contain a password.
fn parse_proxy(name: &str, value: &str) -> Result<Proxy, HttpError> {
    Proxy::new(value)
        .ok()
        .filter(|proxy| matches!(proxy.protocol(), ProxyProtocol::Http | ProxyProtocol::Https))
        .ok_or_else(|| HttpError::Network(format!("the environment variable {name} is not an http or https URL")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(table: &[(&str, &str)]) -> Proxies {
        Proxies::new(|name| table.iter().find(|row| row.0 == name).map(|row| row.1.to_owned()))
    }

    fn route(proxies: &Proxies, url: &str) -> String {
        match proxies.proxy_for(&Url::parse(url).unwrap()) {
            Ok(Some(proxy)) => format!("{}:{}", proxy.host(), proxy.port()),
            Ok(None) => "direct".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn selects_proxy_by_scheme() {
        let both = [("HTTP_PROXY", "http://one.test:3128"), ("https_proxy", "two.test:8080"), ("HTTPS_PROXY", "")];
        let one = [("http_proxy", "http://user:pass@one.test")];
        let bad = [("HTTP_PROXY", "socks5://one.test"), ("HTTPS_PROXY", "http://")];
        let table: &[(&[_], _, _)] = &[
            (&both, "http://x.test/", "one.test:3128"),
            (&both, "https://x.test/", "two.test:8080"),
            (&both, "http://10.0.0.1/", "one.test:3128"),
            (&both, "http://localhost:80/", "direct"),
            (&both, "https://127.0.0.2/", "direct"),
            (&both, "http://[::1]:8080/", "direct"),
            (&one, "http://x.test/", "one.test:80"),
            (&one, "https://x.test/", "direct"),
            (&bad, "http://x.test/", "the environment variable HTTP_PROXY is not an http or https URL"),
            (&bad, "https://x.test/", "the environment variable HTTPS_PROXY is not an http or https URL"),
            (&bad, "http://localhost/", "direct"),
            (&[], "http://x.test/", "direct"),
        ];
        for (environment, url, expected) in table {
            assert_eq!(route(&proxies(environment), url), *expected, "{url}");
        }
    }

    #[test]
    fn no_proxy_matches_hosts_domains_blocks_and_ports() {
        let table = [
            ("x.test", "http://x.test/", true),
            ("x.test", "http://a.X.test/", true),
            ("x.test", "http://ax.test/", false),
            (".x.test", "http://a.b.x.test/", true),
            (".x.test", "http://x.test/", false),
            ("*.x.test", "http://a.x.test/", true),
            ("a.test, X.test ,,", "http://x.test/", true),
            ("x.test:81", "http://x.test:81/", true),
            ("x.test:81", "http://x.test/", false),
            ("x.test:80", "http://x.test/", true),
            ("*", "http://x.test/", true),
            ("10.1.2.3", "http://10.1.2.3/", true),
            ("10.1.2.3", "http://10.1.2.4/", false),
            ("10.1.2.3:80", "http://10.1.2.3/", true),
            ("10.0.0.0/8", "http://10.1.2.3/", true),
            ("10.0.0.0/8", "http://11.1.2.3/", false),
            ("10.0.0.0/8", "http://x.test/", false),
            ("0.0.0.0/0", "http://11.1.2.3/", true),
            ("fd00::/8", "http://[fd12::1]/", true),
            ("fd00::/8", "http://[fe80::1]/", false),
            ("fd00::1", "http://[fd00::1]/", true),
            ("[fd00::1]:80", "http://[fd00::1]/", true),
            ("nonsense/x, :1", "http://x.test/", false),
        ];
        for (no_proxy, url, expected) in table {
            let proxies = proxies(&[("HTTP_PROXY", "p.test:1"), ("NO_PROXY", no_proxy)]);
            assert_eq!(route(&proxies, url) == "direct", expected, "{no_proxy} {url}");
        }
    }
}
