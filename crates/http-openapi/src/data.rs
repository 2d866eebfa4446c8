//! Reads the data of the description: the JSON files in `api`.
//!
//! - `document.json`: what operations have in common
//! - `schemas.json`: the schemas of request bodies, and those of responses that are not derived from a type
//! - `definitions.json`: values that the other files refer to
//! - the other files: the operations, one file for each tag
//!
//! In all files,
//!
//! - a string `"$name"` stands for the definition of that name,
//! - an object with a member `"$extends": "name"` also has the members of that definition that it does not have itself. An
//!   operation can be extended too, by its id,
//! - a `description` can be a list of lines. An empty line separates paragraphs.

use std::collections::BTreeMap;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Error, Map, Value};
use utoipa::openapi::security::SecurityScheme;
use utoipa::openapi::{RefOr, Schema};

use crate::operation::{ErrorResponse, Parameter, Response};

/// The files with operations, in the order in which people read them.
const TAGS: &[&str] = &[
    include_str!("api/messages.json"),
    include_str!("api/all_mail.json"),
    include_str!("api/mailboxes.json"),
    include_str!("api/arrivals.json"),
    include_str!("api/runs.json"),
    include_str!("api/extracts.json"),
    include_str!("api/search.json"),
    include_str!("api/transcripts.json"),
    include_str!("api/relay.json"),
    include_str!("api/webhooks.json"),
    include_str!("api/live_monitor.json"),
    include_str!("api/attachments.json"),
    include_str!("api/pages.json"),
    include_str!("api/server.json"),
];

/// All data.
pub(super) struct Data {
    pub(super) common: Common,
    pub(super) schemas: BTreeMap<String, RefOr<Schema>>,
    pub(super) tags: Vec<Tag>,
}

/// What operations have in common.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Common {
    /// The description of the API.
    pub(super) description: String,
    #[serde(deserialize_with = "exact")]
    pub(super) security_schemes: BTreeMap<String, SecurityScheme>,
    /// The usual parameters in paths.
    pub(super) path_parameters: Vec<Parameter>,
    /// The parameter of operations whose responses can be cached.
    pub(super) if_none_match: Parameter,
    /// The response if the client has the current response already.
    pub(super) not_modified: Response,
    pub(super) errors: BTreeMap<String, ErrorResponse>,
}

/// A group of operations.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tag {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) operations: Vec<Value>,
}

impl Data {
    /// Reads the data. Fails only if the files contain mistakes.
    pub(super) fn read() -> serde_json::Result<Self> {
        let mut definitions = Definitions(serde_json::from_str(include_str!("api/definitions.json"))?);
        let tags = TAGS.iter().map(|text| serde_json::from_str(text)).collect::<Result<Vec<Value>, _>>()?;
        for operation in tags.iter().filter_map(|tag| tag["operations"].as_array()).flatten() {
            let id = operation["id"].as_str().unwrap_or_default();
            definitions.0.insert(id.to_owned(), operation.clone());
        }
        let common = definitions.resolve(serde_json::from_str(include_str!("api/document.json"))?)?;
        let schemas = definitions.resolve(serde_json::from_str(include_str!("api/schemas.json"))?)?;
        let parse_tag = |tag| serde_json::from_value(definitions.resolve(tag)?);
        Ok(Self {
            common: serde_json::from_value(common)?,
            schemas: exact(schemas)?,
            tags: tags.into_iter().map(parse_tag).collect::<Result<_, _>>()?,
        })
    }
}

/// Values by name.
struct Definitions(Map<String, Value>);

