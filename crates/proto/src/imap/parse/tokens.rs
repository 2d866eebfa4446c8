//! Reads the tokens of a command (RFC 3501 section 9): atoms, strings, literals, numbers, lists and dates.

use std::borrow::Cow;
use std::num::NonZeroU32;

use bytes::Bytes;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::Offset;
use memchr::{memchr, memchr2};

use super::super::command::{Flag, SequenceSet, SetNumber};
use super::super::keywords::is_atom_char;
use super::super::literal::LiteralHeader;
use super::super::reader::{CommandText, Message};
use super::super::write::MONTHS;
use super::mailbox_name;

/// The result of parsing. The error says what is wrong.
pub(super) type Parsed<T> = Result<T, &'static str>;

const INVALID_DATE: &str = "Invalid date";

/// The rest of a command that is being parsed.
pub(super) struct Parser<'a> {
    text: &'a [u8],
    position: usize,
    message: Option<&'a Message>,
    /// Whether names of mailboxes are UTF-8 only.
    is_utf8: bool,
    /// The number of search keys so far.
    pub(super) search_keys: usize,
}

impl<'a> Parser<'a> {
    /// Creates a parser of the text after a number of bytes.
    pub(super) fn new(command: &'a CommandText, position: usize, is_utf8: bool) -> Self {
        let CommandText { text, message } = command;
        Self { text, position, message: message.as_ref(), is_utf8, search_keys: 0 }
    }

    /// Returns whether the number of a part is next. All but the first follow a dot.
    pub(super) fn is_part_number(&self, is_first: bool) -> bool {
        let rest = self.rest();
        let digit = if is_first { Some(rest) } else { rest.strip_prefix(b".") };
        digit.and_then(<[u8]>::first).is_some_and(u8::is_ascii_digit)
    }

