//! Attachments to save or to show, and MIME parts. They are files of the sender served from this origin. Therefore
//! every response isolates them: sandboxed, without content sniffing, not for other sites. A PDF is not sandboxed, because
//! browsers do not show it then; their viewers isolate it. A browser that shows a file as a document gets some types in
//! another form, see `attachment_document`; programs get the bytes that were sent.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use restante_http_connection::memory::MemoryPermit;
use restante_mail::message::Summary;
use restante_mail::mime::{Attachment, Mime, Part, Role, message_filename};

use crate::render::Renderer;
use crate::render::document::DocumentForm;
use crate::render::source_length;
use crate::response::etag::{self, IfNoneMatch};
use crate::response::links::{Purpose, encode_segment};
use crate::response::problem::Problem;
use crate::response::success::{self, NoBody};
use crate::response::viewer::{self, Viewer};

const OCTET_STREAM: &str = "application/octet-stream";
const UTF8: &str = "utf-8";

/// `sandbox` gives the document its own origin and forbids scripts, forms and plugins. The rest forbids loading
/// anything, so that styles inside of an HTML or SVG file are harmless, and framing by other sites.
pub const SANDBOX_POLICY: HeaderValue = HeaderValue::from_static(
    "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'; frame-ancestors 'self'",
);
/// The policy of a PDF. Browsers show it with their own viewer, in a process of its own and without access to this origin,
/// but some of them not in a sandbox. Everything else stays forbidden. The style is that of the viewer's document.
const PDF_POLICY: HeaderValue =
    HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'");
/// The content type of PDF, and the first bytes of every PDF (ISO 32000-1 section 7.5.2).
const PDF: &str = "application/pdf";
const PDF_START: &[u8] = b"%PDF-";

/// Selects an attachment by its index in the list of attachments or in that of Inbucket, or a part by its index in the tree of
/// parts.
#[derive(Clone, Copy, Hash)]
pub enum PartSelector {
    /// An attachment.
    Attachment(usize),
    /// An attachment in the list of Inbucket.
    InbucketAttachment(usize),
    /// A part of the tree.
    Part(usize),
}

/// A part to return as a file.
pub struct SelectedPart<'a> {
    /// The part.
    pub part: &'a Part,
    /// The name of the file.
    pub filename: String,
    /// The charset of the file.
    pub charset: FileCharset,
}

/// The charset in which a text is returned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FileCharset {
    /// The bytes as they were sent.
    AsSent,
    /// UTF-8, if the message declares a charset.
    Utf8,
}

/// A part as a file.
struct PartFile {
    content_type: HeaderValue,
    disposition: HeaderValue,
    policy: HeaderValue,
    /// `None` if the client has it already.
    content: Option<Bytes>,
}

/// The headers that describe a file of a sender.
pub struct FileHeaders {
    /// `Content-Type`.
    pub content_type: HeaderValue,
    /// `Content-Disposition`.
    pub disposition: Option<HeaderValue>,
    /// `Content-Security-Policy`.
    pub policy: HeaderValue,
    /// `ETag`.
    pub tag: HeaderValue,
}

impl Renderer {
    /// Returns a part of a message as a file to save or to show, unless the client has it already.
    pub async fn file_response(
        &self,
        summary: &Summary,
        selector: PartSelector,
        if_none_match: &IfNoneMatch,
        (purpose, viewer): (Purpose, Viewer),
    ) -> Result<Response, Problem> {
        let tag = self.etags.of(&(selector, summary.id));
        self.selected_file_response(summary, tag, if_none_match, (purpose, viewer), move |mime| {
            find_part(mime, selector)
        })
        .await
    }

    /// Returns the part that `select` finds, as a file to save or to show, unless the client has it already. The entity tag
    /// must identify the part.
    pub async fn selected_file_response(
        &self,
        summary: &Summary,
        tag: HeaderValue,
        if_none_match: &IfNoneMatch,
        (purpose, viewer): (Purpose, Viewer),
        select: impl Fn(&Mime) -> Result<SelectedPart<'_>, Problem> + Clone + Send + 'static,
    ) -> Result<Response, Problem> {
        let is_document = matches!((purpose, viewer), (Purpose::View, Viewer::Browser));
        let tag = if is_document { etag::of_document(&tag) } else { tag };
        let needs_content = !if_none_match.matches(&tag);
        let select = &select;
        let render = |memory: MemoryPermit| async move {
            let work = self.work_permit(source_length(summary)).await?;
            let source = self.mailroom.source(&summary.mailbox, summary.id).await?.ok_or(Problem::NoSuchCopy)?;
            let select = select.clone();
            work.run(move || {
                load_file(source.to_bytes(), select, purpose, is_document, needs_content.then_some(memory))
            })
            .await?
        };
        let PartFile { content_type, disposition, policy, content } = self.within_budget(render).await?;
        let headers = FileHeaders { content_type, disposition: Some(disposition), policy, tag };
        let mut response = isolated_response(content.map(Body::from), headers);
        response.headers_mut().append(header::VARY, viewer::VARY);
        Ok(response)
    }
}

