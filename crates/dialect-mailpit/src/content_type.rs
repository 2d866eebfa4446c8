//! Detection of the content type of a file from its first bytes, as browsers and Go do it:
//! <https://mimesniff.spec.whatwg.org/>.

/// The number of bytes that are read.
const PREFIX_BYTES: usize = 512;

/// The beginnings of files that are compared byte for byte.
const SIGNATURES: &[(&[u8], &str)] = &[
    (b"%PDF-", "application/pdf"),
    (b"%!PS-Adobe-", "application/postscript"),
    (b"\xFE\xFF", "text/plain; charset=utf-16be"),
    (b"\xFF\xFE", "text/plain; charset=utf-16le"),
    (b"\xEF\xBB\xBF", "text/plain; charset=utf-8"),
    (b"\x00\x00\x01\x00", "image/x-icon"),
    (b"\x00\x00\x02\x00", "image/x-icon"),
    (b"BM", "image/bmp"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"\x89PNG\r\n\x1A\n", "image/png"),
    (b"\xFF\xD8\xFF", "image/jpeg"),
    (b"ID3", "audio/mpeg"),
    (b"OggS\x00", "application/ogg"),
    (b"MThd\x00\x00\x00\x06", "audio/midi"),
    (b"\x1A\x45\xDF\xA3", "video/webm"),
    (b"\x00\x01\x00\x00", "font/ttf"),
    (b"OTTO", "font/otf"),
    (b"ttcf", "font/collection"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"\x1F\x8B\x08", "application/x-gzip"),
    (b"PK\x03\x04", "application/zip"),
    (b"Rar!\x1A\x07\x00", "application/x-rar-compressed"),
    (b"Rar!\x1A\x07\x01\x00", "application/x-rar-compressed"),
    (b"\x00\x61\x73\x6D", "application/wasm"),
];

/// Containers that name their content after the length of a chunk.
const CONTAINERS: &[(&[u8], &[u8], &str)] = &[
    (b"RIFF", b"WEBPVP", "image/webp"),
    (b"RIFF", b"WAVE", "audio/wave"),
    (b"RIFF", b"AVI ", "video/avi"),
    (b"FORM", b"AIFF", "audio/aiff"),
];

/// The names of the tags with which HTML begins, separated by spaces.
const HTML_TAGS: &str = "HTML HEAD SCRIPT IFRAME H1 DIV FONT TABLE A STYLE TITLE B BODY BR P";

/// Returns the content type of a file.
pub(crate) fn detect(content: &[u8]) -> &'static str {
    let content = &content[..content.len().min(PREFIX_BYTES)];
    let text = content.trim_ascii_start();
    let is_html = |name| starts_with_tag(text, name);
    if text.starts_with(b"<!--") || is_html("!DOCTYPE HTML") || HTML_TAGS.split(' ').any(is_html) {
        return "text/html; charset=utf-8";
    }
    if text.starts_with(b"<?xml") {
        return "text/xml; charset=utf-8";
    }
    if let Some((_, kind)) = SIGNATURES.iter().find(|(signature, _)| content.starts_with(signature)) {
        return kind;
    }
    let is_container = |(outer, inner, _): &&(&[u8], &[u8], &str)| {
        content.starts_with(outer) && content.get(8..).is_some_and(|rest| rest.starts_with(inner))
    };
    if let Some((_, _, kind)) = CONTAINERS.iter().find(is_container) {
        return kind;
    }
    if content.get(4..11).is_some_and(|brand| brand == b"ftypmp4") {
        return "video/mp4";
    }
    if text.iter().any(|&byte| is_binary(byte)) { "application/octet-stream" } else { "text/plain; charset=utf-8" }
}

/// Returns whether the text starts with a tag of this name, followed by a space or `>`.
fn starts_with_tag(text: &[u8], name: &str) -> bool {
    let tag = text.strip_prefix(b"<").and_then(|tag| tag.split_at_checked(name.len()));
    tag.is_some_and(|(start, rest)| {
        start.eq_ignore_ascii_case(name.as_bytes()) && matches!(rest.first(), Some(b' ' | b'>'))
    })
}

/// Returns whether text does not contain this byte.
fn is_binary(byte: u8) -> bool {
    matches!(byte, 0x00..=0x08 | 0x0B | 0x0E..=0x1A | 0x1C..=0x1F)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_follow_from_the_first_bytes() {
        let table: &[(&[u8], &str)] = &[
            (b"", "text/plain; charset=utf-8"),
            (b"hello", "text/plain; charset=utf-8"),
            ("Grüße".as_bytes(), "text/plain; charset=utf-8"),
            (b"a\x00b", "application/octet-stream"),
            (b" \n<html><p>", "text/html; charset=utf-8"),
            (b"<!-- x -->", "text/html; charset=utf-8"),
            (b"<abbr>", "text/plain; charset=utf-8"),
            (b"<?xml version=\"1.0\"?>", "text/xml; charset=utf-8"),
            (b"%PDF-1.7", "application/pdf"),
            (b"\x89PNG\r\n\x1A\n\0", "image/png"),
            (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
            (b"RIFF\0\0\0\0xxxx", "application/octet-stream"),
            (b"\0\0\0\x18ftypmp42", "video/mp4"),
            (b"{\"a\": 1}", "text/plain; charset=utf-8"),
        ];
        for (content, expected) in table {
            assert_eq!(detect(content), *expected, "{content:?}");
        }
    }
}
