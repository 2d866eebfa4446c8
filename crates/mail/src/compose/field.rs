//! One header field: folded where it is long (RFC 5322 section 2.2.3), with what is not ASCII in encoded words (RFC 2047).

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::DraftError;

/// How long a line becomes: RFC 2047 section 2 allows no more where there are encoded words.
const MAX_LINE_CHARS: usize = 76;
/// The longest encoded word (RFC 2047 section 2), and what it has beside its text.
const MAX_ENCODED_WORD_CHARS: usize = 75;
const ENCODED_WORD_OVERHEAD: usize = "=?utf-8?Q??=".len();
/// The longest word that stands as it is; it could not be folded, and a line ends at 998 (RFC 5322 section 2.1.1).
const MAX_PLAIN_WORD_BYTES: usize = 990;

/// A field that is being written.
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

    /// Appends something that is not taken apart, after a blank, on the next line where this one is full.
    pub(super) fn push_token(&mut self, token: &str) {
        if self.column > 0 && self.column + 1 + token.len() > MAX_LINE_CHARS {
            self.end_line();
            self.column = 0;
        }
        self.out.push(b' ');
        self.out.extend_from_slice(token.as_bytes());
        self.column += 1 + token.len();
    }

    /// Appends text. Only the words that need it are encoded, so that addresses and keywords in it stay what they are.
    pub(super) fn push_text(&mut self, text: &str) {
        let text = text.trim();
        // Where a line is folded, readers may see one blank, however many there were.
        if text.contains("  ") {
            return self.push_encoded(text);
        }
        let words: Vec<&str> = text.split(' ').collect();
        // Blanks between two encoded words are not part of the text, so words that follow each other are encoded as one.
        for run in words.chunk_by(|word, next| !is_plain_word(word) && !is_plain_word(next)) {
            match run {
                [word] if is_plain_word(word) => self.push_token(word),
                run => self.push_encoded(&run.join(" ")),
            }
        }
    }

    /// Appends text in encoded words, in the one of both encodings that is shorter.
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

/// Whether the text can stand in a header field: it has no line break, and no other character that steers something.
pub(super) fn check_line(field: &str, text: &str) -> Result<(), DraftError> {
    if text.contains(char::is_control) {
        return Err(DraftError::new(field, "has a line break or another control character"));
    }
    Ok(())
}

/// One character in the Q encoding; none is cut in two (RFC 2047 section 5).
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

/// What stands for itself wherever an encoded word may stand (RFC 2047 section 5, rule 3).
fn is_q_safe(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!*+-/".contains(&byte)
}

fn is_plain_word(word: &str) -> bool {
    word.len() <= MAX_PLAIN_WORD_BYTES && word.bytes().all(|byte| byte.is_ascii_graphic()) && !word.contains("=?")
}
