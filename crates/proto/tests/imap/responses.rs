//! Checks that the crate `imap-codec` parses the responses of the session, except for extensions that it does not have.

use imap_codec::decode::Decoder as _;
use imap_codec::{GreetingCodec, ResponseCodec};

/// Checks all replies of a session, which start with the greeting.
pub(crate) fn check_responses(case: &str, replies: &[u8]) {
    let mut responses = split_responses(replies).into_iter();
    let greeting = responses.next().expect(case);
    let (rest, _) = GreetingCodec::default().decode(greeting).expect(case);
    assert!(rest.is_empty(), "{case}");
    for response in responses {
        let text = String::from_utf8_lossy(response);
        let result = ResponseCodec::default().decode(response);
        let is_valid = result.as_ref().is_ok_and(|(rest, _)| rest.is_empty());
        match unsupported(&text) {
            None => assert!(is_valid, "{case}: imap-codec cannot parse {text:?}: {result:?}"),
            Some(extension) => assert!(!is_valid, "{case}: imap-codec parses {extension}: {text:?}"),
        }
    }
}

/// Splits replies into responses: lines with the literals in them.
pub(crate) fn split_responses(replies: &[u8]) -> Vec<&[u8]> {
    let mut responses = Vec::new();
    let (mut start, mut position) = (0, 0);
    while position < replies.len() {
        let length = replies[position..].windows(2).position(|pair| pair == b"\r\n").expect("a line end");
        let line = &replies[position..position + length];
        position += length + 2;
        if let Some(length) = literal_length(line) {
            position += length;
        } else {
            responses.push(&replies[start..position]);
            start = position;
        }
    }
    responses
}

fn literal_length(line: &[u8]) -> Option<usize> {
    let line = std::str::from_utf8(line.get(line.len().saturating_sub(20)..)?).ok()?;
    line.strip_suffix('}')?.rsplit_once('{')?.1.parse().ok()
}

/// Returns what a response contains that `imap-codec` does not have.
fn unsupported(response: &str) -> Option<&'static str> {
    let has = |text| response.contains(text);
    let table = [
        (has("* ESEARCH "), "ESEARCH (RFC 4731)"),
        (has("(\"CHILDINFO\" "), "CHILDINFO (RFC 5258)"),
        (has(" APPENDLIMIT "), "STATUS APPENDLIMIT (RFC 7889)"),
        (has("(MAILBOXID ("), "STATUS MAILBOXID (RFC 8474)"),
        (has("EMAILID ("), "EMAILID (RFC 8474)"),
        (has("THREADID NIL"), "THREADID (RFC 8474)"),
        (has("(PREVIEW "), "PREVIEW (RFC 8970)"),
        (has("(BINARY[") && has("]<"), "partial BINARY (RFC 3516)"),
        // Messages are sent as they are stored, also in BODY[].
        (has("\0") && !has("~{"), "NUL in a literal"),
    ];
    table.into_iter().find(|(is_contained, _)| *is_contained).map(|(_, name)| name)
}
