//! Composition of messages: a [`Draft`] is converted to the bytes that a mail client would send.
//!
//! The output is plain RFC 5322 and MIME: folded fields, encoded words (RFC 2047), a suitable transfer encoding, and no
//! more multiparts than necessary. Drafts are untrusted: no value can end a field or start another one, and an invalid
//! value is a [`DraftError`]. `draft_address` parses and writes addresses, `field` folds and encodes fields, `content`
//! writes the parts. [`crate::mime`] parses messages. The caller passes the time and a random number in a
//! [`ComposeContext`].

mod content;
mod draft_address;
mod field;

use bytes::Bytes;
use jiff::Timestamp;

use crate::date::mail_date;
use content::MessageWriter;
use draft_address::DraftAddress;
use field::check_line;

/// The maximum number of recipients of each kind. It is also the limit of the recipients that a summary contains.
pub const MAX_RECIPIENTS: usize = 1000;
/// The maximum number of header fields of a draft. [`crate::mime`] parses more.
pub const MAX_HEADERS: usize = 500;
/// The maximum number of attachments of a draft. [`crate::mime`] parses more.
pub const MAX_ATTACHMENTS: usize = 500;
/// The maximum length of the name of a header field. It fills a line almost completely.
const MAX_FIELD_NAME_CHARS: usize = 70;
/// The earliest date that RFC 5322 section 3.3 allows, 1900-01-01, as a Unix time.
const EARLIEST_DATE_SECONDS: i64 = -2_208_988_800;

/// The fields that are generated from other values of a draft.
const GENERATED_FIELDS: [&str; 5] = ["From", "To", "Cc", "Subject", "MIME-Version"];

/// The values that a message is composed from. Addresses have the form `Ann Example <ann@example.org>` or
/// `ann@example.org`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    /// The author.
    pub from: String,
    /// The recipients.
    pub to: Vec<String>,
    /// The recipients of copies.
    pub cc: Vec<String>,
    /// The addresses for replies, if they differ from the author.
    pub reply_to: Vec<String>,
    /// The subject.
    pub subject: String,
    /// The plain text. Any line ends are accepted.
    pub text: Option<String>,
    /// The HTML version of the text.
    pub html: Option<String>,
    /// The line ends of the text and the HTML in the message.
    pub line_ends: LineEnds,
    /// Other header fields, as names and values. `Date` and `Message-ID` replace the generated fields.
    pub headers: Vec<(String, String)>,
    /// The attached files.
    pub attachments: Vec<Attachment>,
    /// The date of the message. The time of the [`ComposeContext`] if `None`.
    pub date: Option<Timestamp>,
}

/// The line ends that a reader of a composed message gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineEnds {
    /// Every line ends in CRLF. A CRLF is appended to a text that does not end in a line end if nothing follows it.
    #[default]
    Crlf,
    /// Those of the draft: a reader gets the texts unchanged. LF and CR alone are encoded.
    Unchanged,
}

/// A file that is attached to a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attachment {
    /// The file name.
    pub filename: Option<String>,
    /// `type/subtype`, optionally with parameters. `application/octet-stream` if `None`.
    pub content_type: Option<String>,
    /// The content of the file.
    pub content: Bytes,
    /// The name that `cid:` links in the HTML use. A file with a Content-ID is shown inside of the HTML and not listed
    /// as an attachment.
    pub content_id: Option<String>,
}

/// The inputs that make a message unique: time, host name and a random number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComposeContext {
    now: Timestamp,
    host: String,
    unique_token: String,
}

/// An invalid value of a draft: the field, and a clause that describes the problem. `Display` writes both.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} {problem}")]
pub struct DraftError {
    /// The field: `subject`, `to[0]`, `headers.X-Foo`, `attachments[1].filename`.
    pub field: String,
    /// The problem: `has a line break or another control character`.
    pub problem: String,
}

impl Draft {
    /// Composes the message. Every line ends in CRLF, except for the last line of an unchanged text if nothing follows it.
    pub fn compose(&self, context: &ComposeContext) -> Result<Vec<u8>, DraftError> {
        self.check_counts()?;
        let mut out = MessageWriter::new(&context.unique_token, self.line_ends);
        self.write_header(&mut out, context)?;
        self.write_content(&mut out)?;
        Ok(out.finish())
    }

    fn check_counts(&self) -> Result<(), DraftError> {
        let counts = [
            ("to", self.to.len(), MAX_RECIPIENTS),
            ("cc", self.cc.len(), MAX_RECIPIENTS),
            ("reply-to", self.reply_to.len(), MAX_RECIPIENTS),
            ("headers", self.headers.len(), MAX_HEADERS),
            ("attachments", self.attachments.len(), MAX_ATTACHMENTS),
        ];
        match counts.into_iter().find(|(_, count, max)| count > max) {
            Some((field, _, max)) => Err(DraftError::new(field, format!("has more than {max} entries"))),
            None => Ok(()),
        }
    }

