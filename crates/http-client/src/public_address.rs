//! Recognition of public IP addresses. Requests on behalf of untrusted users must not reach the networks of the
//! operator. The special-purpose blocks are those of the IANA registries (RFC 6890 and its successors).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 blocks that are not public, with their prefix lengths.
const RESERVED_V4: [(Ipv4Addr, u32); 15] = [
    (Ipv4Addr::UNSPECIFIED, 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// Blocks within 2000::/3, the only allocated part of IPv6, that are not public. Teredo is in the first of them and is
/// checked before.
const RESERVED_V6: [(Ipv6Addr, u32); 3] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

const GLOBAL_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
const V4_COMPATIBLE: (Ipv6Addr, u32) = (Ipv6Addr::UNSPECIFIED, 96);
const V4_MAPPED: (Ipv6Addr, u32) = (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96);
const NAT64: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);
const TEREDO: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32);
const SIX_TO_FOUR: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16);

/// Returns whether the address, and every IPv4 address embedded in it, is public.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let bits = address.to_bits();
    RESERVED_V4.iter().all(|(block, prefix)| (bits ^ block.to_bits()) >> (32 - prefix) != 0)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let is_in = |(block, prefix): (Ipv6Addr, u32)| (address.to_bits() ^ block.to_bits()) >> (128 - prefix) == 0;
    let [_, second, third, fourth, .., seventh, eighth] = address.segments();
    if is_in(V4_COMPATIBLE) || is_in(V4_MAPPED) || is_in(NAT64) {
        return is_public_v4(embedded_v4(seventh, eighth));
    }
    if is_in(TEREDO) {
        // RFC 4380 section 4: the address of the relay, and the address of the client with all bits inverted.
        return is_public_v4(embedded_v4(third, fourth)) && is_public_v4(embedded_v4(!seventh, !eighth));
    }
    if is_in(SIX_TO_FOUR) {
        return is_public_v4(embedded_v4(second, third));
    }
    is_in(GLOBAL_V6) && !RESERVED_V6.into_iter().any(is_in)
}

/// Returns the IPv4 address in two segments.
fn embedded_v4(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_public_addresses() {
        let table = [
            ("1.1.1.1", true),
            ("9.255.255.255", true),
            ("11.0.0.0", true),
            ("100.63.255.255", true),
            ("100.128.0.0", true),
            ("172.15.255.255", true),
            ("172.32.0.0", true),
            ("192.0.1.0", true),
            ("198.17.255.255", true),
            ("198.20.0.0", true),
            ("223.255.255.255", true),
            ("0.0.0.0", false),
            ("0.1.2.3", false),
            ("10.1.2.3", false),
            ("100.64.0.1", false),
            ("100.127.255.255", false),
            ("127.0.0.1", false),
            ("127.255.255.254", false),
            ("169.254.169.254", false),
            ("172.16.0.1", false),
            ("172.31.255.255", false),
            ("192.0.0.8", false),
            ("192.0.2.1", false),
            ("192.88.99.1", false),
            ("192.168.1.1", false),
            ("198.18.0.1", false),
            ("198.19.255.255", false),
            ("198.51.100.7", false),
            ("203.0.113.7", false),
            ("224.0.0.1", false),
            ("239.255.255.250", false),
            ("240.0.0.1", false),
            ("255.255.255.255", false),
            ("2606:4700:4700::1111", true),
            ("2a00:1450::1", true),
            ("2001:200::1", true),
            ("3ffe::1", true),
            ("::", false),
            ("::1", false),
            ("::7f00:1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:10.0.0.1", false),
            ("::ffff:1.1.1.1", true),
            ("::ffff:0:1.1.1.1", false),
            ("64:ff9b::127.0.0.1", false),
            ("64:ff9b::169.254.169.254", false),
            ("64:ff9b::1.1.1.1", true),
            ("64:ff9b:1::1.1.1.1", false),
            ("100::1", false),
            ("2001:2::1", false),
            ("2001:10::1", false),
            ("2001:db8::1", false),
            ("3fff::1", false),
            ("2002:7f00:1::1", false),
            ("2002:a9fe:a9fe::", false),
            ("2002:101:101::1", true),
            // Teredo: relay 1.1.1.1, client 1.1.1.1; then client 127.0.0.1; then relay 10.0.0.1.
            ("2001:0:101:101:0:0:fefe:fefe", true),
            ("2001:0:101:101:0:0:80ff:fffe", false),
            ("2001:0:a00:1:0:0:fefe:fefe", false),
            ("fc00::1", false),
            ("fdff::1", false),
            ("fe80::1", false),
            ("fec0::1", false),
            ("ff02::1", false),
            ("4000::1", false),
        ];
        for (text, expected) in table {
            let address: IpAddr = text.parse().expect(text);
            assert_eq!(is_public(address), expected, "{text}");
        }
    }
}
