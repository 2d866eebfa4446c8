//! Parsing of address lists in header fields (RFC 5322 section 3.4), for display. Delivery does not use this: envelope
//! addresses have a strict parser in [`crate::address`].

use crate::address::is_dot_string;

use super::charset::{decode_unlabelled, one_line};
use super::encoded_words::{self, EncodedWord};
use super::header::unfold;

/// The number of bytes of one field that are parsed: a thousand addresses with long names.
pub(super) const MAX_FIELD_BYTES: usize = 256 * 1024;
/// The maximum number of bytes of a field that are parsed again because of an unclosed bracket.
const MAX_REREAD_BYTES: usize = 64 * 1024;
/// The maximum length of a displayed name, and of a displayed address, in bytes. This is twice the length of an address
/// that RFC 5321 section 4.5.3.1 allows.
const MAX_DISPLAY_BYTES: usize = 512;

/// A display name and an address. RFC 5322 calls this a mailbox.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedAddress {
    /// The display name, decoded and without quotes. Empty if there is none.
    pub name: String,
    /// The address as it is written, without quotes that are not needed.
    pub address: String,
}

impl NamedAddress {
    /// Creates a named address. Both texts are put on one line.
    pub fn new(name: &str, address: &str) -> Self {
        Self { name: one_line(name), address: one_line(address) }
    }

    /// Parses the first `limit` addresses of a list, such as the value of a To field. Groups are flattened. Text that is
    /// not an address is omitted, and so is an address that is truncated by the length limit.
    pub fn parse_list(field: &[u8], limit: usize) -> Vec<Self> {
        AddressList::parse(field, limit, LocalNames::Omit).addresses
    }

    /// Parses the first `limit` addresses of a list of recipients. Unlike [`NamedAddress::parse_list`], keeps names without a
    /// domain beside other addresses: `ann, bob, carol@example.org`. Hosts deliver mail to such names themselves.
    pub fn parse_recipients(field: &[u8], limit: usize) -> Vec<Self> {
        AddressList::parse_recipients(field, limit).addresses
    }

    /// Parses the output of [`NamedAddress::display`]. A text of another form is an address.
    pub fn from_display(text: &str) -> Self {
        let parts = text.strip_suffix('>').and_then(|text| match text.rfind(" <") {
            Some(at) => Some((&text[..at], &text[at + 2..])),
            None => text.strip_prefix('<').map(|address| ("", address)),
        });
        let (name, address) = parts.unwrap_or(("", text));
        Self { name: name.to_owned(), address: address.to_owned() }
    }

    /// Formats the address as `Display Name <addr>` or `<addr>`.
    pub fn display(&self) -> String {
        let name = &self.name[..self.name.floor_char_boundary(MAX_DISPLAY_BYTES)];
        let address = &self.address[..self.address.floor_char_boundary(MAX_DISPLAY_BYTES)];
        // This is several times faster than a formatter, and every message needs it.
        if name.is_empty() { ["<", address, ">"].concat() } else { [name, " <", address, ">"].concat() }
    }

    /// Returns whether [`NamedAddress::display`] truncates the name or the address.
    pub(super) fn is_display_truncated(&self) -> bool {
        self.name.len().max(self.address.len()) > MAX_DISPLAY_BYTES
    }
}

/// A parsed address list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct AddressList {
    pub(super) addresses: Vec<NamedAddress>,
    /// Whether the list is explicitly empty: `undisclosed-recipients:;`.
    pub(super) is_empty_group: bool,
}

/// The treatment of names without a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LocalNames {
    Keep,
    Omit,
}

impl AddressList {
    /// Parses the first `limit` recipients of a field's value. See [`NamedAddress::parse_recipients`].
    pub(super) fn parse_recipients(field: &[u8], limit: usize) -> Self {
        Self::parse(field, limit, LocalNames::Keep)
    }

