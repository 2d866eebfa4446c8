//! Who asks, as far as that can be told before anything is said: by the address.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// The bits of an IPv6 address that one customer has to itself.
const IPV6_NETWORK_MASK: u128 = !(u64::MAX as u128);

/// One who asks. All addresses of an IPv6 network of 64 bits are the same client: anybody who has one has them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Client(Option<IpAddr>);

impl From<Option<IpAddr>> for Client {
    /// Without an address, it is somebody on the same machine, by a unix socket.
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
    fn networks_are_one_client() {
        let client = |text: &str| Client::from(Some(text.parse().unwrap()));
        assert_eq!(client("2001:db8:1:2:3::4"), client("2001:db8:1:2::ffff"));
        assert_ne!(client("2001:db8:1:2::1"), client("2001:db8:1:3::1"));
        assert_ne!(client("192.0.2.1"), client("192.0.2.2"));
        assert_eq!(client("::ffff:192.0.2.1"), client("192.0.2.1"));
        assert_ne!(Client::from(None), client("::"));
        let told = [client("2001:db8::7"), client("192.0.2.1"), Client::from(None)].map(|client| client.to_string());
        assert_eq!(told, ["2001:db8::", "192.0.2.1", "unix"]);
    }
}
