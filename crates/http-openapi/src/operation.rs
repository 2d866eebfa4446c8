//! Operations as the data describes them. What all operations have in common is added: the parameters in the path, the
//! security requirements and the error responses.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use serde::Deserialize;
use serde::de::Error as _;
use serde_json::{Error, Value, json};
use utoipa::openapi::content::{Content, ContentBuilder};
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::{self, HttpMethod, OperationBuilder, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::response::{self, ResponseBuilder};
use utoipa::openapi::schema::{Array, Object, ObjectBuilder, Type};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{Ref, RefOr, Required, Schema};

use crate::data::{Common, exact};

/// The extension with the schema of events. OpenAPI has no field for it.
const FRAME_EXTENSION: &str = "x-frame";

/// An operation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Operation {
    method: HttpMethod,
    path: String,
    id: String,
    summary: String,
    /// Code is in backticks; paragraphs are separated by an empty line.
    description: Option<String>,
    /// The scopes that are required if authentication is enabled. By default `read` for GET, otherwise `write`. If the list
    /// is empty, any valid credentials are sufficient.
    scopes: Option<Vec<String>>,
    /// Whether no credentials are required.
    #[serde(default)]
    public: bool,
    /// The parameters. The usual ones in the path, and that of `cacheable`, are added if they are not in the list.
    #[serde(default)]
    parameters: Vec<Parameter>,
    body: Option<Body>,
    /// The responses by status, without those of `cacheable` and `errors`.
    responses: BTreeMap<String, Response>,
    /// Whether the response 200 has an entity tag.
    #[serde(default)]
    cacheable: bool,
    /// The names of error responses that only some operations have.
    #[serde(default)]
    errors: Vec<String>,
    /// The names of error responses that most operations have, but not this one.
    #[serde(default)]
    without: Vec<String>,
    /// The schema of the events that are sent over the connection.
    events: Option<String>,
}

/// A parameter.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameter {
    name: String,
    #[serde(rename = "in", default = "in_query")]
    location: ParameterIn,
    /// Parameters in the path are always required.
    #[serde(default)]
    required: bool,
    description: String,
    #[serde(default = "any_string", deserialize_with = "exact")]
    schema: RefOr<Schema>,
}

/// A request body.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    description: String,
    #[serde(default = "yes")]
    required: bool,
    /// The name of the schema of a JSON body.
    schema: String,
    example: Value,
    /// Other content types.
    #[serde(default)]
    content: Vec<String>,
}

/// A response.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Response {
    description: String,
    /// The descriptions of headers.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The name of the schema of a JSON body, followed by `[]` for an array.
    schema: Option<String>,
    example: Option<Value>,
    /// The content types of a body that is not JSON.
    #[serde(default)]
    content: Vec<String>,
}

/// An error response of several operations. `response::problem` produces the real responses.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct ErrorResponse {
    /// The status. It is different for each error response.
    status: u16,
    description: String,
    /// An example of the detail.
    detail: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    applies_to: AppliesTo,
}

/// Which operations have an error response.
#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum AppliesTo {
    All,
    /// Those with a request body.
    Bodies,
    /// Those that name it.
    #[default]
    Named,
}

impl Operation {
    /// Returns the operation of the document, with its method and its path.
    pub(super) fn build(
        mut self,
        tag: &str,
        common: &Common,
    ) -> serde_json::Result<(HttpMethod, String, path::Operation)> {
        let parameters = self.take_parameters(common)?;
        let responses = self.take_responses(common)?;
        let events =
            self.events.map(|name| ExtensionsBuilder::new().add(FRAME_EXTENSION, json!(reference(&name))).build());
        let default_scope = if self.method == HttpMethod::Get { "read" } else { "write" };
        let scopes = self.scopes.unwrap_or_else(|| vec![default_scope.to_owned()]);
        let schemes = common.security_schemes.keys().filter(|_| !self.public);
        let security = schemes.map(|scheme| SecurityRequirement::new(scheme, scopes.clone()));
        let operation = OperationBuilder::new()
            .tag(tag)
            .operation_id(Some(self.id))
            .summary(Some(self.summary))
            .description(self.description)
            .parameters(Some(parameters))
            .request_body(self.body.map(Body::build))
            .responses(responses)
            .securities(Some([SecurityRequirement::default()].into_iter().chain(security)))
            .extensions(events)
            .build();
        Ok((self.method, self.path, operation))
    }