    fn rest(&self) -> &'a [u8] {
        self.text.get(self.position..).unwrap_or_default()
    }

    /// Returns the next byte.
    pub(super) fn peek(&self) -> Option<u8> {
        self.rest().first().copied()
    }

    /// Consumes a byte if it is the next one.
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.position += usize::from(is_next);
        is_next
    }

    /// Consumes a text in any case if it is next.
    pub(super) fn take_text(&mut self, text: &str) -> bool {
        let start = self.rest().get(..text.len());
        let is_next = start.is_some_and(|start| start.eq_ignore_ascii_case(text.as_bytes()));
        self.position += if is_next { text.len() } else { 0 };
        is_next
    }

    fn take_while(&mut self, is_part: impl Fn(u8) -> bool) -> &'a [u8] {
        let rest = self.rest();
        let part = &rest[..rest.iter().position(|byte| !is_part(*byte)).unwrap_or(rest.len())];
        self.position += part.len();
        part
    }

    /// Consumes the space before an argument.
    pub(super) fn space(&mut self) -> Parsed<()> {
        if self.take(b' ') {
            Ok(())
        } else if self.peek().is_none() {
            Err("An argument is missing")
        } else {
            Err("A space is missing")
        }
    }

    /// Consumes the space before another argument, if there is one. A space at the end of a command is ignored.
    pub(super) fn take_separator(&mut self) -> bool {
        self.rest().len() > 1 && self.take(b' ')
    }

    /// Consumes an opening parenthesis.
    pub(super) fn open(&mut self) -> Parsed<()> {
        if self.take(b'(') { Ok(()) } else { Err("A list in parentheses is missing") }
    }

    /// Consumes a closing parenthesis.
    pub(super) fn close(&mut self) -> Parsed<()> {
        if self.take(b')') { Ok(()) } else { Err("A closing parenthesis is missing") }
    }

    /// Checks that the command ends here.
    pub(super) fn end(&self) -> Parsed<()> {
        if self.rest().iter().all(|byte| *byte == b' ') { Ok(()) } else { Err("Too many arguments") }
    }

    /// Parses a list in parentheses, with at least one item.
    pub(super) fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        self.open()?;
        let mut items = Vec::new();
        loop {
            items.push(item(self)?);
            if self.take(b')') {
                return Ok(items);
            }
            self.space()?;
        }
    }

    /// Parses an atom.
    pub(super) fn atom(&mut self) -> Parsed<&'a str> {
        non_empty_ascii(self.take_while(is_atom_char), "An atom is missing or invalid")
    }

    /// Parses an atom into upper case.
    pub(super) fn word(&mut self) -> Parsed<String> {
        self.atom().map(str::to_ascii_uppercase)
    }

    /// Parses the name of a data item, which may be followed by a section, into upper case.
    pub(super) fn item_name(&mut self) -> Parsed<String> {
        let name = self.take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'));
        non_empty_ascii(name, "A name is missing or invalid").map(str::to_ascii_uppercase)
    }

    /// Parses a number.
    pub(super) fn number<T: TryFrom<u64>>(&mut self) -> Parsed<T> {
        let digits = non_empty_ascii(self.take_while(|byte| byte.is_ascii_digit()), "A number is missing or invalid")?;
        digits.parse().ok().and_then(|number: u64| number.try_into().ok()).ok_or("A number is out of range")
    }

    /// Parses a number that is not zero.
    pub(super) fn nonzero(&mut self) -> Parsed<NonZeroU32> {
        NonZeroU32::new(self.number()?).ok_or("A number must not be 0")
    }

    /// Parses an atom or a string. The atom may have 8-bit characters.
    pub(super) fn astring(&mut self) -> Parsed<Cow<'a, [u8]>> {
        self.string_or(|byte| is_atom_char(byte) || byte == b']' || !byte.is_ascii())
    }

    /// Parses an [`Parser::astring`] as text. Bytes that are not UTF-8 are replaced.
    pub(super) fn text(&mut self) -> Parsed<String> {
        Ok(String::from_utf8_lossy(&self.astring()?).into_owned())
    }

    /// Parses the name of a mailbox.
    pub(super) fn mailbox(&mut self) -> Parsed<String> {
        let name = self.astring()?;
        mailbox_name(&name, self.is_utf8)
    }

    /// Parses a pattern of mailboxes.
    pub(super) fn pattern(&mut self) -> Parsed<String> {
        let is_part = |byte: u8| is_atom_char(byte) || b"]%*".contains(&byte) || !byte.is_ascii();
        let pattern = self.string_or(is_part)?;
        mailbox_name(&pattern, self.is_utf8)
    }

    fn string_or(&mut self, is_part: impl Fn(u8) -> bool) -> Parsed<Cow<'a, [u8]>> {
        match self.peek() {
            Some(b'"') => self.quoted(),
            Some(b'{') => self.small_literal().map(Cow::Borrowed),
            _ => match self.take_while(is_part) {
                b"" => Err("An argument is missing or invalid"),
                part => Ok(Cow::Borrowed(part)),
            },
        }
    }

    /// Parses a quoted string or a literal.
    pub(super) fn string(&mut self) -> Parsed<Cow<'a, [u8]>> {
        self.string_or(|_| false)
    }

    fn quoted(&mut self) -> Parsed<Cow<'a, [u8]>> {
        self.position += 1;
        let mut text = Cow::Borrowed(&b""[..]);
        loop {
            let rest = self.rest();
            let end = memchr2(b'"', b'\\', rest).ok_or("A quotation mark is missing")?;
            let part = &rest[..end];
            if part.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
                return Err("Invalid character in a quoted string");
            }
            if text.is_empty() {
                text = Cow::Borrowed(part);
            } else {
                text.to_mut().extend_from_slice(part);
            }
            self.position += end + 1;
            if rest.get(end) == Some(&b'"') {
                return Ok(text);
            }
            match self.peek() {
                Some(escaped @ (b'"' | b'\\')) => text.to_mut().push(escaped),
                _ => return Err("Invalid character after a backslash in a quoted string"),
            }
            self.position += 1;
        }
    }

    fn small_literal(&mut self) -> Parsed<&'a [u8]> {
        let header = self.literal_header()?;
        if header.is_binary {
            return Err("A binary literal is not allowed here");
        }
        let content = self.literal_content(header)?;
        if content.contains(&0) { Err("NUL in a literal") } else { Ok(content) }
    }

    /// Parses the literal with the message of APPEND.
    pub(super) fn message(&mut self) -> Parsed<Bytes> {
        let header = self.literal_header()?;
        match self.message {
            Some(message) if message.offset == self.position => Ok(message.bytes.clone()),
            _ => self.literal_content(header).map(Bytes::copy_from_slice),
        }
    }

    fn literal_header(&mut self) -> Parsed<LiteralHeader> {
        let rest = self.rest();
        let line = memchr(b'\n', rest).map_or(rest, |end| &rest[..=end]);
        let header = LiteralHeader::at_end_of(line).filter(|header| header.start == 0).ok_or("A literal is missing")?;
        self.position += line.len();
        Ok(header)
    }

    fn literal_content(&mut self, header: LiteralHeader) -> Parsed<&'a [u8]> {
        let size = usize::try_from(header.bytes).unwrap_or(usize::MAX);
        let content = self.rest().get(..size).ok_or("A literal is incomplete")?;
        self.position += size;
        Ok(content)
    }

    /// Parses the initial response of AUTHENTICATE, without decoding it.
    pub(super) fn initial_response(&mut self) -> Parsed<&'a str> {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
        non_empty_ascii(self.take_while(is_part), "The initial response is not base64")
    }

    /// Parses a flag.
    pub(super) fn flag(&mut self) -> Parsed<Flag> {
        const INVALID: &str = "Invalid flag";
        if !self.take(b'\\') {
            return self.atom().map(|keyword| Flag::Keyword(keyword.to_owned())).map_err(|_| INVALID);
        }
        Ok(match self.word().map_err(|_| INVALID)?.as_str() {
            "SEEN" => Flag::Seen,
            "ANSWERED" => Flag::Answered,
            "FLAGGED" => Flag::Flagged,
            "DELETED" => Flag::Deleted,
            "DRAFT" => Flag::Draft,
            _ => Flag::System,
        })
    }

    /// Parses a list of flags, which may be empty.
    pub(super) fn flags(&mut self) -> Parsed<Vec<Flag>> {
        if self.take_text("()") { Ok(Vec::new()) } else { self.list(Self::flag) }
    }

    /// Parses a set of sequence numbers or UIDs.
    pub(super) fn sequence_set(&mut self) -> Parsed<SequenceSet> {
        if self.take(b'$') {
            return Ok(SequenceSet::Saved);
        }
        let mut ranges = Vec::new();
        loop {
            let from = self.set_number()?;
            let to = if self.take(b':') { self.set_number()? } else { from };
            ranges.push((from, to));
            if !self.take(b',') {
                return Ok(SequenceSet::Ranges(ranges));
            }
        }
    }

    fn set_number(&mut self) -> Parsed<SetNumber> {
        if self.take(b'*') {
            return Ok(SetNumber::Last);
        }
        self.nonzero().map(SetNumber::Number).map_err(|_| "Invalid sequence set")
    }

    /// Parses a day, such as `1-Feb-1994`, with or without quotation marks.
    pub(super) fn date(&mut self) -> Parsed<Date> {
        let text = self.astring()?;
        std::str::from_utf8(&text).ok().and_then(parse_date).ok_or(INVALID_DATE)
    }

    /// Parses a time, such as `" 1-Feb-1994 12:34:56 +0100"`.
    pub(super) fn date_time(&mut self) -> Parsed<Timestamp> {
        let text = self.string()?;
        std::str::from_utf8(&text).ok().and_then(parse_date_time).ok_or(INVALID_DATE)
    }
}

