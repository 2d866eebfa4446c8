//! The table of protocols: their listeners, and the settings that these come from. Code that treats all protocols alike
//! uses this table, so that a new protocol is added here only.

use restante_net::{ListenAddr, Network};

use super::api_mount::{ApiMount, separate_addrs};
use super::setting::Setting;
use super::table::SETTINGS;
use super::types::{Config, Tls};

/// The listeners of a protocol.
#[derive(Debug, Clone, Copy)]
pub struct ProtocolListeners<'a> {
    /// The name of the protocol.
    pub name: &'static str,
    /// The beginning of the greeting of a server that is ready. `None` if the client speaks first.
    pub greeting: Option<&'static str>,
    /// The command that ends a session of a protocol with a greeting.
    pub logout: &'static str,
    /// The addresses to listen on.
    pub addrs: &'a [ListenAddr],
    /// The addresses to listen on with TLS from the first byte.
    pub tls_addrs: &'a [ListenAddr],
    /// The APIs that are served at other addresses.
    mounts: &'a [ApiMount],
    /// The TLS settings. `None` if the protocol has none of its own.
    pub tls: Option<&'a Tls>,
    /// Proxies whose connections begin with a PROXY protocol header.
    pub proxies: &'a [Network],
    /// True if clients must authenticate.
    pub(super) requires_credentials: bool,
    /// The first part of the keys of its settings.
    prefix: &'static str,
}

impl<'a> ProtocolListeners<'a> {
    /// Returns the addresses to listen on in addition to `addrs` and `tls_addrs`, each once.
    pub(super) fn other_addrs(&self) -> Vec<&'a ListenAddr> {
        separate_addrs(self.mounts)
    }

    /// Returns true if the plain listeners use TLS from the first byte.
    pub fn forces_tls(&self) -> bool {
        self.tls.is_some_and(|tls| tls.force)
    }

    /// Returns the setting of this name, such as `addr`, if the protocol has one.
    pub(super) fn setting(&self, name: &str) -> Option<&'static Setting> {
        SETTINGS.iter().find(|setting| setting.key.split_once('.') == Some((self.prefix, name)))
    }
}

impl Config {
    /// Returns all protocols: those for mail, then HTTP.
    pub fn protocols(&self) -> [ProtocolListeners<'_>; 5] {
        let Self { smtp, lmtp, pop3, imap, web, auth, .. } = self;
        let smtp = ProtocolListeners {
            name: "SMTP",
            // RFC 5321 section 4.2.
            greeting: Some("220"),
            logout: "QUIT",
            addrs: &smtp.addr,
            tls_addrs: &smtp.tls_addr,
            mounts: &[],
            tls: Some(&smtp.tls),
            proxies: &smtp.proxies,
            requires_credentials: smtp.require_auth && !smtp.accept_any_login,
            prefix: "smtp",
        };
        let lmtp =
            ProtocolListeners { name: "LMTP", addrs: &lmtp.addr, tls_addrs: &[], tls: None, prefix: "lmtp", ..smtp };
        let pop3 = ProtocolListeners {
            name: "POP3",
            // RFC 1939 section 4.
            greeting: Some("+OK"),
            logout: "QUIT",
            addrs: &pop3.addr,
            tls_addrs: &pop3.tls_addr,
            mounts: &[],
            tls: Some(&pop3.tls),
            proxies: &pop3.proxies,
            requires_credentials: !pop3.credentials.is_empty() || auth.is_enabled(),
            prefix: "pop3",
        };
        let imap = ProtocolListeners {
            name: "IMAP",
            // RFC 3501 section 7.1.
            greeting: Some("* OK"),
            logout: "a LOGOUT",
            addrs: &imap.addr,
            tls_addrs: &imap.tls_addr,
            mounts: &[],
            tls: Some(&imap.tls),
            proxies: &imap.proxies,
            requires_credentials: !imap.credentials.is_empty() || auth.is_enabled(),
            prefix: "imap",
        };
        let http = ProtocolListeners {
            name: "HTTP",
            greeting: None,
            logout: "",
            addrs: &web.addr,
            tls_addrs: &web.tls_addr,
            mounts: &web.listeners,
            tls: Some(&web.tls),
            proxies: &web.proxies,
            requires_credentials: auth.is_enabled(),
            prefix: "web",
        };
        [smtp, lmtp, pop3, imap, http]
    }
}
