//! The header of the PROXY protocol, versions 1 and 2, in which a proxy sends the address of its client.
//!
//! The rules are those of HAProxy's document "The PROXY protocol", cited here by its sections. This module parses the
//! header and says how many bytes can be read without reading beyond it. It does not read, and it does not decide which
//! peers may send a header.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use memchr::memchr_iter;

/// The longest accepted header. Addresses need at most 232 bytes; the rest is for extensions.
pub const MAX_HEADER_BYTES: usize = 4096;

/// Section 2.1: the longest line of version 1, with its CRLF.
const MAX_LINE_BYTES: usize = 107;
/// `PROXY UNKNOWN` and CRLF, the shortest header. This many bytes can be read at first.
const MIN_HEADER_BYTES: usize = 15;

const V1_PREFIX: &[u8] = b"PROXY ";
/// Section 2.2: no protocol in use starts like this.
const V2_SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// Signature, version and command, family and protocol, length.
const V2_FIXED_BYTES: usize = 16;

/// The progress of reading a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// At least this many more bytes belong to the header.
    NeedMore(usize),
    /// The header is complete. It has the client's address, or `None` if the proxy connects for itself, or for a client
    /// without an IP address. Then the address of the connection applies.
    Complete(Option<IpAddr>),
}

/// The error for bytes that are not a valid PROXY header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedHeader;

/// Parses the bytes read so far. A caller that never reads more bytes than requested never reads beyond the header.
/// Bytes after the header are therefore an error.
pub fn parse(read: &[u8]) -> Result<Progress, MalformedHeader> {
    if read.is_empty() {
        return Ok(Progress::NeedMore(MIN_HEADER_BYTES));
    }
    if shares_prefix(read, V1_PREFIX) {
        return parse_v1(read);
    }
    if shares_prefix(read, V2_SIGNATURE) {
        return parse_v2(read);
    }
    Err(MalformedHeader)
}

/// Returns whether one is a prefix of the other.
fn shares_prefix(read: &[u8], start: &[u8]) -> bool {
    let common = read.len().min(start.len());
    read[..common] == start[..common]
}

/// Parses version 1, the text format (section 2.1).
fn parse_v1(read: &[u8]) -> Result<Progress, MalformedHeader> {
    let (text, missing) = match read {
        [text @ .., b'\r', b'\n'] => (text, 0),
        [text @ .., b'\r'] => (text, 1),
        text => (text, min_missing_bytes(text)),
    };
    if !text.iter().all(|&byte| byte == b' ' || byte.is_ascii_graphic()) || read.len() + missing > MAX_LINE_BYTES {
        return Err(MalformedHeader);
    }
    if missing > 0 {
        return Ok(Progress::NeedMore(missing));
    }
    let text = str::from_utf8(text).map_err(|_| MalformedHeader)?;
    v1_source(text).map(Progress::Complete)
}

/// Returns the smallest number of bytes that can complete the line, including CRLF.
fn min_missing_bytes(text: &[u8]) -> usize {
    const CRLF: usize = 2;
    const FAMILY_END: usize = b"PROXY TCP4 ".len();
    // The lengths of the shortest addresses and ports.
    let fields: &[usize] = match text.get(..FAMILY_END) {
        Some(b"PROXY TCP4 ") => &[7, 7, 1, 1],
        Some(b"PROXY TCP6 ") => &[2, 2, 1, 1],
        _ => return MIN_HEADER_BYTES.saturating_sub(text.len()).max(CRLF),
    };
    let started_fields = memchr_iter(b' ', &text[FAMILY_END..]).count();
    let current = if text.ends_with(b" ") { fields.get(started_fields).copied().unwrap_or(0) } else { 0 };
    let following: usize = fields.iter().skip(started_fields + 1).map(|field| 1 + field).sum();
    current + following + CRLF
}

