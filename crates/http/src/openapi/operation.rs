//! The words in which an operation is described. What all of them have in common is added here: the parameters that the
//! path names, who may do it, and what any request can be refused for.

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

/// The names of the ways to say who one is.
pub(super) const BASIC: &str = "basic";
/// See [`BASIC`].
pub(super) const BEARER: &str = "bearer";
/// See [`BASIC`].
pub(super) const COOKIE: &str = "cookie";

/// The name under which the shape of what a listener is told stands beside an operation. OpenAPI has no word for it.
const FRAME_EXTENSION: &str = "x-frame";

/// An operation, described as far as that has come.
pub(super) struct Operation {
    pub(super) method: HttpMethod,
    pub(super) path: &'static str,
    pub(super) spec: path::Operation,
    /// The shapes that the description refers to.
    pub(super) schemas: Vec<NamedSchema>,
}

/// Begins to describe what GET does at a path, under a name for programs.
pub(super) fn get(path: &'static str, name: &str) -> Operation {
    Operation::new(HttpMethod::Get, path, name).requires_scope("read")
}

/// The same for POST.
pub(super) fn post(path: &'static str, name: &str) -> Operation {
    Operation::new(HttpMethod::Post, path, name).requires_scope("write")
}

/// The same for PATCH.
pub(super) fn patch(path: &'static str, name: &str) -> Operation {
    Operation::new(HttpMethod::Patch, path, name).requires_scope("write")
}

/// The same for DELETE.
pub(super) fn delete(path: &'static str, name: &str) -> Operation {
    Operation::new(HttpMethod::Delete, path, name).requires_scope("write")
}

impl Operation {
    fn new(method: HttpMethod, path: &'static str, name: &str) -> Self {
        let named = path.split('{').skip(1).filter_map(|rest| rest.split('}').next());
        let described = OperationBuilder::new()
            .operation_id(Some(name))
            .parameters(Some(named.map(|name| path_parameter(&method, name))))
            .build();
        Self { method, path, spec: described, schemas: Vec::new() }.refusals(refusals::COMMON)
    }

    /// What it does, in a few words and in some more. Code is in backticks, paragraphs have an empty line between them.
    pub(super) fn describe(mut self, summary: &str, more: &str) -> Self {
        self.spec.summary = Some(summary.to_owned());
        self.spec.description = (!more.is_empty()).then(|| more.to_owned());
        self
    }

    /// It needs this scope, where credentials are asked for.
    pub(super) fn requires_scope(self, scope: &str) -> Self {
        self.requires_scopes(&[scope])
    }

    /// It needs credentials, where they are asked for, whatever their scopes are.
    pub(super) fn requires_login(self) -> Self {
        self.requires_scopes(&[])
    }

    fn requires_scopes(mut self, scopes: &[&str]) -> Self {
        let anybody = SecurityRequirement::default();
        let somebody = [BASIC, BEARER, COOKIE].map(|scheme| SecurityRequirement::new(scheme, scopes.iter().copied()));
        self.spec.security = Some([anybody].into_iter().chain(somebody).collect());
        self
    }

    /// Anybody may do it, under whatever host name.
    pub(super) fn public(mut self) -> Self {
        self.spec.security = Some(vec![SecurityRequirement::default()]);
        for needless in [refusals::MALFORMED, refusals::UNAUTHORISED, refusals::MISDIRECTED] {
            self.spec.responses.responses.remove(needless.status.as_str());
        }
        self
    }

    /// What a name in the path stands for, where that is not what it is elsewhere.
    pub(super) fn describe_parameter(self, name: &str, about: &str) -> Self {
        self.with_parameter(name, |parameter| parameter.description = Some(about.to_owned()))
    }

    /// A parameter takes texts that match this pattern.
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

    /// It takes this parameter.
    pub(super) fn parameter(mut self, parameter: ParameterBuilder) -> Self {
        self.spec.parameters.get_or_insert_default().push(RefOr::T(parameter.build()));
        self
    }

    /// It takes JSON of this shape, such as this.
    pub(super) fn json_body<T: ToSchema>(self, required: Required, about: &str, example: Value) -> Self {
        let content = ContentBuilder::new().schema(Some(reference::<T>())).example(Some(example)).build();
        let mut this = self.with_schemas_of::<T>().refusals(refusals::JSON_BODY);
        let body = RequestBodyBuilder::new().description(Some(about)).required(Some(required));
        this.spec.request_body = Some(RefOr::T(body.content("application/json", content).build()));
        this
    }

    /// The content type of its body does not matter.
    pub(super) fn any_content_type(mut self) -> Self {
        self.spec.responses.responses.remove(refusals::WRONG_TYPE.status.as_str());
        self
    }

    /// It takes a mail as well, as it is.
    pub(super) fn message_body(mut self) -> Self {
        if let Some(RefOr::T(body)) = &mut self.spec.request_body {
            let content = Content::new(Some(Object::with_type(Type::String)));
            body.content.insert("message/rfc822".to_owned(), RefOr::T(content));
        }
        self
    }

    /// It makes something, tells where that is, and answers with JSON of this shape, such as this.
    pub(super) fn created<T: ToSchema>(self, about: &str, example: Value) -> Self {
        let content = ContentBuilder::new().schema(Some(reference::<T>())).example(Some(example)).build();
        let answer = json_response_builder(about, content).header("Location", header("Where it is."));
        self.with_schemas_of::<T>().response("201", answer)
    }

