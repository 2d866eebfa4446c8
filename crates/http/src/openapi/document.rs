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
Restante accepts mail for any address and stores it. With this API, programs read messages, subscribe to live events and \
delete messages.

Version 1 is the API of Inbucket, with the same paths and the same JSON. Everything else is version 2. All paths are \
available below the base path (`web.basepath`) and at the root.

A `{name}` is a mailbox name or an address. It is mapped to a mailbox like a recipient: under the default naming, \
`Bob+Shop@example.org` is mailbox `bob`. Every valid name is a mailbox. A mailbox without messages is empty, not an error. \
An `{id}` is a string of digits; ids ascend with arrival. The patterns of both match the usual forms. The server also \
accepts a final dot, quoted local parts and, under the default naming, any text instead of the domain. The response to a \
text that matches but is not a valid name is 400: a domain with a wrong hyphen, an address literal alone under another \
naming than `domain`, more than 320 characters, or more than 128 before the `@`. The response to the id of a message that \
does not exist is 404.

Unknown query parameters are ignored, except by `wait`, by the deletion of all messages, and by changes of matching messages, \
which refuse them. A known parameter that is given twice is refused with 400, except `tag`. Version 1 ignores parameters of \
its list that it cannot use. Unknown members of a request body are ignored, unless its schema excludes additional properties. \
Every JSON body ends with a line feed.";

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
    let about = "A user name and a password.";
    SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Basic).description(Some(about)).build())
}

fn bearer() -> SecurityScheme {
    let about = "A token that was created with `restante token create`.";
    SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(about)).build())
}

fn cookie() -> SecurityScheme {
    let about = "The login session of a browser. It starts at the login page.";
    SecurityScheme::ApiKey(ApiKey::Cookie(ApiKeyValue::with_description(SESSION_COOKIE, about)))
}

fn paths(operations: Vec<Operation>) -> Paths {
    let mut paths = PathsBuilder::new().build();
    for Operation { method, path, spec, .. } in operations {
        paths.add_path_operation(path, vec![method], spec);
    }
    paths
}
