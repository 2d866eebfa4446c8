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

use crate::openapi::reference::{Named, header, reference, schemas_of};
use crate::openapi::refusals;
use crate::openapi::refusals::Refusal;

/// The names of the ways to say who one is.
pub(super) const BASIC: &str = "basic";
/// See [`BASIC`].
pub(super) const BEARER: &str = "bearer";
/// See [`BASIC`].
pub(super) const COOKIE: &str = "cookie";

/// The name under which the shape of what a listener is told stands beside an operation. OpenAPI has no word for it.
const FRAME: &str = "x-frame";

/// An operation, described as far as that has come.
pub(super) struct Operation {
    pub(super) method: HttpMethod,
    pub(super) path: &'static str,
    pub(super) described: path::Operation,
    /// The shapes that the description refers to.
    pub(super) schemas: Vec<Named>,
}

/// Begins to describe what GET does at a path, under a name for programs.
pub(super) fn get(path: &'static str, name: &str) -> Operation {
    Operation::new(HttpMethod::Get, path, name).needs("read")
}

/// The same for POST.
pub(super) fn post(path: &'static str, name: &str) -> Operation {
    Operation::new(HttpMethod::Post, path, name).needs("write")
}

/// The same for PATCH.
pub(super) fn patch(path: &'static str, name: &str) -> Operation {
    Operation::new(HttpMethod::Patch, path, name).needs("write")
}

/// The same for DELETE.
pub(super) fn delete(path: &'static str, name: &str) -> Operation {
    Operation::new(HttpMethod::Delete, path, name).needs("write")
}

impl Operation {
    fn new(method: HttpMethod, path: &'static str, name: &str) -> Self {
        let named = path.split('{').skip(1).filter_map(|rest| rest.split('}').next());
        let described = OperationBuilder::new()
            .operation_id(Some(name))
            .parameters(Some(named.map(|name| in_path(&method, name))))
            .build();
        Self { method, path, described, schemas: Vec::new() }.refuses(refusals::ANYWHERE)
    }

    /// What it does, in a few words and in some more. Code is in backticks, paragraphs have an empty line between them.
    pub(super) fn does(mut self, summary: &str, more: &str) -> Self {
        self.described.summary = Some(summary.to_owned());
        self.described.description = (!more.is_empty()).then(|| more.to_owned());
        self
    }

    /// It needs this scope, where credentials are asked for.
    pub(super) fn needs(self, scope: &str) -> Self {
        self.needs_scopes(&[scope])
    }

    /// It needs credentials, where they are asked for, whatever their scopes are.
    pub(super) fn needs_no_scope(self) -> Self {
        self.needs_scopes(&[])
    }

    fn needs_scopes(mut self, scopes: &[&str]) -> Self {
        let anybody = SecurityRequirement::default();
        let somebody = [BASIC, BEARER, COOKIE].map(|scheme| SecurityRequirement::new(scheme, scopes.iter().copied()));
        self.described.security = Some([anybody].into_iter().chain(somebody).collect());
        self
    }

    /// Anybody may do it, under whatever host name.
    pub(super) fn for_anybody(mut self) -> Self {
        self.described.security = Some(vec![SecurityRequirement::default()]);
        for needless in [refusals::MALFORMED, refusals::UNAUTHORISED, refusals::MISDIRECTED] {
            self.described.responses.responses.remove(needless.status.as_str());
        }
        self
    }

    /// What a name in the path stands for, where that is not what it is elsewhere.
    pub(super) fn names(self, name: &str, about: &str) -> Self {
        self.with_parameter(name, |parameter| parameter.description = Some(about.to_owned()))
    }

    /// A parameter takes texts that match this pattern.
    pub(super) fn matches(self, name: &str, pattern: &str) -> Self {
        self.with_parameter(name, |parameter| parameter.schema = Some(text(pattern).into()))
    }

    fn with_parameter(mut self, name: &str, change: impl Fn(&mut Parameter)) -> Self {
        for parameter in self.described.parameters.iter_mut().flatten() {
            if let RefOr::T(parameter) = parameter
                && parameter.name == name
            {
                change(parameter);
            }
        }
        self
    }

    /// It takes this parameter.
    pub(super) fn takes(mut self, parameter: ParameterBuilder) -> Self {
        self.described.parameters.get_or_insert_default().push(RefOr::T(parameter.build()));
        self
    }

    /// It takes JSON of this shape, such as this.
    pub(super) fn takes_json<T: ToSchema>(self, required: Required, about: &str, example: Value) -> Self {
        let content = ContentBuilder::new().schema(Some(reference::<T>())).example(Some(example)).build();
        let mut this = self.with_schemas_of::<T>().refuses(refusals::OF_JSON);
        let body = RequestBodyBuilder::new().description(Some(about)).required(Some(required));
        this.described.request_body = Some(RefOr::T(body.content("application/json", content).build()));
        this
    }

    /// The content type of its body does not matter.
    pub(super) fn of_any_content_type(mut self) -> Self {
        self.described.responses.responses.remove(refusals::WRONG_TYPE.status.as_str());
        self
    }

