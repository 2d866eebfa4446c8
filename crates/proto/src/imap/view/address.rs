//! Parsing of address lists (RFC 5322 section 3.4) for ENVELOPE: groups are kept, and names are not decoded. For display,
//! `restante_mail::mime::NamedAddress` parses them.

use memchr::memchr;
use restante_mail::mime::unfold;

/// The number of bytes of one field that are parsed.
const MAX_FIELD_BYTES: usize = 256 * 1024;
/// The maximum length of an address literal: `[192.0.2.1]`.
const MAX_LITERAL_BYTES: usize = 64;
/// The maximum length of an encoded word.
const MAX_ENCODED_WORD_BYTES: usize = 4096;
/// Stands for a missing local part or domain, as in Dovecot. NIL has other meanings there.
const MISSING_MAILBOX: &[u8] = b"MISSING_MAILBOX";
const MISSING_DOMAIN: &[u8] = b"MISSING_DOMAIN";

/// An address of ENVELOPE (RFC 3501 section 7.4.2).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::imap) struct EnvelopeAddress {
    /// The display name, without its quotes. Encoded words are not decoded.
    pub(in crate::imap) name: Option<Vec<u8>>,
    /// The source route.
    pub(in crate::imap) route: Option<Vec<u8>>,
    /// The local part, or the name of a group at its start. `None` at the end of a group.
    pub(in crate::imap) mailbox: Option<Vec<u8>>,
    /// The domain. `None` at the start and the end of a group.
    pub(in crate::imap) host: Option<Vec<u8>>,
}

/// Parses the first `limit` addresses of the value of a field. Every value is accepted. The time is linear.
pub(in crate::imap) fn parse_addresses(field: &[u8], limit: usize) -> Vec<EnvelopeAddress> {
    let value = unfold(&field[..field.len().min(MAX_FIELD_BYTES)]);
    let mut parser = Parser { rest: &value, are_quotes_closed: true, ..Parser::default() };
    while parser.found.len() < limit && parser.step() {}
    parser.end_item();
    let is_in_group = parser.is_in_group;
    let mut found = parser.found;
    found.truncate(limit);
    if is_in_group {
        found.push(EnvelopeAddress::default());
    }
    found
}

#[derive(Default)]
struct Parser<'a> {
    rest: &'a [u8],
    found: Vec<EnvelopeAddress>,
    item: Item,
    is_in_group: bool,
    /// Whether quotation marks and comments are closed. After the first that is not, they are ordinary characters.
    are_quotes_closed: bool,
}

/// The text since the last separator.
#[derive(Default)]
struct Item {
    /// The display name: the text without quotes.
    phrase: Vec<u8>,
    /// The text as it is written, in words. Blanks around `.` and `@` do not separate words.
    words: Vec<Vec<u8>>,
    has_blank: bool,
    comment: Vec<u8>,
    /// The address in angle brackets.
    angle: Option<EnvelopeAddress>,
}

