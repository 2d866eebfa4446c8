//! The tags of messages: a list of all, and changes of a tag in all messages that have it.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use restante_auth::Scope;
use restante_http_core::extractors::access::Access;
use restante_http_core::extractors::body;
use restante_http_core::extractors::parameters::{PathTag, RequestGrant, require_scope};
use restante_http_core::response::problem::Problem;
use restante_http_core::response::success;
use restante_http_core::server::Server;
use restante_mail::tags::validate;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// The maximum size of a request body.
const MAX_BODY_BYTES: usize = 64 * 1024;

const NAME_SHAPE: &str = "{\"name\": \"…\"}, and no other members";

/// Lists the tags of the messages that the client may read, ordered by name without regard to case.
pub(crate) async fn list(
    State(server): State<Arc<Server>>,
    RequestGrant(grant): RequestGrant,
) -> Result<Response, Problem> {
    let overview = server.messages.overview(&grant).await?;
    let tags = overview.tags.iter().map(|count| Tag { name: &count.tag, count: count.messages });
    success::no_store_json(&Tags { tags: tags.collect() })
}

/// Renames a tag.
pub(crate) async fn rename(access: Access, PathTag(tag): PathTag, request: Request) -> Result<Response, Problem> {
    // Before the body is checked.
    require_scope(&access.grant, Scope::Read)?;
    let body = body::read_json(request, MAX_BODY_BYTES).await?;
    let name = parse_name(body.as_ref()).ok_or(Problem::WrongShape(NAME_SHAPE))?.trim();
    validate(name).map_err(|error| Problem::invalid_member("name", &error))?;
    let changed = access.rename_tag(&tag, name).await?;
    success::no_store_json(&RenamedTag { name, changed })
}

/// Removes a tag from all messages.
pub(crate) async fn delete(access: Access, PathTag(tag): PathTag) -> Result<Response, Problem> {
    success::no_store_member("changed", access.delete_tag(&tag).await?)
}

/// The tags of messages.
#[derive(Serialize, ToSchema)]
pub(crate) struct Tags<'a> {
    /// The tags, ordered by name without regard to case. At most 10,000.
    tags: Vec<Tag<'a>>,
}

/// A tag, and the messages that have it.
#[derive(Serialize, ToSchema)]
#[schema(as = TagCount)]
struct Tag<'a> {
    /// The tag. If messages spell it in different cases, this is the spelling of the most copies.
    name: &'a str,
    /// The number of messages with a copy that has the tag.
    count: u64,
}

/// A renamed tag.
#[derive(Serialize, ToSchema)]
pub(crate) struct RenamedTag<'a> {
    /// The new name.
    name: &'a str,
    /// The number of messages that had the tag.
    changed: usize,
}

/// Returns the name in a request that has no other member.
fn parse_name(body: Option<&Value>) -> Option<&str> {
    let members = body?.as_object().filter(|members| members.len() == 1)?;
    members.get("name")?.as_str()
}