/// Returns the source address of a complete line.
fn v1_source(text: &str) -> Result<Option<IpAddr>, MalformedHeader> {
    let mut fields = text.split(' ').skip(1);
    let mut field = || fields.next().ok_or(MalformedHeader);
    let source: IpAddr = match field()? {
        // The rest of the line is ignored.
        "UNKNOWN" => return Ok(None),
        "TCP4" => parse_address_pair::<Ipv4Addr>(field()?, field()?)?.into(),
        "TCP6" => parse_address_pair::<Ipv6Addr>(field()?, field()?)?.into(),
        _ => return Err(MalformedHeader),
    };
    let are_ports_valid = is_port(field()?) && is_port(field()?);
    if are_ports_valid && fields.next().is_none() { Ok(Some(source.to_canonical())) } else { Err(MalformedHeader) }
}

/// Parses both addresses and returns the first.
fn parse_address_pair<A: FromStr>(source: &str, destination: &str) -> Result<A, MalformedHeader> {
    match (source.parse(), destination.parse::<A>()) {
        (Ok(source), Ok(_)) => Ok(source),
        _ => Err(MalformedHeader),
    }
}

/// Returns whether the text is a number from 0 to 65535 without sign and leading zeros.
fn is_port(text: &str) -> bool {
    let is_numeric = text.bytes().all(|byte| byte.is_ascii_digit());
    is_numeric && (text == "0" || !text.starts_with('0')) && text.parse::<u16>().is_ok()
}

/// Parses version 2, the binary format (section 2.2).
fn parse_v2(read: &[u8]) -> Result<Progress, MalformedHeader> {
    let Some((fixed, block)) = read.split_first_chunk::<V2_FIXED_BYTES>() else {
        return Ok(Progress::NeedMore(V2_FIXED_BYTES - read.len()));
    };
    let [.., version_and_command, family_and_protocol, high, low] = *fixed;
    let length = usize::from(u16::from_be_bytes([high, low]));
    if V2_FIXED_BYTES + length > MAX_HEADER_BYTES || block.len() > length {
        return Err(MalformedHeader);
    }
    // Most invalid headers are rejected before their block arrives.
    let source = v2_source(version_and_command, family_and_protocol, length, block)?;
    let progress = match length - block.len() {
        0 => Progress::Complete(source),
        missing => Progress::NeedMore(missing),
    };
    Ok(progress)
}

