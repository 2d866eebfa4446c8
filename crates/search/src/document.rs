//! The searchable text of a message. Each [`Column`] is a text of words, with a space before every word and after the
//! last one. So a phrase is found by a substring search, and the index contains the same texts that queries of a single
//! message use.
//!
//! Besides words there are markers, which begin with a character that no word contains. They keep a phrase from
//! matching across two addresses, and they prefix the words of a header field with the name of the field.

use std::cell::OnceCell;
use std::ops::ControlFlow;

use restante_mail::message::Summary;
use restante_mail::mime::{HeaderField, Mime};

use crate::words;

/// The maximum number of bytes of a text that are read for a column.
const MAX_TEXT_BYTES: usize = 256 << 10;
/// The maximum number of words of a column.
const MAX_WORDS: usize = 32_768;
/// The maximum number of words of a message's header, and of one header field.
const MAX_HEADER_WORDS: usize = 4096;
const MAX_FIELD_WORDS: usize = 256;
/// The maximum number of bytes of a field name that are used.
const MAX_FIELD_NAME_BYTES: usize = 64;
/// The first character of a marker. No word contains it.
pub(crate) const MARKER: &str = "¦";

/// The names of header fields whose words are not in the index, as in [`field_name`]. Servers and programs write these
/// fields for each other: they have many words, most of them are in no other message, and few are ever searched.
const UNINDEXED_FIELDS: &[&str] = &[
    "arc·authentication·results",
    "arc·message·signature",
    "arc·seal",
    "authentication·results",
    "content·transfer·encoding",
    "content·type",
    "date",
    "dkim·signature",
    "domainkey·signature",
    "mime·version",
    "received",
    "received·spf",
    "x·google·dkim·signature",
    "x·received",
];

/// The columns of text that can be searched separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    From,
    To,
    Cc,
    Subject,
    Body,
    Filename,
    Header,
}

impl Column {
    /// All columns, in the order of the enum.
    pub(crate) const ALL: [Self; 7] =
        [Self::From, Self::To, Self::Cc, Self::Subject, Self::Body, Self::Filename, Self::Header];

    /// Returns true if the text of this column comes from the summary alone.
    pub(crate) fn is_in_summary(self) -> bool {
        matches!(self, Self::From | Self::To | Self::Subject)
    }
}

/// The searchable text of a message that is not in its summary. It is for callers that apply many queries to one
/// message. Its size is bounded, however large the message is.
#[derive(Debug)]
pub struct Contents {
    /// The texts by column; those of columns in the summary are empty.
    texts: [String; Column::ALL.len()],
    has_attachment: bool,
}

impl Contents {
    /// Builds the texts from a parsed message. The cost is linear in the size of the message.
    pub fn new(summary: &Summary, mime: &Mime) -> Self {
        let document = Document::new(summary, Some(mime));
        let text = |column: Column| if column.is_in_summary() { String::new() } else { document.build_text(column) };
        Self { texts: Column::ALL.map(text), has_attachment: document.has_attachment() }
    }

    /// Returns the approximate memory use in bytes. It is also the number of bytes that a query reads.
    pub fn bytes(&self) -> usize {
        self.texts.iter().map(String::len).sum()
    }
}

/// A message as queries see it. The text of a column is built when it is first requested.
pub(crate) struct Document<'a> {
    summary: &'a Summary,
    mime: Option<&'a Mime>,
    contents: Option<&'a Contents>,
    texts: [OnceCell<String>; Column::ALL.len()],
}

impl<'a> Document<'a> {
    /// Creates the document of a message. Without `mime` only the columns in the summary have text.
    pub(crate) fn new(summary: &'a Summary, mime: Option<&'a Mime>) -> Self {
        Self { summary, mime, contents: None, texts: [const { OnceCell::new() }; Column::ALL.len()] }
    }

    /// Creates the document of a message whose texts were built before.
    pub(crate) fn from_contents(summary: &'a Summary, contents: &'a Contents) -> Self {
        Self { contents: Some(contents), ..Self::new(summary, None) }
    }

    /// Returns the summary of the message.
    pub(crate) fn summary(&self) -> &Summary {
        self.summary
    }

    /// Returns true if the message has an attachment that is not inline.
    pub(crate) fn has_attachment(&self) -> bool {
        match self.contents {
            Some(contents) => contents.has_attachment,
            None => self.mime.is_some_and(|mime| mime.attachment_count() > 0),
        }
    }

    /// Returns the words of a column, with a space before every word and after the last one.
    pub(crate) fn text(&self, column: Column) -> &str {
        match self.contents {
            Some(contents) if !column.is_in_summary() => &contents.texts[column as usize],
            _ => self.texts[column as usize].get_or_init(|| self.build_text(column)),
        }
    }

