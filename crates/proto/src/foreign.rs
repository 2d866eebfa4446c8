//! Recognizes clients of other protocols by the start of a line. A web page can make a browser connect to a mail port
//! and send any text after the request line, so the session must end before that text is parsed as commands.

/// Input that ends a session at once, because no mail client sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForeignInput {
    /// An HTTP request.
    Http,
    /// A TLS handshake on a connection without TLS.
    Tls,
    /// A line above the limit before the client has sent its greeting or logged in. It may be an HTTP request.
    LongLine,
}

impl ForeignInput {
    /// Returns the text that a transcript shows instead of the line.
    pub(crate) fn transcript_text(self) -> &'static str {
        match self {
            Self::Http => "(HTTP request)",
            Self::Tls => "(TLS handshake)",
            Self::LongLine => "(line too long)",
        }
    }
}

/// The methods of RFC 9110 and RFC 5789, and the start of the HTTP/2 connection preface (RFC 9113 section 3.4).
const HTTP_METHODS: [&[u8]; 10] =
    [b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"CONNECT ", b"OPTIONS ", b"TRACE ", b"PATCH ", b"PRI "];
/// The header of every HTTP/1.1 request, also of one with an unusual method.
const HOST_HEADER: &[u8] = b"Host:";
/// The record type of a handshake, and the first byte of its version (RFC 8446 section 5.1).
const TLS_HANDSHAKE: [u8; 2] = [22, 3];

/// Returns the other protocol that a line belongs to, if any. The start of the line is enough, so a request line above
/// the line limit is recognized too. No command of SMTP, LMTP or POP3 starts like this.
pub(crate) fn detect(line: &[u8]) -> Option<ForeignInput> {
    is_http(line).then_some(ForeignInput::Http)
}

/// Like [`detect`], for a client that has not sent its greeting or logged in. It also recognizes a TLS handshake, whose
/// session ticket may contain line ends and commands.
pub(crate) fn detect_before_greeting(line: &[u8]) -> Option<ForeignInput> {
    if line.starts_with(&TLS_HANDSHAKE) { Some(ForeignInput::Tls) } else { detect(line) }
}

fn is_http(line: &[u8]) -> bool {
    let may_match = matches!(line.first(), Some(b'c'..=b'h' | b'o' | b'p' | b't' | b'C'..=b'H' | b'O' | b'P' | b'T'));
    may_match && HTTP_METHODS.into_iter().chain([HOST_HEADER]).any(|start| starts_with(line, start))
}

fn starts_with(line: &[u8], start: &[u8]) -> bool {
    line.get(..start.len()).is_some_and(|actual| actual.eq_ignore_ascii_case(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_the_protocol_by_the_start_of_a_line() {
        let table: &[(&[u8], Option<ForeignInput>)] = &[
            (b"GET / HTTP/1.1", Some(ForeignInput::Http)),
            (b"POST /", Some(ForeignInput::Http)),
            (b"post ", Some(ForeignInput::Http)),
            (b"HEAD /", Some(ForeignInput::Http)),
            (b"PUT /", Some(ForeignInput::Http)),
            (b"DELETE /", Some(ForeignInput::Http)),
            (b"CONNECT mx.test:25 HTTP/1.1", Some(ForeignInput::Http)),
            (b"OPTIONS * HTTP/1.1", Some(ForeignInput::Http)),
            (b"TRACE /", Some(ForeignInput::Http)),
            (b"PATCH /", Some(ForeignInput::Http)),
            (b"PRI * HTTP/2.0", Some(ForeignInput::Http)),
            (b"host:mx.test", Some(ForeignInput::Http)),
            (b"\x16\x03\x01\x02\x00", Some(ForeignInput::Tls)),
            (b"\x16\x02", None),
            (b"\0", None),
            (b"GET", None),
            (b"GETS x", None),
            (b"HELO x", None),
            (b"HELP", None),
            (b"DATA", None),
            (b"DELE 1", None),
            (b"TOP 1 0", None),
            (b"PASS GET / HTTP/1.1", None),
            (b"Host", None),
            (b" GET /", None),
            (b"\t", None),
            (b"\r\n", None),
            (b"\xff\xfe", None),
            (b"", None),
        ];
        for (line, expected) in table {
            let in_session = expected.filter(|protocol| *protocol == ForeignInput::Http);
            assert_eq!(detect(line), in_session, "{}", String::from_utf8_lossy(line));
            assert_eq!(detect_before_greeting(line), *expected, "{}", String::from_utf8_lossy(line));
        }
    }
}
