//! Address lists of header fields (RFC 5322 section 3.4), read for showing them to people. Delivery never looks here:
//! envelope addresses have their own strict parser.

use super::charset::{decode_unlabelled, one_line};
use super::encoded_words::{self, EncodedWord};
use super::header::unfold;

/// How much of one field is read, in bytes: a thousand mailboxes with long names.
pub(super) const MAX_FIELD_BYTES: usize = 256 * 1024;
/// How many bytes of a field are read a second time because a bracket before them is not closed.
const MAX_REREAD_BYTES: usize = 64 * 1024;
/// How much of a display name is shown, and how much of an address, in bytes. RFC 5321 section 4.5.3.1 allows an
/// address half of it.
const MAX_DISPLAY_BYTES: usize = 512;

/// One mailbox of an address list, in the words of RFC 5322: a person or a program, and where it gets its mail.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedAddress {
    /// The display name, decoded and without quotes; empty when there is none.
    pub name: String,
    /// The address as it is written.
    pub address: String,
}

impl NamedAddress {
    /// A mailbox in somebody else's words, made fit for one line.
    pub fn new(name: &str, address: &str) -> Self {
        Self { name: one_line(name), address: one_line(address) }
    }

    /// The first `limit` mailboxes of a list, such as the value of a To field. What is no mailbox is left out.
    pub fn parse_list(field: &[u8], limit: usize) -> Vec<Self> {
        parse_mailboxes(field, limit)
    }

    /// Takes apart what [`Mailbox::display`] has put together. A text that is not of that form is an address.
    pub fn from_display(text: &str) -> Self {
        let parts = text.strip_suffix('>').and_then(|text| match text.rfind(" <") {
            Some(at) => Some((&text[..at], &text[at + 2..])),
            None => text.strip_prefix('<').map(|address| ("", address)),
        });
        let (name, address) = parts.unwrap_or(("", text));
        Self { name: name.to_owned(), address: address.to_owned() }
    }

    /// `Display Name <addr>`, or `<addr>`.
    pub fn display(&self) -> String {
        let name = &self.name[..self.name.floor_char_boundary(MAX_DISPLAY_BYTES)];
        let address = &self.address[..self.address.floor_char_boundary(MAX_DISPLAY_BYTES)];
        if name.is_empty() { format!("<{address}>") } else { format!("{name} <{address}>") }
    }
}

/// The first `limit` mailboxes of a field's value. Groups are flattened, what is no mailbox is left out, and so is what
/// lies across the end of what is read.
pub(super) fn parse_mailboxes(field: &[u8], limit: usize) -> Vec<NamedAddress> {
    AddressList::parse(field, limit).mailboxes
}

/// What an address list holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct AddressList {
    pub(super) mailboxes: Vec<NamedAddress>,
    /// Whether it says that there is no mailbox: `undisclosed-recipients:;`.
    pub(super) is_empty_group: bool,
}

