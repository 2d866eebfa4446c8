//! Writing of header fields. Long lines are folded (RFC 5322 section 2.2.3), and words outside of ASCII are encoded
//! (RFC 2047).

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::DraftError;

/// The maximum length of a line. RFC 2047 section 2 allows no more in a field with encoded words.
const MAX_LINE_CHARS: usize = 76;
/// The maximum length of an encoded word (RFC 2047 section 2).
const MAX_ENCODED_WORD_CHARS: usize = 75;
/// The length of an encoded word without its text.
const ENCODED_WORD_OVERHEAD: usize = "=?utf-8?Q??=".len();
/// The maximum length of a word that is written unencoded. It cannot be folded, and a line has at most 998 bytes (RFC
/// 5322 section 2.1.1).
const MAX_PLAIN_WORD_BYTES: usize = 990;

/// A header field that is being written.
pub(super) struct FieldWriter<'a> {
    out: &'a mut Vec<u8>,
    column: usize,
}

impl<'a> FieldWriter<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>, name: &str) -> Self {
        out.extend_from_slice(name.as_bytes());
        out.push(b':');
        Self { column: name.len() + 1, out }
    }

    /// Writes a space and a token, which is never split. Starts a new line first if the token does not fit.
    pub(super) fn push_token(&mut self, token: &str) {
        if self.column > 0 && self.column + 1 + token.len() > MAX_LINE_CHARS {
            self.end_line();
            self.column = 0;
        }
        self.out.push(b' ');
        self.out.extend_from_slice(token.as_bytes());
        self.column += 1 + token.len();
    }

    /// Writes text. Only words that need it are encoded, so that addresses and keywords stay readable.
    pub(super) fn push_text(&mut self, text: &str) {
        let text = text.trim();
        // Readers may collapse several spaces to one where a line is folded.
        if text.contains("  ") {
            return self.push_encoded(text);
        }
        let words: Vec<&str> = text.split(' ').collect();
        // Spaces between two encoded words are not part of the text (RFC 2047 section 6.2). So adjacent words that need
        // it are encoded together.
        for run in words.chunk_by(|word, next| !is_plain_word(word) && !is_plain_word(next)) {
            match run {
                [word] if is_plain_word(word) => self.push_token(word),
                run => self.push_encoded(&run.join(" ")),
            }
        }
    }

    /// Writes text as encoded words, in the shorter one of the two encodings.
    pub(super) fn push_encoded(&mut self, text: &str) {
        let escapes = text.bytes().filter(|&byte| byte != b' ' && !is_q_safe(byte)).count();
        if escapes * 6 > text.len() { self.push_b_encoded(text) } else { self.push_q_encoded(text) }
    }

    pub(super) fn end_line(&mut self) {
        self.out.extend_from_slice(b"\r\n");
    }

    fn push_b_encoded(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let (head, tail) =
                rest.split_at(rest.floor_char_boundary((MAX_ENCODED_WORD_CHARS - ENCODED_WORD_OVERHEAD) / 4 * 3));
            self.push_token(&format!("=?utf-8?B?{}?=", STANDARD.encode(head)));
            rest = tail;
        }
    }

    fn push_q_encoded(&mut self, text: &str) {
        let mut word = String::with_capacity(MAX_ENCODED_WORD_CHARS);
        for c in text.chars() {
            let encoded = q_encode_char(c);
            if word.len() + encoded.len() > MAX_ENCODED_WORD_CHARS - ENCODED_WORD_OVERHEAD {
                self.push_token(&format!("=?utf-8?Q?{word}?="));
                word.clear();
            }
            word.push_str(&encoded);
        }
        self.push_token(&format!("=?utf-8?Q?{word}?="));
    }
}

/// Fails if the text contains a line break or another control character.
pub(super) fn check_line(field: &str, text: &str) -> Result<(), DraftError> {
    if text.contains(char::is_control) {
        return Err(DraftError::new(field, "has a line break or another control character"));
    }
    Ok(())
}

/// Encodes one character in the Q encoding. An encoded word never contains a part of a character (RFC 2047 section 5).
fn q_encode_char(c: char) -> String {
    if c == ' ' {
        return "_".to_owned();
    }
    if u8::try_from(c).is_ok_and(is_q_safe) {
        return c.to_string();
    }
    c.encode_utf8(&mut [0; 4]).bytes().fold(String::new(), |mut escaped, byte| {
        // Writing to a string cannot fail.
        let _ = write!(escaped, "={byte:02X}");
        escaped
    })
}

/// Returns whether the byte needs no escape in any encoded word (RFC 2047 section 5, rule 3).
fn is_q_safe(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!*+-/".contains(&byte)
}

fn is_plain_word(word: &str) -> bool {
    word.len() <= MAX_PLAIN_WORD_BYTES && word.bytes().all(|byte| byte.is_ascii_graphic()) && !word.contains("=?")
}
