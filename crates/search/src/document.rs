//! What of a message can be searched. Each [`Column`] is a text of words with blanks between and around them, so that a phrase is
//! found by looking for its characters, and so that the index holds exactly what a single message is compared by.
//!
//! Beside words there are marks, which begin with a character that no word has: a phrase does not reach from one address to the
//! next one, and a word in a field of the header carries the name of that field with it.

use std::cell::OnceCell;
use std::ops::ControlFlow;

use restante_mail::message::Summary;
use restante_mail::mime::{HeaderField, Mime};

use crate::words;

/// How much of a column's text is looked at, in bytes.
const MAX_TEXT_BYTES: usize = 256 << 10;
/// How many words of it are kept.
const MAX_WORDS: usize = 32_768;
/// How many words of a message's header are kept, and how many of one field.
const MAX_HEADER_WORDS: usize = 4096;
const MAX_FIELD_WORDS: usize = 256;
/// How much of the name of a field counts, in bytes.
const MAX_FIELD_NAME_BYTES: usize = 64;
/// What no word has.
const MARKER: char = '¦';

/// The texts of a message that are searched apart from each other.
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
    /// All of them, in their order.
    pub(crate) const ALL: [Self; 7] =
        [Self::From, Self::To, Self::Cc, Self::Subject, Self::Body, Self::Filename, Self::Header];

    /// Whether the summary alone says what is in it.
    pub(crate) fn is_in_summary(self) -> bool {
        matches!(self, Self::From | Self::To | Self::Subject)
    }
}

/// What of a mail can be searched beside its summary, for those who have many questions about it. It is bounded, however large the
/// mail is.
#[derive(Debug)]
pub struct Contents {
    /// Of the columns that are in the summary there is nothing here.
    texts: [String; Column::ALL.len()],
    has_attachment: bool,
}

impl Contents {
    /// Reads a mail. That is work for each byte of it.
    pub fn new(summary: &Summary, mime: &Mime) -> Self {
        let document = Document::new(summary, Some(mime));
        let text = |column: Column| if column.is_in_summary() { String::new() } else { document.build_text(column) };
        Self { texts: Column::ALL.map(text), has_attachment: document.has_attachment() }
    }

    /// About how many bytes of memory it takes, and how many are looked at for a question.
    pub fn bytes(&self) -> usize {
        self.texts.iter().map(String::len).sum()
    }
}

/// A message as it is searched. What is not asked for is not made.
pub(crate) struct Document<'a> {
    summary: &'a Summary,
    mime: Option<&'a Mime>,
    contents: Option<&'a Contents>,
    texts: [OnceCell<String>; Column::ALL.len()],
}

impl<'a> Document<'a> {
    /// The document of a message; without its source, only what the summary says is in it.
    pub(crate) fn new(summary: &'a Summary, mime: Option<&'a Mime>) -> Self {
        Self { summary, mime, contents: None, texts: [const { OnceCell::new() }; Column::ALL.len()] }
    }

    /// The document of a message that was read before.
    pub(crate) fn from_contents(summary: &'a Summary, contents: &'a Contents) -> Self {
        Self { contents: Some(contents), ..Self::new(summary, None) }
    }

    /// The summary it was made of.
    pub(crate) fn summary(&self) -> &Summary {
        self.summary
    }

    /// Whether something is attached to it.
    pub(crate) fn has_attachment(&self) -> bool {
        match self.contents {
            Some(contents) => contents.has_attachment,
            None => self.mime.is_some_and(|mime| mime.attachment_count() > 0),
        }
    }

    /// The words of a column: each has a blank before it, and one follows the last.
    pub(crate) fn text(&self, column: Column) -> &str {
        match self.contents {
            Some(contents) if !column.is_in_summary() => &contents.texts[column as usize],
            _ => self.texts[column as usize].get_or_init(|| self.build_text(column)),
        }
    }

