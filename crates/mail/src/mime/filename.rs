//! File names of attachments: declared names are made safe for links, headers and disks, and unnamed parts get a name.
//! Also the names of files that a client saves, which every operating system accepts.

/// The maximum length of a name: the limit of common file systems.
const MAX_NAME_BYTES: usize = 255;
/// The maximum length of a file name made from a subject, without its extension.
const MAX_SUBJECT_BYTES: usize = 100;
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
    let extension = &name[extension_start(name)..];
    let stem = &name[..name.floor_char_boundary(MAX_NAME_BYTES - extension.len())];
    format!("{stem}{extension}")
}

/// Returns the start of the extension, at its dot. It is the end of the name if there is none, or if it is very long.
fn extension_start(name: &str) -> usize {
    name.rfind('.').filter(|&dot| dot > 0 && name.len() - dot <= MAX_EXTENSION_BYTES).unwrap_or(name.len())
}

/// Returns a name for a file that every operating system accepts: without separators, control characters and characters
/// that are reserved on Windows, not the name of a device, and not hidden. Empty if nothing is left.
pub fn portable_filename(name: &str) -> String {
    let is_reserved =
        |c: char| is_unsafe(c) || matches!(c, '<' | '>' | ':' | '"' | '|' | '?' | '*' | '\u{2028}' | '\u{2029}');
    let replaced: String = name.chars().map(|c| if is_reserved(c) { '_' } else { c }).collect();
    // Windows removes spaces and dots at the end of a name.
    let name = replaced.trim().trim_start_matches('.').trim_end_matches(['.', ' ']).trim_start();
    let name = if is_device(name) { format!("_{name}") } else { name.to_owned() };
    truncate_name(&name)
}

/// Returns the name of a file with the content of a message: its subject and an extension.
pub fn message_filename(subject: &str, extension: &str) -> String {
    let words: Vec<&str> = subject.split_whitespace().collect();
    let stem = portable_filename(&words.join(" "));
    let stem = stem[..stem.floor_char_boundary(MAX_SUBJECT_BYTES)].trim_end_matches(['.', ' ']);
    let stem = if stem.is_empty() { "message" } else { stem };
    format!("{stem}.{extension}")
}

/// Returns the name with a number before its extension, such as `a (2).txt`.
pub fn numbered_filename(name: &str, number: usize) -> String {
    let (stem, extension) = name.split_at(extension_start(name));
    let suffix = format!(" ({number}){extension}");
    let stem = &stem[..stem.floor_char_boundary(MAX_NAME_BYTES.saturating_sub(suffix.len()))];
    format!("{stem}{suffix}")
}

/// Returns whether Windows opens a device instead of a file with this name. It ignores the extension.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let is_port =
        |rest: &str| matches!(rest.chars().next(), Some('0'..='9' | '¹' | '²' | '³')) && rest.chars().count() == 1;
    matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$")
        || ["COM", "LPT"].iter().any(|port| stem.strip_prefix(port).is_some_and(is_port))
}

/// Returns the media type of files whose names have the extension of this name, if it is known.
pub fn media_type_of(name: &str) -> Option<&'static str> {
    let (_, extension) = name.rsplit_once('.')?;
    extensions().find(|(_, known)| known.eq_ignore_ascii_case(extension)).map(|(content_type, _)| content_type)
}

/// Returns the usual extension of files of a media type.
fn extension(content_type: &str) -> &'static str {
    extensions().find(|(known, _)| *known == content_type).map_or("bin", |(_, extension)| extension)
}

/// Returns media types and the extensions of their files, the usual ones first.
fn extensions() -> impl Iterator<Item = (&'static str, &'static str)> {
    include_str!("extensions.txt").lines().filter_map(|line| line.split_once(' '))
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
    fn portable_names() {
        let table = [
            ("report.pdf", "report.pdf"),
            ("../../etc/passwd", "_.._etc_passwd"),
            ("..", ""),
            ("...", ""),
            (" . ", ""),
            (".htaccess", "htaccess"),
            ("a<b>c:d\"e|f?g*h\\i/j", "a_b_c_d_e_f_g_h_i_j"),
            ("a\r\nb\0\u{202e}c", "a__b__c"),
            ("ends with a dot. . ", "ends with a dot"),
            ("con", "_con"),
            ("Nul.txt", "_Nul.txt"),
            ("aux .tar.gz", "_aux .tar.gz"),
            ("COM1", "_COM1"),
            ("lpt².log", "_lpt².log"),
            ("COM10", "COM10"),
            ("console.log", "console.log"),
            ("日本語.txt", "日本語.txt"),
        ];
        for (name, expected) in table {
            assert_eq!(portable_filename(name), expected, "{name:?}");
        }
        let long = portable_filename(&("é".repeat(300) + ".pdf"));
        assert!(long.len() <= MAX_NAME_BYTES && long.ends_with("é.pdf"), "{long}");
    }

    #[test]
    fn media_types_from_names() {
        let table = [
            ("a.txt", Some("text/plain")),
            ("A.PNG", Some("image/png")),
            ("photo.jpg", Some("image/jpeg")),
            ("photo.jpeg", Some("image/jpeg")),
            ("a.tar.gz", Some("application/gzip")),
            ("a.unknown", None),
            ("txt", None),
            ("", None),
        ];
        for (name, expected) in table {
            assert_eq!(media_type_of(name), expected, "{name}");
        }
    }

    #[test]
    fn names_from_subjects() {
        let table = [
            ("Your code", "Your code.eml"),
            ("Re: Order 12/3?", "Re_ Order 12_3_.eml"),
            ("  two\t words \n", "two words.eml"),
            ("Done.", "Done.eml"),
            ("", "message.eml"),
            ("..", "message.eml"),
            ("NUL", "_NUL.eml"),
            ("Grüße", "Grüße.eml"),
        ];
        for (subject, name) in table {
            assert_eq!(message_filename(subject, "eml"), name, "{subject:?}");
        }
        let long = message_filename(&"é ".repeat(300), "html");
        assert!(long.len() <= MAX_SUBJECT_BYTES + 5 && long.ends_with("é.html"), "{long}");
    }

    #[test]
    fn numbered_names() {
        let table = [
            ("a.txt", "a (2).txt"),
            ("a", "a (2)"),
            ("a.tar.gz", "a.tar (2).gz"),
            (".x", ".x (2)"),
            ("a. long sentence as a name", "a. long sentence as a name (2)"),
        ];
        for (name, expected) in table {
            assert_eq!(numbered_filename(name, 2), expected, "{name}");
        }
        let long = numbered_filename(&("é".repeat(125) + ".pdf"), 1000);
        assert!(long.len() <= MAX_NAME_BYTES && long.ends_with("é (1000).pdf"), "{long}");
    }

    #[test]
    fn truncated_names_keep_their_extension() {
        let long = "é".repeat(300) + ".pdf";
        let name = attachment_filename(Some(&long), "application/pdf", 0);
        assert!(name.len() <= MAX_NAME_BYTES && name.ends_with("é.pdf"), "{name}");
    }
}