impl AddressList {
    /// Reads the first `limit` mailboxes of a field's value.
    pub(super) fn parse(field: &[u8], limit: usize) -> Self {
        let is_truncated = field.len() > MAX_FIELD_BYTES;
        let value = unfold(&field[..field.len().min(MAX_FIELD_BYTES)]);
        let mut reader = ListReader {
            found: Vec::new(),
            item: ListItem::default(),
            is_quoting_enabled: true,
            reread: 0,
            has_group: false,
            has_non_mailbox: false,
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
        let is_empty_group = reader.has_group && !reader.has_non_mailbox && reader.found.is_empty();
        Self { mailboxes: reader.found, is_empty_group }
    }
}

/// Reads a list in time that grows with its length.
struct ListReader {
    found: Vec<NamedAddress>,
    item: ListItem,
    /// A quote that is never closed quotes nothing, nor does any after it.
    is_quoting_enabled: bool,
    /// How many bytes were read again after brackets that are not closed.
    reread: usize,
    /// Whether there is a group.
    has_group: bool,
    /// Whether there are words that are no mailbox.
    has_non_mailbox: bool,
}

impl ListReader {
    /// Reads what the rest of the value starts with. Returns how long that is, or `None` if it lies across the end.
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
            // The bracket that was opened for this one got lost.
            b'>' => 1,
            b'=' => self.item.push_encoded_word(rest),
            b',' | b';' => {
                self.end_item(rest[0] == b',');
                1
            }
            // The name of a group (section 3.4) ends here; in an address a colon can only be an IPv6 literal's.
            b':' if !self.item.has_literal => {
                self.has_group = true;
                self.item = ListItem::default();
                1
            }
            _ => self.item.push_plain(rest),
        })
    }

    /// Reads an address in brackets. Brackets may be doubled, or not closed: then the address ends at the next separator.
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
        let scanned = len;
        let len = if closed || content.starts_with(b"@") { len } else { separator().unwrap_or(len) };
        // Without quotes the next scan ends at the next bracket. With them each scan may reach the end of the list.
        self.reread += scanned - len;
        self.is_quoting_enabled &= self.reread <= MAX_REREAD_BYTES;
        self.add_angle_address(&rest[start..start + len]);
        let after = &rest[start + len..];
        let closing = if closed { after.iter().position(|&b| b != b'>').unwrap_or(after.len()) } else { 0 };
        Some(start + len + closing)
    }

    /// Where the text in brackets ends, and whether a bracket closes it.
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
        let list = content.iter().any(|b| matches!(b, b',' | b';')) || memchr::memchr_iter(b'@', content).count() > 1;
        let mut addresses = if list { ListItem::parse_bare_mailboxes(content) } else { Vec::new() };
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
            // Two mailboxes without a comma between them.
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

    /// Ends the item: its mailboxes go to the list. What has no address may be the front of a name with a comma that
    /// should have been quoted (`Doe, Jane <jane@example.org>`) and stays for the next item.
    fn end_item(&mut self, continues: bool) {
        let item = std::mem::take(&mut self.item);
        if let Some(address) = &item.angle_address {
            let (before, after) = item.phrase.split_at(item.name_len.min(item.phrase.len()));
            let name = if before.trim_ascii().is_empty() && !after.contains(&b'@') { after } else { before };
            self.found.push(NamedAddress { name: decode_name(name), address: one_line(&decode_unlabelled(address)) });
            // An address without brackets after one with them.
            self.found.extend(ListItem::parse_bare_mailboxes(&item.bare.text));
            return;
        }
        let bare = item.bare.text.trim_ascii();
        if item.bare.has_at {
            let mut mailboxes = ListItem::parse_bare_mailboxes(bare);
            if let [only] = mailboxes.as_mut_slice()
                && only.name.is_empty()
            {
                only.name = decode_name(&item.comment);
            }
            self.found.append(&mut mailboxes);
            return;
        }
        if !bare.is_empty() {
            if continues {
                self.item = ListItem { phrase: item.phrase, ..ListItem::default() };
                self.item.phrase.push(b',');
            } else {
                self.has_non_mailbox = true;
            }
        }
    }
}

/// What was read since the last separator.
#[derive(Default)]
struct ListItem {
    /// Everything outside of angle brackets and comments, unquoted: the display name when an address is there.
    phrase: Vec<u8>,
    /// How much of it stands before the angle brackets.
    name_len: usize,
    /// The same with its quotes, as far as it stands after the angle brackets: the address when there are none.
    bare: BareText,
    /// Whether an address literal (`[`) has begun.
    has_literal: bool,
    comment: Vec<u8>,
    angle_address: Option<Vec<u8>>,
}

/// Text outside of angle brackets and comments, with what each comment needs to know about all of it.
#[derive(Default)]
struct BareText {
    text: Vec<u8>,
    /// Whether it contains an `@`.
    has_at: bool,
    /// Its last byte that is not a blank.
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

    /// An encoded word is one atom: specials in it are part of the name, although RFC 2047 section 5 forbids them. A
    /// word with blanks in it more likely has lost its end.
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

    /// Comments nest (section 3.2.2); only how deep is counted. One before or after an address is kept, it is the name in
    /// the form older than RFC 822. One inside of an address is not.
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