    fn write_header(&self, out: &mut MessageWriter<'_>, context: &ComposeContext) -> Result<(), DraftError> {
        let date = self.date.unwrap_or(context.now);
        if date.as_second() < EARLIEST_DATE_SECONDS {
            return Err(DraftError::new("date", "is before the year 1900"));
        }
        if !self.has_header("Date") {
            out.write_field("Date", |field| field.push_token(&mail_date(date)));
        }
        let from = DraftAddress::parse("from", &self.from)?;
        out.write_field("From", |field| from.write(field, false));
        let lists = [("Reply-To", "reply-to", &self.reply_to), ("To", "to", &self.to), ("Cc", "cc", &self.cc)];
        for (name, label, list) in lists {
            let addresses =
                list.iter().enumerate().map(|(at, address)| DraftAddress::parse(&format!("{label}[{at}]"), address));
            let addresses = addresses.collect::<Result<Vec<_>, _>>()?;
            if !addresses.is_empty() {
                out.write_field(name, |field| DraftAddress::write_list(&addresses, field));
            }
        }
        check_line("subject", &self.subject)?;
        out.write_field("Subject", |field| field.push_text(&self.subject));
        if !self.has_header("Message-ID") {
            out.write_field("Message-ID", |field| field.push_token(&context.message_id()));
        }
        for (name, value) in &self.headers {
            check_header(name, value)?;
            out.write_field(name, |field| field.push_text(value));
        }
        out.write_field("MIME-Version", |field| field.push_token("1.0"));
        Ok(())
    }

    /// Returns whether the draft contains a header field of this name.
    fn has_header(&self, field: &str) -> bool {
        self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(field))
    }

    /// Writes the parts from the outside in: `mixed` for attachments, `alternative` for text and HTML, `related` for
    /// HTML and its images.
    fn write_content(&self, out: &mut MessageWriter<'_>) -> Result<(), DraftError> {
        let is_inline = |file: &Attachment| self.html.is_some() && file.content_id.is_some();
        let files = self.attachments.iter().enumerate();
        let (inline, listed): (Vec<_>, Vec<_>) = files.partition(|(_, file)| is_inline(file));
        if listed.is_empty() {
            return self.write_bodies(out, &inline);
        }
        out.write_multipart("mixed", |out| {
            out.write_part(|out| self.write_bodies(out, &inline))?;
            listed.iter().try_for_each(|(at, file)| out.write_part(|out| file.write(out, *at)))
        })
    }

    fn write_bodies(&self, out: &mut MessageWriter<'_>, inline: &[(usize, &Attachment)]) -> Result<(), DraftError> {
        let Some(html) = &self.html else {
            out.write_text("plain", self.text.as_deref().unwrap_or_default());
            return Ok(());
        };
        let Some(text) = &self.text else { return write_html(out, html, inline) };
        out.write_multipart("alternative", |out| {
            out.write_part(|out| {
                out.write_text("plain", text);
                Ok(())
            })?;
            out.write_part(|out| write_html(out, html, inline))
        })
    }
}

fn write_html(out: &mut MessageWriter<'_>, html: &str, inline: &[(usize, &Attachment)]) -> Result<(), DraftError> {
    if inline.is_empty() {
        out.write_text("html", html);
        return Ok(());
    }
    out.write_multipart("related", |out| {
        out.write_part(|out| {
            out.write_text("html", html);
            Ok(())
        })?;
        inline.iter().try_for_each(|(at, file)| out.write_part(|out| file.write(out, *at)))
    })
}

impl ComposeContext {
    /// Creates a context with the time, the host name and a random number that cannot be guessed.
    pub fn new(now: Timestamp, host: &str, random: u64) -> Self {
        Self {
            now,
            host: host.to_owned(),
            unique_token: format!("{:x}.{random:016x}", now.as_microsecond().unsigned_abs()),
        }
    }

    /// Returns the Message-ID of the message, with angle brackets.
    pub fn message_id(&self) -> String {
        format!("<{}@{}>", self.unique_token, self.host)
    }
}

impl DraftError {
    fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }
}

/// Validates a header field. A name is printable ASCII without a colon (RFC 5322 section 3.6.8). Fields that are
/// generated from other values are rejected.
fn check_header(name: &str, value: &str) -> Result<(), DraftError> {
    let field = || format!("headers.{}", name.escape_debug());
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':') {
        return Err(DraftError::new(field(), "is not a valid name of a header field"));
    }
    if name.len() > MAX_FIELD_NAME_CHARS {
        return Err(DraftError::new(field(), format!("has a name of more than {MAX_FIELD_NAME_CHARS} characters")));
    }
    let is_content = name.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("Content-"));
    if is_content || GENERATED_FIELDS.iter().any(|generated| generated.eq_ignore_ascii_case(name)) {
        return Err(DraftError::new(field(), "is generated from other values of the message and cannot be set here"));
    }
    check_line(&field(), value)
}

#[cfg(test)]
mod tests;
