//! A builder for operations. It adds what all operations have in common: the parameters in the path, the security
//! requirements and the error responses of all requests.

use restante_api_types::patterns;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa::openapi::content::{Content, ContentBuilder};
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{self, HttpMethod, OperationBuilder, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::schema::{Array, Object, ObjectBuilder, Type};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{Ref, RefOr, Required};

use crate::openapi::reference::{NamedSchema, header, reference, schemas_of};
use crate::openapi::refusals;
use crate::openapi::refusals::Refusal;

/// The name of the security scheme for user names and passwords.
pub(super) const BASIC: &str = "basic";
/// The name of the security scheme for tokens.
pub(super) const BEARER: &str = "bearer";
/// The name of the security scheme for login sessions.
pub(super) const COOKIE: &str = "cookie";

/// The extension with the schema of events. OpenAPI has no field for it.
const FRAME_EXTENSION: &str = "x-frame";

/// An operation under construction.
pub(super) struct Operation {
    pub(super) method: HttpMethod,
    pub(super) path: &'static str,
    pub(super) spec: path::Operation,
    /// The schemas that the operation refers to.
    pub(super) schemas: Vec<NamedSchema>,
}

/// Creates a GET operation. `name` is its operation id.
pub(super) fn get(path: &'static str, name: &str) -> Operation {
    Operation::new(HttpMethod::Get, path, name).requires_scope("read")
}

/// Creates a POST operation.
pub(super) fn post(path: &'static str, name: &str) -> Operation {
    Operation::new(HttpMethod::Post, path, name).requires_scope("write")
}

/// Creates a PATCH operation.
pub(super) fn patch(path: &'static str, name: &str) -> Operation {
    Operation::new(HttpMethod::Patch, path, name).requires_scope("write")
}

/// Creates a DELETE operation.
pub(super) fn delete(path: &'static str, name: &str) -> Operation {
    Operation::new(HttpMethod::Delete, path, name).requires_scope("write")
}

impl Operation {
    fn new(method: HttpMethod, path: &'static str, name: &str) -> Self {
        let names = path.split('{').skip(1).filter_map(|rest| rest.split('}').next());
        let spec = OperationBuilder::new()
            .operation_id(Some(name))
            .parameters(Some(names.map(|name| path_parameter(&method, name))))
            .build();
        Self { method, path, spec, schemas: Vec::new() }.refusals(refusals::COMMON)
    }

    /// Sets the summary and the description. Code is in backticks; paragraphs are separated by an empty line.
    pub(super) fn describe(mut self, summary: &str, description: &str) -> Self {
        self.spec.summary = Some(summary.to_owned());
        self.spec.description = (!description.is_empty()).then(|| description.to_owned());
        self
    }

    /// Requires this scope, if authentication is enabled.
    pub(super) fn requires_scope(self, scope: &str) -> Self {
        self.requires_scopes(&[scope])
    }

    /// Requires valid credentials with any scope, if authentication is enabled.
    pub(super) fn requires_login(self) -> Self {
        self.requires_scopes(&[])
    }

    /// Requires all of these scopes, if authentication is enabled.
    pub(super) fn requires_scopes(mut self, scopes: &[&str]) -> Self {
        let anonymous = SecurityRequirement::default();
        let authenticated =
            [BASIC, BEARER, COOKIE].map(|scheme| SecurityRequirement::new(scheme, scopes.iter().copied()));
        self.spec.security = Some([anonymous].into_iter().chain(authenticated).collect());
        self
    }

    /// Requires no credentials, and accepts any host name.
    pub(super) fn public(mut self) -> Self {
        self.spec.security = Some(vec![SecurityRequirement::default()]);
        for refusal in [refusals::MALFORMED, refusals::UNAUTHORISED, refusals::MISDIRECTED] {
            self.spec.responses.responses.remove(refusal.status.as_str());
        }
        self
    }

    /// Returns the same operation at another path, under another operation id. It keeps only the parameters in the
    /// header, those in the path that the new path has too, and those in the query except `wait`.
    pub(super) fn moved_to(mut self, path: &'static str, name: &str) -> Self {
        let is_kept = |parameter: &Parameter| match parameter.parameter_in {
            ParameterIn::Path => path.contains(&format!("{{{}}}", parameter.name)),
            _ => parameter.name != "wait",
        };
        if let Some(parameters) = &mut self.spec.parameters {
            parameters.retain(|parameter| matches!(parameter, RefOr::T(parameter) if is_kept(parameter)));
        }
        self.spec.operation_id = Some(name.to_owned());
        self.path = path;
        self
    }

    /// Sets the description of a path parameter if it differs from the usual one.
    pub(super) fn describe_parameter(self, name: &str, description: &str) -> Self {
        self.with_parameter(name, |parameter| parameter.description = Some(description.to_owned()))
    }

    /// Restricts a parameter to strings that match this pattern.
    pub(super) fn parameter_pattern(self, name: &str, pattern: &str) -> Self {
        self.with_parameter(name, |parameter| parameter.schema = Some(string_matching(pattern).into()))
    }

    fn with_parameter(mut self, name: &str, change: impl Fn(&mut Parameter)) -> Self {
        for parameter in self.spec.parameters.iter_mut().flatten() {
            if let RefOr::T(parameter) = parameter
                && parameter.name == name
            {
                change(parameter);
            }
        }
        self
    }

    /// Adds a parameter.
    pub(super) fn parameter(mut self, parameter: ParameterBuilder) -> Self {
        self.spec.parameters.get_or_insert_default().push(RefOr::T(parameter.build()));
        self
    }

    /// Adds a JSON request body with an example.
    pub(super) fn json_body<T: ToSchema>(self, required: Required, description: &str, example: Value) -> Self {
        let content = ContentBuilder::new().schema(Some(reference::<T>())).example(Some(example)).build();
        let mut this = self.with_schemas_of::<T>().refusals(refusals::JSON_BODY);
        let body = RequestBodyBuilder::new().description(Some(description)).required(Some(required));
        this.spec.request_body = Some(RefOr::T(body.content("application/json", content).build()));
        this
    }

    /// Accepts any content type of the request body.
    pub(super) fn any_content_type(mut self) -> Self {
        self.spec.responses.responses.remove(refusals::WRONG_TYPE.status.as_str());
        self
    }

    /// Also accepts a complete message as the request body.
    pub(super) fn message_body(mut self) -> Self {
        if let Some(RefOr::T(body)) = &mut self.spec.request_body {
            let content = Content::new(Some(Object::with_type(Type::String)));
            body.content.insert("message/rfc822".to_owned(), RefOr::T(content));
        }
        self
    }

    /// Adds a 201 response with a `Location` header and a JSON body.
    pub(super) fn created<T: ToSchema>(self, description: &str, example: Value) -> Self {
        let content = ContentBuilder::new().schema(Some(reference::<T>())).example(Some(example)).build();
        let response =
            json_response_builder(description, content).header("Location", header("The path of the new message."));
        self.with_schemas_of::<T>().response("201", response)
    }

    /// Adds an error response of this operation: a problem document with additional members.
    pub(super) fn problem<T: ToSchema>(self, status: &str, description: &str, example: Value) -> Self {
        let content = ContentBuilder::new().schema(Some(reference::<T>())).example(Some(example)).build();
        let response = ResponseBuilder::new().description(description).content("application/problem+json", content);
        self.with_schemas_of::<T>().response(status, response)
    }

    /// Adds a 200 response with a JSON body.
    pub(super) fn json_response<T: ToSchema>(self, description: &str, example: Value) -> Self {
        let content = ContentBuilder::new().schema(Some(reference::<T>())).example(Some(example)).build();
        self.with_schemas_of::<T>().response("200", json_response_builder(description, content))
    }

    /// Adds a 202 response with a JSON body.
    pub(super) fn accepted<T: ToSchema>(self, description: &str, example: Value) -> Self {
        let content = ContentBuilder::new().schema(Some(reference::<T>())).example(Some(example)).build();
        self.with_schemas_of::<T>().response("202", json_response_builder(description, content))
    }

    /// Adds a 200 response with a JSON array.
    pub(super) fn json_list<T: ToSchema>(self, description: &str, example: Value) -> Self {
        let list = Array::new(reference::<T>());
        let content = ContentBuilder::new().schema(Some(list)).example(Some(example)).build();
        self.with_schemas_of::<T>().response("200", json_response_builder(description, content))
    }

    /// Adds a 200 response with this content type.
    pub(super) fn content(self, content_type: &str, description: &str) -> Self {
        let text = content_type.starts_with("text/").then(|| Object::with_type(Type::String));
        self.response("200", ResponseBuilder::new().description(description).content(content_type, Content::new(text)))
    }

    /// Adds another content type to the 200 response.
    pub(super) fn other_content(mut self, content_type: &str) -> Self {
        if let Some(RefOr::T(response)) = self.spec.responses.responses.get_mut("200") {
            let text = content_type.starts_with("text/").then(|| Object::with_type(Type::String));
            response.content.insert(content_type.to_owned(), RefOr::T(Content::new(text)));
        }
        self
    }

    /// Adds a response.
    pub(super) fn response(mut self, status: &str, response: ResponseBuilder) -> Self {
        self.spec.responses.responses.insert(status.to_owned(), RefOr::T(response.build()));
        self
    }

    /// Adds an entity tag to the 200 response, and the response 304.
    pub(super) fn cacheable(mut self) -> Self {
        if let Some(RefOr::T(response)) = self.spec.responses.responses.get_mut("200") {
            response.headers.insert("ETag".to_owned(), RefOr::T(header("The entity tag, for `If-None-Match`.")));
        }
        let if_none_match = parameter(
            ParameterIn::Header,
            "If-None-Match",
            Type::String,
            "The entity tags of responses that the client has.",
        );
        let not_modified = ResponseBuilder::new().description("The client has the current response already.");
        self.parameter(if_none_match)
            .response("304", not_modified.header("ETag", header("The entity tag of the response.")))
    }

    /// Sets the schema of the events that are sent over the connection.
    pub(super) fn event_frames<T: ToSchema>(self) -> Self {
        let mut this = self.with_schemas_of::<T>();
        this.spec.extensions = Some(
            ExtensionsBuilder::new().add(FRAME_EXTENSION, json!({ "$ref": reference::<T>().ref_location })).build(),
        );
        this
    }

    /// Adds error responses.
    pub(super) fn refusals(mut self, refusals: &[&Refusal]) -> Self {
        for refusal in refusals {
            let response = RefOr::Ref(Ref::from_response_name(refusal.name));
            self.spec.responses.responses.insert(refusal.status.as_str().to_owned(), response);
        }
        self
    }

    fn with_schemas_of<T: ToSchema>(mut self) -> Self {
        self.schemas.extend(schemas_of::<T>());
        self
    }
}

/// Creates a query parameter.
pub(super) fn query(name: &str, kind: Type, description: &str) -> ParameterBuilder {
    parameter(ParameterIn::Query, name, kind, description)
}

/// Creates a query parameter for a number of 64 bits.
pub(super) fn number(name: &str, description: &str) -> ParameterBuilder {
    ranged_number(name, 0, usize::MAX, description)
}

/// Creates a query parameter for a number in a range.
pub(super) fn ranged_number(name: &str, min: usize, max: usize, description: &str) -> ParameterBuilder {
    query(name, Type::Integer, description).schema(Some(integer_between(min, max)))
}

/// Creates the parameter `limit` of a list of `items`.
pub(super) fn limit(items: &str, default_limit: usize, max_limit: usize) -> ParameterBuilder {
    let about = format!(
        "The maximum number of {items}. Default: {default_limit}. A number above {max_limit} counts as {max_limit}."
    );
    ranged_number("limit", 1, usize::MAX, &about)
}

/// Creates a query parameter for a text that matches a pattern.
pub(super) fn text_matching(name: &str, pattern: &str, description: &str) -> ParameterBuilder {
    query(name, Type::String, description).schema(Some(string_matching(pattern)))
}

/// Creates an optional parameter.
pub(super) fn parameter(location: ParameterIn, name: &str, kind: Type, description: &str) -> ParameterBuilder {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(location)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(Object::with_type(kind)))
}

