//! The tags of messages: a list of all, and changes of them.
//!
//! Changes apply to the copies that the client may access. They are made in batches. After an error, the messages of
//! earlier batches are changed. Differences from Mailpit:
//!
//! - Tags can contain all letters, not only those of ASCII, and have at most 64 characters.
//! - A message has at most 20 tags.
//! - Ids of messages that do not exist are ignored. Mailpit keeps a tag that has no messages then.
//! - Lists have at most 10,000 tags, the first ones by name. All tags can be changed.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use restante_auth::Grant;
use restante_http_core::extractors::access::Access;
use restante_http_core::extractors::parameters::RequestGrant;
use restante_http_core::messages::changes::{CHANGE_BATCH, MAX_IDS, MAX_IDS_BODY_BYTES};
use restante_http_core::response::problem::{Problem, internal_error};
use restante_http_core::server::Server;
use restante_mail::message::{Message, MessageId};
use restante_mail::tags::{MAX_TAG_CHARS, Tags};
use restante_mailroom::CopyKey;
use serde::Deserialize;

use crate::error::{Error, HandlerResult};
use crate::{body, success};

/// The maximum size of a request body without ids.
const MAX_SMALL_BODY_BYTES: usize = 64 * 1024;

/// Returns all tags, sorted in any case of letters.
pub(crate) async fn list(State(server): State<Arc<Server>>, RequestGrant(grant): RequestGrant) -> HandlerResult {
    let overview = server.messages.overview(&grant).await?;
    success::json(&overview.tags.iter().map(|count| count.tag.as_str()).collect::<Vec<_>>())
}

/// Sets the tags of messages. Without tags, removes all tags from them.
pub(crate) async fn set(Access { server, grant, cancellation }: Access, request: Request) -> HandlerResult {
    let TagsOfMessages { tags, ids } = body::read(request, MAX_IDS_BODY_BYTES).await?;
    if ids.len() > MAX_IDS {
        return Err(Error::text(format!("at most {MAX_IDS} IDs are allowed")));
    }
    let tags: Vec<String> = tags.iter().map(|tag| clean(tag)).filter(|tag| !tag.is_empty()).collect();
    let tags = Tags::new(tags.iter().map(String::as_str)).map_err(|error| Error::text(error.to_string()))?;
    let ids = ids.iter().filter_map(|id| id.parse().ok()).collect();
    cancellation.check().await?;
    // Completes even if the client disconnects.
    let task = async move { set_tags_of_messages(&server, &grant, ids, &tags).await };
    tokio::spawn(task).await.map_err(|error| internal_error(&error))??;
    Ok(success::ok())
}

/// Renames a tag of all messages that have it.
pub(crate) async fn rename(access: Access, Path(tag): Path<String>, request: Request) -> HandlerResult {
    let NewName { name } = body::read(request, MAX_SMALL_BODY_BYTES).await?;
    let name = clean(&name);
    if name.is_empty() {
        return Err(Error::text(format!("invalid tag name: {name}")));
    }
    if tag == name {
        return Ok(success::ok());
    }
    match access.rename_tag(&tag, &name).await {
        Err(Problem::TagExists) => Err(Error::text(format!("tag already exists: {name}"))),
        result => changed(&tag, result),
    }
}

/// Removes a tag from all messages.
pub(crate) async fn delete(access: Access, Path(tag): Path<String>) -> HandlerResult {
    changed(&tag, access.delete_tag(&tag).await)
}

/// Returns the response to a change of a tag.
fn changed(tag: &str, result: Result<usize, Problem>) -> HandlerResult {
    match result {
        Ok(_) => Ok(success::ok()),
        Err(Problem::NoSuchTag) => Err(Error::text(format!("tag not found: {tag}"))),
        Err(problem) => Err(problem.into()),
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct TagsOfMessages {
    tags: Vec<String>,
    #[serde(rename = "IDs")]
    ids: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct NewName {
    name: String,
}

async fn set_tags_of_messages(server: &Server, grant: &Grant, ids: Vec<MessageId>, tags: &Tags) -> Result<(), Problem> {
    for batch in ids.chunks(CHANGE_BATCH) {
        let messages = server.messages.find_messages(grant, batch).await?;
        let copies = messages.iter().flat_map(Message::copies).filter(|copy| copy.tags != *tags);
        server.mailroom.set_tags(copies.map(CopyKey::from).collect(), tags.clone()).await?;
    }
    Ok(())
}

/// Makes a text a valid tag: other characters become spaces, several spaces become one, and the end is cut off. The result
/// can be empty.
fn clean(text: &str) -> String {
    let is_allowed = |c: char| c.is_alphanumeric() || "-_.@".contains(c);
    let words: String = text.chars().map(|c| if is_allowed(c) { c } else { ' ' }).collect();
    let tag = words.split_whitespace().collect::<Vec<_>>().join(" ");
    tag.chars().take(MAX_TAG_CHARS).collect::<String>().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_cleaned() {
        let long = "x".repeat(70);
        let table = [
            (" a  b ", "a b"),
            ("a/b", "a b"),
            ("a\nb", "a b"),
            ("Größe", "Größe"),
            ("a-b_c.d@e", "a-b_c.d@e"),
            ("!!", ""),
            (&long, &long[..64]),
        ];
        for (text, expected) in table {
            assert_eq!(clean(text), expected);
        }
    }
}