impl Parser<'_> {
    /// Parses the next token. Returns false at the end.
    fn step(&mut self) -> bool {
        let Some(&first) = self.rest.first() else { return false };
        let len = match first {
            b' ' | b'\t' | b'\r' | b'\n' => {
                self.item.has_blank = true;
                1
            }
            b'"' if self.are_quotes_closed => match quoted_len(self.rest) {
                Some(len) => {
                    self.item.push(&self.rest[..len], &unquote(&self.rest[..len]));
                    len
                }
                None => self.ignore_quotes(),
            },
            b'(' if self.are_quotes_closed => match comment_len(self.rest) {
                Some(len) => {
                    self.item.comment = unescape(&self.rest[1..len - 1]);
                    self.item.has_blank = true;
                    len
                }
                None => self.ignore_quotes(),
            },
            b'<' => self.read_angle(),
            b'[' => match self.rest.iter().take(MAX_LITERAL_BYTES).position(|byte| b"],;<".contains(byte)) {
                Some(end) if self.rest[end] == b']' => self.push_plain(end + 1),
                _ => self.push_plain(1),
            },
            b',' => {
                self.end_item();
                1
            }
            b';' => {
                self.end_item();
                if std::mem::take(&mut self.is_in_group) {
                    self.found.push(EnvelopeAddress::default());
                }
                1
            }
            b':' if self.item.angle.is_none() && !self.item.words.is_empty() => {
                let item = std::mem::take(&mut self.item);
                if !self.is_in_group {
                    self.is_in_group = true;
                    self.found.push(EnvelopeAddress { mailbox: Some(item.phrase), ..EnvelopeAddress::default() });
                }
                1
            }
            b'>' => 1,
            _ => {
                let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"\"(<>[,;:@".contains(byte);
                let len = encoded_word_len(self.rest)
                    .unwrap_or_else(|| 1 + self.rest[1..].iter().position(is_end).unwrap_or(self.rest.len() - 1));
                self.push_plain(len)
            }
        };
        self.rest = &self.rest[len..];
        true
    }

    fn push_plain(&mut self, len: usize) -> usize {
        self.item.push(&self.rest[..len], &self.rest[..len]);
        len
    }

    fn ignore_quotes(&mut self) -> usize {
        self.are_quotes_closed = false;
        1
    }

    /// Parses an address in angle brackets. An unclosed one ends at the next separator. Returns its length.
    fn read_angle(&mut self) -> usize {
        let mut address = Vec::new();
        let mut pos = 1;
        while let Some(&byte) = self.rest.get(pos) {
            let rest = &self.rest[pos..];
            let len = match byte {
                b'<' if address.is_empty() => 1,
                b'<' | b'>' => break,
                b',' | b';' if !address.starts_with(b"@") => break,
                b'"' | b'(' if self.are_quotes_closed => {
                    let len = if byte == b'"' { quoted_len(rest) } else { comment_len(rest) };
                    if byte == b'"'
                        && let Some(len) = len
                    {
                        address.extend_from_slice(&rest[..len]);
                    }
                    len.unwrap_or_else(|| self.ignore_quotes())
                }
                _ if byte.is_ascii_whitespace() => 1,
                _ => {
                    address.push(byte);
                    1
                }
            };
            pos += len;
        }
        let (route, address) = match memchr(b':', &address) {
            Some(colon) if address.starts_with(b"@") => (Some(address[..colon].to_vec()), &address[colon + 1..]),
            _ => (None, &address[..]),
        };
        if self.item.angle.is_some() {
            // Two addresses without a comma between them.
            self.end_item();
        }
        self.item.angle = Some(EnvelopeAddress { route, ..split_address(address) });
        pos + usize::from(self.rest.get(pos) == Some(&b'>'))
    }

    /// Adds the address of the item to the list.
    fn end_item(&mut self) {
        let Item { phrase, mut words, comment, angle, .. } = std::mem::take(&mut self.item);
        let non_empty = |text: Vec<u8>| (!text.is_empty()).then_some(text);
        if let Some(address) = angle {
            let is_null =
                address.mailbox.as_deref() == Some(MISSING_MAILBOX) && address.host.as_deref() == Some(MISSING_DOMAIN);
            let name = non_empty(phrase);
            // `<>` is no address.
            if !is_null || name.is_some() {
                self.found.push(EnvelopeAddress { name: name.or(non_empty(comment)), ..address });
            }
            return;
        }
        let with_at = words.iter().position(|word| unquoted_at(word).is_some());
        let address = match with_at {
            Some(index) => Some(words.remove(index)),
            None if words.len() == 1 => words.pop(),
            None => None,
        };
        match address {
            Some(address) => {
                let name = non_empty(comment).or_else(|| non_empty(words.join(&b' ')));
                self.found.push(EnvelopeAddress { name, ..split_address(&address) });
            }
            None if !phrase.is_empty() => {
                self.found.push(EnvelopeAddress { name: Some(phrase), ..split_address(b"") });
            }
            None => {}
        }
    }
}