    /// Parses the first `limit` addresses of a field's value.
    fn parse(field: &[u8], limit: usize, local_names: LocalNames) -> Self {
        let is_truncated = field.len() > MAX_FIELD_BYTES;
        let value = unfold(&field[..field.len().min(MAX_FIELD_BYTES)]);
        let mut reader = ListReader {
            found: Vec::new(),
            item: ListItem::default(),
            limit,
            local_names,
            is_quoting_enabled: true,
            reread_bytes: 0,
            has_group: false,
            has_non_address: false,
        };
        let mut pos = 0;
        while pos < value.len() && reader.found.len() < limit {
            match reader.step(&value[pos..], is_truncated) {
                Some(used) => pos += used,
                None => break,
            }
        }
        if reader.found.len() < limit && !is_truncated {
            reader.end_item(false);
        }
        reader.found.truncate(limit);
        let is_empty_group = reader.has_group && !reader.has_non_address && reader.found.is_empty();
        Self { addresses: reader.found, is_empty_group }
    }
}

/// The state of the parser. Its time is linear in the length of the list.
struct ListReader {
    found: Vec<NamedAddress>,
    item: ListItem,
    /// The number of addresses that are requested. A few more can be found.
    limit: usize,
    local_names: LocalNames,
    /// Whether quotation marks are special. They are not after a quotation mark that is never closed.
    is_quoting_enabled: bool,
    /// The number of bytes that were parsed again because of unclosed brackets.
    reread_bytes: usize,
    /// Whether the list contains a group.
    has_group: bool,
    /// Whether the list contains words that are not an address.
    has_non_address: bool,
}

impl ListReader {
    /// Parses the next token. Returns its length, or `None` if it is truncated by the length limit.
    fn step(&mut self, rest: &[u8], is_truncated: bool) -> Option<usize> {
        Some(match rest[0] {
            b'"' if self.is_quoting_enabled => match self.item.push_quoted(rest) {
                Some(used) => used,
                None if is_truncated => return None,
                None => {
                    self.is_quoting_enabled = false;
                    1
                }
            },
            b'(' => self.item.push_comment(rest),
            b'<' => self.read_angle(rest, is_truncated)?,
            // A closing bracket without an opening one.
            b'>' => 1,
            b'=' => self.item.push_encoded_word(rest),
            b',' | b';' => {
                self.end_item(rest[0] == b',');
                1
            }
            // The name of a group (section 3.4) ends here. In an address, a colon occurs only in an IPv6 literal.
            b':' if !self.item.has_literal => {
                self.has_group = true;
                self.item = ListItem::default();
                1
            }
            _ => self.item.push_plain(rest),
        })
    }

    /// Parses an address in brackets. Brackets may be doubled or unclosed. An unclosed address ends at the next
    /// separator.
    fn read_angle(&mut self, rest: &[u8], is_truncated: bool) -> Option<usize> {
        let start = rest.iter().position(|&b| b != b'<').unwrap_or(rest.len());
        let (len, closed) = self.find_angle_end(&rest[start..]);
        if !closed && is_truncated && start + len == rest.len() {
            return None;
        }
        let content = &rest[start..start + len];
        let separator = || {
            let at = memchr::memchr(b'@', content)?;
            content[at..].iter().position(|b| matches!(b, b',' | b';')).map(|separator| at + separator)
        };
        let scanned_len = len;
        let len = if closed || content.starts_with(b"@") { len } else { separator().unwrap_or(len) };
        // Without quotes the next scan ends at the next bracket. With quotes each scan could reach the end of the list.
        self.reread_bytes += scanned_len - len;
        self.is_quoting_enabled &= self.reread_bytes <= MAX_REREAD_BYTES;
        self.add_angle_address(&rest[start..start + len]);
        let after = &rest[start + len..];
        let closing = if closed { after.iter().position(|&b| b != b'>').unwrap_or(after.len()) } else { 0 };
        Some(start + len + closing)
    }

    /// Returns the length of the text in brackets, and whether a bracket closes it.
    fn find_angle_end(&mut self, rest: &[u8]) -> (usize, bool) {
        let mut pos = 0;
        while pos < rest.len() {
            match rest[pos] {
                b'>' => return (pos, true),
                b'<' => return (pos, false),
                b'"' if self.is_quoting_enabled => {
                    let string = quoted_string(&rest[pos..]);
                    self.is_quoting_enabled = string.is_some();
                    pos += string.map_or(1, |(_, len)| len);
                }
                _ => pos += 1,
            }
        }
        (pos, false)
    }