/// Returns a response with a file of a sender, or without content if the client has it already.
pub fn isolated_response(content: Option<Body>, file: FileHeaders) -> Response {
    let is_unmodified = content.is_none();
    let mut response = Response::new(content.unwrap_or_else(|| Body::new(NoBody)));
    if is_unmodified {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, file.content_type);
    if let Some(disposition) = file.disposition {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    headers.insert(header::CONTENT_SECURITY_POLICY, file.policy);
    headers.insert(header::REFERRER_POLICY, success::NO_REFERRER);
    headers.insert(header::CACHE_CONTROL, success::PRIVATE);
    headers.insert(header::ETAG, file.tag);
    response
}

/// Returns the response with the source of a message. For a download it gets the name of a file.
pub fn source_with_purpose(mut response: Response, summary: &Summary, purpose: Purpose) -> Response {
    if let Purpose::Download = purpose {
        let filename = message_filename(summary.headline.subject(), "eml");
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("message/rfc822"));
        response.headers_mut().insert(header::CONTENT_DISPOSITION, disposition(purpose, &filename));
    }
    response
}

/// Returns the decoded content of a part. A multipart is not encoded itself, only the parts in it are (RFC 2045 section
/// 6.4).
pub fn content(mime: &Mime, part: &Part) -> Bytes {
    if part.is_multipart() { mime.source().slice(part.body.clone()) } else { mime.content(part) }
}

/// Returns the decoded content of a part. A text that declares a charset is converted to UTF-8.
pub fn utf8_content(mime: &Mime, part: &Part) -> Bytes {
    if part.is_text() && part.charset.is_some() { mime.text_as_sent(part).into() } else { content(mime, part) }
}

/// Returns a part of a message, or the document in which a browser shows it. It includes the content if there is a memory
/// permit for it.
fn load_file(
    source: Bytes,
    select: impl Fn(&Mime) -> Result<SelectedPart<'_>, Problem>,
    purpose: Purpose,
    is_document: bool,
    memory: Option<MemoryPermit>,
) -> Result<PartFile, Problem> {
    let mime = Mime::parse(source);
    let SelectedPart { part, filename, charset } = select(&mime)?;
    let form = if is_document { DocumentForm::of(&part.content_type) } else { None };
    let load = || match (form, charset) {
        (Some(form), _) => form.render(&mime, part),
        (None, FileCharset::AsSent) => content(&mime, part),
        (None, FileCharset::Utf8) => utf8_content(&mime, part),
    };
    let decoded = memory.is_some().then(|| detach_from_source(load(), mime.source()));
    let is_pdf = part.content_type == PDF && starts_like_pdf(&mime, part, decoded.as_ref());
    let declared = part.charset.as_deref();
    let charset = if charset == FileCharset::Utf8 { declared.and(Some(UTF8)) } else { declared };
    Ok(PartFile {
        content_type: form.map_or_else(|| content_type(&part.content_type, charset), DocumentForm::content_type),
        disposition: disposition(purpose, &filename),
        policy: if is_pdf { PDF_POLICY } else { SANDBOX_POLICY },
        content: memory.zip(decoded).map(|(memory, decoded)| memory.charge(decoded)).transpose()?,
    })
}

/// Returns whether the content of a part starts like a PDF. Browsers decide by the type alone, because they must not
/// sniff. The content is checked so that the weaker policy is never sent with anything else. It is also checked if the
/// client has the part already, because the headers of a 304 replace those of the cached response. Then only its start is
/// decoded.
fn starts_like_pdf(mime: &Mime, part: &Part, decoded: Option<&Bytes>) -> bool {
    match decoded {
        Some(content) => content.starts_with(PDF_START),
        None => mime.content_start(part).starts_with(PDF_START),
    }
}

/// Returns the selected part and its file name. A part that is an attachment has the name of the attachment.
fn find_part<'m>(mime: &'m Mime, selector: PartSelector) -> Result<SelectedPart<'m>, Problem> {
    let select = |part, filename| SelectedPart { part, filename, charset: FileCharset::AsSent };
    let file =
        |list: Vec<Attachment<'m>>, index| list.into_iter().nth(index).map(|file| select(file.part, file.filename));
    let attachment = |index| file(mime.attachments(), index);
    let index = match selector {
        PartSelector::Attachment(index) => return attachment(index).ok_or(Problem::NoSuchAttachment),
        PartSelector::InbucketAttachment(index) => {
            return file(mime.inbucket_attachments(), index).ok_or(Problem::NoSuchAttachment);
        }
        PartSelector::Part(index) => index,
    };
    let extension = match mime.roles().get(index).ok_or(Problem::NoSuchPart)? {
        Role::Attachment(index) => return attachment(*index).ok_or(Problem::NoSuchPart),
        Role::Text => "txt",
        Role::Html => "html",
        Role::Multipart => "bin",
    };
    Ok(select(&mime.parts()[index], format!("part-{index}.{extension}")))
}

