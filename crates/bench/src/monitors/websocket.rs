//! The client side of WebSocket (RFC 6455), as far as monitors need it: the handshake, the frames of a server, which
//! are not masked, and the reply to a ping. Does no I/O.

use crate::error::Error;
use crate::http::Head;

/// The close code "Try Again Later" (IANA registry), which the server sends to monitors that lag.
const TRY_AGAIN_LATER: u16 = 1013;
/// The maximum length of a frame. A summary is a few hundred bytes.
pub(super) const MAX_FRAME_BYTES: usize = 1 << 20;
/// RFC 6455 section 5.3 requires a new key for each frame, so that scripts in browsers cannot choose the bytes that
/// intermediaries see. That does not apply here.
const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// The header lines of a WebSocket request. The key is the example of RFC 6455 section 1.3, so that the correct
/// response is known without computing SHA-1.
pub(super) const REQUEST_FIELDS: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                                         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

const ACCEPTED: &[u8] = b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// Returns whether the response accepts our key.
pub(super) fn is_accepted(head: &Head) -> bool {
    head.websocket_accept.as_deref() == Some(ACCEPTED)
}

/// A frame of the server.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame<'a> {
    /// One message.
    Text(&'a [u8]),
    /// Must be answered with a pong of the same content.
    Ping(&'a [u8]),
    /// The server closes the connection because the monitor lagged.
    TryAgainLater,
    /// The server closes the connection for another reason.
    Closed,
    /// A pong or a binary frame.
    Other,
}

/// Parses the first frame and returns its length. Returns `None` if it is incomplete (RFC 6455 section 5.2).
pub(super) fn parse_frame(bytes: &[u8]) -> Result<Option<(Frame<'_>, usize)>, Error> {
    let [first, second, rest @ ..] = bytes else { return Ok(None) };
    if second & 0x80 != 0 {
        return Err(Error::Protocol("masked frame"));
    }
    // 126 and 127 mean that the length follows in two or eight bytes.
    let (length, head) = match second {
        127 => (rest.first_chunk().map(|bytes| u64::from_be_bytes(*bytes)), 10),
        126 => (rest.first_chunk().map(|bytes| u64::from(u16::from_be_bytes(*bytes))), 4),
        short => (Some(u64::from(*short)), 2),
    };
    let Some(length) = length else { return Ok(None) };
    let length = usize::try_from(length).ok().filter(|&length| length <= MAX_FRAME_BYTES);
    let end = head + length.ok_or(Error::Protocol("frame too large"))?;
    let Some(payload) = bytes.get(head..end) else { return Ok(None) };
    // The first bit marks the last frame of a message; the next three belong to extensions.
    let frame = match first {
        0x81 => Frame::Text(payload),
        0x88 => match payload {
            &[a, b, ..] if u16::from_be_bytes([a, b]) == TRY_AGAIN_LATER => Frame::TryAgainLater,
            _ => Frame::Closed,
        },
        0x89 => Frame::Ping(payload),
        0x82 | 0x8a => Frame::Other,
        _ => return Err(Error::Protocol("fragmented frame or unknown frame type")),
    };
    Ok(Some((frame, end)))
}

/// Returns the reply to a ping. Clients must mask their frames.
pub(super) fn pong(ping: &[u8]) -> Vec<u8> {
    // RFC 6455 section 5.5: a control frame has at most 125 bytes.
    let ping = &ping[..ping.len().min(125)];
    let mut frame = vec![0x8a, 0x80 | u8::try_from(ping.len()).unwrap_or(0)];
    frame.extend_from_slice(&MASK);
    frame.extend(ping.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_frames() {
        let long = [&[0x81, 126, 1, 0][..], &[b'x'; 256]].concat();
        let longer = [&[0x81, 127, 0, 0, 0, 0, 0, 0, 1, 0][..], &[b'y'; 256]].concat();
        let cases = [
            (&b"\x81\x05hello\x81"[..], Frame::Text(b"hello"), 7),
            (b"\x81\x00", Frame::Text(b""), 2),
            (&long, Frame::Text(&[b'x'; 256]), 260),
            (&longer, Frame::Text(&[b'y'; 256]), 266),
            (b"\x89\x02hi", Frame::Ping(b"hi"), 4),
            (b"\x88\x05\x03\xf5lag", Frame::TryAgainLater, 7),
            (b"\x88\x02\x03\xe8", Frame::Closed, 4),
            (b"\x88\x00", Frame::Closed, 2),
            (b"\x8a\x00", Frame::Other, 2),
        ];
        for (bytes, expected, length) in cases {
            assert_eq!(parse_frame(bytes).expect("a frame"), Some((expected, length)));
            for end in 0..length {
                assert_eq!(parse_frame(&bytes[..end]).expect("the beginning of one"), None, "{end} of {length}");
            }
        }
    }

    #[test]
    fn rejects_invalid_frames() {
        let cases: [&[u8]; 4] = [b"\x81\x85", b"\x01\x05hello", b"\xc1\x05hello", b"\x81\x7f\xff\0\0\0\0\0\0\0"];
        for bytes in cases {
            assert!(parse_frame(bytes).is_err(), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn pong_contains_the_masked_ping() {
        let masked = pong(b"hello");
        assert_eq!(masked[..2], [0x8a, 0x85]);
        let unmasked: Vec<u8> = masked[6..].iter().zip(masked[2..6].iter().cycle()).map(|(a, b)| a ^ b).collect();
        assert_eq!(unmasked, b"hello");
    }

    #[test]
    fn accepts_only_the_response_to_our_key() {
        let is_accepted = |field: &str| {
            let response = format!("HTTP/1.1 101 Switching Protocols\r\n{field}\r\n\r\n");
            let (head, _) = Head::parse(response.as_bytes()).expect("a valid head").expect("a complete head");
            is_accepted(&head)
        };
        assert!(is_accepted("sec-websocket-accept:  s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        assert!(!is_accepted("Sec-WebSocket-Accept: dGhlIHNhbXBsZSBub25jZQ=="));
        assert!(!is_accepted("Upgrade: websocket"));
    }
}