fn non_empty_ascii<'a>(part: &'a [u8], error: &'static str) -> Parsed<&'a str> {
    std::str::from_utf8(part).ok().filter(|part| !part.is_empty()).ok_or(error)
}

fn parse_digits(text: &str, lengths: std::ops::RangeInclusive<usize>) -> Option<i16> {
    let is_valid = lengths.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_valid)
}

fn parse_date(text: &str) -> Option<Date> {
    let (day, rest) = text.split_once('-')?;
    let (month, year) = rest.split_once('-')?;
    let month = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month))? + 1;
    let day = parse_digits(day, 1..=2)?;
    Date::new(parse_digits(year, 4..=4)?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

fn parse_date_time(text: &str) -> Option<Timestamp> {
    let (day, rest) = text.trim_start().split_once(' ')?;
    let (time, zone) = rest.split_once(' ')?;
    let two_digits = |text: &str, from: usize| i8::try_from(parse_digits(text.get(from..from + 2)?, 2..=2)?).ok();
    let (8, b':', b':') = (time.len(), *time.as_bytes().get(2)?, *time.as_bytes().get(5)?) else { return None };
    // There are no leap seconds in a timestamp.
    let second = two_digits(time, 6)?;
    let second = if second == 60 { 59 } else { second };
    let date = parse_date(day)?;
    let (hour, minute) = (two_digits(time, 0)?, two_digits(time, 3)?);
    let local = DateTime::new(date.year(), date.month(), date.day(), hour, minute, second, 0).ok()?;
    let (sign, 5) = (zone.get(..1)?, zone.len()) else { return None };
    let (hours, minutes) = (i32::from(two_digits(zone, 1)?), i32::from(two_digits(zone, 3)?));
    let seconds = hours * 3_600 + minutes * 60;
    let seconds = match sign {
        "+" => seconds,
        "-" => -seconds,
        _ => return None,
    };
    Offset::from_seconds(seconds).ok()?.to_timestamp(local).ok()
}
