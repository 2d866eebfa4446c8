//! The files in a request.

use restante_mail::compose::Attachment;
use serde::Deserialize;

use crate::failure::Failure;
use crate::incoming::decode_base64;
use crate::values::{List, Text};

/// A file. Its members have different names in the APIs of different providers.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct File<'a> {
    #[serde(alias = "filename", alias = "Name", alias = "Filename", alias = "FileName")]
    name: Option<String>,
    #[serde(alias = "type", alias = "contentType", alias = "ContentType")]
    content_type: Option<String>,
    #[serde(borrow)]
    #[serde(
        alias = "data",
        alias = "Content",
        alias = "Base64Content",
        alias = "RawContent",
        alias = "contentInBase64"
    )]
    content: Option<Text<'a>>,
    #[serde(alias = "id", alias = "contentId", alias = "ContentId", alias = "ContentID")]
    content_id: Option<String>,
    #[serde(alias = "ContentDisposition")]
    disposition: Option<String>,
}

impl File<'_> {
    fn attachment(&self, field: &str) -> Result<Attachment, Failure> {
        let Some(Text(content)) = &self.content else {
            return Err(Failure::invalid(field, "is required, because the server does not download files"));
        };
        let not_empty = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let filename = not_empty(&self.name);
        let content_id = match self.disposition.as_deref().map(str::to_ascii_lowercase).as_deref() {
            Some("attachment") => None,
            Some("inline") => not_empty(&self.content_id).or_else(|| filename.clone()),
            _ => not_empty(&self.content_id),
        };
        Ok(Attachment {
            content_type: not_empty(&self.content_type),
            content: decode_base64(field, content)?,
            content_id: content_id.map(|id| id.trim_start_matches("cid:").to_owned()),
            filename,
        })
    }
}

/// Returns the attachments of a message. A file with a Content-ID is inside of the HTML, unless its disposition is `attachment`.
/// `member` is the name of the content in the items of the list.
pub(crate) fn attachments(field: &str, member: &str, List(files): &List<File<'_>>) -> Result<Vec<Attachment>, Failure> {
    files.iter().enumerate().map(|(index, file)| file.attachment(&format!("{field}[{index}].{member}"))).collect()
}

/// Returns the images inside of the HTML of a message, which names them by their file names.
pub(crate) fn images(field: &str, member: &str, files: &List<File<'_>>) -> Result<Vec<Attachment>, Failure> {
    let mut images = attachments(field, member, files)?;
    for image in &mut images {
        image.content_id.clone_from(&image.filename);
    }
    Ok(images)
}
