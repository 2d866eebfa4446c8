//! The attachments of a message as one ZIP archive. Inline parts belong to the HTML and are not in it.

use std::collections::{HashMap, HashSet};

use axum::body::Body;
use axum::http::HeaderValue;
use axum::response::Response;
use bytes::Bytes;
use jiff::Timestamp;
use restante_http_connection::memory::MemoryPermit;
use restante_mail::message::Summary;
use restante_mail::mime::{Mime, message_filename, numbered_filename, portable_filename};

use crate::render::Renderer;
use crate::render::file::{FileHeaders, SANDBOX_POLICY, disposition, isolated_response};
use crate::render::source_length;
use crate::response::etag::IfNoneMatch;
use crate::response::links::Purpose;
use crate::response::problem::{Problem, internal_error};
use crate::response::zip::{ArchiveTooLarge, ZipWriter};

const ZIP: HeaderValue = HeaderValue::from_static("application/zip");

impl Renderer {
    /// Returns all attachments of a message in an archive, unless the client has it already.
    pub async fn archive_response(&self, summary: &Summary, if_none_match: &IfNoneMatch) -> Result<Response, Problem> {
        let filename = message_filename(summary.headline.subject(), "zip");
        let headers = FileHeaders {
            content_type: ZIP,
            disposition: Some(disposition(Purpose::Download, &filename)),
            policy: SANDBOX_POLICY,
            tag: self.etags.of(&("archive", summary.id)),
        };
        if if_none_match.matches(&headers.tag) {
            return Ok(isolated_response(None, headers));
        }
        let received = summary.received;
        let render = |memory: MemoryPermit| async move {
            let work = self.work_permit(source_length(summary)).await?;
            let source = self.mailroom.source(&summary.mailbox, summary.id).await?.ok_or(Problem::NoSuchCopy)?;
            work.run(move || archive(source.to_bytes(), received, memory)).await?
        };
        let archive = self.within_budget(render).await?;
        Ok(isolated_response(Some(Body::from(archive)), headers))
    }
}

/// Returns the archive. Its memory is reserved before it is written. It can be larger than the message: a text with a name
/// contains the uuencoded files that are attachments too. So all files are decoded twice, first to add up their sizes.
fn archive(source: Bytes, received: Timestamp, memory: MemoryPermit) -> Result<Bytes, Problem> {
    let mime = Mime::parse(source);
    let files: Vec<_> = mime.attachments().into_iter().enumerate().filter(|(_, file)| !file.is_inline).collect();
    if files.is_empty() {
        return Err(Problem::NoAttachments);
    }
    let names = unique_names(files.iter().map(|(index, file)| match portable_filename(&file.filename) {
        name if name.is_empty() => format!("attachment-{index}"),
        name => name,
    }));
    let sizes = names.iter().zip(&files).map(|(name, (_, file))| (name.len(), file.content().len()));
    let size = ZipWriter::archive_size(sizes);
    let reserved = memory.reserve(size)?;
    let mut zip = ZipWriter::new(received, size);
    let too_large = |ArchiveTooLarge| internal_error(&"the attachments do not fit into an archive");
    for (name, (_, file)) in names.iter().zip(&files) {
        zip.add(name, &file.content()).map_err(too_large)?;
    }
    Ok(reserved.attach(zip.finish().map_err(too_large)?.into()))
}

/// Adds numbers to names that are not unique. Some file systems ignore the case of names, so it does not count.
fn unique_names(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut used = HashSet::new();
    // The next number for each name, so that many files with the same name do not take quadratic time.
    let mut next_numbers: HashMap<String, usize> = HashMap::new();
    let mut unique = Vec::new();
    for name in names {
        let next_number = next_numbers.entry(name.to_lowercase()).or_insert(2);
        let mut candidate = name.clone();
        while !used.insert(candidate.to_lowercase()) {
            candidate = numbered_filename(&name, *next_number);
            *next_number += 1;
        }
        unique.push(candidate);
    }
    unique
}

#[cfg(test)]
mod tests {
    use restante_http_connection::memory::ResponseBudget;

    use super::*;

    /// The text is an attachment, and so is every file in it.
    #[test]
    fn archive_can_be_larger_than_the_message() {
        let file = format!("begin 644 a.bin\r\n{}`\r\nend\r\n", format!("M{}\r\n", "!".repeat(60)).repeat(10_000));
        let source = Bytes::from(format!(
            "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nHi\r\n--b\r\n\
             Content-Type: text/plain\r\nContent-Disposition: inline; filename=a.log\r\n\r\n{file}\r\n--b--\r\n"
        ));
        let budget = ResponseBudget::with_cache_bytes(0);
        let memory = MemoryPermit::OnDemand(budget.clone());
        let archive_bytes = archive(source.clone(), Timestamp::UNIX_EPOCH, memory).unwrap();
        assert!(archive_bytes.len() > source.len() + 400_000, "{} {}", archive_bytes.len(), source.len());
    }

    #[test]
    fn names_in_an_archive_are_unique() {
        let table: &[(&[&str], &[&str])] = &[
            (&["a.txt", "b.txt"], &["a.txt", "b.txt"]),
            (&["a.txt", "A.TXT", "a.txt"], &["a.txt", "A (2).TXT", "a (3).txt"]),
            (&["a.txt", "a (2).txt", "a.txt"], &["a.txt", "a (2).txt", "a (3).txt"]),
            (&["a.txt", "a.txt", "a (2).txt"], &["a.txt", "a (2).txt", "a (2) (2).txt"]),
            (&["a", "a"], &["a", "a (2)"]),
        ];
        for (names, expected) in table {
            assert_eq!(unique_names(names.iter().map(ToString::to_string)), *expected, "{names:?}");
        }
        let many = unique_names((0..1000).map(|_| "a.txt".to_owned()));
        assert_eq!(many[999], "a (1000).txt");
    }
}