    /// Returns all parameters, those in the path first.
    fn take_parameters(&mut self, common: &Common) -> serde_json::Result<Vec<path::Parameter>> {
        let (own, mut others): (Vec<_>, Vec<_>) =
            self.parameters.drain(..).partition(|parameter| parameter.location == ParameterIn::Path);
        let mut parameters = Vec::new();
        for name in self.path.split('{').skip(1).filter_map(|rest| rest.split('}').next()) {
            let parameter = own.iter().chain(&common.path_parameters).find(|parameter| parameter.name == name);
            parameters.push(parameter.cloned().ok_or_else(|| Error::custom(format!("no parameter {name:?}")))?);
        }
        if self.cacheable && !others.contains(&common.if_none_match) {
            others.push(common.if_none_match.clone());
        }
        parameters.append(&mut others);
        Ok(parameters.into_iter().map(Parameter::build).collect())
    }

    /// Returns all responses.
    fn take_responses(&mut self, common: &Common) -> serde_json::Result<response::Responses> {
        if let Some(name) = self.errors.iter().chain(&self.without).find(|name| !common.errors.contains_key(*name)) {
            return Err(Error::custom(format!("no error response {name:?}")));
        }
        if self.cacheable {
            self.responses.insert("304".to_owned(), common.not_modified.clone());
            if let Some(ok) = self.responses.get_mut("200") {
                ok.headers.insert("ETag".to_owned(), "The entity tag, for `If-None-Match`.".to_owned());
            }
        }
        let applies = |(name, error): &(&String, &ErrorResponse)| match error.applies_to {
            _ if self.without.contains(name) => false,
            AppliesTo::All => true,
            AppliesTo::Bodies if self.body.is_some() => true,
            AppliesTo::Bodies | AppliesTo::Named => self.errors.contains(name),
        };
        let errors = common.errors.iter().filter(applies);
        let errors = errors.map(|(name, error)| (error.status.to_string(), RefOr::Ref(Ref::from_response_name(name))));
        let responses = std::mem::take(&mut self.responses).into_iter().map(|(status, response)| {
            let response = response.build(&status);
            (status, RefOr::T(response))
        });
        Ok(errors.chain(responses).collect())
    }
}

impl Parameter {
    fn build(self) -> path::Parameter {
        let required = self.required || self.location == ParameterIn::Path;
        ParameterBuilder::new()
            .name(self.name)
            .parameter_in(self.location)
            .required(if required { Required::True } else { Required::False })
            .description(Some(self.description))
            .schema(Some(self.schema))
            .build()
    }
}

impl Body {
    fn build(self) -> RequestBody {
        let body = RequestBodyBuilder::new()
            .description(Some(self.description))
            .required(Some(if self.required { Required::True } else { Required::False }))
            .content("application/json", json_content(&self.schema, Some(self.example)));
        let others = self.content.into_iter();
        others.fold(body, |body, kind| body.content(kind, Content::new(Some(any_string())))).build()
    }
}

impl Response {
    fn build(self, status: &str) -> response::Response {
        let is_error = status >= "400";
        let mut response = ResponseBuilder::new().description(self.description);
        for (name, description) in self.headers {
            response = response.header(name, header(Object::with_type(Type::String), &description));
        }
        if let Some(schema) = self.schema {
            let kind = if is_error { "application/problem+json" } else { "application/json" };
            response = response.content(kind, json_content(&schema, self.example));
            if !is_error {
                let always = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["-1"])).build();
                response = response.header("Expires", header(always, "Always `-1`: responses expire immediately."));
            }
        }
        for kind in self.content {
            let content = Content::new(kind.starts_with("text/").then(any_string));
            response = response.content(kind, content);
        }
        response.build()
    }
}

impl ErrorResponse {
    /// Returns the component.
    pub(super) fn build(self) -> response::Response {
        let Self { status, description, detail, headers, .. } = self;
        let title = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
        let example = json!({ "type": "about:blank", "title": title, "status": status, "detail": detail });
        let schema = Some("Problem".to_owned());
        let response = Response { description, headers, schema, example: Some(example), content: Vec::new() };
        response.build(&status.to_string())
    }
}

fn json_content(schema: &str, example: Option<Value>) -> Content {
    let schema = match schema.strip_suffix("[]") {
        Some(items) => RefOr::T(Array::new(reference(items)).into()),
        None => RefOr::Ref(reference(schema)),
    };
    ContentBuilder::new().schema(Some(schema)).example(example).build()
}

fn reference(schema: &str) -> Ref {
    Ref::from_schema_name(schema)
}

fn header(schema: Object, description: &str) -> Header {
    HeaderBuilder::new().schema(Some(schema)).description(Some(description)).build()
}

fn any_string() -> RefOr<Schema> {
    Object::with_type(Type::String).into()
}

fn in_query() -> ParameterIn {
    ParameterIn::Query
}

fn yes() -> bool {
    true
}