    fn add_angle_address(&mut self, content: &[u8]) {
        let content = strip_route(content);
        if content.is_empty() {
            return;
        }
        let is_list =
            content.iter().any(|b| matches!(b, b',' | b';')) || memchr::memchr_iter(b'@', content).count() > 1;
        let mut addresses = if is_list { ListItem::parse_bare_addresses(content) } else { Vec::new() };
        let (address, others) = match addresses.is_empty() {
            true if content.contains(&b'@') => (remove_blanks_and_comments(content), addresses),
            true => (content.to_vec(), addresses),
            false => (addresses.remove(0).address.into_bytes(), addresses),
        };
        match &self.item.angle_address {
            // A remark in brackets before the address belongs to the name.
            Some(remark) if !remark.contains(&b'@') && address.contains(&b'@') => {
                let remark = [b"<", remark.as_slice(), b"> "].concat();
                let name_len = self.item.name_len.min(self.item.phrase.len());
                self.item.phrase.splice(name_len..name_len, remark);
                self.item.angle_address = Some(address);
                self.item.name_len = self.item.phrase.len();
            }
            // Two addresses without a comma between them.
            Some(_) => {
                let name = self.item.phrase.split_off(self.item.name_len.min(self.item.phrase.len()));
                self.end_item(false);
                self.item.name_len = name.len();
                self.item.phrase = name;
                self.item.angle_address = Some(address);
            }
            None => {
                self.item.name_len = self.item.phrase.len();
                self.item.angle_address = Some(address);
            }
        }
        self.item.bare = BareText::default();
        if !others.is_empty() {
            self.end_item(false);
            self.found.extend(others);
        }
    }

    /// Ends the item and adds its addresses to the list. An item without an address may be the start of a name with an
    /// unquoted comma (`Doe, Jane <jane@example.org>`). It is kept for the next item.
    fn end_item(&mut self, continues: bool) {
        let item = std::mem::take(&mut self.item);
        if let Some(address) = &item.angle_address {
            let (before, after) = item.phrase.split_at(item.name_len.min(item.phrase.len()));
            let name = if before.trim_ascii().is_empty() && !after.contains(&b'@') { after } else { before };
            self.found.push(NamedAddress { name: decode_name(name), address: address_text(address) });
            // An address without brackets follows one with brackets.
            self.found.extend(ListItem::parse_bare_addresses(&item.bare.text));
            return;
        }
        let bare = item.bare.text.trim_ascii();
        if item.bare.has_at {
            let mut addresses = ListItem::parse_bare_addresses(bare);
            // Otherwise the words before the comma belong to the name.
            if addresses.first().is_some_and(|first| first.name.is_empty()) {
                self.add_local_names(&item.names);
            }
            if let [only] = addresses.as_mut_slice()
                && only.name.is_empty()
            {
                only.name = decode_name(&item.comment);
            }
            self.found.append(&mut addresses);
            return;
        }
        let mut names = item.names;
        if self.local_names == LocalNames::Keep && is_local_name(bare) {
            names.extend_from_slice(bare);
            names.push(b',');
        }
        if continues {
            self.item.names = names;
            if !bare.is_empty() {
                self.item.phrase = item.phrase;
                self.item.phrase.push(b',');
            }
            return;
        }
        self.has_non_address |= !bare.is_empty();
        if !self.found.is_empty() {
            self.add_local_names(&names);
        }
    }

    /// Adds names without a domain, each of which ends with a comma.
    fn add_local_names(&mut self, names: &[u8]) {
        let names = names.split(|&b| b == b',').filter(|name| !name.is_empty()).take(self.limit);
        self.found.extend(
            names.map(|name| NamedAddress { name: String::new(), address: one_line(&decode_unlabelled(name)) }),
        );
    }
}

/// The text since the last separator.
#[derive(Default)]
struct ListItem {
    /// All text outside of angle brackets and comments, unquoted. It is the display name if there is an address in
    /// brackets.
    phrase: Vec<u8>,
    /// The items before this one that are names without a domain. Each ends with a comma.
    names: Vec<u8>,
    /// The length of the text before the angle brackets.
    name_len: usize,
    /// The text after the angle brackets, with its quotes. It is the address if there are no brackets.
    bare: BareText,
    /// Whether an address literal (`[`) has started.
    has_literal: bool,
    comment: Vec<u8>,
    angle_address: Option<Vec<u8>>,
}

/// Text outside of angle brackets and comments. `has_at` and `last` decide whether a comment is inside of an address.
#[derive(Default)]
struct BareText {
    text: Vec<u8>,
    /// Whether it contains an `@`.
    has_at: bool,
    /// Its last byte that is not whitespace.
    last: Option<u8>,
}