/// Returns the source address, which is the first field of the block. Fields after the addresses are skipped. While the
/// block is incomplete, the result only says that nothing is invalid so far.
fn v2_source(command: u8, family: u8, length: usize, block: &[u8]) -> Result<Option<IpAddr>, MalformedHeader> {
    const LOCAL: u8 = 0x20;
    const PROXY: u8 = 0x21;
    match command {
        // The proxy's own connection, for example a health check. The family is ignored.
        LOCAL => return Ok(None),
        PROXY => {}
        _ => return Err(MalformedHeader),
    }
    let (family, protocol) = (family >> 4, family & 0x0f);
    // Unspecified, stream and datagram.
    if protocol > 2 {
        return Err(MalformedHeader);
    }
    let (needed, source) = match family {
        // Unspecified.
        0 => (0, None),
        1 => (12, block.first_chunk::<4>().map(|octets| IpAddr::from(*octets))),
        2 => (36, block.first_chunk::<16>().map(|octets| IpAddr::from(*octets))),
        // Unix sockets.
        3 => (216, None),
        _ => return Err(MalformedHeader),
    };
    if length < needed { Err(MalformedHeader) } else { Ok(source.map(|source| source.to_canonical())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses `bytes` like a reader that reads only as much as is requested.
    fn parse_all(bytes: &[u8]) -> Result<Progress, MalformedHeader> {
        let mut read = 0;
        loop {
            match parse(&bytes[..read])? {
                Progress::NeedMore(more) if read < bytes.len() => read = bytes.len().min(read + more),
                progress => return Ok(progress),
            }
        }
    }

    /// Returns a header with this address, or without one.
    fn complete(source: &str) -> Progress {
        let source = if source.is_empty() { None } else { Some(source.parse().expect("an address")) };
        Progress::Complete(source)
    }

    #[test]
    fn parses_valid_lines() {
        let longest = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
        let table = [
            ("PROXY TCP4 192.0.2.1 198.51.100.7 56324 25\r\n", "192.0.2.1"),
            ("PROXY TCP4 0.0.0.0 0.0.0.0 0 0\r\n", "0.0.0.0"),
            ("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n", "255.255.255.255"),
            ("PROXY TCP6 2001:db8::1 ::1 1 65535\r\n", "2001:db8::1"),
            ("PROXY TCP6 :: :: 0 0\r\n", "::"),
            ("PROXY TCP6 ::ffff:192.0.2.1 ::1 1 1\r\n", "192.0.2.1"),
            (&format!("PROXY TCP6 {longest} {longest} 65535 65535\r\n"), longest),
            ("PROXY UNKNOWN\r\n", ""),
            ("PROXY UNKNOWN 192.0.2.1 whatever\r\n", ""),
            (&format!("PROXY UNKNOWN {longest} {longest} 65535 65535\r\n"), ""),
        ];
        for (line, source) in table {
            assert_eq!(parse_all(line.as_bytes()), Ok(complete(source)), "{line:?}");
        }
    }

    #[test]
    fn rejects_invalid_lines() {
        let endless = format!("PROXY UNKNOWN {}", "x".repeat(200));
        let one_too_long = format!("PROXY UNKNOWN {}\r\n", "x".repeat(MAX_LINE_BYTES - 15));
        let table = [
            "EHLO client.test\r\n",
            "GET / HTTP/1.1\r\n",
            "proxy UNKNOWN\r\n",
            " PROXY UNKNOWN\r\n",
            "PROXY  UNKNOWN\r\n",
            "PROXY UNKNOWNX\r\n",
            "PROXY UDP4 192.0.2.1 192.0.2.2 1 2\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\n..",
            "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r..",
            "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 \r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 3\r\n",
            "PROXY TCP4 192.0.2.1  192.0.2.2 1 2\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 1 65536\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 01 2\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 00 2\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 +1 2\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 -1 2\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 1 \r\n",
            "PROXY TCP4 192.0.2.01 192.0.2.2 1 2\r\n",
            "PROXY TCP4 192.0.2 192.0.2.2 1 2\r\n",
            "PROXY TCP4 192.0.2.256 192.0.2.2 1 2\r\n",
            "PROXY TCP4 2001:db8::1 ::1 1 2\r\n",
            "PROXY TCP6 192.0.2.1 192.0.2.2 1 2\r\n",
            "PROXY TCP6 2001:db8::1%1 ::1 1 2\r\n",
            "PROXY TCP6 [2001:db8::1] ::1 1 2\r\n",
            "PROXY TCP4 192.0.2.1\t192.0.2.2 1 2\r\n",
            "PROXY TCP4 192.0.2.\u{661} 192.0.2.2 1 2\r\n",
            "PROXY UNKNOWN \0\r\n..",
            &endless,
            &one_too_long,
        ];
        for line in table {
            assert_eq!(parse_all(line.as_bytes()), Err(MalformedHeader), "{line:?}");
        }
    }

    /// Returns a version 2 header: the signature, a command, a family, and a block of this length that starts with
    /// `block`.
    fn v2_header(command: u8, family: u8, block: &[u8], length: usize) -> Vec<u8> {
        let mut header = V2_SIGNATURE.to_vec();
        header.extend([command, family]);
        header.extend(u16::try_from(length).expect("a length").to_be_bytes());
        header.extend(block);
        header.resize(V2_FIXED_BYTES + length, 0xee);
        header
    }

    #[test]
    fn parses_v2_headers() {
        let v4: &[u8] = &[192, 0, 2, 1, 192, 0, 2, 2, 0, 1, 0, 25];
        let v6: &[u8] = &"2001:db8::1".parse::<Ipv6Addr>().expect("an address").octets();
        let mapped: &[u8] = &Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped().octets();
        let max_block = MAX_HEADER_BYTES - V2_FIXED_BYTES;
        let table = [
            ("IPv4", v2_header(0x21, 0x11, v4, 12), Ok(complete("192.0.2.1"))),
            ("IPv4 with extensions", v2_header(0x21, 0x11, v4, 300), Ok(complete("192.0.2.1"))),
            ("IPv4, datagrams", v2_header(0x21, 0x12, v4, 12), Ok(complete("192.0.2.1"))),
            ("IPv6", v2_header(0x21, 0x21, v6, 36), Ok(complete("2001:db8::1"))),
            ("IPv4 in IPv6", v2_header(0x21, 0x21, mapped, 36), Ok(complete("192.0.2.1"))),
            ("a unix socket", v2_header(0x21, 0x31, b"/run/x", 216), Ok(complete(""))),
            ("unspecified", v2_header(0x21, 0x00, b"", 0), Ok(complete(""))),
            ("unspecified with a block", v2_header(0x21, 0x00, v4, 12), Ok(complete(""))),
            ("local", v2_header(0x20, 0x00, b"", 0), Ok(complete(""))),
            ("local with an address", v2_header(0x20, 0x11, v4, 12), Ok(complete(""))),
            ("local with any family", v2_header(0x20, 0xff, b"", 7), Ok(complete(""))),
            ("the longest", v2_header(0x21, 0x11, v4, max_block), Ok(complete("192.0.2.1"))),
            ("too long", v2_header(0x21, 0x11, v4, max_block + 1), Err(MalformedHeader)),
            ("the largest length", v2_header(0x20, 0x00, b"", 0xffff), Err(MalformedHeader)),
            ("version 1", v2_header(0x11, 0x11, v4, 12), Err(MalformedHeader)),
            ("version 3", v2_header(0x31, 0x11, v4, 12), Err(MalformedHeader)),
            ("an unknown command", v2_header(0x22, 0x11, v4, 12), Err(MalformedHeader)),
            ("an unknown family", v2_header(0x21, 0x41, v4, 12), Err(MalformedHeader)),
            ("an unknown protocol", v2_header(0x21, 0x13, v4, 12), Err(MalformedHeader)),
            ("IPv4 too short", v2_header(0x21, 0x11, v4, 11), Err(MalformedHeader)),
            ("IPv6 too short", v2_header(0x21, 0x21, v6, 35), Err(MalformedHeader)),
            ("unix too short", v2_header(0x21, 0x31, b"", 215), Err(MalformedHeader)),
            ("no addresses at all", v2_header(0x21, 0x11, b"", 0), Err(MalformedHeader)),
        ];
        for (name, header, expected) in table {
            assert_eq!(parse_all(&header), expected, "{name}");
        }
    }

    #[test]
    fn rejects_bytes_after_the_header() {
        assert_eq!(parse(b"PROXY UNKNOWN\r\nEHLO"), Err(MalformedHeader));
        assert_eq!(parse(b"PROXY UNKNOWN\r\nQUIT\r\n"), Err(MalformedHeader));
        let mut header = v2_header(0x20, 0, b"", 0);
        header.push(b'E');
        assert_eq!(parse(&header), Err(MalformedHeader));
    }

    #[test]
    fn line_is_read_in_few_steps() {
        let line = b"PROXY TCP4 192.168.200.201 192.168.200.202 56324 2500\r\n";
        let (mut read, mut reads) = (0, 0);
        while let Ok(Progress::NeedMore(more)) = parse(&line[..read]) {
            read += more;
            reads += 1;
        }
        assert_eq!(read, line.len());
        assert!(reads < 12, "{reads}");
    }
}