impl Definitions {
    /// Replaces names by their definitions, and lists of lines by texts.
    fn resolve(&self, value: Value) -> serde_json::Result<Value> {
        match value {
            Value::String(text) => match text.strip_prefix('$') {
                Some(name) => self.find(name),
                None => Ok(Value::String(text)),
            },
            Value::Array(list) => list.into_iter().map(|value| self.resolve(value)).collect(),
            Value::Object(mut members) => {
                let base = members.remove("$extends").map(|name| self.find(name.as_str().unwrap_or_default()));
                let mut resolved = base.transpose()?.as_ref().and_then(Value::as_object).cloned().unwrap_or_default();
                for (name, value) in members {
                    let value = self.resolve(value)?;
                    let is_text = name == "description" && value.is_array();
                    resolved.insert(name, if is_text { join_lines(&value).into() } else { value });
                }
                Ok(Value::Object(resolved))
            }
            value => Ok(value),
        }
    }

    fn find(&self, name: &str) -> serde_json::Result<Value> {
        let definition = self.0.get(name).ok_or_else(|| Error::custom(format!("there is no definition {name:?}")))?;
        self.resolve(definition.clone())
    }
}

/// Joins the lines of a text. A line can be the list of lines of a definition.
fn join_lines(text: &Value) -> String {
    let Value::Array(lines) = text else { return text.as_str().unwrap_or_default().to_owned() };
    let paragraph = |lines: &[Value]| lines.iter().map(join_lines).collect::<Vec<_>>().join(" ");
    lines.split(|line| line == "").map(paragraph).collect::<Vec<_>>().join("\n\n")
}

/// Deserializes a value of a type of `utoipa`. Those types ignore unknown members, which are mistakes here.
pub(super) fn exact<'de, T: DeserializeOwned + Serialize, D: Deserializer<'de>>(data: D) -> Result<T, D::Error> {
    let value = Value::deserialize(data)?;
    let parsed = T::deserialize(&value).map_err(D::Error::custom)?;
    if serde_json::to_value(&parsed).map_err(D::Error::custom)? == value {
        Ok(parsed)
    } else {
        Err(D::Error::custom(format!("{value} has unknown members")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::operation::Operation;

    fn definitions() -> Definitions {
        let value = json!({ "id": "7", "base": { "id": "$id", "seen": true }, "text": ["Two", "", "paragraphs."] });
        Definitions(value.as_object().expect("an object").clone())
    }

    #[test]
    fn names_stand_for_definitions() {
        let table = [
            (json!(["$id", 1, null]), json!(["7", 1, null])),
            (json!({ "$extends": "base", "seen": false }), json!({ "id": "7", "seen": false })),
            (json!({ "description": "One line." }), json!({ "description": "One line." })),
            (json!({ "description": ["One", "$text"] }), json!({ "description": "One Two\n\nparagraphs." })),
            (json!({ "description": "$text" }), json!({ "description": "Two\n\nparagraphs." })),
        ];
        for (value, expected) in table {
            assert_eq!(definitions().resolve(value).unwrap(), expected);
        }
        for unknown in [json!("$unknown"), json!({ "$extends": "unknown" }), json!({ "$extends": 1 })] {
            assert!(definitions().resolve(unknown).is_err());
        }
    }

    #[test]
    fn mistakes_are_errors() {
        let operation = json!({ "method": "get", "path": "/{name}", "id": "x", "summary": "x", "responses": {} });
        let with = |name: &str, value: Value| {
            let mut operation = operation.clone();
            operation[name] = value;
            let Data { common, .. } = Data::read().unwrap();
            Operation::deserialize(operation).and_then(|operation| operation.build("x", &common))
        };
        assert!(with("errors", json!(["NotFound"])).is_ok());
        let table = [
            ("sumary", json!("x")),
            ("method", json!("fetch")),
            ("path", json!("/{unknown}")),
            ("errors", json!(["Unknown"])),
            ("without", json!(["Unknown"])),
            ("parameters", json!([{ "name": "x", "description": "x", "type": "string" }])),
            ("parameters", json!([{ "name": "x", "description": "x", "schema": { "type": "string", "patern": "x" } }])),
            ("responses", json!({ "200": { "description": "x", "body": "x" } })),
        ];
        for (name, value) in table {
            assert!(with(name, value.clone()).is_err(), "{name}: {value}");
        }
    }
}