impl BareText {
    fn push(&mut self, text: &[u8]) {
        self.text.extend_from_slice(text);
        self.has_at |= memchr::memchr(b'@', text).is_some();
        self.last = text.trim_ascii_end().last().copied().or(self.last);
    }
}

impl ListItem {
    fn push_plain(&mut self, rest: &[u8]) -> usize {
        let len = rest.iter().skip(1).position(|b| b"\"(<>=,;:".contains(b)).map_or(rest.len(), |len| len + 1);
        self.has_literal |= rest[..len].contains(&b'[');
        self.push(&rest[..len])
    }

    /// Adds an encoded word as one atom: special characters in it are part of the name, although RFC 2047 section 5
    /// forbids them. An encoded word with whitespace is more likely unterminated.
    fn push_encoded_word(&mut self, rest: &[u8]) -> usize {
        match EncodedWord::parse(rest).filter(|word| !word.text.iter().any(u8::is_ascii_whitespace)) {
            Some(word) => self.push(&rest[..word.len]),
            None => self.push_plain(rest),
        }
    }

    fn push(&mut self, text: &[u8]) -> usize {
        self.phrase.extend_from_slice(text);
        self.bare.push(text);
        text.len()
    }

    fn push_quoted(&mut self, rest: &[u8]) -> Option<usize> {
        let (content, len) = quoted_string(rest)?;
        self.phrase.extend_from_slice(&content);
        self.bare.push(&rest[..len]);
        Some(len)
    }

    /// Skips a comment. Comments nest (section 3.2.2); only the depth is counted. A comment before or after an address
    /// is kept: it is the name, in a form older than RFC 822. A comment inside of an address is dropped.
    fn push_comment(&mut self, rest: &[u8]) -> usize {
        let len = comment_len(rest);
        let inside = self.bare.last.is_some_and(|last| last == b'@' || !self.bare.has_at);
        if !inside {
            if !self.comment.is_empty() {
                self.comment.push(b' ');
            }
            self.comment.extend_from_slice(rest[1..len].strip_suffix(b")").unwrap_or(&rest[1..len]));
        }
        len
    }

    /// Parses the addresses in a text without brackets. Each word with an `@` is an address; whitespace may surround
    /// its `@` and its dots (section 4.4). The words before it are its name. The words after a single address are its
    /// name if it has none.
    fn parse_bare_addresses(text: &[u8]) -> Vec<NamedAddress> {
        let words = split_words(text);
        let mut found: Vec<NamedAddress> = Vec::new();
        let mut name: Vec<u8> = Vec::new();
        for word in words {
            if let Some(address) = find_address(&word) {
                found.push(NamedAddress { name: decode_name(&name), address: address_text(&address) });
                name.clear();
                continue;
            }
            if !name.is_empty() {
                name.push(b' ');
            }
            name.extend(unquote(&word));
        }
        if let [only] = found.as_mut_slice()
            && only.name.is_empty()
        {
            only.name = decode_name(&name);
        }
        found
    }
}

/// Returns the address in a word. It must have text before its `@`.
fn find_address(word: &[u8]) -> Option<Vec<u8>> {
    let word = word.trim_ascii_end();
    let bare = word.strip_prefix(b"mailto:").unwrap_or(word);
    let bare = match bare {
        [b'\'', inner @ .., b'\''] => inner,
        // An address in quotes.
        [b'"', inner @ .., b'"'] if !inner.contains(&b'"') => inner,
        _ => bare,
    };
    let bare = bare.trim_ascii();
    let at = memchr::memrchr(b'@', bare)?;
    (at > 0).then(|| bare.to_vec())
}

/// Returns whether a text can be an address without its domain: atoms (section 3.2.3) with dots between them, of which one has
/// a letter or digit. An encoded word is a display name, and a text with a slash at its start is the rest of a URL.
fn is_local_name(text: &[u8]) -> bool {
    let is_letter = |b: &u8| b.is_ascii_alphanumeric() || *b >= 0x80;
    let is_atom =
        |atom: &[u8]| !atom.is_empty() && atom.iter().all(|b| is_letter(b) || b"!#$%&'*+-/=?^_`{|}~".contains(b));
    let is_other = text.starts_with(b"=?") || text.starts_with(b"/");
    !is_other && text.split(|b| *b == b'.').all(is_atom) && text.iter().any(is_letter)
}