    /// It takes a mail as well, as it is.
    pub(super) fn takes_mail(mut self) -> Self {
        if let Some(RefOr::T(body)) = &mut self.described.request_body {
            let content = Content::new(Some(Object::with_type(Type::String)));
            body.content.insert("message/rfc822".to_owned(), RefOr::T(content));
        }
        self
    }

    /// It makes something, tells where that is, and answers with JSON of this shape, such as this.
    pub(super) fn creates<T: ToSchema>(self, about: &str, example: Value) -> Self {
        let content = ContentBuilder::new().schema(Some(reference::<T>())).example(Some(example)).build();
        let answer = in_json(about, content).header("Location", header("Where it is."));
        self.with_schemas_of::<T>().answers("201", answer)
    }

    /// It can fail in a way of its own: a problem of this shape, such as this.
    pub(super) fn fails<T: ToSchema>(self, status: &str, about: &str, example: Value) -> Self {
        let content = ContentBuilder::new().schema(Some(reference::<T>())).example(Some(example)).build();
        let answer = ResponseBuilder::new().description(about).content("application/problem+json", content);
        self.with_schemas_of::<T>().answers(status, answer)
    }

    /// It answers with JSON of this shape, such as this.
    pub(super) fn tells<T: ToSchema>(self, about: &str, example: Value) -> Self {
        let content = ContentBuilder::new().schema(Some(reference::<T>())).example(Some(example)).build();
        self.with_schemas_of::<T>().answers("200", in_json(about, content))
    }

    /// It answers with a list of JSON of this shape, such as this.
    pub(super) fn lists<T: ToSchema>(self, about: &str, example: Value) -> Self {
        let list = Array::new(reference::<T>());
        let content = ContentBuilder::new().schema(Some(list)).example(Some(example)).build();
        self.with_schemas_of::<T>().answers("200", in_json(about, content))
    }

    /// It answers with something of this content type.
    pub(super) fn sends(self, content_type: &str, about: &str) -> Self {
        let text = content_type.starts_with("text/").then(|| Object::with_type(Type::String));
        self.answers("200", ResponseBuilder::new().description(about).content(content_type, Content::new(text)))
    }

    /// It answers so.
    pub(super) fn answers(mut self, status: &str, response: ResponseBuilder) -> Self {
        self.described.responses.responses.insert(status.to_owned(), RefOr::T(response.build()));
        self
    }

    /// Its answer has a tag, and a client that has the answer already learns that it is still good.
    pub(super) fn can_be_known(mut self) -> Self {
        if let Some(RefOr::T(answer)) = self.described.responses.responses.get_mut("200") {
            answer.headers.insert("ETag".to_owned(), RefOr::T(header("What to give as `If-None-Match`.")));
        }
        let known =
            parameter(ParameterIn::Header, "If-None-Match", Type::String, "Tags of answers that the client has.");
        let same = ResponseBuilder::new().description("The client has this answer already.");
        self.takes(known).answers("304", same.header("ETag", header("The tag of the answer.")))
    }

    /// Whoever listens is told JSON of this shape.
    pub(super) fn tells_listeners<T: ToSchema>(self) -> Self {
        let mut this = self.with_schemas_of::<T>();
        this.described.extensions =
            Some(ExtensionsBuilder::new().add(FRAME, json!({ "$ref": reference::<T>().ref_location })).build());
        this
    }

    /// It can be refused for these reasons.
    pub(super) fn refuses(mut self, reasons: &[&Refusal]) -> Self {
        for reason in reasons {
            let response = RefOr::Ref(Ref::from_response_name(reason.name));
            self.described.responses.responses.insert(reason.status.as_str().to_owned(), response);
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

fn in_json(about: &str, content: Content) -> ResponseBuilder {
    let expires = HeaderBuilder::new()
        .schema(Some(ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["-1"]))))
        .description(Some("Always `-1`: every answer is already old."));
    ResponseBuilder::new().description(about).content("application/json", content).header("Expires", expires.build())
}

/// A string that matches a pattern.
fn text(pattern: &str) -> Object {
    ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern)).build()
}

/// What a name in a path stands for.
fn in_path(method: &HttpMethod, name: &str) -> Parameter {
    let (schema, about) = match name {
        "name" => (text(patterns::NAME_OR_ADDRESS), "The name of a mailbox, or an address."),
        // Between a client's look and its deletion, another message can be the latest.
        "id" if *method == HttpMethod::Delete => (text(patterns::ID), "The id of a message."),
        "id" => (text(patterns::ID_OR_LATEST), "The id of a message, or `latest` for the one that came last."),
        "index" => {
            (Object::with_type(Type::Integer), "The place of the attachment in the list of attachments, from 0.")
        }
        "file" => (Object::with_type(Type::String), "Any name: it is for people, and not looked at."),
        _ => (Object::with_type(Type::String), ""),
    };
    parameter(ParameterIn::Path, name, Type::String, about).schema(Some(schema)).required(Required::True).build()
}
