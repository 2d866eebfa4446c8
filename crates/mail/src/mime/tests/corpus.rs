//! Compares the MIME view of every message of `../corpus/` with the JSON file beside it. `UPDATE_GOLDEN=1` rewrites the
//! JSON files; review them before committing.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::mime::{Disposition, Mime, Role, header_summary};

#[test]
fn views_match_golden_files() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let corpus_files = corpus_files();
    assert!(corpus_files.len() >= 120, "the corpus is complete");
    let mut mismatches = Vec::new();
    for path in corpus_files {
        let found = view(&fs::read(&path).unwrap());
        let formatted = serde_json::to_string_pretty(&found).unwrap() + "\n";
        let golden = path.with_extension("json");
        if update {
            fs::write(&golden, formatted).unwrap();
            continue;
        }
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        if serde_json::from_str::<Value>(&expected).ok() != Some(found) {
            mismatches.push(format!("{}:\n{formatted}", path.display()));
        }
    }
    assert!(mismatches.is_empty(), "{}", mismatches.join("\n"));
}

#[test]
fn bare_line_feeds_give_the_same_view() {
    for path in corpus_files() {
        let source = fs::read(&path).unwrap();
        let Ok(text) = std::str::from_utf8(&source) else { continue };
        let unix = text.replace("\r\n", "\n");
        let (dos, unix) = (Mime::parse(source.clone().into()), Mime::parse(unix.into()));
        assert_eq!(dos.header_map(), unix.header_map(), "{}", path.display());
        assert_eq!(dos.parts().len(), unix.parts().len(), "{}", path.display());
        // Base64 keeps the encoded line ends. All others become LF in the view.
        assert_eq!(dos.text(), unix.text(), "{}", path.display());
        assert_eq!(dos.inbucket_text(), unix.inbucket_text(), "{}", path.display());
        assert_eq!(dos.html(), unix.html(), "{}", path.display());
        assert_eq!(dos.defects(), unix.defects(), "{}", path.display());
    }
}

#[test]
fn views_are_consistent() {
    for path in corpus_files() {
        let mime = Mime::parse(fs::read(&path).unwrap().into());
        let (attachments, roles) = (mime.attachments(), mime.roles());
        let not_inline = attachments.iter().filter(|attachment| !attachment.is_inline).count();
        assert_eq!(mime.attachment_count(), not_inline, "{}", path.display());
        assert_eq!(mime.has_html(), roles.contains(&Role::Html), "{}", path.display());
        assert_eq!(roles.len(), mime.parts().len(), "{}", path.display());
        for (part, role) in mime.parts().iter().zip(roles) {
            assert_eq!(part.is_multipart(), role == Role::Multipart, "{}", path.display());
            if let Role::Attachment(index) = role {
                assert_eq!(attachments[index].part, part, "{}", path.display());
            }
        }
        for attachment in attachments {
            assert_eq!(
                attachment.len_and_md5(),
                (attachment.content().len(), attachment.md5_hex()),
                "{}",
                path.display()
            );
        }
        for field in mime.header() {
            assert!(field.has_name(&field.raw_name()), "{}", path.display());
        }
    }
}

pub(super) fn corpus_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut corpus_files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|ext| ext == "eml")).collect();
    corpus_files.sort();
    corpus_files
}

fn view(source: &[u8]) -> Value {
    let summary = header_summary(source);
    let mime = Mime::parse(source.to_vec().into());
    let header: Map<_, _> = mime.header_map().into_iter().map(|(name, values)| (name, values.into())).collect();
    let attachments: Vec<_> = mime
        .attachments()
        .iter()
        .map(|attachment| {
            json!({
                "filename": attachment.filename,
                "content-type": attachment.content_type,
                "disposition": attachment.part.disposition.map(|disposition| match disposition {
                    Disposition::Inline => "inline",
                    Disposition::Attachment => "attachment",
                }),
                "content-id": attachment.part.content_id,
                "inline": attachment.is_inline,
                "size": attachment.content().len(),
                "md5": attachment.md5_hex(),
            })
        })
        .collect();
    let defects: Vec<_> = mime
        .defects()
        .into_iter()
        .map(|defect| json!({"name": defect.name, "detail": defect.detail, "severe": defect.severe}))
        .collect();
    let mut view = json!({
        "from": summary.from,
        "to": summary.to,
        "subject": summary.subject,
        "text": mime.text(),
        "html": mime.html(),
        "attachments": attachments,
        "header": header,
        "errors": defects,
    });
    // For most messages the text is the same in both versions of the API.
    let compatible = mime.inbucket_text();
    if compatible != mime.text() {
        view["compatible-text"] = compatible.into();
    }
    view
}