    /// The mailboxes in a text without brackets. Each word with an `@` is an address, blanks may surround its `@` and its
    /// dots (section 4.4). The words before it are its name, those after the last one are the name of that if it has none.
    fn parse_bare_mailboxes(text: &[u8]) -> Vec<NamedAddress> {
        let words = split_words(text);
        let mut found: Vec<NamedAddress> = Vec::new();
        let mut name: Vec<u8> = Vec::new();
        for word in words {
            if let Some(address) = find_address(&word) {
                found.push(NamedAddress { name: decode_name(&name), address: one_line(&decode_unlabelled(&address)) });
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

/// The address in a word, if there is one: something before its `@` and something after it.
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

/// The content of the quoted string that the text starts with, its quoted pairs resolved, and the length of it all.
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

/// The length of the comment that the text starts with.
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

/// The words of a text, of which a quoted string is one or a part of one. Blanks around an `@`, or around the dots of what
/// follows it, do not end a word.
fn split_words(text: &[u8]) -> Vec<Vec<u8>> {
    let mut words: Vec<Vec<u8>> = Vec::new();
    let (mut quotes, mut after_dot) = (true, false);
    // Whether the last word contains an `@`.
    let mut address = false;
    let mut pos = 0;
    while pos < text.len() {
        if text[pos].is_ascii_whitespace() || matches!(text[pos], b',' | b';') {
            pos += 1;
            continue;
        }
        let start = pos;
        while pos < text.len() && !text[pos].is_ascii_whitespace() && !matches!(text[pos], b',' | b';') {
            let string = (quotes && text[pos] == b'"').then(|| quoted_string(&text[pos..])).flatten();
            quotes &= text[pos] != b'"' || string.is_some();
            pos += string.map_or(1, |(_, len)| len);
        }
        let word = &text[start..pos];
        let has_at = memchr::memchr(b'@', word).is_some();
        let joins = words.last().is_some_and(|last| {
            let domain = address && !has_at && (word.starts_with(b".") || last.ends_with(b"."));
            after_dot
                || last.ends_with(b"@")
                || !address && (word.starts_with(b"@") || word.starts_with(b"."))
                || domain
        });
        after_dot = word == b".";
        address = has_at || joins && address;
        match words.last_mut() {
            Some(last) if joins => last.extend_from_slice(word),
            _ => words.push(word.to_vec()),
        }
    }
    words
}

/// What remains of a text in brackets without the route before the address (`@a,@b:`, section 4.4) and without `mailto:`.
fn strip_route(content: &[u8]) -> &[u8] {
    let content = content.trim_ascii();
    let is_route = content.starts_with(b"@");
    let colon = memchr::memchr(b':', content).filter(|_| is_route);
    let content = colon.map_or(content, |colon| &content[colon + 1..]);
    content.strip_prefix(b"mailto:").unwrap_or(content).trim_ascii()
}

/// An address without comments and blanks, except in quotes.
fn remove_blanks_and_comments(content: &[u8]) -> Vec<u8> {
    let mut address = Vec::with_capacity(content.len());
    let mut pos = 0;
    let mut quotes = true;
    while pos < content.len() {
        let rest = &content[pos..];
        let string = if quotes && rest[0] == b'"' { quoted_string(rest) } else { None };
        quotes &= rest[0] != b'"' || string.is_some();
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
        parse_mailboxes(value.as_bytes(), 10).iter().map(NamedAddress::display).collect()
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
            let mailbox = NamedAddress::from_display(text);
            assert_eq!((mailbox.name.as_str(), mailbox.address.as_str()), (name, address), "{text}");
        }
        let mailbox = NamedAddress::new(" Jane\r\nDoe ", "a@x\0");
        assert_eq!(NamedAddress::from_display(&mailbox.display()), mailbox);
        assert_eq!(mailbox.display(), "Jane  Doe <a@x>");
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
            // Mailboxes without a comma between them.
            ("A <a@x> B <b@y>", &["A <a@x>", "B <b@y>"]),
            ("<a@x> Bob Roe <b@y> C <c@z>", &["<a@x>", "Bob Roe <b@y>", "C <c@z>"]),
            ("a@x b@y", &["<a@x>", "<b@y>"]),
            ("Ann a@x Bob b@y", &["Ann <a@x>", "Bob <b@y>"]),
            ("<a@x> b@y", &["<a@x>", "<b@y>"]),
            ("A <a@x>; B <b@y>;", &["A <a@x>", "B <b@y>"]),
            ("<a@x, b@y>", &["<a@x>", "<b@y>"]),
            ("Both <a@x; b@y>, c@z", &["Both <a@x>", "<b@y>", "<c@z>"]),
            // Names that hold an address.
            ("jane@x <jane@x>", &["jane@x <jane@x>"]),
            ("\"jane@x\" <jane@x>", &["jane@x <jane@x>"]),
            ("\"jane@x.org\"", &["<jane@x.org>"]),
            ("'jane@x.org', 'Bob' <b@y>", &["<jane@x.org>", "'Bob' <b@y>"]),
            ("Jane <the boss> <jane@x>", &["Jane <the boss> <jane@x>"]),
            // Comments and blanks in an address.
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
            assert_eq!(AddressList::parse(value.as_bytes(), 10).is_empty_group, empty, "{value}");
        }
    }

    #[test]
    fn limits_the_number_of_addresses() {
        let many = "a@x,".repeat(10_000);
        assert_eq!(parse_mailboxes(many.as_bytes(), 1000).len(), 1000);
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
            let list = parse_mailboxes(format!("a@x, {filler}{tail}").as_bytes(), 10);
            assert_eq!(list.iter().map(NamedAddress::display).collect::<Vec<_>>(), ["<a@x>"], "{tail}");
        }
    }

    #[test]
    fn truncates_displayed_names() {
        let long = "é".repeat(10_000);
        let displayed = parse_mailboxes(format!("{long} <{long}@x>").as_bytes(), 1)[0].display();
        assert!(
            displayed.starts_with("éé") && displayed.ends_with("é>") && displayed.len() <= 2 * MAX_DISPLAY_BYTES + 3
        );
    }
}