    /// Calls `add` with the parts of each word of a column as it is in the index: without the words of some header fields.
    pub(crate) fn for_each_indexed_word(&self, column: Column, add: impl FnMut(&[&str])) {
        self.write_words(column, 0, add);
    }

    fn build_text(&self, column: Column) -> String {
        let mut text = String::new();
        self.write_words(column, MAX_HEADER_WORDS, |parts| {
            text.push(' ');
            text.extend(parts.iter().copied());
        });
        text.push(' ');
        text
    }

    /// Calls `add` with the parts of each word of a column. `max_unindexed_words` limits the words of header fields that
    /// are not in the index.
    fn write_words(&self, column: Column, max_unindexed_words: usize, add: impl FnMut(&[&str])) {
        let words_left = if column == Column::Header { MAX_HEADER_WORDS } else { MAX_WORDS };
        let mut words = ColumnWriter { add, words_left, unindexed_words_left: max_unindexed_words };
        let headline = &self.summary.headline;
        match (column, self.mime) {
            (Column::From, _) => words.add(headline.from()),
            (Column::Subject, _) => words.add(headline.subject()),
            (Column::To, _) => self.summary.to().for_each(|to| words.add_separate(&to)),
            (_, None) => {}
            (Column::Cc, Some(mime)) => {
                mime.header()
                    .iter()
                    .filter(|field| field.has_name("cc"))
                    .for_each(|field| words.add_separate(&field.decoded_value()));
            }
            (Column::Body, Some(mime)) => {
                let text_body = mime.text_body();
                let has_text = text_body.is_some();
                words.add(&text_body.unwrap_or_else(|| mime.html_as_text()));
                // The visible text may be in the HTML part only, next to a plain text that says little.
                if has_text && mime.has_html() {
                    words.add_separate(&mime.html_as_text());
                }
            }
            (Column::Filename, Some(mime)) => {
                mime.attachments().iter().for_each(|attachment| words.add_separate(&attachment.filename));
            }
            (Column::Header, Some(mime)) => mime.header().iter().for_each(|field| words.add_field(field)),
        }
    }
}

/// Returns the marker for the presence of a header field of this name.
pub(crate) fn field_marker(name: &str) -> String {
    format!("{MARKER}{}", field_name(name))
}

/// Returns a word of a header field as it is stored in the header column: prefixed with the name of the field.
pub(crate) fn field_word(name: &str, word: &str) -> String {
    format!("{}{MARKER}{word}", field_name(name))
}

/// Returns true if the index contains the words of header fields of this name.
pub(crate) fn is_field_indexed(name: &str) -> bool {
    is_indexed_name(&field_name(name))
}

fn is_indexed_name(field_name: &str) -> bool {
    !UNINDEXED_FIELDS.contains(&field_name)
}

/// Returns a field name as part of a word. Spaces and punctuation would end the word and are replaced.
fn field_name(name: &str) -> String {
    let name = &name[..name.floor_char_boundary(MAX_FIELD_NAME_BYTES)];
    let mut text = String::with_capacity(2 * name.len());
    text.extend(name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '·' }));
    text
}

/// Writes the words of a column within its limits.
struct ColumnWriter<F> {
    /// Called with the parts of each word.
    add: F,
    /// The number of words that can still be added.
    words_left: usize,
    /// The number of words of header fields that are not in the index that can still be added.
    unindexed_words_left: usize,
}