/// Parses the quoted string at the start of the text. Returns its content with resolved quoted pairs, and its whole
/// length.
fn quoted_string(text: &[u8]) -> Option<(Vec<u8>, usize)> {
    let mut content = Vec::new();
    let mut bytes = text.iter().enumerate().skip(1);
    while let Some((at, &byte)) = bytes.next() {
        match byte {
            b'"' => return Some((content, at + 1)),
            b'\\' => content.extend(bytes.next().map(|(_, &escaped)| escaped)),
            _ => content.push(byte),
        }
    }
    None
}

/// Returns the length of the comment at the start of the text.
fn comment_len(text: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut pos = 0;
    while pos < text.len() {
        match text[pos] {
            b'\\' => pos += 1,
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        pos += 1;
        if depth == 0 {
            break;
        }
    }
    pos.min(text.len())
}

/// Splits a text into words. A quoted string is a word or a part of one. Whitespace around an `@`, or around the dots
/// after it, does not end a word.
fn split_words(text: &[u8]) -> Vec<Vec<u8>> {
    let mut words: Vec<Vec<u8>> = Vec::new();
    let (mut is_quoting_enabled, mut after_dot) = (true, false);
    let mut last_has_at = false;
    let mut pos = 0;
    while pos < text.len() {
        if text[pos].is_ascii_whitespace() || matches!(text[pos], b',' | b';') {
            pos += 1;
            continue;
        }
        let start = pos;
        while pos < text.len() && !text[pos].is_ascii_whitespace() && !matches!(text[pos], b',' | b';') {
            let string = (is_quoting_enabled && text[pos] == b'"').then(|| quoted_string(&text[pos..])).flatten();
            is_quoting_enabled &= text[pos] != b'"' || string.is_some();
            pos += string.map_or(1, |(_, len)| len);
        }
        let word = &text[start..pos];
        let has_at = memchr::memchr(b'@', word).is_some();
        let joins = words.last().is_some_and(|last| {
            let continues_domain = last_has_at && !has_at && (word.starts_with(b".") || last.ends_with(b"."));
            after_dot
                || last.ends_with(b"@")
                || !last_has_at && (word.starts_with(b"@") || word.starts_with(b"."))
                || continues_domain
        });
        after_dot = word == b".";
        last_has_at = has_at || joins && last_has_at;
        match words.last_mut() {
            Some(last) if joins => last.extend_from_slice(word),
            _ => words.push(word.to_vec()),
        }
    }
    words
}

/// Removes the route before an address in brackets (`@a,@b:`, section 4.4) and a `mailto:` prefix.
fn strip_route(content: &[u8]) -> &[u8] {
    let content = content.trim_ascii();
    let is_route = content.starts_with(b"@");
    let colon = memchr::memchr(b':', content).filter(|_| is_route);
    let content = colon.map_or(content, |colon| &content[colon + 1..]);
    content.strip_prefix(b"mailto:").unwrap_or(content).trim_ascii()
}

/// Removes comments and whitespace from an address, except in quotes.
fn remove_blanks_and_comments(content: &[u8]) -> Vec<u8> {
    let mut address = Vec::with_capacity(content.len());
    let mut pos = 0;
    let mut is_quoting_enabled = true;
    while pos < content.len() {
        let rest = &content[pos..];
        let string = if is_quoting_enabled && rest[0] == b'"' { quoted_string(rest) } else { None };
        is_quoting_enabled &= rest[0] != b'"' || string.is_some();
        pos += match (rest[0], string) {
            (_, Some((_, len))) => {
                address.extend_from_slice(&rest[..len]);
                len
            }
            (b'(', _) => comment_len(rest),
            (byte, _) => {
                if !byte.is_ascii_whitespace() {
                    address.push(byte);
                }
                1
            }
        };
    }
    address
}

/// Decodes an address. Quotes around a local part that needs none are dropped, as in the addresses of the envelope.
fn address_text(address: &[u8]) -> String {
    let text = one_line(&decode_unlabelled(address));
    let string = if text.starts_with('"') { quoted_string(text.as_bytes()) } else { None };
    let unquoted = string.and_then(|(local, len)| {
        let (local, domain) = (String::from_utf8(local).ok()?, &text[len..]);
        (is_dot_string(&local) && domain.starts_with('@')).then(|| local + domain)
    });
    unquoted.unwrap_or(text)
}

fn unquote(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|&b| b != b'"').collect()
}