    fn build_text(&self, column: Column) -> String {
        let headline = &self.summary.headline;
        let mut text = ColumnWriter::new(if column == Column::Header { MAX_HEADER_WORDS } else { MAX_WORDS });
        match (column, self.mime) {
            (Column::From, _) => text.add(headline.from()),
            (Column::Subject, _) => text.add(headline.subject()),
            (Column::To, _) => headline.to().for_each(|to| text.add_separate(to)),
            (_, None) => {}
            (Column::Cc, Some(mime)) => {
                mime.header()
                    .iter()
                    .filter(|field| field.has_name("cc"))
                    .for_each(|field| text.add_separate(&field.decoded_value()));
            }
            (Column::Body, Some(mime)) => {
                text.add(&mime.text());
                // What a reader sees may be in the HTML only, beside a text that says little.
                if mime.has_html() && mime.text_body().is_some() {
                    text.add_separate(&mime.html_as_text());
                }
            }
            (Column::Filename, Some(mime)) => {
                mime.attachments().iter().for_each(|attachment| text.add_separate(&attachment.filename));
            }
            (Column::Header, Some(mime)) => mime.header().iter().for_each(|field| text.add_field(field)),
        }
        text.finish()
    }
}

/// The mark that a field of this name is in the header.
pub(crate) fn field_marker(name: &str) -> String {
    format!("{MARKER}{}", field_name(name))
}

/// A word as it stands in the column of the header: with the name of its field.
pub(crate) fn field_word(name: &str, word: &str) -> String {
    format!("{}{MARKER}{word}", field_name(name))
}

/// The name of a field as part of a word. Blanks and signs would be taken for the end of it.
fn field_name(name: &str) -> String {
    let name = &name[..name.floor_char_boundary(MAX_FIELD_NAME_BYTES)];
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '·' }).collect()
}

/// A column while it is written.
struct ColumnWriter {
    text: String,
    /// How many more words there is room for.
    words_left: usize,
}

impl ColumnWriter {
    fn new(room: usize) -> Self {
        Self { text: String::new(), words_left: room }
    }

    fn add(&mut self, text: &str) {
        let text = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
        words::for_each(text, |word, _| {
            self.push(word);
            if self.words_left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }

    /// Adds a text that has nothing to do with the one before it.
    fn add_separate(&mut self, text: &str) {
        self.push(MARKER.encode_utf8(&mut [0; 4]));
        self.add(text);
    }

    fn add_field(&mut self, field: &HeaderField) {
        if self.words_left == 0 {
            return;
        }
        let name = field.raw_name();
        self.push(&field_marker(&name));
        let value = field.decoded_value();
        let value = &value[..value.floor_char_boundary(MAX_TEXT_BYTES)];
        let mut room = MAX_FIELD_WORDS;
        words::for_each(value, |word, _| {
            self.push(&field_word(&name, word));
            room -= 1;
            if self.words_left == 0 || room == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }

    fn push(&mut self, word: &str) {
        if self.words_left > 0 {
            self.words_left -= 1;
            self.text.push(' ');
            self.text.push_str(word);
        }
    }

    fn finish(mut self) -> String {
        self.text.push(' ');
        self.text
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use jiff::Timestamp;
    use restante_mail::message::Headline;
    use restante_mail::naming::Naming;

    use super::*;

    #[test]
    fn the_columns_of_a_message() {
        let mail = "Subject: not this one\r\nCc: B\u{f6} <b@x>, c@y\r\nX-Tag: One Two\r\nX-Tag: three\r\n\
            Content-Type: multipart/mixed; boundary=x\r\n\r\n\
            --x\r\n\r\nHello World\r\n--x\r\nContent-Disposition: attachment; filename=My.pdf\r\n\r\n%\r\n--x--\r\n";
        let mime = Mime::parse(Bytes::from(mail));
        let summary = Summary {
            mailbox: Naming::Local.parse_mailbox("ann").unwrap(),
            id: 1.into(),
            headline: Headline::new("Ann <a@x>", ["<b@x>", "C <c@y>"], "Hi"),
            received: Timestamp::UNIX_EPOCH,
            size: 1,
            seen: false,
        };
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
        let read = Document::from_contents(&summary, &contents);
        assert!(read.has_attachment());
        for column in Column::ALL {
            assert_eq!(read.text(column), document.text(column), "{column:?}");
        }

        let without = Document::new(&summary, None);
        assert!(!without.has_attachment());
        for column in Column::ALL {
            let expected = if column.is_in_summary() { document.text(column) } else { " " };
            assert_eq!(without.text(column), expected, "{column:?}");
        }
    }

    #[test]
    fn a_document_is_bounded() {
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
        };
        let document = Document::new(&summary, Some(&mime));
        let words = |column| document.text(column).split_ascii_whitespace().count();
        assert_eq!(words(Column::Body), MAX_WORDS);
        assert_eq!(words(Column::Header), MAX_HEADER_WORDS);
    }
}
