//! Address lists of header fields (RFC 5322 section 3.4), read for showing them to people. Delivery never looks here:
//! envelope addresses have their own strict parser.

use super::charset::{decode_unlabelled, one_line};
use super::header::unfold;
use super::words::{self, Word};

/// How much of one field is read, in bytes: a thousand mailboxes with long names.
const MAX_FIELD: usize = 256 * 1024;
/// How much of a display name is shown, and how much of an address, in bytes. RFC 5321 section 4.5.3.1 allows an
/// address half of it.
const MAX_SHOWN: usize = 512;

/// One mailbox of an address list, in the words of RFC 5322: a person or a program, and where it gets its mail.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mailbox {
    /// The display name, decoded and without quotes; empty when there is none.
    pub name: String,
    /// The address as it is written.
    pub address: String,
}

impl Mailbox {
    /// A mailbox in somebody else's words, made fit for one line.
    pub fn new(name: &str, address: &str) -> Self {
        Self { name: one_line(name), address: one_line(address) }
    }

    /// The first `limit` mailboxes of a list, such as the value of a To field. What is no mailbox is left out.
    pub fn list(field: &[u8], limit: usize) -> Vec<Self> {
        mailboxes(field, limit)
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
        let name = &self.name[..self.name.floor_char_boundary(MAX_SHOWN)];
        let address = &self.address[..self.address.floor_char_boundary(MAX_SHOWN)];
        if name.is_empty() { format!("<{address}>") } else { format!("{name} <{address}>") }
    }
}

/// The first `limit` mailboxes of a field's value. Groups are flattened, what is no mailbox is left out, and so is what
/// lies across the end of what is read.
pub(super) fn mailboxes(field: &[u8], limit: usize) -> Vec<Mailbox> {
    let cut = field.len() > MAX_FIELD;
    let value = unfold(&field[..field.len().min(MAX_FIELD)]);
    let mut found = Vec::new();
    let mut item = Item::default();
    // A quote that is never closed quotes nothing, nor does any behind it.
    let mut quotes = true;
    let mut pos = 0;
    while pos < value.len() && found.len() < limit {
        let rest = &value[pos..];
        pos += match rest[0] {
            b'"' if quotes => match item.quoted(rest) {
                Some(used) => used,
                None if cut => break,
                None => {
                    quotes = false;
                    1
                }
            },
            b'(' => item.comment(rest),
            b'<' => item.angle(rest),
            b'=' => item.word(rest),
            b',' | b';' => {
                item = item.finish(&mut found, rest[0] == b',');
                1
            }
            // The name of a group (section 3.4) ends here; in an address a colon can only be an IPv6 literal's.
            b':' if !item.literal => {
                item = Item::default();
                1
            }
            _ => item.plain(rest),
        };
    }
    if found.len() < limit && !cut {
        item.finish(&mut found, false);
    }
    found
}

/// What was read since the last comma.
#[derive(Default)]
struct Item {
    /// Everything outside of angle brackets and comments, unquoted: the display name when an address follows.
    phrase: Vec<u8>,
    /// The same with its quotes: the address when none follows.
    bare: Vec<u8>,
    /// Whether an address literal (`[`) has begun.
    literal: bool,
    comment: Vec<u8>,
    angle: Option<Vec<u8>>,
}

impl Item {
    fn plain(&mut self, rest: &[u8]) -> usize {
        let len = rest.iter().skip(1).position(|b| b"\"(<=,;:".contains(b)).map_or(rest.len(), |len| len + 1);
        self.literal |= rest[..len].contains(&b'[');
        self.take(&rest[..len])
    }

    /// An encoded word is one atom: specials in it are part of the name, although RFC 2047 section 5 forbids them. A
    /// word with blanks in it more likely has lost its end.
    fn word(&mut self, rest: &[u8]) -> usize {
        match Word::at(rest).filter(|word| !word.text.iter().any(u8::is_ascii_whitespace)) {
            Some(word) => self.take(&rest[..word.len]),
            None => self.plain(rest),
        }
    }

    fn take(&mut self, text: &[u8]) -> usize {
        self.phrase.extend_from_slice(text);
        self.bare.extend_from_slice(text);
        text.len()
    }

    fn quoted(&mut self, rest: &[u8]) -> Option<usize> {
        let (content, len) = quoted_string(rest)?;
        self.phrase.extend_from_slice(&content);
        self.bare.extend_from_slice(&rest[..len]);
        Some(len)
    }

    fn angle(&mut self, rest: &[u8]) -> usize {
        let len = memchr::memchr(b'>', rest).unwrap_or(rest.len());
        let address = rest[1..len].trim_ascii();
        if self.angle.is_none() && !address.is_empty() {
            self.angle = Some(address.to_vec());
        }
        (len + 1).min(rest.len())
    }

