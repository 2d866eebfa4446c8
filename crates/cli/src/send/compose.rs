//! A mail made from the flags of a command line.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use restante_mail::compose::{Attachment, Draft};
use restante_mail::mime::NamedAddress;

use super::{LocalSender, read_stdin};
use crate::error::CommandError;

/// The types of files that people attach to mails, by the ends of their names.
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
/// How many recipients one flag may name.
const MAX_RECIPIENTS: usize = 1000;

/// The flags.
#[derive(Debug)]
pub(super) struct ComposeFlags {
    from: Option<String>,
    to: Vec<String>,
    cc: Vec<String>,
    bcc: Vec<String>,
    subject: String,
    text: Option<String>,
    html: Option<String>,
    headers: Vec<String>,
    attach: Vec<PathBuf>,
}

impl ComposeFlags {
    pub(super) fn parse(matches: &ArgMatches) -> Self {
        let text = |name: &str| matches.get_one::<String>(name).cloned();
        let texts = |name: &str| matches.get_many::<String>(name).into_iter().flatten().cloned().collect();
        Self {
            from: text("from"),
            to: texts("to"),
            cc: texts("cc"),
            bcc: texts("bcc"),
            subject: text("subject").unwrap_or_default(),
            text: text("text"),
            html: text("html"),
            headers: texts("header"),
            attach: matches.get_many::<PathBuf>("attach").into_iter().flatten().cloned().collect(),
        }
    }

    /// The mail in pieces, and the addresses of everybody who gets it.
    pub(super) fn draft(&self, place: &LocalSender) -> Result<(Draft, Vec<String>), CommandError> {
        let (to, cc, bcc) =
            (parse_recipients(&self.to, place), parse_recipients(&self.cc, place), parse_recipients(&self.bcc, place));
        let addresses = [&to, &cc, &bcc].into_iter().flatten().map(|person| person.address.clone()).collect();
        let shown = |persons: Vec<NamedAddress>| persons.iter().map(NamedAddress::display).collect();
        let from = self.from.as_ref().map_or_else(|| place.address(), |from| place.qualify(from));
        let draft = Draft {
            from,
            to: shown(to),
            cc: shown(cc),
            subject: self.subject.clone(),
            text: self.text.as_deref().map(read_content).transpose()?,
            html: self.html.as_deref().map(read_content).transpose()?,
            headers: self.headers.iter().map(|header| parse_header(header)).collect::<Result<_, _>>()?,
            attachments: self.attach.iter().map(|path| read_attachment(path)).collect::<Result<_, _>>()?,
            date: None,
        };
        Ok((draft, addresses))
    }
}

/// Everybody whom these values name; each may be a list with commas. What is no address at all stays as it is, so that it
/// is told.
fn parse_recipients(values: &[String], place: &LocalSender) -> Vec<NamedAddress> {
    let listed = values.iter().flat_map(|value| {
        let found = NamedAddress::parse_list(value.as_bytes(), MAX_RECIPIENTS);
        if found.is_empty() { vec![NamedAddress::new("", value)] } else { found }
    });
    listed.map(|NamedAddress { name, address }| NamedAddress { name, address: place.qualify(&address) }).collect()
}

/// A text as it stands there, `@file`, or `-` for standard input.
fn read_content(value: &str) -> Result<String, CommandError> {
    let (bytes, name) = match value.strip_prefix('@') {
        _ if value == "-" => (read_stdin()?, "standard input".to_owned()),
        Some(path) => (read_file(Path::new(path))?, path.to_owned()),
        None => return Ok(value.to_owned()),
    };
    String::from_utf8(bytes).map_err(|_| CommandError::Usage(format!("The text in {name} is not UTF-8.")))
}

fn parse_header(header: &str) -> Result<(String, String), CommandError> {
    match header.split_once(':') {
        Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
        None => Err(CommandError::Usage(format!("The header field {header:?} has no colon: write 'Name: value'."))),
    }
}

fn read_attachment(path: &Path) -> Result<Attachment, CommandError> {
    let end = path.extension().map(|end| end.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let known = CONTENT_TYPES.iter().find(|(ending, _)| *ending == end);
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
