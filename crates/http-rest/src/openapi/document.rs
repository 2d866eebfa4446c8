//! Builds the OpenAPI document from the data and the schemas of types.

use restante_api_types::{RelayTarget, WebhookTarget, WholeMessage};
use restante_http_core::response::message_json::Message;
use restante_http_core::response::problem::ProblemDocument;
use restante_http_core::response::success::Done;
use serde::Deserialize as _;
use serde::de::Error as _;
use serde_json::Error;
use utoipa::openapi::path::PathsBuilder;
use utoipa::openapi::schema::ComponentsBuilder;
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{InfoBuilder, License, OpenApi, OpenApiBuilder, RefOr, Schema, Server};
use utoipa::{PartialSchema as _, ToSchema as _};

use crate::live::frame::{Change, MessageChange};
use crate::openapi::data::Data;
use crate::openapi::operation::Operation;
use crate::serve::message::CompatMessage;
use crate::v2::about::AboutResponse;
use crate::v2::attachment_counts::AttachmentCounts;
use crate::v2::html_check::HtmlCheck;
use crate::v2::mailboxes::Mailboxes;
use crate::v2::message::MessageDetails;
use crate::v2::messages::MessageEntries;
use crate::v2::relay::{RelayEntries, RelayEntryDetails};
use crate::v2::search::SearchResponse;
use crate::v2::sessions::{Sessions, Transcript};
use crate::v2::usage::UsageRecord;
use crate::v2::webhooks::{WebhookEntries, WebhookEntryDetails};

/// Returns the schemas of types, and all schemas that they refer to.
macro_rules! schemas_of {
    ($($type:ty),+ $(,)?) => {{
        let mut schemas = Vec::new();
        $(
            schemas.push((<$type>::name().into_owned(), <$type>::schema()));
            <$type>::schemas(&mut schemas);
        )+
        schemas
    }};
}

/// Builds the document for a server whose paths begin with `root`: a URL, a path or nothing.
pub(super) fn build(root: &str) -> serde_json::Result<OpenApi> {
    let Data { common, schemas, tags } = Data::read()?;
    let mut paths = PathsBuilder::new().build();
    let mut tag_descriptions = Vec::new();
    for tag in tags {
        for data in tag.operations {
            let (method, path, operation) = Operation::deserialize(&data)
                .and_then(|operation| operation.build(&tag.name, &common))
                .map_err(|error| Error::custom(format!("operation {}: {error}", data["id"])))?;
            paths.add_path_operation(path, vec![method], operation);
        }
        tag_descriptions.push(TagBuilder::new().name(tag.name).description(Some(tag.description)).build());
    }
    let license = License::builder().name("MIT OR Apache-2.0").identifier(Some("MIT OR Apache-2.0")).build();
    let info = InfoBuilder::new()
        .title("Restante")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(common.description))
        .license(Some(license))
        .build();
    let mut components = ComponentsBuilder::new().schemas_from_iter(type_schemas()).schemas_from_iter(schemas);
    for (name, scheme) in common.security_schemes {
        components = components.security_scheme(name, scheme);
    }
    for (name, error) in common.errors {
        components = components.response(name, error.build());
    }
    Ok(OpenApiBuilder::new()
        .info(info)
        .servers(Some([Server::new(if root.is_empty() { "/" } else { root })]))
        .tags(Some(tag_descriptions))
        .components(Some(components.build()))
        .paths(paths)
        .build())
}

/// Returns the schemas of the types that handlers serialize, and of the types in them.
fn type_schemas() -> Vec<(String, RefOr<Schema>)> {
    schemas_of![
        AboutResponse<'_>,
        AttachmentCounts,
        Change<'_>,
        CompatMessage<'_>,
        Done,
        HtmlCheck,
        Mailboxes<'_>,
        Message<'_>,
        MessageChange<'_>,
        MessageDetails<'_>,
        MessageEntries<'_>,
        ProblemDocument,
        RelayEntries<'_>,
        RelayEntryDetails<'_>,
        RelayTarget<'_>,
        SearchResponse<'_>,
        Sessions<'_>,
        Transcript<'_>,
        UsageRecord,
        WebhookEntries<'_>,
        WebhookEntryDetails<'_>,
        WebhookTarget<'_>,
        WholeMessage<'_>,
    ]
}