    /// Comments nest (section 3.2.2); only how deep is counted.
    fn comment(&mut self, rest: &[u8]) -> usize {
        let mut depth = 0_usize;
        let mut pos = 0;
        while pos < rest.len() {
            match rest[pos] {
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
        let len = pos.min(rest.len());
        self.comment.extend_from_slice(rest[1..len].strip_suffix(b")").unwrap_or(&rest[1..len]));
        len
    }

    /// Ends the item: its mailbox goes to the list. What has no address may be the front of a name with a comma that
    /// should have been quoted (`Doe, Jane <jane@example.org>`) and stays for the next item.
    fn finish(self, found: &mut Vec<Mailbox>, continues: bool) -> Self {
        if let Some(address) = &self.angle {
            found.push(Mailbox { name: decoded(&self.phrase), address: one_line(&decode_unlabelled(address)) });
            return Self::default();
        }
        let bare = self.bare.trim_ascii();
        if let Some(at) = memchr::memrchr(b'@', bare) {
            found.push(self.bare_mailbox(bare, at));
            return Self::default();
        }
        if !continues || bare.is_empty() {
            return Self::default();
        }
        let mut carried = self;
        carried.phrase.push(b',');
        carried.bare.clear();
        carried.literal = false;
        carried
    }

    /// An address without brackets. Blanks may surround its `@` (section 4.4); words before it are a name whose
    /// brackets got lost, a comment behind it is the name in the form older than RFC 822.
    fn bare_mailbox(&self, bare: &[u8], at: usize) -> Mailbox {
        let local = bare[..at].trim_ascii_end();
        let domain = bare[at + 1..].trim_ascii();
        let start = if local.ends_with(b"\"") {
            opening_quote(local)
        } else {
            local.iter().rposition(u8::is_ascii_whitespace).map_or(0, |blank| blank + 1)
        };
        let name = if start > 0 { decoded(&unquote(&local[..start])) } else { decoded(&self.comment) };
        Mailbox { name, address: one_line(&decode_unlabelled(&[&local[start..], b"@", domain].concat())) }
    }
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

/// Where the quoted string starts that ends the text.
fn opening_quote(text: &[u8]) -> usize {
    let before = &text[..text.len() - 1];
    memchr::memrchr(b'"', before).unwrap_or(before.len())
}

fn unquote(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|&b| b != b'"').collect()
}

fn decoded(name: &[u8]) -> String {
    words::decode_line(name.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: &str) -> Vec<String> {
        mailboxes(value.as_bytes(), 10).iter().map(Mailbox::display).collect()
    }

    #[test]
    fn what_is_shown_can_be_taken_apart() {
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
            let mailbox = Mailbox::from_display(text);
            assert_eq!((mailbox.name.as_str(), mailbox.address.as_str()), (name, address), "{text}");
        }
        let mailbox = Mailbox::new(" Jane\r\nDoe ", "a@x\0");
        assert_eq!(Mailbox::from_display(&mailbox.display()), mailbox);
        assert_eq!(mailbox.display(), "Jane  Doe <a@x>");
    }

    #[test]
    fn address_lists() {
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
            ("<@a,@b:jane@c>", &["<@a,@b:jane@c>"]),
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
            ("A <a@x> <b@y>", &["A <a@x>"]),
            ("mailto:j@x", &["<j@x>"]),
            ("Evil\u{1}\u{7f} <j@x>", &["Evil <j@x>"]),
        ];
        for (value, list) in table {
            assert_eq!(shown(value), *list, "{value}");
        }
    }

    #[test]
    fn the_list_is_bounded() {
        let many = "a@x,".repeat(10_000);
        assert_eq!(mailboxes(many.as_bytes(), 1000).len(), 1000);
    }

    #[test]
    fn what_lies_across_the_end_of_what_is_read_is_left_out() {
        let filler = " ".repeat(MAX_FIELD - 20);
        for tail in [
            "jane@example.org,,,,,,,,",
            "\"Doe, Jane\" <j@example.org>",
            "=?utf-8?Q?Doe,_Jane?= <j@x>",
            "<j@example.org, and, more>",
        ] {
            let list = mailboxes(format!("a@x, {filler}{tail}").as_bytes(), 10);
            assert_eq!(list.iter().map(Mailbox::display).collect::<Vec<_>>(), ["<a@x>"], "{tail}");
        }
    }

    #[test]
    fn what_is_shown_is_bounded() {
        let long = "é".repeat(10_000);
        let shown = mailboxes(format!("{long} <{long}@x>").as_bytes(), 1)[0].display();
        assert!(shown.starts_with("éé") && shown.ends_with("é>") && shown.len() <= 2 * MAX_SHOWN + 3);
    }
}
