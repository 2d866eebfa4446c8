//! Modified UTF-7 (RFC 3501 section 5.1.3), in which the names of mailboxes are sent.

use base64::Engine as _;
use base64::alphabet::IMAP_MUTF7;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};

const BASE64: GeneralPurpose = GeneralPurpose::new(&IMAP_MUTF7, NO_PAD);

/// Encodes a name.
pub(super) fn encode(name: &str) -> String {
    encode_except(name, |c| matches!(c, ' '..='~'))
}

/// Encodes a text, except for the characters that are `direct`. `&` is always encoded.
pub(super) fn encode_except(text: &str, is_direct: impl Fn(char) -> bool) -> String {
    let is_direct = |c: char| c != '&' && is_direct(c);
    let mut encoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| is_direct(c) != is_direct(first)).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        rest = after;
        if is_direct(first) {
            encoded.push_str(run);
            continue;
        }
        // Several `&` in a row are written one by one, as most clients do.
        if run.bytes().all(|byte| byte == b'&') {
            encoded.extend(run.chars().map(|_| "&-"));
            continue;
        }
        let units: Vec<u8> = run.encode_utf16().flat_map(u16::to_be_bytes).collect();
        encoded.push('&');
        BASE64.encode_string(units, &mut encoded);
        encoded.push('-');
    }
    encoded
}

/// Decodes a name. Returns `None` if it is not valid modified UTF-7.
pub(super) fn decode(text: &str) -> Option<String> {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, shifted)) = rest.split_once('&') {
        let (run, after) = shifted.split_once('-')?;
        decoded.push_str(before);
        rest = after;
        if run.is_empty() {
            decoded.push('&');
            continue;
        }
        let bytes = BASE64.decode(run).ok()?;
        let (units, []) = bytes.as_chunks::<2>() else { return None };
        for c in char::decode_utf16(units.iter().map(|unit| u16::from_be_bytes(*unit))) {
            decoded.push(c.ok()?);
        }
    }
    decoded.push_str(rest);
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn encodes_and_decodes_names() {
        let table = [
            ("", ""),
            ("INBOX", "INBOX"),
            ("~peter/mail/台北/日本語", "~peter/mail/&U,BTFw-/&ZeVnLIqe-"),
            ("Entwürfe", "Entw&APw-rfe"),
            ("R&D", "R&-D"),
            ("&&", "&-&-"),
            ("ä&ö", "&AOQAJgD2-"),
            ("😀", "&2D3eAA-"),
            ("a\tb", "a&AAk-b"),
        ];
        for (name, encoded) in table {
            assert_eq!(encode(name), encoded);
            assert_eq!(decode(encoded).as_deref(), Some(name));
        }
    }

    #[test]
    fn decodes_only_valid_names() {
        let table = [
            ("&", None),
            ("R&D", None),
            ("R&D-x", None),
            ("&A-", None),
            ("&AA-", None),
            ("&AOQ=-", None),
            ("&AOR-", None),
            ("&2D0-", None),
            ("&3gDYPQ-", None),
            ("&U/BTFw-", None),
            ("&AGE-", Some("a")),
            ("&-&-", Some("&&")),
        ];
        for (encoded, name) in table {
            assert_eq!(decode(encoded).as_deref(), name, "{encoded}");
        }
    }

    proptest! {
        #[test]
        fn decoding_restores_names(name in any::<String>()) {
            let encoded = encode(&name);
            prop_assert!(encoded.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            prop_assert_eq!(decode(&encoded), Some(name));
        }
    }
}
