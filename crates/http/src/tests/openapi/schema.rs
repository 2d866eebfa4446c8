//! A checker for the part of JSON Schema that the OpenAPI document uses. Unknown members of an object are problems, and
//! unknown keywords panic, so nothing is left unchecked.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;
use regex::Regex;
use serde_json::{Map, Value};

/// Keywords that do not restrict a value.
const ANNOTATIONS: [&str; 5] = ["description", "example", "examples", "default", "deprecated"];

thread_local! {
    /// The patterns that were used. It takes milliseconds to compile one.
    static COMPILED: RefCell<HashMap<String, Regex>> = RefCell::default();
}

/// Checks values against the schemas of a document.
pub(super) struct Checker<'d> {
    pub(super) document: &'d Value,
}

impl<'d> Checker<'d> {
    /// Resolves a reference. Returns other values unchanged.
    pub(super) fn resolve<'s>(&self, value: &'s Value) -> &'s Value
    where
        'd: 's,
    {
        match value["$ref"].as_str() {
            Some(reference) => {
                let pointer = reference.strip_prefix('#').expect("a reference in this document");
                self.resolve(self.document.pointer(pointer).unwrap_or_else(|| panic!("{reference} does not exist")))
            }
            None => value,
        }
    }

    /// Returns the problems of a value, each with its location.
    pub(super) fn problems(&self, schema: &Value, value: &Value) -> Vec<String> {
        let mut problems = Vec::new();
        self.check(schema, value, "", &mut problems);
        problems
    }

    fn check(&self, schema: &Value, value: &Value, at: &str, problems: &mut Vec<String>) {
        let schema = self.resolve(schema);
        if let Some(object) = value.as_object()
            && let Some(known) = self.properties(schema)
        {
            for name in object.keys().filter(|name| !known.contains(name.as_str())) {
                problems.push(format!("{at}/{name} is unknown"));
            }
        }
        self.check_each(schema, value, at, problems);
    }

    /// Checks every keyword of a schema.
    fn check_each(&self, schema: &Value, value: &Value, at: &str, problems: &mut Vec<String>) {
        let schema = self.resolve(schema);
        for (keyword, expected) in schema.as_object().expect("a schema") {
            let is_valid = match keyword.as_str() {
                "type" => has_type(expected, value),
                "enum" => list(expected).contains(value),
                "const" => expected == value,
                "minimum" => value.as_f64().is_none_or(|number| expected.as_f64().is_some_and(|min| number >= min)),
                "maximum" => value.as_f64().is_none_or(|number| expected.as_f64().is_some_and(|max| number <= max)),
                "pattern" => value.as_str().is_none_or(|text| matches_pattern(expected, text)),
                "format" => value.as_str().is_none_or(|text| has_format(expected, text)),
                "minLength" => value.as_str().is_none_or(|text| text.chars().count() as u64 >= size(expected)),
                "minItems" => value.as_array().is_none_or(|items| items.len() as u64 >= size(expected)),
                "maxItems" => value.as_array().is_none_or(|items| items.len() as u64 <= size(expected)),
                "minProperties" => value.as_object().is_none_or(|members| members.len() as u64 >= size(expected)),
                "maxProperties" => value.as_object().is_none_or(|members| members.len() as u64 <= size(expected)),
                "required" => {
                    value.as_object().is_none_or(|object| list(expected).iter().all(|name| has(object, name)))
                }
                "anyOf" => self.count_matching(expected, value) > 0,
                "oneOf" => self.count_matching(expected, value) == 1,
                "allOf" => {
                    for part in list(expected) {
                        self.check_each(part, value, at, problems);
                    }
                    true
                }
                "items" => {
                    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.check(expected, item, &format!("{at}/{index}"), problems);
                    }
                    true
                }
                "properties" => {
                    for (name, schema) in expected.as_object().expect("schemas by name") {
                        if let Some(field) = value.get(name) {
                            self.check(schema, field, &format!("{at}/{name}"), problems);
                        }
                    }
                    true
                }
                // Unknown members are always problems.
                "additionalProperties" if expected == false => true,
                "additionalProperties" => {
                    for (name, field) in value.as_object().into_iter().flatten() {
                        self.check(expected, field, &format!("{at}/{name}"), problems);
                    }
                    true
                }
                "propertyNames" => {
                    let names = value.as_object().into_iter().flat_map(Map::keys);
                    names.for_each(|name| self.check(expected, &name.as_str().into(), at, problems));
                    true
                }
                annotation => {
                    assert!(ANNOTATIONS.contains(&annotation), "the keyword {annotation} is not supported");
                    true
                }
            };
            if !is_valid {
                problems.push(format!("{at} is {value}, but {keyword} is {expected}"));
            }
        }
    }

    /// Returns the names of the members that an object of this schema can have, or `None` if it can have any.
    fn properties(&self, schema: &'d Value) -> Option<BTreeSet<&'d str>> {
        let schema = self.resolve(schema);
        if let Some(parts) = schema["allOf"].as_array() {
            let parts: Option<Vec<_>> = parts.iter().map(|part| self.properties(part)).collect();
            return Some(parts?.into_iter().flatten().collect());
        }
        let properties = schema["properties"].as_object()?;
        Some(properties.keys().map(String::as_str).collect())
    }

    fn count_matching(&self, schemas: &Value, value: &Value) -> usize {
        list(schemas).iter().filter(|schema| self.problems(schema, value).is_empty()).count()
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn size(value: &Value) -> u64 {
    value.as_u64().expect("a size")
}

fn has(object: &Map<String, Value>, name: &Value) -> bool {
    object.contains_key(name.as_str().expect("a name"))
}

fn has_type(kind: &Value, value: &Value) -> bool {
    match kind.as_str() {
        None => list(kind).iter().any(|kind| has_type(kind, value)),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        Some("null") => value.is_null(),
        Some(other) => panic!("the type {other} is not supported"),
    }
}

fn has_format(format: &Value, text: &str) -> bool {
    match format.as_str() {
        Some("date-time") => text.parse::<Timestamp>().is_ok(),
        _ => panic!("the format {format} is not supported"),
    }
}

fn matches_pattern(pattern: &Value, text: &str) -> bool {
    let pattern = pattern.as_str().expect("a pattern");
    COMPILED.with_borrow_mut(|compiled| {
        let regex = compiled.entry(pattern.to_owned());
        regex.or_insert_with(|| Regex::new(pattern).unwrap_or_else(|error| panic!("{error}"))).is_match(text)
    })
}

#[test]
fn finds_schema_violations() {
    let document = serde_json::json!({
        "named": { "type": "object", "properties": { "a": { "type": "integer", "minimum": 0 } }, "required": ["a"] },
        "more": { "allOf": [{ "$ref": "#/named" }, { "type": "object", "properties": { "b": { "enum": ["x", "y"] } } }] },
        "map": { "type": "object", "additionalProperties": { "type": ["string", "null"] } },
        "list": { "type": "array", "items": { "oneOf": [{ "type": "null" }, { "$ref": "#/named" }] } },
        "time": { "type": "string", "format": "date-time" },
        "id": { "type": "string", "pattern": "^[0-9]+$" },
    });
    let checker = Checker { document: &document };
    let table = [
        ("named", r#"{"a":1}"#, true),
        ("named", r#"{"a":-1}"#, false),
        ("named", r#"{"a":1.5}"#, false),
        ("named", r#"{"a":null}"#, false),
        ("named", "{}", false),
        ("named", r#"{"a":1,"b":2}"#, false),
        ("more", r#"{"a":1,"b":"x"}"#, true),
        ("more", r#"{"a":1}"#, true),
        ("more", r#"{"b":"x"}"#, false),
        ("more", r#"{"a":1,"b":"z"}"#, false),
        ("more", r#"{"a":1,"c":1}"#, false),
        ("map", r#"{"x":"1","y":null}"#, true),
        ("map", r#"{"x":1}"#, false),
        ("list", r#"[null,{"a":1}]"#, true),
        ("list", r#"[{"a":1,"b":1}]"#, false),
        ("list", "{}", false),
        ("time", r#""2026-11-14T23:42:50.123456+00:00""#, true),
        ("time", r#""yesterday""#, false),
        ("id", r#""17""#, true),
        ("id", r#""latest""#, false),
    ];
    for (name, value, is_valid) in table {
        let value: Value = serde_json::from_str(value).expect("JSON");
        let problems = checker.problems(&document[name], &value);
        assert_eq!(problems.is_empty(), is_valid, "{name} {value} {problems:?}");
    }
}
