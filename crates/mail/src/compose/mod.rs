//! Mail written from its pieces: a [`Draft`] becomes the bytes that a mailer would send.
//!
//! What is written is plain RFC 5322 and MIME: folded fields, encoded words (RFC 2047), the transfer encoding that fits,
//! and only as many multiparts as there are reasons for. A draft comes from strangers, so nothing in it can end a field or
//! begin one: what does not fit is a [`Flaw`]. `person` reads and writes addresses, `field` folds and encodes, `content`
//! writes the parts. Reading a mail is the business of [`crate::mime`]; clock and chance come from outside, as a [`Mark`].

mod content;
mod draft_address;
mod field;

use std::fmt;

use bytes::Bytes;
use jiff::Timestamp;

use crate::date::MailDate;
use content::MessageWriter;
use draft_address::DraftAddress;
use field::check_line;

/// The most recipients of each kind, header fields of one's own, and attachments. Readers have limits beyond these.
pub const MAX_RECIPIENTS: usize = 1000;
/// See [`MAX_RECIPIENTS`].
pub const MAX_HEADERS: usize = 500;
/// See [`MAX_RECIPIENTS`].
pub const MAX_ATTACHMENTS: usize = 500;
/// The longest name of a header field; with it a line is as good as full.
const MAX_FIELD_NAME_CHARS: usize = 70;
/// The earliest date that a mail can have (RFC 5322 section 3.3), 1900-01-01.
const EARLIEST_DATE_SECONDS: i64 = -2_208_988_800;

/// The fields that are written from other pieces of a draft.
const GENERATED_FIELDS: [&str; 5] = ["From", "To", "Cc", "Subject", "MIME-Version"];

/// A mail in pieces. Persons are given as `Ann Example <ann@example.org>` or `ann@example.org`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    /// Who wrote it.
    pub from: String,
    /// Who shall read it.
    pub to: Vec<String>,
    /// Who else shall read it.
    pub cc: Vec<String>,
    /// What it is about.
    pub subject: String,
    /// The plain text. Lines may end as they like.
    pub text: Option<String>,
    /// The same as HTML.
    pub html: Option<String>,
    /// Other fields of the header, by name and value. `Date` and `Message-ID` among them replace those that are made.
    pub headers: Vec<(String, String)>,
    /// Files that come with it.
    pub attachments: Vec<Attachment>,
    /// When it was written; the mark's time when it does not say.
    pub date: Option<Timestamp>,
}

/// A file that comes with a mail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attachment {
    /// Its name.
    pub filename: Option<String>,
    /// `type/subtype`, with parameters if there are any; `application/octet-stream` when it does not say.
    pub content_type: Option<String>,
    /// What is in it.
    pub content: Bytes,
    /// What `cid:` links in the HTML call it. A file with such a name is shown with the HTML and not listed as a file.
    pub content_id: Option<String>,
}

/// What makes a mail different from all others: when and where it was composed, and a number drawn by chance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComposeContext {
    now: Timestamp,
    host: String,
    unique_token: String,
}

/// What is wrong with a draft: where, and in a sentence part. The display form is both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftError {
    /// Where: `subject`, `to[0]`, `headers.X-Foo`, `attachments[1].filename`.
    pub field: String,
    /// What: `has a line break or another control character`.
    pub problem: String,
}

impl Draft {
    /// The mail. Every line of it ends in CRLF, also the last one: a text without a line end gets one where nothing
    /// follows it.
    pub fn compose(&self, context: &ComposeContext) -> Result<Vec<u8>, DraftError> {
        self.check_counts()?;
        let mut out = MessageWriter::new(&context.unique_token);
        self.write_header(&mut out, context)?;
        self.write_content(&mut out)?;
        Ok(out.finish())
    }

    fn check_counts(&self) -> Result<(), DraftError> {
        let counts = [
            ("to", self.to.len(), MAX_RECIPIENTS),
            ("cc", self.cc.len(), MAX_RECIPIENTS),
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
            out.write_field("Date", |field| field.push_token(&MailDate(date).to_string()));
        }
        let from = DraftAddress::parse("from", &self.from)?;
        out.write_field("From", |field| from.write(field, false));
        for (name, label, list) in [("To", "to", &self.to), ("Cc", "cc", &self.cc)] {
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

    /// Whether the draft brings this field itself.
    fn has_header(&self, field: &str) -> bool {
        self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(field))
    }

    /// The parts from the outside in: files beside the mail, the text beside the HTML, pictures beside the HTML they are in.
    fn write_content(&self, out: &mut MessageWriter<'_>) -> Result<(), DraftError> {
        let is_shown = |file: &Attachment| self.html.is_some() && file.content_id.is_some();
        let files = self.attachments.iter().enumerate();
        let (shown, listed): (Vec<_>, Vec<_>) = files.partition(|(_, file)| is_shown(file));
        if listed.is_empty() {
            return self.write_bodies(out, &shown);
        }
        out.write_multipart("mixed", |out| {
            out.write_part(|out| self.write_bodies(out, &shown))?;
            listed.iter().try_for_each(|(at, file)| out.write_part(|out| file.write(out, *at)))
        })
    }

    fn write_bodies(&self, out: &mut MessageWriter<'_>, shown: &[(usize, &Attachment)]) -> Result<(), DraftError> {
        let Some(html) = &self.html else {
            out.write_text("plain", self.text.as_deref().unwrap_or_default());
            return Ok(());
        };
        let Some(text) = &self.text else { return write_html(out, html, shown) };
        out.write_multipart("alternative", |out| {
            out.write_part(|out| {
                out.write_text("plain", text);
                Ok(())
            })?;
            out.write_part(|out| write_html(out, html, shown))
        })
    }
}

fn write_html(out: &mut MessageWriter<'_>, html: &str, shown: &[(usize, &Attachment)]) -> Result<(), DraftError> {
    if shown.is_empty() {
        out.write_text("html", html);
        return Ok(());
    }
    out.write_multipart("related", |out| {
        out.write_part(|out| {
            out.write_text("html", html);
            Ok(())
        })?;
        shown.iter().try_for_each(|(at, file)| out.write_part(|out| file.write(out, *at)))
    })
}

impl ComposeContext {
    /// The mark of a mail composed at this time on this host, with a number that nobody can guess.
    pub fn new(now: Timestamp, host: &str, random: u64) -> Self {
        Self {
            now,
            host: host.to_owned(),
            unique_token: format!("{:x}.{random:016x}", now.as_microsecond().unsigned_abs()),
        }
    }

    fn message_id(&self) -> String {
        format!("<{}@{}>", self.unique_token, self.host)
    }
}

impl DraftError {
    fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }
}

impl fmt::Display for DraftError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field, self.problem)
    }
}

impl std::error::Error for DraftError {}

/// RFC 5322 section 3.6.8: a name is printable ASCII without a colon. What is written from other pieces is not taken twice.
fn check_header(name: &str, value: &str) -> Result<(), DraftError> {
    let field = || format!("headers.{}", name.escape_debug());
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':') {
        return Err(DraftError::new(field(), "is no name of a header field"));
    }
    if name.len() > MAX_FIELD_NAME_CHARS {
        return Err(DraftError::new(field(), format!("has a name of more than {MAX_FIELD_NAME_CHARS} characters")));
    }
    let is_content = name.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("Content-"));
    if is_content || GENERATED_FIELDS.iter().any(|generated| generated.eq_ignore_ascii_case(name)) {
        return Err(DraftError::new(field(), "is written from the other pieces of the mail and cannot be set here"));
    }
    check_line(&field(), value)
}

#[cfg(test)]
mod tests;
