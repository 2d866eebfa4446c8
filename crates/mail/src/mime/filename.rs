//! File names of attachments: declared names are made safe for links, headers and disks, and unnamed parts get a name.

/// The maximum length of a name: the limit of common file systems.
const MAX_NAME_BYTES: usize = 255;
/// The maximum length of an extension that is kept when a name is truncated.
const MAX_EXTENSION_BYTES: usize = 16;

/// Returns the name of the attachment at `index` of the list.
pub(super) fn attachment_filename(declared: Option<&str>, content_type: &str, index: usize) -> String {
    let name = declared.map(sanitize).unwrap_or_default();
    if name.is_empty() { format!("attachment-{index}.{}", extension(content_type)) } else { name }
}

/// Replaces path separators and invisible characters. Returns an empty string if nothing is left of the name.
fn sanitize(declared: &str) -> String {
    let replaced: String = windows_base_name(declared).chars().map(|c| if is_unsafe(c) { '_' } else { c }).collect();
    let name = replaced.trim();
    if name.trim_matches('.').is_empty() {
        return String::new();
    }
    truncate_name(name)
}

/// Returns the last element of a Windows path, which some programs send instead of a name. Other names are not changed.
fn windows_base_name(name: &str) -> &str {
    let name = name.trim();
    let drive = matches!(name.as_bytes(), [letter, b':', b'/', ..] if letter.is_ascii_alphabetic());
    let separator = if drive { name.rfind(['/', '\\']) } else { name.rfind('\\') };
    let last = separator.map_or(name, |at| &name[at + 1..]);
    if last.trim_matches(['.', ' ']).is_empty() { name } else { last }
}

/// Returns whether the character is a separator, a control character, or a mark that makes `gpj.exe` look like
/// `exe.jpg`.
fn is_unsafe(c: char) -> bool {
    let reorders = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c == '/' || c == '\\' || c.is_control() || reorders
}

fn truncate_name(name: &str) -> String {
    if name.len() <= MAX_NAME_BYTES {
        return name.to_owned();
    }
    let extension = name.rfind('.').map_or("", |dot| &name[dot..]);
    let extension = if extension.len() > MAX_EXTENSION_BYTES { "" } else { extension };
    let stem = &name[..name.floor_char_boundary(MAX_NAME_BYTES - extension.len())];
    format!("{stem}{extension}")
}

fn extension(content_type: &str) -> &'static str {
    match content_type {
        "text/plain" | "message/delivery-status" | "text/rfc822-headers" => "txt",
        "text/html" => "html",
        "text/calendar" | "application/ics" => "ics",
        "text/csv" => "csv",
        "text/css" => "css",
        "text/markdown" => "md",
        "text/vcard" | "text/x-vcard" => "vcf",
        "text/xml" | "application/xml" => "xml",
        "image/png" => "png",
        "image/jpeg" | "image/jpg" | "image/pjpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "image/bmp" => "bmp",
        "image/tiff" => "tiff",
        "image/x-icon" | "image/vnd.microsoft.icon" => "ico",
        "audio/mpeg" => "mp3",
        "audio/wav" | "audio/x-wav" => "wav",
        "video/mp4" => "mp4",
        "video/quicktime" => "mov",
        "application/pdf" => "pdf",
        "application/json" => "json",
        "application/zip" | "application/x-zip-compressed" => "zip",
        "application/gzip" | "application/x-gzip" => "gz",
        "application/msword" => "doc",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => "docx",
        "application/vnd.ms-excel" => "xls",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" => "xlsx",
        "application/vnd.ms-powerpoint" => "ppt",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation" => "pptx",
        "application/rtf" | "text/rtf" => "rtf",
        "application/pgp-signature" => "asc",
        "application/pkcs7-signature" | "application/x-pkcs7-signature" => "p7s",
        "message/rfc822" => "eml",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sanitizes_names() {
        let table = [
            (Some("report.pdf"), "application/pdf", "report.pdf"),
            (Some("../../etc/passwd"), "text/plain", ".._.._etc_passwd"),
            (Some("C:\\temp\\x.txt"), "text/plain", "x.txt"),
            (Some("\\\\server\\share\\x.txt"), "text/plain", "x.txt"),
            (Some("C:/temp/x.txt"), "text/plain", "x.txt"),
            (Some("C:\\temp\\"), "text/plain", "C:_temp_"),
            (Some("C:\\temp\\.."), "text/plain", "C:_temp_.."),
            (Some("a\r\nb\0.txt"), "text/plain", "a__b_.txt"),
            (Some("\u{202e}gpj.exe"), "image/jpeg", "_gpj.exe"),
            (Some(".."), "text/plain", "attachment-3.txt"),
            (Some("  "), "image/png", "attachment-3.png"),
            (None, "image/png", "attachment-3.png"),
            (None, "message/rfc822", "attachment-3.eml"),
            (None, "x/y", "attachment-3.bin"),
            (Some("日本語.txt"), "text/plain", "日本語.txt"),
        ];
        for (declared, content_type, name) in table {
            assert_eq!(attachment_filename(declared, content_type, 3), name, "{declared:?}");
        }
    }

    #[test]
    fn truncated_names_keep_their_extension() {
        let long = "é".repeat(300) + ".pdf";
        let name = attachment_filename(Some(&long), "application/pdf", 0);
        assert!(name.len() <= MAX_NAME_BYTES && name.ends_with("é.pdf"), "{name}");
    }
}
