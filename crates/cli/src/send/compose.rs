//! Composes a message from command-line flags.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use restante_mail::compose::{Attachment, Draft, LineEnds};
use restante_mail::mime::NamedAddress;

use super::{LocalSender, read_stdin};
use crate::error::CommandError;

/// The content types of common attachments, by file extension.
const CONTENT_TYPES: &[(&str, &str)] = &[
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("eml", "message/rfc822"),
    ("gif", "image/gif"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("ics", "text/calendar"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("json", "application/json"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("txt", "text/plain"),
    ("webp", "image/webp"),
    ("xml", "application/xml"),
    ("zip", "application/zip"),
];
/// The maximum number of recipients in one flag.
const MAX_RECIPIENTS: usize = 1000;

// The flags that compose a message. A doc comment would replace the description of the command.
#[derive(Args, Debug)]
pub(super) struct ComposeFlags {
    // In a doc comment, `<address>` is an HTML tag.
    #[arg(
        long,
        value_name = "ADDRESS",
        help = "The author, as an address or 'Name <address>' [default: the current user]"
    )]
    from: Option<String>,
    /// A recipient in the same form; may be repeated, or a list separated by commas
    #[arg(long, value_name = "ADDRESS")]
    to: Vec<String>,
    /// A recipient of a copy (Cc)
    #[arg(long, value_name = "ADDRESS")]
    cc: Vec<String>,
    /// A recipient that the message does not name (Bcc)
    #[arg(long, value_name = "ADDRESS")]
    bcc: Vec<String>,
    /// The subject
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    subject: Option<String>,
    /// The text; @FILE reads it from a file, - from standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    text: Option<String>,
    /// The HTML version of the text; also @FILE or -
    #[arg(long, value_name = "HTML", allow_hyphen_values = true)]
    html: Option<String>,
    /// An additional header field: 'X-Name: value'
    #[arg(long, value_name = "FIELD")]
    header: Vec<String>,
    /// A file to attach; may be repeated
    #[arg(long, value_name = "FILE")]
    attach: Vec<PathBuf>,
}

impl ComposeFlags {
    /// Returns the draft of the message and the addresses of all recipients.
    pub(super) fn draft(&self, local: &LocalSender) -> Result<(Draft, Vec<String>), CommandError> {
        let (to, cc, bcc) =
            (parse_recipients(&self.to, local), parse_recipients(&self.cc, local), parse_recipients(&self.bcc, local));
        let addresses = [&to, &cc, &bcc].into_iter().flatten().map(|recipient| recipient.address.clone()).collect();
        let display = |recipients: Vec<NamedAddress>| recipients.iter().map(NamedAddress::display).collect();
        let from = self.from.as_ref().map_or_else(|| local.address(), |from| local.qualify(from));
        let draft = Draft {
            from,
            to: display(to),
            cc: display(cc),
            reply_to: Vec::new(),
            subject: self.subject.clone().unwrap_or_default(),
            text: self.text.as_deref().map(read_content).transpose()?,
            html: self.html.as_deref().map(read_content).transpose()?,
            line_ends: LineEnds::Crlf,
            headers: self.header.iter().map(|header| parse_header(header)).collect::<Result<_, _>>()?,
            attachments: self.attach.iter().map(|path| read_attachment(path)).collect::<Result<_, _>>()?,
            date: None,
        };
        Ok((draft, addresses))
    }
}

/// Parses recipients. Each value may be a list separated by commas. A value without an address is kept, so that it is
/// reported later.
fn parse_recipients(values: &[String], local: &LocalSender) -> Vec<NamedAddress> {
    let listed = values.iter().flat_map(|value| {
        let found = NamedAddress::parse_list(value.as_bytes(), MAX_RECIPIENTS);
        if found.is_empty() { vec![NamedAddress::new("", value)] } else { found }
    });
    listed.map(|NamedAddress { name, address }| NamedAddress { name, address: local.qualify(&address) }).collect()
}

/// Returns a text given literally, as `@file`, or as `-` for standard input.
fn read_content(value: &str) -> Result<String, CommandError> {
    let (bytes, name) = match value.strip_prefix('@') {
        _ if value == "-" => (read_stdin()?, "standard input".to_owned()),
        Some(path) => (read_file(Path::new(path))?, path.to_owned()),
        None => return Ok(value.to_owned()),
    };
    String::from_utf8(bytes).map_err(|_| CommandError::Usage(format!("The text in {name} is not valid UTF-8.")))
}

fn parse_header(header: &str) -> Result<(String, String), CommandError> {
    match header.split_once(':') {
        Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
        None => Err(CommandError::Usage(format!("The header field {header:?} has no colon: write 'Name: value'."))),
    }
}

fn read_attachment(path: &Path) -> Result<Attachment, CommandError> {
    let extension =
        path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let known = CONTENT_TYPES.iter().find(|(known_extension, _)| *known_extension == extension);
    Ok(Attachment {
        filename: path.file_name().map(|name| name.to_string_lossy().into_owned()),
        content_type: known.map(|(_, name)| (*name).to_owned()),
        content: read_file(path)?.into(),
        content_id: None,
    })
}

fn read_file(path: &Path) -> Result<Vec<u8>, CommandError> {
    let failed = |error| CommandError::Local(format!("The file {} cannot be read: {error}.", path.display()));
    let mut bytes = Vec::new();
    let mut file = std::fs::File::open(path).map_err(failed)?.take(super::MAX_INPUT_BYTES);
    file.read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}