impl<F: FnMut(&[&str])> ColumnWriter<F> {
    fn add(&mut self, text: &str) {
        let text = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
        words::for_each(text, |word, _| {
            self.push(&[word]);
            if self.words_left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }

    /// Adds a text after a marker, so that no phrase matches across both texts.
    fn add_separate(&mut self, text: &str) {
        self.push(&[MARKER]);
        self.add(text);
    }

    fn add_field(&mut self, field: &HeaderField) {
        if self.words_left == 0 {
            return;
        }
        let name = field_name(&field.raw_name());
        self.push(&[MARKER, &name]);
        // The two limits are independent, so that the words of indexed fields are the same with and without the others.
        let is_indexed = is_indexed_name(&name);
        let limit = if is_indexed { self.words_left } else { self.unindexed_words_left };
        let mut words_left = limit.min(MAX_FIELD_WORDS);
        if words_left == 0 {
            return;
        }
        let value = field.decoded_value();
        let value = &value[..value.floor_char_boundary(MAX_TEXT_BYTES)];
        words::for_each(value, |word, _| {
            (self.add)(&[&name, MARKER, word]);
            let limit = if is_indexed { &mut self.words_left } else { &mut self.unindexed_words_left };
            *limit -= 1;
            words_left -= 1;
            if words_left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }

    /// Adds a word that consists of these parts, unless there are enough words.
    fn push(&mut self, parts: &[&str]) {
        if self.words_left > 0 {
            self.words_left -= 1;
            (self.add)(parts);
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use jiff::Timestamp;
    use restante_mail::details::Details;
    use restante_mail::message::{Flags, Headline};
    use restante_mail::naming::Naming;
    use restante_mail::tags::Tags;

    use super::*;

    fn summary() -> Summary {
        Summary {
            mailbox: Naming::Local.parse_mailbox("ann").unwrap(),
            id: 1.into(),
            headline: Headline::new("Ann <a@x>", ["<b@x>", "C <c@y>"], "Hi"),
            received: Timestamp::UNIX_EPOCH,
            size: 1,
            seen: false,
            flags: Flags::default(),
            modseq: 1,
            message: 1.into(),
            number: 1,
            tags: Tags::default(),
            details: Details::default(),
        }
    }

    #[test]
    fn inline_parts_are_no_attachments() {
        let message = |disposition: &str| {
            let image = format!("Content-Type: image/png; name=a.png\r\nContent-ID: <a>\r\n{disposition}\r\nx");
            let header = "Content-Type: multipart/related; boundary=x";
            Mime::parse(format!("{header}\r\n\r\n--x\r\n\r\nHi\r\n--x\r\n{image}\r\n--x--\r\n").into())
        };
        for (disposition, expected) in
            [("", false), ("Content-Disposition: inline\r\n", false), ("Content-Disposition: attachment\r\n", true)]
        {
            let (mime, summary) = (message(disposition), summary());
            let document = Document::new(&summary, Some(&mime));
            assert_eq!(document.has_attachment(), expected, "{disposition}");
            assert_eq!(document.text(Column::Filename), " ¦ a png ", "{disposition}");
        }
    }

    #[test]
    fn columns_contain_the_words_of_a_message() {
        let source = "Subject: not this one\r\nCc: B\u{f6} <b@x>, c@y\r\nX-Tag: One Two\r\nX-Tag: three\r\n\
            Content-Type: multipart/mixed; boundary=x\r\n\r\n\
            --x\r\n\r\nHello World\r\n--x\r\nContent-Disposition: attachment; filename=My.pdf\r\n\r\n%\r\n--x--\r\n";
        let mime = Mime::parse(Bytes::from(source));
        let summary = summary();
        let document = Document::new(&summary, Some(&mime));
        assert!(document.has_attachment());
        let table = [
            (Column::From, " ann a x "),
            (Column::To, " ¦ b x ¦ c c y "),
            (Column::Cc, " ¦ bo b x c y "),
            (Column::Subject, " hi "),
            (Column::Body, " hello world "),
            (Column::Filename, " ¦ my pdf "),
        ];
        for (column, expected) in table {
            assert_eq!(document.text(column), expected, "{column:?}");
        }
        let header = document.text(Column::Header);
        assert!(header.contains(" ¦x·tag x·tag¦one x·tag¦two ¦x·tag x·tag¦three "), "{header}");

        let contents = Contents::new(&summary, &mime);
        let from_contents = Document::from_contents(&summary, &contents);
        assert!(from_contents.has_attachment());
        for column in Column::ALL {
            assert_eq!(from_contents.text(column), document.text(column), "{column:?}");
        }

        let summary_only = Document::new(&summary, None);
        assert!(!summary_only.has_attachment());
        for column in Column::ALL {
            let expected = if column.is_in_summary() { document.text(column) } else { " " };
            assert_eq!(summary_only.text(column), expected, "{column:?}");
        }
    }

    #[test]
    fn size_of_a_document_is_limited() {
        let header = format!("X-Long: {}\r\n", "a ".repeat(1000)).repeat(100);
        let body = "a ".repeat(1 << 20);
        let mime = Mime::parse(Bytes::from(format!("{header}\r\n{body}")));
        let summary = Summary {
            mailbox: Naming::Local.parse_mailbox("ann").unwrap(),
            id: 1.into(),
            headline: Headline::new("", [], ""),
            received: Timestamp::UNIX_EPOCH,
            size: 1,
            seen: false,
            flags: Flags::default(),
            modseq: 1,
            message: 1.into(),
            number: 1,
            tags: Tags::default(),
            details: Details::default(),
        };
        let document = Document::new(&summary, Some(&mime));
        let words = |column| document.text(column).split_ascii_whitespace().count();
        assert_eq!(words(Column::Body), MAX_WORDS);
        assert_eq!(words(Column::Header), MAX_HEADER_WORDS);
    }
}
