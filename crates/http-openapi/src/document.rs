//! Builds the OpenAPI document from the data and the schemas of types.

use serde::Deserialize as _;
use serde::de::Error as _;
use serde_json::Error;
use utoipa::openapi::path::PathsBuilder;
use utoipa::openapi::schema::ComponentsBuilder;
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{InfoBuilder, License, OpenApi, OpenApiBuilder, Server};

use crate::Schemas;
use crate::data::Data;
use crate::operation::Operation;

/// Builds the document for a server whose paths begin with `root`: a URL, a path or nothing.
pub(super) fn build(root: &str, type_schemas: Schemas) -> serde_json::Result<OpenApi> {
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
    let mut components = ComponentsBuilder::new().schemas_from_iter(type_schemas).schemas_from_iter(schemas);
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
