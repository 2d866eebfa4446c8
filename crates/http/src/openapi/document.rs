//! Builds the OpenAPI document: the operations of all chapters, common components and security schemes.

use utoipa::openapi::path::{Paths, PathsBuilder};
use utoipa::openapi::schema::{Components, ComponentsBuilder};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::tag::{Tag, TagBuilder};
use utoipa::openapi::{Info, InfoBuilder, License, OpenApi, OpenApiBuilder, Server};

use crate::openapi::operation::{BASIC, BEARER, COOKIE, Operation};
use crate::openapi::paths::{CHAPTERS, Chapter};
use crate::openapi::refusals;

const ABOUT: &str = "\
Restante takes in mail for any address and keeps it for those who ask. This is how programs ask: they read what came, \
listen to what comes, and delete what they have seen.

Version 1 is the API that clients of Inbucket know, with the same paths and the same shapes. What goes beyond it is \
version 2. All paths are below the base path (`web.basepath`), and at the root as well.

A `{name}` is the name of a mailbox or an address, and goes the same way as a recipient: under the default naming, \
`Bob+Shop@example.org` reads mailbox `bob`. Every valid name is a mailbox; one that holds nothing is empty, not an error. \
An `{id}` is a string of digits; ids ascend with arrival. The patterns of both match the \
usual forms. The server accepts more: a final dot, quoted local parts and, under the default naming, any text in the place of the \
domain. A text that matches and is no valid name is 400, and an id of no message is 404.

Parameters of a query that are not known are ignored, but for `wait` and for deleting everything, which refuse them; a \
known one that is given twice is 400. Every JSON body ends in \
one line feed.";

/// The cookie of a login session, which the login page sets.
const SESSION_COOKIE: &str = "restante";

/// Builds the document for a server whose paths begin with `root`: a URL, a path or nothing.
pub(super) fn build(root: &str) -> OpenApi {
    let operations: Vec<Operation> = CHAPTERS.iter().flat_map(Chapter::operations).collect();
    OpenApiBuilder::new()
        .info(info())
        .servers(Some([Server::new(if root.is_empty() { "/" } else { root })]))
        .tags(Some(CHAPTERS.iter().map(tag)))
        .components(Some(components(&operations)))
        .paths(paths(operations))
        .build()
}

fn info() -> Info {
    InfoBuilder::new()
        .title("Restante")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(ABOUT))
        .license(Some(License::builder().name("MIT OR Apache-2.0").identifier(Some("MIT OR Apache-2.0")).build()))
        .build()
}

fn tag(chapter: &Chapter) -> Tag {
    TagBuilder::new().name(chapter.name).description(Some(chapter.about)).build()
}

/// Returns the components that operations refer to.
fn components(operations: &[Operation]) -> Components {
    let schemas = operations.iter().flat_map(|operation| operation.schemas.iter().cloned());
    let mut components = ComponentsBuilder::new()
        .schemas_from_iter(schemas)
        .schemas_from_iter(refusals::schemas())
        .security_scheme(BASIC, basic())
        .security_scheme(BEARER, bearer())
        .security_scheme(COOKIE, cookie());
    for refusal in refusals::all() {
        components = components.response(refusal.name, refusal.response());
    }
    components.build()
}

fn basic() -> SecurityScheme {
    let about = "The name and the password of a user.";
    SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Basic).description(Some(about)).build())
}

fn bearer() -> SecurityScheme {
    let about = "A token, as `restante token create` makes it.";
    SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(about)).build())
}

fn cookie() -> SecurityScheme {
    let about = "The session of a browser, which begins at the login page.";
    SecurityScheme::ApiKey(ApiKey::Cookie(ApiKeyValue::with_description(SESSION_COOKIE, about)))
}

fn paths(operations: Vec<Operation>) -> Paths {
    let mut paths = PathsBuilder::new().build();
    for Operation { method, path, spec: described, .. } in operations {
        paths.add_path_operation(path, vec![method], described);
    }
    paths
}