/// Creates a query parameter with one of these values.
pub(super) fn choice(name: &str, values: &[&str], description: &str) -> ParameterBuilder {
    let schema = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(values.iter().copied()));
    query(name, Type::String, description).schema(Some(schema))
}

fn json_response_builder(description: &str, content: Content) -> ResponseBuilder {
    let expires = HeaderBuilder::new()
        .schema(Some(ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["-1"]))))
        .description(Some("Always `-1`: responses expire immediately."));
    ResponseBuilder::new()
        .description(description)
        .content("application/json", content)
        .header("Expires", expires.build())
}

/// Returns the schema of a number in a range.
fn integer_between(min: usize, max: usize) -> Object {
    ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(min)).maximum(Some(max)).build()
}

/// Returns the schema of a string that matches a pattern.
pub(super) fn string_matching(pattern: &str) -> Object {
    ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern)).build()
}

/// Creates the parameter for a name in the path.
fn path_parameter(method: &HttpMethod, name: &str) -> Parameter {
    let (schema, description) = match name {
        "name" => (string_matching(patterns::NAME_OR_ADDRESS), "A mailbox name or an address."),
        // Another message can become the latest between the time when a client reads and the time when it deletes.
        "id" if *method == HttpMethod::Delete => (string_matching(patterns::ID), "The id of a message."),
        "id" => (string_matching(patterns::ID_OR_LATEST), "The id of a message, or `latest` for the newest one."),
        "index" => (integer_between(0, usize::MAX), "The index of the attachment in the list of attachments, from 0."),
        "file" => (Object::with_type(Type::String), "A file name. It is ignored."),
        _ => (Object::with_type(Type::String), ""),
    };
    parameter(ParameterIn::Path, name, Type::String, description).schema(Some(schema)).required(Required::True).build()
}
