//! Random PROXY headers: valid ones in parts, corrupted ones, and random bytes.

use std::net::{IpAddr, SocketAddr};

use proptest::prelude::*;
use restante_proto::proxy::{MAX_HEADER_BYTES, MalformedHeader, Progress, parse};

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// Returns the version 1 header for this connection. Both addresses have the same family.
fn v1_header(source: SocketAddr, target: SocketAddr) -> Vec<u8> {
    let family = if source.is_ipv4() { "TCP4" } else { "TCP6" };
    let (from, to) = (source.ip(), target.ip());
    format!("PROXY {family} {from} {to} {} {}\r\n", source.port(), target.port()).into_bytes()
}

/// Returns the version 2 header, with `extra` after the addresses.
fn v2_header(source: SocketAddr, target: SocketAddr, extra: &[u8]) -> Vec<u8> {
    let octets = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let ports = [source.port().to_be_bytes(), target.port().to_be_bytes()].concat();
    let block = [octets(source.ip()), octets(target.ip()), ports, extra.to_vec()].concat();
    let family = if source.is_ipv4() { 0x11 } else { 0x21 };
    let length = u16::try_from(block.len()).expect("a short block").to_be_bytes();
    [SIGNATURE, &[0x21, family], &length, &block].concat()
}

/// Valid headers, with the address that they contain.
fn valid_header() -> impl Strategy<Value = (Vec<u8>, Option<IpAddr>)> {
    let v4 = any::<([u8; 4], u16)>().prop_map(SocketAddr::from);
    let v6 = prop_oneof![any::<[u16; 8]>(), any::<u16>().prop_map(|last| [0x2001, 0xdb8, 0, 0, 0, 0, 0, last])];
    let v6 = (v6, any::<u16>()).prop_map(SocketAddr::from);
    let pair = prop_oneof![(v4.clone(), v4).boxed(), (v6.clone(), v6).boxed()];
    let extra = prop::collection::vec(any::<u8>(), 0..300);
    let with_address = (pair, any::<bool>(), extra).prop_map(|((source, target), is_v1, extra)| {
        let header = if is_v1 { v1_header(source, target) } else { v2_header(source, target, &extra) };
        (header, Some(source.ip().to_canonical()))
    });
    let without_address = "[ -~]{0,90}".prop_map(|rest| (format!("PROXY UNKNOWN {rest}\r\n").into_bytes(), None));
    prop_oneof![4 => with_address, 1 => without_address]
}

/// Starts that make random bytes look like a header.
fn header_start() -> impl Strategy<Value = &'static [u8]> {
    prop::sample::select(vec![
        &b""[..],
        b"PROXY ",
        b"PROXY TCP4 ",
        b"PROXY TCP6 :",
        SIGNATURE,
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11",
    ])
}

/// Reads like a server that gets at most `step` bytes at a time and never more than requested. Returns the number of
/// bytes read and the result: a header, an error, or a request for more bytes than there are.
fn read_header(bytes: &[u8], step: usize) -> (usize, Result<Progress, MalformedHeader>) {
    let mut read = 0;
    loop {
        let progress = parse(&bytes[..read]);
        let Ok(Progress::NeedMore(more)) = progress else { return (read, progress) };
        assert!(more > 0 && read + more <= MAX_HEADER_BYTES, "{more} after {read}");
        if read == bytes.len() {
            return (read, progress);
        }
        read = bytes.len().min(read + more.min(step));
    }
}

proptest! {
    #[test]
    fn valid_headers_are_read_exactly(
        (header, source) in valid_header(), rest in prop::collection::vec(any::<u8>(), 0..50), step in 1..5000_usize,
    ) {
        let stream = [&header[..], &rest].concat();
        prop_assert_eq!(read_header(&stream, step), (header.len(), Ok(Progress::Complete(source))));
    }

    #[test]
    fn prefixes_of_valid_headers_need_more_bytes((header, _) in valid_header()) {
        for read in 0..header.len() {
            let progress = parse(&header[..read]);
            let Ok(Progress::NeedMore(more)) = progress else { panic!("{progress:?} after {read} of {header:?}") };
            prop_assert!((1..=header.len() - read).contains(&more), "{} after {} of {:?}", more, read, header);
        }
    }

    #[test]
    fn corrupted_headers_are_rejected_or_valid(
        (mut header, _) in valid_header(),
        corruptions in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3), 1..4),
        step in 1..5000_usize,
    ) {
        for (index, byte, kind) in corruptions {
            let index = index.index(header.len());
            match kind {
                0 => header[index] = byte,
                1 => header.insert(index, byte),
                _ => header.truncate(index.max(1)),
            }
        }
        // The result does not depend on how the bytes arrive, except for how much of an invalid header was read.
        let (read, outcome) = read_header(&header, usize::MAX);
        match outcome {
            Ok(Progress::Complete(_)) => prop_assert_eq!(read_header(&header, step), (read, outcome)),
            _ => prop_assert!(!matches!(read_header(&header, step).1, Ok(Progress::Complete(_)))),
        }
    }

    #[test]
    fn random_bytes_never_panic_nor_request_too_much(
        header_start in header_start(), noise in prop::collection::vec(any::<u8>(), 0..200), text in "[0-9:. \r\n]{0,120}",
    ) {
        for rest in [&noise[..], text.as_bytes()] {
            let bytes = [header_start, rest].concat();
            let is_header = |step| matches!(read_header(&bytes, step).1, Ok(Progress::Complete(_)));
            prop_assert_eq!(is_header(usize::MAX), is_header(1));
            // Also test input that no reader in this workspace would pass at once.
            if let Ok(Progress::NeedMore(more)) = parse(&bytes) {
                prop_assert!(bytes.len() + more <= MAX_HEADER_BYTES);
            }
        }
    }
}
