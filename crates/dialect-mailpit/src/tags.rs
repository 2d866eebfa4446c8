//! The tags of messages: a list of all, and changes of them.
//!
//! Changes apply to the copies that the client may access. They are made in batches. After an error, the messages of
//! earlier batches are changed. Differences from Mailpit:
//!
//! - Tags can contain all letters, not only those of ASCII, and have at most 64 characters.
//! - A message has at most 20 tags.
//! - Ids of messages that do not exist are ignored. Mailpit keeps a tag that has no messages then.
//! - Lists have at most [`MAX_OVERVIEW_TAGS`] tags, the first ones by name. All tags can be changed.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use restante_auth::{Grant, Scope};
use restante_http_core::extractors::access::Access;
use restante_http_core::extractors::cancellation::Cancellation;
use restante_http_core::extractors::parameters::{RequestGrant, require_scope};
use restante_http_core::messages::changes::{CHANGE_BATCH, MAX_IDS, MAX_IDS_BODY_BYTES};
use restante_http_core::messages::{MessagePage, MessageRange};
use restante_http_core::response::problem::{Problem, internal_error};
use restante_http_core::server::Server;
use restante_mail::message::{Message, MessageId};
use restante_mail::tags::{MAX_TAG_CHARS, Tags};
use restante_mailroom::CopyKey;
use restante_store::Page;
use restante_store::overview::MAX_OVERVIEW_TAGS;
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
pub(crate) async fn rename(
    Access { server, grant, cancellation }: Access,
    Path(tag): Path<String>,
    request: Request,
) -> HandlerResult {
    let NewName { name } = body::read(request, MAX_SMALL_BODY_BYTES).await?;
    let name = clean(&name);
    if name.is_empty() {
        return Err(Error::text(format!("invalid tag name: {name}")));
    }
    if tag == name {
        return Ok(success::ok());
    }
    check_tag_exists(&server, &grant, &tag, &cancellation).await?;
    let is_same_tag = name.to_lowercase() == tag.to_lowercase();
    if !is_same_tag && has_tag(&server, &grant, &name, &cancellation).await? {
        return Err(Error::text(format!("tag already exists: {name}")));
    }
    replace_tag(&server, &grant, &tag, Some(name), &cancellation).await?;
    Ok(success::ok())
}

/// Removes a tag from all messages.
pub(crate) async fn delete(Access { server, grant, cancellation }: Access, Path(tag): Path<String>) -> HandlerResult {
    check_tag_exists(&server, &grant, &tag, &cancellation).await?;
    replace_tag(&server, &grant, &tag, None, &cancellation).await?;
    Ok(success::ok())
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

/// Fails if no message has the tag. This reveals something about messages, so the scope `read` is required.
async fn check_tag_exists(server: &Server, grant: &Grant, tag: &str, cancellation: &Cancellation) -> Result<(), Error> {
    require_scope(grant, Scope::Read)?;
    let exists = has_tag(server, grant, tag, cancellation).await?;
    if exists { Ok(()) } else { Err(Error::text(format!("tag not found: {tag}"))) }
}

/// Returns whether a message has the tag. It searches all messages if the overview does not decide: that of a grant for
/// some mailboxes has only the newest messages, and other overviews have only the first [`MAX_OVERVIEW_TAGS`] tags.
async fn has_tag(server: &Server, grant: &Grant, tag: &str, cancellation: &Cancellation) -> Result<bool, Problem> {
    if grant.covers_all_mailboxes() {
        let (_, overview) = server.messages.complete_overview().await?;
        let lowercase = tag.to_lowercase();
        if overview.tags.iter().any(|count| count.tag.to_lowercase() == lowercase) {
            return Ok(true);
        }
        // The tags are sorted.
        let omitted_after = overview.tags.last().filter(|_| overview.tags.len() >= MAX_OVERVIEW_TAGS);
        if omitted_after.is_none_or(|last| lowercase < last.tag.to_lowercase()) {
            return Ok(false);
        }
    }
    cancellation.run_until_cancelled(find_tag(server, grant, tag)).await
}

/// Searches all messages for the tag, the newest first. Only one request at a time reads a batch after its first one.
async fn find_tag(server: &Server, grant: &Grant, tag: &str) -> Result<bool, Problem> {
    let mut page = Page { before: None, after: None, limit: Some(CHANGE_BATCH) };
    loop {
        let mut permit = None;
        if page.before.is_some() {
            server.messages.continue_scan(&mut permit).await?;
        }
        let messages = server.mailroom.messages(page).await?.messages;
        drop(permit);
        let mut copies = messages.iter().flat_map(Message::copies);
        if copies.any(|copy| grant.covers(&copy.mailbox) && copy.tags.contains(tag)) {
            return Ok(true);
        }
        if messages.len() < CHANGE_BATCH {
            return Ok(false);
        }
        page.before = messages.first().map(Message::id);
    }
}

/// Replaces or removes a tag of all messages that have it. A change of a batch that has begun completes. Messages that
/// arrive meanwhile keep the tag.
async fn replace_tag(
    server: &Server,
    grant: &Grant,
    tag: &str,
    new: Option<String>,
    cancellation: &Cancellation,
) -> Result<(), Problem> {
    let mut range = MessageRange { before: None, after: None, limit: CHANGE_BATCH };
    loop {
        let find = server.messages.permitted_messages(grant, range);
        let MessagePage { messages, next } = cancellation.run_until_cancelled(find).await?;
        let tagged = messages.iter().flat_map(Message::copies).filter(|copy| copy.tags.contains(tag));
        let (tag, new) = (tag.to_owned(), new.clone());
        // Other requests may have changed the tags since they were read.
        let update = move |tags: &Tags| with_replaced_tag(tags, &tag, new.as_deref());
        server.mailroom.update_tags(tagged.map(CopyKey::from).collect(), update).await?;
        if next.is_none() {
            return Ok(());
        }
        range.before = next;
    }
}

fn with_replaced_tag(tags: &Tags, tag: &str, new: Option<&str>) -> Tags {
    let tag = tag.to_lowercase();
    Tags::from_valid(tags.iter().filter_map(|known| if known.to_lowercase() == tag { new } else { Some(known) }))
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

    #[test]
    fn tag_is_replaced_in_any_case() {
        let tags = Tags::new(["One", "two"]).unwrap();
        let replaced = |tag, new| with_replaced_tag(&tags, tag, new).iter().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(replaced("one", Some("ONE")), ["ONE", "two"]);
        assert_eq!(replaced("TWO", Some("three")), ["One", "three"]);
        assert_eq!(replaced("one", None), ["two"]);
        assert_eq!(replaced("one", Some("Two")), ["Two"]);
    }
}
