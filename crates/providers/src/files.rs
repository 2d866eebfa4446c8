//! The files in requests to providers that name images inside of the HTML by their Content-ID: Mandrill and SparkPost.

use restante_mail::compose::Attachment;
use serde::Deserialize;

use crate::failure::Failure;
use crate::incoming::decode_base64;
use crate::values::{List, Text};

/// A file.
#[derive(Deserialize)]
pub(crate) struct File<'a> {
    /// The file name, or the Content-ID of an image.
    name: Option<String>,
    #[serde(rename = "type")]
    content_type: Option<String>,
    #[serde(borrow, default, alias = "data")]
    content: Text<'a>,
}

/// Returns the attachments and the images of a message.
pub(crate) fn attachments(files: &List<File<'_>>, images: &List<File<'_>>) -> Result<Vec<Attachment>, Failure> {
    let files = files.0.iter().enumerate().map(|(index, file)| attachment("attachments", index, file));
    let images = images.0.iter().enumerate().map(|(index, file)| attachment("images", index, file));
    files.chain(images).collect()
}

fn attachment(list: &str, index: usize, file: &File<'_>) -> Result<Attachment, Failure> {
    let name = file.name.clone().filter(|name| !name.is_empty());
    Ok(Attachment {
        filename: name.clone(),
        content_type: file.content_type.clone(),
        content: decode_base64(&format!("{list}[{index}]"), &file.content.0)?,
        content_id: name.filter(|_| list == "images"),
    })
}