/// Returns a copy of the content if it is a slice of the source: it would keep the complete source in memory.
fn detach_from_source(content: Bytes, source: &Bytes) -> Bytes {
    if source.as_ptr_range().contains(&content.as_ptr()) { Bytes::copy_from_slice(&content) } else { content }
}

/// Returns the content type of a part as a header. An invalid type is replaced, and so is a multipart type, for which
/// browsers would parse the parts. An invalid charset is dropped.
fn content_type(essence: &str, charset: Option<&str>) -> HeaderValue {
    let valid = essence.split_once('/').is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype));
    let essence = if valid && !essence.starts_with("multipart/") { essence } else { OCTET_STREAM };
    let value = match charset {
        Some(charset) if essence.starts_with("text/") && is_token(charset) => format!("{essence}; charset={charset}"),
        _ => essence.to_owned(),
    };
    HeaderValue::try_from(value).unwrap_or(HeaderValue::from_static(OCTET_STREAM))
}

/// Returns the disposition with the file name in ASCII and, if that differs, in the form of RFC 8187 (RFC 6266 section
/// 4.3).
pub fn disposition(purpose: Purpose, filename: &str) -> HeaderValue {
    let kind = match purpose {
        Purpose::Download => "attachment",
        Purpose::View => "inline",
    };
    // Besides the characters that end or escape a quoted string, `%` is replaced: some clients decode it.
    let plain = |c: char| if matches!(c, ' '..='~') && !matches!(c, '"' | '\\' | '%' | '/') { c } else { '_' };
    let ascii: String = filename.chars().map(plain).collect();
    let mut value = format!("{kind}; filename=\"{ascii}\"");
    if ascii != filename {
        value.push_str("; filename*=UTF-8''");
        value.extend(encode_segment(filename));
    }
    HeaderValue::try_from(value).unwrap_or(HeaderValue::from_static("attachment"))
}

/// Returns whether the text is a token (RFC 9110 section 5.6.2), as names of header fields are.
fn is_token(text: &str) -> bool {
    HeaderName::try_from(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use restante_http_connection::memory::ResponseBudget;

    #[test]
    fn valid_content_types() {
        let table = [
            ("image/png", None, "image/png"),
            ("text/html", Some("utf-8"), "text/html; charset=utf-8"),
            ("image/svg+xml", Some("utf-8"), "image/svg+xml"),
            ("text/plain", Some("x\r\nSet-Cookie: a=b"), "text/plain"),
            ("text/plain", Some("a; b"), "text/plain"),
            ("text", None, OCTET_STREAM),
            ("text/", None, OCTET_STREAM),
            ("text/ht ml", None, OCTET_STREAM),
            ("text/html\r\nx: y", None, OCTET_STREAM),
            ("text/html, text/plain", None, OCTET_STREAM),
            ("texté/html", None, OCTET_STREAM),
            ("multipart/x-mixed-replace", None, OCTET_STREAM),
            ("", None, OCTET_STREAM),
        ];
        for (essence, charset, expected) in table {
            assert_eq!(content_type(essence, charset), expected, "{essence:?} {charset:?}");
        }
    }

    #[test]
    fn attachment_does_not_keep_source_in_memory() {
        let encodings = [("7bit", "abc"), ("base64", "YWJj"), ("quoted-printable", "=61bc")];
        for (encoding, content) in encodings {
            let header = "Content-Type: image/png\r\nContent-Disposition: attachment\r\nContent-Transfer-Encoding";
            let message = Bytes::from(format!("{header}: {encoding}\r\n\r\n{content}"));
            let memory = MemoryPermit::OnDemand(ResponseBudget::with_cache_bytes(0));
            let content = load_file(
                message.clone(),
                |mime| find_part(mime, PartSelector::Attachment(0)),
                Purpose::View,
                false,
                Some(memory),
            )
            .unwrap()
            .content
            .unwrap();
            assert_eq!(content, "abc", "{encoding}");
            assert!(!message.as_ptr_range().contains(&content.as_ptr()), "{encoding}");
        }
    }

    #[test]
    fn dispositions() {
        let table = [
            ("report.pdf", "attachment; filename=\"report.pdf\""),
            ("a b;c.txt", "attachment; filename=\"a b;c.txt\""),
            ("a\"b\\c", "attachment; filename=\"a_b_c\"; filename*=UTF-8''a%22b%5Cc"),
            (
                "x\r\nSet-Cookie: a=b",
                "attachment; filename=\"x__Set-Cookie: a=b\"; filename*=UTF-8''x%0D%0ASet-Cookie%3A%20a%3Db",
            ),
            ("50%.txt", "attachment; filename=\"50_.txt\"; filename*=UTF-8''50%25.txt"),
            ("Grüße.pdf", "attachment; filename=\"Gr__e.pdf\"; filename*=UTF-8''Gr%C3%BC%C3%9Fe.pdf"),
            ("", "attachment; filename=\"\""),
        ];
        for (filename, expected) in table {
            assert_eq!(disposition(Purpose::Download, filename), expected, "{filename:?}");
        }
        assert_eq!(disposition(Purpose::View, "a"), "inline; filename=\"a\"");
    }
}