impl Item {
    /// Appends a token: as it is written, and without quotes.
    fn push(&mut self, raw: &[u8], text: &[u8]) {
        let had_blank = std::mem::take(&mut self.has_blank);
        if had_blank && !self.phrase.is_empty() {
            self.phrase.push(b' ');
        }
        self.phrase.extend_from_slice(text);
        let is_glue = |byte: Option<&u8>| matches!(byte, Some(b'.' | b'@'));
        match self.words.last_mut() {
            Some(word) if !had_blank || is_glue(word.last()) || is_glue(raw.first()) => word.extend_from_slice(raw),
            _ => self.words.push(raw.to_vec()),
        }
    }
}

/// Splits an address into its local part, without quotes, and its domain.
fn split_address(address: &[u8]) -> EnvelopeAddress {
    let (local, domain) = match unquoted_at(address) {
        Some(at) => (&address[..at], &address[at + 1..]),
        None => (address, &b""[..]),
    };
    let local = if quoted_len(local) == Some(local.len()) { unquote(local) } else { local.to_vec() };
    let or_missing = |text: Vec<u8>, missing: &[u8]| if text.is_empty() { missing.to_vec() } else { text };
    EnvelopeAddress {
        mailbox: Some(or_missing(local, MISSING_MAILBOX)),
        host: Some(or_missing(domain.to_vec(), MISSING_DOMAIN)),
        ..EnvelopeAddress::default()
    }
}

/// Returns the position of the last `@` that is not in a quoted string at the end.
fn unquoted_at(address: &[u8]) -> Option<usize> {
    memchr::memrchr(b'@', address).filter(|at| !address[*at..].contains(&b'"'))
}

/// Returns the length of the quoted string at the start. Returns `None` if there is none or it is not closed.
fn quoted_len(text: &[u8]) -> Option<usize> {
    let mut pos = 1;
    text.strip_prefix(b"\"")?;
    loop {
        match text.get(pos)? {
            b'"' => return Some(pos + 1),
            b'\\' => pos += 2,
            _ => pos += 1,
        }
    }
}

/// Returns the length of the comment at the start, with the comments in it. Returns `None` if it is not closed.
fn comment_len(text: &[u8]) -> Option<usize> {
    let (mut pos, mut depth) = (0, 0_usize);
    loop {
        match text.get(pos)? {
            b'(' => depth += 1,
            b')' if depth == 1 => return Some(pos + 1),
            b')' => depth -= 1,
            b'\\' => pos += 1,
            _ => {}
        }
        pos += 1;
    }
}

/// Returns the length of the encoded word (RFC 2047) at the start. Special characters in it are part of it.
fn encoded_word_len(text: &[u8]) -> Option<usize> {
    let mut marks =
        text.strip_prefix(b"=?")?.iter().enumerate().take(MAX_ENCODED_WORD_BYTES).filter(|(_, byte)| **byte == b'?');
    let (end, _) = marks.nth(2)?;
    let len = end + 4;
    (text.get(len - 1) == Some(&b'=') && !text[..len].iter().any(u8::is_ascii_whitespace)).then_some(len)
}

/// Removes the quotation marks of a quoted string, and its backslashes.
fn unquote(quoted: &[u8]) -> Vec<u8> {
    unescape(&quoted[1..quoted.len() - 1])
}

