//! The client of a login attempt, identified by its address.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// The network part of an IPv6 address. One customer usually has a whole /64 network.
const IPV6_NETWORK_MASK: u128 = !(u64::MAX as u128);

/// A client. All addresses of an IPv6 /64 network are the same client, because one host can use all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Client(Option<IpAddr>);

impl From<Option<IpAddr>> for Client {
    /// Without an address, the client is on this machine and uses a Unix socket.
    fn from(ip: Option<IpAddr>) -> Self {
        Self(ip.map(|ip| match ip.to_canonical() {
            IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & IPV6_NETWORK_MASK).into(),
            ip @ IpAddr::V4(_) => ip,
        }))
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(ip) => ip.fmt(f),
            None => f.write_str("unix"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv6_network_is_one_client() {
        let client = |text: &str| Client::from(Some(text.parse().unwrap()));
        assert_eq!(client("2001:db8:1:2:3::4"), client("2001:db8:1:2::ffff"));
        assert_ne!(client("2001:db8:1:2::1"), client("2001:db8:1:3::1"));
        assert_ne!(client("192.0.2.1"), client("192.0.2.2"));
        assert_eq!(client("::ffff:192.0.2.1"), client("192.0.2.1"));
        assert_ne!(Client::from(None), client("::"));
        let texts = [client("2001:db8::7"), client("192.0.2.1"), Client::from(None)].map(|client| client.to_string());
        assert_eq!(texts, ["2001:db8::", "192.0.2.1", "unix"]);
    }
}
