//! The images of a message that its HTML refers to: embedded in the document for the preview frame, or as links for a
//! page. The HTML can refer to one image any number of times, so the total size of what is inserted is limited.

use std::cell::Cell;
use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use restante_html::InlineParts;
use restante_mail::message::Summary;
use restante_mail::mime::{Attachment, Mime, Part, TransferEncoding};

use crate::response::links::{self, Purpose};

/// The maximum number of bytes that images, or the links to them, add to one document. The rest is left out.
pub const MAX_ADDED_BYTES: usize = 32 * 1024 * 1024;

/// The URLs of the images of a message. `write` writes the URL of an image, within the budget.
struct ImageUrls<'a, F> {
    images: Images<'a>,
    budget: ByteBudget,
    write: F,
}

/// Returns the images of a message as `data:` URIs. The preview frame has its own origin, so links to this server would be
/// cross-origin.
pub fn embedded_images(mime: &Mime) -> impl InlineParts {
    let write = |Image { content_type: kind, file, .. }: &Image<'_>, budget: &ByteBudget| {
        let mut url = format!("data:{kind};base64,");
        if !budget.try_take(url.len() + max_encoded_len(file.part)) {
            return None;
        }
        STANDARD.encode_string(file.content(), &mut url);
        Some(url)
    };
    ImageUrls { images: Images::from_mime(mime), budget: ByteBudget::default(), write }
}

/// Returns the images of a message as links to attachments that start with the base URL.
pub fn image_links<'a>(mime: &'a Mime, summary: &'a Summary, base_url: &'a str) -> impl InlineParts + 'a {
    let write = move |Image { index, file, .. }: &Image<'_>, budget: &ByteBudget| {
        let url = links::attachment(base_url, Purpose::View, summary, *index, &file.filename);
        budget.try_take(url.len()).then_some(url)
    };
    ImageUrls { images: Images::from_mime(mime), budget: ByteBudget::default(), write }
}

impl<F: Fn(&Image<'_>, &ByteBudget) -> Option<String>> InlineParts for ImageUrls<'_, F> {
    fn url_by_content_id(&self, content_id: &str) -> Option<String> {
        (self.write)(self.images.by_id.get(&content_id.to_lowercase())?, &self.budget)
    }

    fn url_by_location(&self, location: &str) -> Option<String> {
        (self.write)(self.images.by_location.get(location)?, &self.budget)
    }
}

/// Returns an upper limit for the length of the base64 of a part, from its encoded length. This also limits the work: a
/// part that consists mostly of line breaks has to be read for every reference.
fn max_encoded_len(part: &Part) -> usize {
    match part.transfer_encoding {
        // Already base64; only the padding may be missing.
        TransferEncoding::Base64 => part.body.len() + 4,
        TransferEncoding::Identity | TransferEncoding::QuotedPrintable | TransferEncoding::Uuencode => {
            part.body.len().div_ceil(3) * 4
        }
    }
}

/// The images of a message by their names. Of two with the same name, the first counts.
#[derive(Default)]
struct Images<'a> {
    /// By their Content-IDs, in lower case.
    by_id: HashMap<String, Image<'a>>,
    by_location: HashMap<&'a str, Image<'a>>,
}

#[derive(Clone)]
struct Image<'a> {
    /// The index in the list of attachments.
    index: usize,
    content_type: &'static str,
    file: Attachment<'a>,
}

impl<'a> Images<'a> {
    fn from_mime(mime: &'a Mime) -> Self {
        let mut images = Self::default();
        for (index, file) in mime.attachments().into_iter().enumerate() {
            let Some(kind) = image_content_type(&file.content_type) else { continue };
            let part = file.part;
            let image = Image { index, content_type: kind, file };
            if let Some(location) = &part.content_location {
                images.by_location.entry(location).or_insert_with(|| image.clone());
            }
            if let Some(id) = &part.content_id {
                images.by_id.entry(id.to_lowercase()).or_insert(image);
            }
        }
        images
    }
}

/// Returns the type of an image that browsers show, or `None` for other content.
fn image_content_type(content_type: &str) -> Option<&'static str> {
    let kind = match content_type {
        // `image/jpg` is not a registered type, but many programs write it.
        "image/jpeg" | "image/jpg" => "image/jpeg",
        "image/png" => "image/png",
        "image/gif" => "image/gif",
        "image/webp" => "image/webp",
        "image/avif" => "image/avif",
        "image/bmp" => "image/bmp",
        // Browsers do not run scripts in an SVG that they show as an image.
        "image/svg+xml" => "image/svg+xml",
        _ => return None,
    };
    Some(kind)
}

/// The number of bytes that may still be added to a document.
pub struct ByteBudget(Cell<usize>);

impl Default for ByteBudget {
    fn default() -> Self {
        Self(Cell::new(MAX_ADDED_BYTES))
    }
}