    /// It can fail in a way of its own: a problem of this shape, such as this.
    pub(super) fn problem<T: ToSchema>(self, status: &str, about: &str, example: Value) -> Self {
        let content = ContentBuilder::new().schema(Some(reference::<T>())).example(Some(example)).build();
        let answer = ResponseBuilder::new().description(about).content("application/problem+json", content);
        self.with_schemas_of::<T>().response(status, answer)
    }

    /// It answers with JSON of this shape, such as this.
    pub(super) fn json_response<T: ToSchema>(self, about: &str, example: Value) -> Self {
        let content = ContentBuilder::new().schema(Some(reference::<T>())).example(Some(example)).build();
        self.with_schemas_of::<T>().response("200", json_response_builder(about, content))
    }

    /// It answers with a list of JSON of this shape, such as this.
    pub(super) fn json_list<T: ToSchema>(self, about: &str, example: Value) -> Self {
        let list = Array::new(reference::<T>());
        let content = ContentBuilder::new().schema(Some(list)).example(Some(example)).build();
        self.with_schemas_of::<T>().response("200", json_response_builder(about, content))
    }

    /// It answers with something of this content type.
    pub(super) fn content(self, content_type: &str, about: &str) -> Self {
        let text = content_type.starts_with("text/").then(|| Object::with_type(Type::String));
        self.response("200", ResponseBuilder::new().description(about).content(content_type, Content::new(text)))
    }

    /// It answers so.
    pub(super) fn response(mut self, status: &str, response: ResponseBuilder) -> Self {
        self.spec.responses.responses.insert(status.to_owned(), RefOr::T(response.build()));
        self
    }

    /// Its answer has a tag, and a client that has the answer already learns that it is still good.
    pub(super) fn cacheable(mut self) -> Self {
        if let Some(RefOr::T(answer)) = self.spec.responses.responses.get_mut("200") {
            answer.headers.insert("ETag".to_owned(), RefOr::T(header("What to give as `If-None-Match`.")));
        }
        let known =
            parameter(ParameterIn::Header, "If-None-Match", Type::String, "Tags of answers that the client has.");
        let same = ResponseBuilder::new().description("The client has this answer already.");
        self.parameter(known).response("304", same.header("ETag", header("The tag of the answer.")))
    }

    /// Whoever listens is told JSON of this shape.
    pub(super) fn event_frames<T: ToSchema>(self) -> Self {
        let mut this = self.with_schemas_of::<T>();
        this.spec.extensions = Some(
            ExtensionsBuilder::new().add(FRAME_EXTENSION, json!({ "$ref": reference::<T>().ref_location })).build(),
        );
        this
    }

    /// It can be refused for these reasons.
    pub(super) fn refusals(mut self, reasons: &[&Refusal]) -> Self {
        for reason in reasons {
            let response = RefOr::Ref(Ref::from_response_name(reason.name));
            self.spec.responses.responses.insert(reason.status.as_str().to_owned(), response);
        }
        self
    }

    fn with_schemas_of<T: ToSchema>(mut self) -> Self {
        self.schemas.extend(schemas_of::<T>());
        self
    }
}

/// A parameter of the query.
pub(super) fn query(name: &str, kind: Type, about: &str) -> ParameterBuilder {
    parameter(ParameterIn::Query, name, kind, about)
}

/// A parameter that can be left out.
pub(super) fn parameter(place: ParameterIn, name: &str, kind: Type, about: &str) -> ParameterBuilder {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(place)
        .required(Required::False)
        .description(Some(about))
        .schema(Some(Object::with_type(kind)))
}

/// A parameter of the query that takes one of these words.
pub(super) fn choice(name: &str, words: &[&str], about: &str) -> ParameterBuilder {
    let schema = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words.iter().copied()));
    query(name, Type::String, about).schema(Some(schema))
}

fn json_response_builder(about: &str, content: Content) -> ResponseBuilder {
    let expires = HeaderBuilder::new()
        .schema(Some(ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["-1"]))))
        .description(Some("Always `-1`: every answer is already old."));
    ResponseBuilder::new().description(about).content("application/json", content).header("Expires", expires.build())
}

/// A string that matches a pattern.
fn string_matching(pattern: &str) -> Object {
    ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern)).build()
}

/// What a name in a path stands for.
fn path_parameter(method: &HttpMethod, name: &str) -> Parameter {
    let (schema, about) = match name {
        "name" => (string_matching(patterns::NAME_OR_ADDRESS), "The name of a mailbox, or an address."),
        // Between a client's look and its deletion, another message can be the latest.
        "id" if *method == HttpMethod::Delete => (string_matching(patterns::ID), "The id of a message."),
        "id" => {
            (string_matching(patterns::ID_OR_LATEST), "The id of a message, or `latest` for the one that came last.")
        }
        "index" => {
            (Object::with_type(Type::Integer), "The place of the attachment in the list of attachments, from 0.")
        }
        "file" => (Object::with_type(Type::String), "Any name: it is for people, and not looked at."),
        _ => (Object::with_type(Type::String), ""),
    };
    parameter(ParameterIn::Path, name, Type::String, about).schema(Some(schema)).required(Required::True).build()
}
