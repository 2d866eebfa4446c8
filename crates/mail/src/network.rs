//! IP networks in CIDR notation.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// An IP network such as `10.0.0.0/8`, or a single address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u32,
}

impl Network {
    /// Returns whether this network contains all IPv4 or all IPv6 addresses.
    pub fn contains_all_addresses(&self) -> bool {
        self.prefix == 0
    }

    /// Returns whether the address is in this network. An IPv4-mapped IPv6 address counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                // A shift by the full width overflows: a prefix of 0 contains everything.
                let differing = network.to_bits() ^ address.to_bits();
                differing.checked_shr(32 - self.prefix).unwrap_or(0) == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let differing = network.to_bits() ^ address.to_bits();
                differing.checked_shr(128 - self.prefix).unwrap_or(0) == 0
            }
            _ => false,
        }
    }

    /// Converts an IPv4-mapped network to IPv4, as [`Network::contains`] does with addresses.
    fn canonical(self) -> Self {
        match (self.address.to_canonical(), self.prefix.checked_sub(96)) {
            (address @ IpAddr::V4(_), Some(prefix)) if self.address.is_ipv6() => Self { address, prefix },
            _ => self,
        }
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || {
            format!(
                "{text:?} is not a network: expected an IP address or a network, for example 192.0.2.1, 10.0.0.0/8 or fd00::/8"
            )
        };
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| invalid())?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => width,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().ok().filter(|&prefix| prefix <= width).ok_or_else(invalid)?
            }
            Some(_) => return Err(invalid()),
        };
        Ok(Self { address, prefix }.canonical())
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contains_addresses() {
        let cases = [
            ("10.0.0.0/8", "10.255.1.2", true),
            ("10.0.0.0/8", "11.0.0.0", false),
            ("10.1.2.3/8", "10.9.9.9", true),
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("::/0", "2001:db8::1", true),
            ("fd00::/8", "fd12::1", true),
            ("fd00::/8", "fe80::1", false),
            ("::1", "::1", true),
            ("::ffff:192.0.2.1", "192.0.2.1", true),
            ("::ffff:192.0.2.1", "192.0.2.2", false),
            ("::ffff:10.0.0.0/104", "10.9.9.9", true),
            ("::ffff:10.0.0.0/104", "::ffff:11.0.0.0", false),
            ("::ffff:0.0.0.0/96", "203.0.113.9", true),
        ];
        for (network, address, expected) in cases {
            let network: Network = network.parse().expect("a valid network");
            let address = address.parse().expect("a valid address");
            assert_eq!(network.contains(address), expected, "{network} {address}");
        }
    }

    #[test]
    fn recognizes_networks_of_all_addresses() {
        for (network, is_everything) in
            [("0.0.0.0/0", true), ("::/0", true), ("::ffff:0.0.0.0/96", true), ("0.0.0.0/1", false), ("::", false)]
        {
            assert_eq!(
                network.parse::<Network>().expect("a valid network").contains_all_addresses(),
                is_everything,
                "{network}"
            );
        }
    }

    #[test]
    fn rejects_invalid_networks() {
        for text in ["", "10", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/+8", "::/129", "a/8", "1.2.3.4/8/8"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}