fn unescape(text: &[u8]) -> Vec<u8> {
    let mut is_escaped = false;
    let keep = |byte: &&u8| {
        is_escaped = **byte == b'\\' && !is_escaped;
        !is_escaped
    };
    text.iter().filter(keep).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Formats the addresses as `name|route|mailbox|host`.
    fn parse(value: &str) -> Vec<String> {
        let text = |part: &Option<Vec<u8>>| {
            part.as_deref().map_or("-".to_owned(), |text| String::from_utf8_lossy(text).into_owned())
        };
        let format = |address: &EnvelopeAddress| {
            [&address.name, &address.route, &address.mailbox, &address.host]
                .map(text)
                .join("|")
                .replace("MISSING_", "?")
        };
        parse_addresses(value.as_bytes(), 1000).iter().map(format).collect()
    }

    #[test]
    fn parses_addresses() {
        let table: &[(&str, &[&str])] = &[
            ("", &[]),
            ("Jane Doe <jane@example.org>", &["Jane Doe|-|jane|example.org"]),
            ("a@x, \"B, C\" <b@y> (c1), d@z (Dee)", &["-|-|a|x", "B, C|-|b|y", "Dee|-|d|z"]),
            ("abel", &["-|-|abel|?DOMAIN"]),
            ("undisclosed-recipients:;", &["-|-|undisclosed-recipients|-", "-|-|-|-"]),
            ("Friends: a@x, Bob <b@y>;, c@z", &["-|-|Friends|-", "-|-|a|x", "Bob|-|b|y", "-|-|-|-", "-|-|c|z"]),
            ("A: B: a@x;;, c@y", &["-|-|A|-", "-|-|a|x", "-|-|-|-", "-|-|c|y"]),
            ("Unclosed: a@x", &["-|-|Unclosed|-", "-|-|a|x", "-|-|-|-"]),
            (r#""q \" b\\ s" <x@y>"#, &[r#"q " b\ s|-|x|y"#]),
            ("<@r1,@r2:x@y>", &["-|@r1,@r2|x|y"]),
            ("Jane Doe", &["Jane Doe|-|?MAILBOX|?DOMAIN"]),
            ("<>, , ;", &[]),
            ("jane . doe @ example . org", &["-|-|jane.doe|example.org"]),
            (r#"<j o@x>, "j o"@x, <"j o"@x>"#, &["-|-|jo|x", "-|-|j o|x", "-|-|j o|x"]),
            ("@x, a@, <a@>", &["-|-|?MAILBOX|x", "-|-|a|?DOMAIN", "-|-|a|?DOMAIN"]),
            ("Doe, Jane <j@x>", &["-|-|Doe|?DOMAIN", "Jane|-|j|x"]),
            ("Jane <j@x, Bob <b@y>", &["Jane|-|j|x", "Bob|-|b|y"]),
            ("a@[1.2.3.4], a@[IPv6:::1]", &["-|-|a|[1.2.3.4]", "-|-|a|[IPv6:::1]"]),
            ("<j@x> Jane", &["Jane|-|j|x"]),
            ("j@x Jane", &["Jane|-|j|x"]),
            ("=?utf-8?Q?Doe,_J?= <j@x>", &["=?utf-8?Q?Doe,_J?=|-|j|x"]),
            ("J. R. <j@x>, a@x; b@y", &["J. R.|-|j|x", "-|-|a|x", "-|-|b|y"]),
            ("Jane (the (real) one) Doe <j(x)@y>", &["Jane Doe|-|j|y"]),
            ("\"never closed <j@x>", &["never closed|-|j|x"]),
            ("(never closed <j@x>", &["never closed|-|j|x"]),
            ("<<j@x>>", &["-|-|j|x"]),
            ("Jörg <j@x>", &["Jörg|-|j|x"]),
            ("a@x b@y", &["b@y|-|a|x"]),
        ];
        for (value, expected) in table {
            assert_eq!(parse(value), *expected, "{value}");
        }
    }

    #[test]
    fn time_is_linear() {
        for unit in ["<\"", "(", "\"", "=?", "<@", "[", "\"\\", "=?a?q?b", "<("] {
            assert!(
                parse_addresses(unit.repeat(MAX_FIELD_BYTES / unit.len()).as_bytes(), 1000).len() <= 1001,
                "{unit}"
            );
        }
    }
}
