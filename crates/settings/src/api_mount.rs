//! The APIs of the HTTP server, and where they are served in addition to the main listeners.

use std::str::FromStr;

use restante_mail::named_enum;
use restante_net::ListenAddr;

use super::types::Web;
use super::values::base_path;

named_enum! {
    /// An API of the HTTP server.
    pub enum ApiName {
        /// Versions 1 and 2 of the REST API, live events and their description.
        Rest = "rest",
        /// The pages of the web interface, which are only on the main listeners.
        Web = "web",
        /// Health checks and metrics.
        Operations = "operations",
        /// The API of Mailpit.
        Mailpit = "mailpit",
        /// The HTTP APIs of mail providers.
        Providers = "providers",
    }
}

impl ApiName {
    /// The APIs of the main listeners.
    pub const MAIN: [Self; 5] = [Self::Rest, Self::Web, Self::Operations, Self::Mailpit, Self::Providers];
}

/// The word after an address that uses HTTPS.
const TLS: &str = "tls";

/// APIs that are served at an address or below a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiMount {
    /// The address of the listener, or `None` for the main listeners.
    pub addr: Option<ListenAddr>,
    /// Whether the address uses HTTPS even if `web.tlsenabled` is false.
    pub tls: bool,
    /// The beginning of their paths: empty, or `/x/y` without a trailing slash.
    pub prefix: String,
    /// The APIs.
    pub apis: Vec<ApiName>,
}

/// Returns the addresses of listeners other than the main ones, each once.
pub(super) fn separate_addrs(mounts: &[ApiMount]) -> Vec<&ListenAddr> {
    let mut addrs = Vec::new();
    for addr in mounts.iter().filter_map(|mount| mount.addr.as_ref()) {
        if !addrs.contains(&addr) {
            addrs.push(addr);
        }
    }
    addrs
}

/// Returns an address that has entries with and without `tls`.
pub(super) fn ambiguous_addr(mounts: &[ApiMount]) -> Option<&ListenAddr> {
    let differs = |mount: &&ApiMount| mounts.iter().any(|other| other.addr == mount.addr && other.tls != mount.tls);
    mounts.iter().find(differs)?.addr.as_ref()
}

impl Web {
    /// Returns the listeners other than the main ones: each address with its APIs. Those of an address have the same `tls`.
    pub fn separate_listeners(&self) -> Vec<(&ListenAddr, Vec<&ApiMount>)> {
        let at = |addr| self.listeners.iter().filter(|mount| mount.addr.as_ref() == Some(addr)).collect();
        separate_addrs(&self.listeners).into_iter().map(|addr| (addr, at(addr))).collect()
    }

    /// Returns the table of APIs: the address of each listener, the path, and the APIs below it.
    pub fn api_table(&self) -> Vec<(String, String, String)> {
        let main: Vec<String> = self.addr.iter().chain(&self.tls_addr).map(ListenAddr::to_string).collect();
        let names = |apis: &[ApiName]| apis.iter().map(|api| api.name()).collect::<Vec<_>>().join(" ");
        let path = |prefix: &str| format!("{prefix}/");
        let mut table = vec![(main.join(","), path(""), names(&ApiName::MAIN))];
        for ApiMount { addr, tls, prefix, apis } in &self.listeners {
            let addr = addr.as_ref().map_or_else(|| table[0].0.clone(), ListenAddr::to_string);
            let addr = if *tls { format!("{addr} {TLS}") } else { addr };
            table.push((addr, path(prefix), names(apis)));
        }
        table
    }
}

impl FromStr for ApiMount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace().peekable();
        let addr = words.next_if(|word| !word.starts_with('/') && ApiName::from_name(word).is_none());
        let tls = addr.is_some() && words.next_if_eq(&TLS).is_some();
        let prefix = words.next_if(|word| word.starts_with('/'));
        let parse_name = |word: &str| match ApiName::from_name(word) {
            Some(ApiName::Web) => {
                Err("the pages (web) are only on the addresses of web.addr and web.tlsaddr".to_owned())
            }
            Some(name) => Ok(name),
            None if word == TLS => Err(format!("{TLS} must follow the address, such as localhost:9443 {TLS} rest")),
            None => {
                let others = ApiName::ALL.into_iter().filter(|name| *name != ApiName::Web).map(ApiName::name);
                Err(format!("there is no API {word:?}; the APIs are {}", others.collect::<Vec<_>>().join(", ")))
            }
        };
        let apis = words.map(parse_name).collect::<Result<Vec<_>, _>>()?;
        if apis.is_empty() || (addr.is_none() && prefix.is_none()) {
            return Err(format!(
                "{text:?} is not of the form [ADDRESS [tls]] [/PATH] API, such as localhost:8025 mailpit or /mailpit mailpit"
            ));
        }
        let addr = addr.map(str::parse).transpose()?;
        Ok(Self { addr, tls, prefix: base_path(prefix.unwrap_or_default())?, apis })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_mounts() {
        let mount = |addr, prefix: &str, apis: &[ApiName]| {
            Ok(ApiMount { addr, tls: false, prefix: prefix.to_owned(), apis: apis.to_vec() })
        };
        let with_tls = |mount: Result<ApiMount, &'static str>| mount.map(|mount| ApiMount { tls: true, ..mount });
        let local = || Some(ListenAddr::Localhost(9443));
        let table = [
            ("localhost:8025 mailpit", mount(Some(ListenAddr::Localhost(8025)), "", &[ApiName::Mailpit])),
            ("/mailpit/ mailpit", mount(None, "/mailpit", &[ApiName::Mailpit])),
            (
                "  :8025   /a/b mailpit  rest ",
                mount(Some(ListenAddr::Any(8025)), "/a/b", &[ApiName::Mailpit, ApiName::Rest]),
            ),
            ("localhost:9443 tls providers", with_tls(mount(local(), "", &[ApiName::Providers]))),
            ("localhost:9443 tls /x rest", with_tls(mount(local(), "/x", &[ApiName::Rest]))),
            ("localhost:9443 tls", Err("\"localhost:9443 tls\" is not of the form")),
            ("localhost:9443 /x tls rest", Err("tls must follow the address, such as")),
            ("/x tls rest", Err("tls must follow the address, such as")),
            ("tls rest", Err("\"tls\" is not a listen address")),
            ("mailpit", Err("\"mailpit\" is not of the form")),
            ("localhost:8025", Err("\"localhost:8025\" is not of the form")),
            ("", Err("\"\" is not of the form")),
            (
                "localhost:8025 mailpot",
                Err("there is no API \"mailpot\"; the APIs are rest, operations, mailpit, providers"),
            ),
            ("localhost:8025 rest web", Err("the pages (web) are only on")),
            ("8025 mailpit", Err("\"8025\" is not a listen address")),
            ("/a?b mailpit", Err("must be a path such as /mail")),
        ];
        for (text, expected) in table {
            match (text.parse::<ApiMount>(), expected) {
                (Ok(mount), Ok(expected)) => assert_eq!(mount, expected, "{text}"),
                (Err(error), Err(start)) => assert!(error.starts_with(start), "{text}: {error}"),
                (result, expected) => panic!("{text}: {result:?}, expected {expected:?}"),
            }
        }
    }
}