impl ByteBudget {
    /// Takes this number of bytes from the budget. Returns false and takes nothing if they are not available.
    pub fn try_take(&self, bytes: usize) -> bool {
        let left = self.0.get().checked_sub(bytes);
        self.0.set(left.unwrap_or_else(|| self.0.get()));
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use restante_mail::details::Details;
    use restante_mail::message::{Flags, Headline};
    use restante_mail::tags::Tags;

    use super::*;

    fn message(parts: &[(&str, &str)]) -> Mime {
        let parts: String =
            parts.iter().map(|(header, content)| ["--b\r\n", header, "\r\n\r\n", content, "\r\n"].concat()).collect();
        let header = "Content-Type: multipart/related; boundary=b";
        Mime::parse(format!("{header}\r\n\r\n--b\r\n\r\ntext\r\n{parts}--b--\r\n").into())
    }

    fn summary() -> Summary {
        Summary {
            mailbox: "test".to_owned().into(),
            id: 17.into(),
            headline: Headline::new("", [], ""),
            received: Timestamp::UNIX_EPOCH,
            size: 0,
            seen: false,
            flags: Flags::default(),
            modseq: 1,
            message: 17.into(),
            number: 1,
            tags: Tags::default(),
            details: Details::default(),
        }
    }

    #[test]
    fn images_by_content_id() {
        let mime = message(&[
            ("Content-Type: image/png\r\nContent-ID: <a@x>", "abc"),
            ("Content-Type: image/jpg\r\nContent-ID: B\r\nContent-Transfer-Encoding: base64", "YW\r\nJj"),
            ("Content-Type: image/svg+xml; charset=utf-8\r\nContent-ID: <c>", "abc"),
            ("Content-Type: text/html\r\nContent-ID: <html>\r\nContent-Disposition: attachment", "abc"),
            ("Content-Type: image/tiff\r\nContent-ID: <tiff>", "abc"),
            ("Content-Type: image/gif\r\nContent-ID: <a@x>", "the second of this name"),
            ("Content-Type: image/gif; name=\"\\\"><script>.gif\"\r\nContent-ID: <\"><script>>", "abc"),
        ]);
        let (embedded, summary) = (embedded_images(&mime), summary());
        let links = image_links(&mime, &summary, "http://localhost");
        let table = [
            ("a@x", "data:image/png;base64,YWJj", "1/attachment-1.png"),
            ("A@X", "data:image/png;base64,YWJj", "1/attachment-1.png"),
            ("b", "data:image/jpeg;base64,YWJj", "2/attachment-2.jpg"),
            ("c", "data:image/svg+xml;base64,YWJj", "3/attachment-3.svg"),
            ("\"><script", "data:image/gif;base64,YWJj", "6/%22%3E%3Cscript%3E.gif"),
        ];
        for (name, data, link) in table {
            assert_eq!(embedded.url_by_content_id(name).as_deref(), Some(data), "{name}");
            assert_eq!(
                links.url_by_content_id(name),
                Some(format!("http://localhost/mailbox/vattach/test/17/{link}")),
                "{name}"
            );
        }
        for name in ["html", "tiff", "", "<a@x>"] {
            assert_eq!((embedded.url_by_content_id(name), links.url_by_content_id(name)), (None, None), "{name}");
        }
    }

    #[test]
    fn images_by_content_location() {
        let mime = message(&[
            ("Content-Type: image/png\r\nContent-ID: <a>\r\nContent-Location: http://example.org/a.png", "abc"),
            ("Content-Type: image/gif\r\nContent-Location: b.gif", "abc"),
            ("Content-Type: text/css\r\nContent-Location: c.css\r\nContent-Disposition: attachment", "abc"),
        ]);
        let (embedded, summary) = (embedded_images(&mime), summary());
        let links = image_links(&mime, &summary, "");
        let table = [
            ("http://example.org/a.png", "data:image/png;base64,YWJj", "/mailbox/vattach/test/17/1/attachment-1.png"),
            ("b.gif", "data:image/gif;base64,YWJj", "/mailbox/vattach/test/17/2/attachment-2.gif"),
        ];
        for (location, data, link) in table {
            assert_eq!(embedded.url_by_location(location).as_deref(), Some(data));
            assert_eq!(links.url_by_location(location).as_deref(), Some(link));
            assert_eq!(embedded.url_by_content_id(location), None);
        }
        for location in ["a", "c.css", ""] {
            assert_eq!(
                (embedded.url_by_location(location), links.url_by_location(location)),
                (None, None),
                "{location}"
            );
        }
    }

    /// Returns the total length of the URLs if each image is referred to ten thousand times.
    fn total_len(inline: &dyn InlineParts, names: &[&str]) -> usize {
        let calls = (0..10_000).flat_map(|_| names);
        calls.filter_map(|name| inline.url_by_content_id(name)).map(|url| url.len()).sum()
    }

    #[test]
    fn repeated_references_are_limited() {
        let large = "x".repeat(10 << 20);
        let long_name = format!("Content-Type: image/png; name=\"{}\"\r\nContent-ID: <b>", "é".repeat(1000));
        let mime = message(&[("Content-Type: image/png\r\nContent-ID: <a>", &large), (&long_name, "abc")]);
        let embedded = total_len(&embedded_images(&mime), &["a", "b"]);
        assert!((20 << 20..=MAX_ADDED_BYTES).contains(&embedded), "{embedded}");
        let summary = summary();
        let links = total_len(&image_links(&mime, &summary, "http://localhost"), &["a", "b"]);
        assert!((1 << 20..=MAX_ADDED_BYTES).contains(&links), "{links}");
    }

    #[test]
    fn empty_image_is_not_read_repeatedly() {
        let blanks = "\r\n".repeat(4 << 20);
        let header = "Content-Type: image/png\r\nContent-ID: <a>\r\nContent-Transfer-Encoding: base64";
        let mime = message(&[(header, &blanks)]);
        let embedded = embedded_images(&mime);
        let read = (0..10_000).filter(|_| embedded.url_by_content_id("a").is_some()).count();
        assert_eq!(read, MAX_ADDED_BYTES / blanks.len() - 1);
    }
}