fn decode_name(name: &[u8]) -> String {
    encoded_words::decode_line(name.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_and_display(value: &str) -> Vec<String> {
        NamedAddress::parse_list(value.as_bytes(), 10).iter().map(NamedAddress::display).collect()
    }

    #[test]
    fn parses_displayed_addresses() {
        let table = [
            ("Jane Doe <jane@x>", "Jane Doe", "jane@x"),
            ("a <b <c@x>", "a <b", "c@x"),
            ("<a@x>", "", "a@x"),
            ("<>", "", ""),
            ("", "", ""),
            ("a@x", "", "a@x"),
            ("Jane <a@x", "", "Jane <a@x"),
            ("x>", "", "x>"),
        ];
        for (text, name, address) in table {
            let parsed = NamedAddress::from_display(text);
            assert_eq!((parsed.name.as_str(), parsed.address.as_str()), (name, address), "{text}");
        }
        let parsed = NamedAddress::new(" Jane\r\nDoe ", "a@x\0");
        assert_eq!(NamedAddress::from_display(&parsed.display()), parsed);
        assert_eq!(parsed.display(), "Jane  Doe <a@x>");
    }

    #[test]
    fn parses_address_lists() {
        let table: &[(&str, &[&str])] = &[
            ("jane@example.org", &["<jane@example.org>"]),
            ("<jane@example.org>", &["<jane@example.org>"]),
            ("Jane Doe <jane@example.org>", &["Jane Doe <jane@example.org>"]),
            ("\"Doe, Jane\" <Jane@Example.ORG>", &["Doe, Jane <Jane@Example.ORG>"]),
            ("\"Jane \\\"JD\\\" Doe\" <j@x>", &["Jane \"JD\" Doe <j@x>"]),
            ("a@x, B <b@y>,c@z", &["<a@x>", "B <b@y>", "<c@z>"]),
            ("a@x; b@y", &["<a@x>", "<b@y>"]),
            ("=?utf-8?Q?Jos=C3=A9?= <j@x>", &["José <j@x>"]),
            ("\"=?utf-8?Q?Jos=C3=A9?=\" <j@x>", &["José <j@x>"]),
            ("José <j@x>", &["José <j@x>"]),
            ("=?utf-8?Q?Support:_Team?= <s@y>", &["Support: Team <s@y>"]),
            ("=?utf-8?Q?a<b?= <c@y>, d@z", &["a<b <c@y>", "<d@z>"]),
            ("=?utf-8?Q?Jane_(HR)?= <j@x>", &["Jane (HR) <j@x>"]),
            ("=?utf-8?Q?Doe,_Jane?= <j@x>", &["Doe, Jane <j@x>"]),
            ("Dr. =?utf-8?Q?Doe;?= =?utf-8?Q?_\"J\"?= <j@x>", &["Dr. Doe; \"J\" <j@x>"]),
            ("=?utf-8?Q?lost <a@x>, =?utf-8?Q?B?= <b@x>", &["=?utf-8?Q?lost <a@x>", "B <b@x>"]),
            ("a=b@x, =c@y", &["<a=b@x>", "<=c@y>"]),
            ("Jane (the boss) <j@x>", &["Jane <j@x>"]),
            ("j@x (Jane (the) Doe)", &["Jane (the) Doe <j@x>"]),
            ("Friends: a@x, B <b@y>;, c@z", &["<a@x>", "B <b@y>", "<c@z>"]),
            ("undisclosed-recipients:;", &[]),
            ("\"[x]\": a@x;", &["<a@x>"]),
            ("a@[IPv6:::1], Friends: b@x;", &["<a@[IPv6:::1]>", "<b@x>"]),
            ("[x], Friends: b@x;", &["<b@x>"]),
            ("\"jane doe\"@example.org", &["<\"jane doe\"@example.org>"]),
            ("\"jane\"@example.org", &["<jane@example.org>"]),
            ("Jane <\"j\\ane.doe\"@example.org>, \"b\"@y", &["Jane <jane.doe@example.org>", "<b@y>"]),
            ("<\"\"@x>, <\"a..b\"@x>, \"a@b\"@x", &["<\"\"@x>", "<\"a..b\"@x>", "<\"a@b\"@x>"]),
            ("jane@[IPv6:2001:db8::1]", &["<jane@[IPv6:2001:db8::1]>"]),
            ("J <jane@[IPv6:2001:db8::1]>", &["J <jane@[IPv6:2001:db8::1]>"]),
            ("<@a,@b:jane@c>", &["<jane@c>"]),
            ("Jane <@a:jane@c>", &["Jane <jane@c>"]),
            ("@a,@b:jane@c", &["<jane@c>"]),
            ("jane @ example.org", &["<jane@example.org>"]),
            ("Doe, Jane <j@x>", &["Doe, Jane <j@x>"]),
            ("nobody, j@x", &["<j@x>"]),
            ("Jane Doe j@x", &["Jane Doe <j@x>"]),
            ("Jane <j@x", &["Jane <j@x>"]),
            ("jane", &[]),
            ("<>", &[]),
            ("\"unclosed <j@x>", &["unclosed <j@x>"]),
            ("\"a \\\" <j@x>", &["a \\\" <j@x>"]),
            ("(unclosed j@x", &[]),
            (",,;,", &[]),
            ("", &[]),
            ("A <a@x> <b@y>", &["A <a@x>", "<b@y>"]),
            // Addresses without a comma between them.
            ("A <a@x> B <b@y>", &["A <a@x>", "B <b@y>"]),
            ("<a@x> Bob Roe <b@y> C <c@z>", &["<a@x>", "Bob Roe <b@y>", "C <c@z>"]),
            ("a@x b@y", &["<a@x>", "<b@y>"]),
            ("Ann a@x Bob b@y", &["Ann <a@x>", "Bob <b@y>"]),
            ("<a@x> b@y", &["<a@x>", "<b@y>"]),
            ("A <a@x>; B <b@y>;", &["A <a@x>", "B <b@y>"]),
            ("<a@x, b@y>", &["<a@x>", "<b@y>"]),
            ("Both <a@x; b@y>, c@z", &["Both <a@x>", "<b@y>", "<c@z>"]),
            // Names that contain an address.
            ("jane@x <jane@x>", &["jane@x <jane@x>"]),
            ("\"jane@x\" <jane@x>", &["jane@x <jane@x>"]),
            ("\"jane@x.org\"", &["<jane@x.org>"]),
            ("'jane@x.org', 'Bob' <b@y>", &["<jane@x.org>", "'Bob' <b@y>"]),
            ("Jane <the boss> <jane@x>", &["Jane <the boss> <jane@x>"]),
            // Comments and whitespace in an address.
            ("<jane(of x)@example.org>", &["<jane@example.org>"]),
            ("jane(of x)@example.org", &["<jane@example.org>"]),
            ("jane@(the)example.org (Jane)", &["Jane <jane@example.org>"]),
            ("(Jane) j@x", &["Jane <j@x>"]),
            ("< jane @ example.org >", &["<jane@example.org>"]),
            ("<jane . doe@example . org>", &["<jane.doe@example.org>"]),
            ("jane . doe @ example . org", &["<jane.doe@example.org>"]),
            ("<jane\r\n @example.org>", &["<jane@example.org>"]),
            ("<\"jane doe\" @example.org>", &["<\"jane doe\"@example.org>"]),
            ("j@x Jane Doe", &["Jane Doe <j@x>"]),
            ("<j@x> Jane Doe", &["Jane Doe <j@x>"]),
            // Brackets.
            ("<<j@x>>", &["<j@x>"]),
            ("Jane <<j@x>>, b@y", &["Jane <j@x>", "<b@y>"]),
            ("Jane <j@x, Bob <b@y>", &["Jane <j@x>", "Bob <b@y>"]),
            ("Jane <j@x; b@y", &["Jane <j@x>", "<b@y>"]),
            ("Jane j@x>", &["Jane <j@x>"]),
            ("<\"a>b\"@x>", &["<\"a>b\"@x>"]),
            ("<mailto:j@x>", &["<j@x>"]),
            ("J <j>", &["J <j>"]),
            // Groups.
            ("A: B: a@x;;, c@y", &["<a@x>", "<c@y>"]),
            ("Friends:;, a@x", &["<a@x>"]),
            ("Friends: A <a@x>; Others: B <b@y>;", &["A <a@x>", "B <b@y>"]),
            ("@x, @", &[]),
            ("mailto:j@x", &["<j@x>"]),
            ("Evil\u{1}\u{7f} <j@x>", &["Evil <j@x>"]),
        ];
        for (value, list) in table {
            assert_eq!(parse_and_display(value), *list, "{value}");
        }
    }

    #[test]
    fn distinguishes_empty_groups_from_words() {
        let table = [
            ("undisclosed-recipients:;", true),
            ("undisclosed recipients: ;", true),
            ("\"Recipients not shown\": ;", true),
            ("a: b:;;", true),
            ("Friends: a@x;", false),
            ("Friends: nobody;", false),
            ("nobody", false),
            ("", false),
            ("<>", false),
        ];
        for (value, empty) in table {
            assert_eq!(AddressList::parse_recipients(value.as_bytes(), 10).is_empty_group, empty, "{value}");
        }
    }

    #[test]
    fn recipients_without_a_domain_are_kept() {
        let table: &[(&str, &[&str])] = &[
            ("abel, bianchi, stornett@flash", &["<abel>", "<bianchi>", "<stornett@flash>"]),
            ("stornett@flash, abel (Abel B.),bianchi", &["<stornett@flash>", "<abel>", "<bianchi>"]),
            ("abel,, bianchi@x,", &["<abel>", "<bianchi@x>"]),
            ("a@x; abel; b@y", &["<a@x>", "<abel>", "<b@y>"]),
            ("Jane <j@x>, abel.b", &["Jane <j@x>", "<abel.b>"]),
            ("Jane Doe, abel, j@x", &["<abel>", "<j@x>"]),
            // Names with an unquoted comma.
            ("Doe, Jane <j@x>, abel, b@y", &["Doe, Jane <j@x>", "<abel>", "<b@y>"]),
            ("Doe, Jane j@x", &["Jane <j@x>"]),
            ("\"Doe\", =?utf-8?Q?Jos=C3=A9?=, j@x", &["<j@x>"]),
            ("j@x, Friends: abel;", &["<j@x>", "<abel>"]),
            // Not names.
            ("a@x, ., ..., -, b@y", &["<a@x>", "<b@y>"]),
            ("a@x, http://x", &["<a@x>"]),
            // Without an address, the recipients of the envelope say more.
            ("abel, bianchi", &[]),
            ("Friends: abel;", &[]),
        ];
        for (value, list) in table {
            let found = NamedAddress::parse_recipients(value.as_bytes(), 10);
            assert_eq!(found.iter().map(NamedAddress::display).collect::<Vec<_>>(), *list, "{value}");
        }
        let many = "a,".repeat(10_000) + "b@x," + &"c,".repeat(10_000);
        assert_eq!(NamedAddress::parse_recipients(many.as_bytes(), 1000).len(), 1000);
        assert_eq!(parse_and_display("abel, stornett@flash"), ["<stornett@flash>"], "a sender has a domain");
    }

    #[test]
    fn limits_the_number_of_addresses() {
        let many = "a@x,".repeat(10_000);
        assert_eq!(NamedAddress::parse_list(many.as_bytes(), 1000).len(), 1000);
    }

    #[test]
    fn omits_address_truncated_by_the_length_limit() {
        let filler = " ".repeat(MAX_FIELD_BYTES - 20);
        for tail in [
            "jane@example.org,,,,,,,,",
            "\"Doe, Jane\" <j@example.org>",
            "=?utf-8?Q?Doe,_Jane?= <j@x>",
            "<j@example.org, and, more>",
        ] {
            let list = NamedAddress::parse_list(format!("a@x, {filler}{tail}").as_bytes(), 10);
            assert_eq!(list.iter().map(NamedAddress::display).collect::<Vec<_>>(), ["<a@x>"], "{tail}");
        }
    }

    #[test]
    fn truncates_displayed_names() {
        let long = "é".repeat(10_000);
        let displayed = NamedAddress::parse_list(format!("{long} <{long}@x>").as_bytes(), 1)[0].display();
        assert!(
            displayed.starts_with("éé") && displayed.ends_with("é>") && displayed.len() <= 2 * MAX_DISPLAY_BYTES + 3
        );
    }
}
