//! Values for the schemas of the document: values that a schema permits, and values that it forbids, one or more for each rule.
//! The generator has a fixed seed.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::strategy::ValueTree as _;
use proptest::string::string_regex;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

use super::patterns::definition;
use super::schema::Checker;

/// The maximum number of items of a generated list above its minimum.
const MAX_MORE_ITEMS: usize = 3;
/// Texts and numbers that most schemas forbid.
const UNUSUAL_TEXTS: [&str; 8] = ["", " ", "(", "\u{1}", "x", "-1", "1.5", "18446744073709551616"];

/// Generates times for the format `date-time`.
const TIME: &str = "20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]0[0-9]:[0-5][0-9])";
/// Generates addresses and mailbox names that are valid under the naming `local`.
const ADDRESS: &str =
    "[A-Za-z0-9!#$%&'*/=?^_`{|}~-][a-z0-9+é-]{0,9}(\\.[a-z0-9]{1,5}){0,2}@[a-z0-9]{1,8}(\\.[a-z]{2,5}){0,2}";
const NAME: &str =
    "test|[A-Za-z0-9!#$%&'*/=?^_`{|}~-][a-z0-9+é-]{0,9}(\\.[a-z0-9]{1,5}){0,2}(@[a-z0-9]{1,8}(\\.[a-z]{2,5}){0,2})?";

/// Definitions of patterns that also match texts that are refused, and patterns that generate the others. Each has the
/// reason.
const NARROWER_PATTERNS: &[(&str, &str)] = &[
    // The description says that not all matching texts are valid: the pattern does not check lengths, the hyphens of a domain
    // and characters beyond ASCII, and literals are names only under the naming `domain`.
    ("name-or-address", NAME),
    ("address", ADDRESS),
    ("address-or-empty", ADDRESS),
    // Symbols beyond ASCII match.
    ("tag", "[a-z0-9é_.@$-]([a-z0-9é_.@$ -]{0,62}[a-z0-9é_.@$-])?"),
    // A number of 20 digits can be too large.
    ("id", "[1-9][0-9]{0,18}"),
    ("id-or-latest", "latest|[1-9][0-9]{0,18}"),
    ("ids", "([1-9][0-9]{0,18}(,[1-9][0-9]{0,18}){0,5})?"),
    // Longer times are refused, or delay the test.
    ("duration", "0(\\.0)?(ms|s|m|h)?"),
    // The description limits it.
    ("lifetime", "[1-9][0-9]?m"),
    // Some fields are made from other members.
    ("field-name", "X-[!-9;-~]{1,60}"),
];

/// Texts with rules that only their descriptions contain, by the name of the parameter or member.
const DESCRIBED_TEXTS: &[(&str, &str)] = &[
    // The query language.
    ("q", "[a-z]{1,8}( [a-z]{1,8})?"),
    ("match", "[a-z]{1,8}( [a-z]{1,8})?"),
    // Addresses with or without names.
    ("from", "[A-Z][a-z]{0,8} <[a-z]{1,8}@example\\.org>"),
    ("to", "[A-Z][a-z]{0,8} <[a-z]{1,8}@example\\.org>"),
    ("cc", "[a-z]{1,8}@example\\.org"),
    // A content type.
    ("content-type", "(text|image|application)/[a-z]{1,8}(; [a-z]{1,8}=[a-z]{1,8})?"),
    // The name of a target in the settings.
    ("target", "main"),
];

/// Generates values of the schemas of a document.
pub(super) struct Generator<'d> {
    checker: Checker<'d>,
    runner: TestRunner,
}

impl<'d> Generator<'d> {
    pub(super) fn new(document: &'d Value) -> Self {
        Self { checker: Checker { document }, runner: TestRunner::deterministic() }
    }

    /// Returns a value that the schema permits. `name` is the name of the parameter or member.
    pub(super) fn permitted(&mut self, name: &str, schema: &Value) -> Value {
        let value = self.generate(name, schema);
        assert_eq!(self.checker.problems(schema, &value), [""; 0], "{name}: {schema}");
        value
    }

    /// Returns values that the schema forbids.
    pub(super) fn forbidden(&mut self, name: &str, schema: &Value) -> Vec<Value> {
        let schema = self.resolve(schema);
        let mut values =
            vec![json!(null), json!(true), json!(17), json!(-1), json!(1.5), json!("("), json!([]), json!({})];
        match base_type(&schema) {
            "string" => values.extend(self.unusual_texts(name, &schema).into_iter().map(Value::String)),
            "array" => values.extend(self.forbidden_lists(name, &schema)),
            "object" => values.extend(self.forbidden_objects(&schema)),
            _ => {}
        }
        values.retain(|value| !self.checker.problems(&schema, value).is_empty());
        values
    }

    /// Returns whether an object of this schema can have other members than those that the schema names.
    pub(super) fn is_open(&self, schema: &Value) -> bool {
        self.resolve(schema)["additionalProperties"].is_null()
    }

    /// Returns a text that the schema of a parameter permits, or several texts for a repeated parameter.
    pub(super) fn permitted_texts(&mut self, name: &str, schema: &Value) -> Vec<String> {
        match self.permitted(name, schema) {
            Value::Array(items) => items.iter().map(text).collect(),
            value => vec![text(&value)],
        }
    }

    /// Returns texts that the schema of a parameter forbids.
    pub(super) fn forbidden_texts(&mut self, name: &str, schema: &Value) -> Vec<String> {
        let item = if schema["type"] == "array" { &schema["items"] } else { schema };
        let mut texts = self.unusual_texts(name, item);
        let is_number = base_type(item) == "integer";
        let bounds = ["minimum", "maximum"].iter().filter_map(|bound| item[bound].as_i64());
        texts.extend(bounds.flat_map(|bound| [bound - 1, bound + 1]).map(|number| number.to_string()));
        texts.retain(|text| {
            let number = text.parse::<u64>().ok().filter(|_| is_number);
            let value = number.map_or_else(|| text.as_str().into(), Value::from);
            !self.checker.problems(item, &value).is_empty()
        });
        texts
    }

    fn generate(&mut self, name: &str, schema: &Value) -> Value {
        let schema = self.resolve(schema);
        if let Some(values) = schema["enum"].as_array() {
            return self.draw(select(values.clone()));
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => self.draw(select(kinds.clone())),
            kind => kind.clone(),
        };
        match kind.as_str() {
            Some("null") => Value::Null,
            Some("boolean") => self.draw(any::<bool>()).into(),
            Some("integer") => {
                let (min, max) = (schema["minimum"].as_u64(), schema["maximum"].as_u64());
                let range = min.expect("a minimum")..=max.expect("a maximum");
                self.draw(prop_oneof![Just(*range.start()), Just(*range.end()), range]).into()
            }
            Some("string") => {
                // The generator does not support anchors.
                let pattern = text_pattern(name, &schema).trim_start_matches('^').trim_end_matches('$');
                self.draw(string_regex(pattern).expect("a pattern")).into()
            }
            Some("array") => {
                let min = length(&schema["minItems"]).unwrap_or(0);
                let max = length(&schema["maxItems"]).unwrap_or(usize::MAX).min(min + MAX_MORE_ITEMS);
                let count = self.draw(min..=max);
                (0..count).map(|_| self.generate(name, &schema["items"])).collect()
            }
            Some("object") => self.generate_object(&schema),
            _ => panic!("the schema {schema} is not supported"),
        }
    }

    fn generate_object(&mut self, schema: &Value) -> Value {
        let properties = members(&schema["properties"]);
        let (required, optional): (Vec<String>, Vec<String>) =
            properties.keys().cloned().partition(|name| is_required(schema, name));
        let min = length(&schema["minProperties"]).unwrap_or(0).saturating_sub(required.len());
        let max = length(&schema["maxProperties"]).unwrap_or(usize::MAX).min(optional.len());
        let chosen = self.draw(subsequence(optional, min..=max.max(min)));
        let mut object = Map::new();
        for name in required.into_iter().chain(chosen) {
            let value = self.generate(&name, &properties[&name]);
            object.insert(name, value);
        }
        if schema["additionalProperties"].is_object() {
            for _ in 0..self.draw(0..=MAX_MORE_ITEMS) {
                let name = text(&self.generate("", &schema["propertyNames"]));
                let value = self.generate(&name, &schema["additionalProperties"]);
                object.insert(name, value);
            }
        }
        object.into()
    }

    fn forbidden_lists(&mut self, name: &str, schema: &Value) -> Vec<Value> {
        let mut lists: Vec<Value> =
            self.forbidden(name, &schema["items"]).into_iter().map(|item| json!([item])).collect();
        if let Some(max) = length(&schema["maxItems"]) {
            lists.push(vec![self.generate(name, &schema["items"]); max + 1].into());
        }
        lists
    }

    fn forbidden_objects(&mut self, schema: &Value) -> Vec<Value> {
        let properties = members(&schema["properties"]);
        let mut base = Map::new();
        for name in properties.keys().filter(|name| is_required(schema, name)) {
            base.insert(name.clone(), self.generate(name, &properties[name]));
        }
        let mut objects = Vec::new();
        for (name, property) in &properties {
            let mut object = base.clone();
            object.remove(name);
            objects.push(object.clone());
            for value in self.forbidden(name, property) {
                object.insert(name.clone(), value);
                objects.push(object.clone());
            }
        }
        // All members, which is too many of some.
        let all = properties.iter().map(|(name, property)| (name.clone(), self.generate(name, property)));
        objects.push(all.collect());
        match &schema["additionalProperties"] {
            Value::Bool(false) => {
                let with_unknown = [("unknown".to_owned(), json!(1))].into_iter().chain(base);
                objects.push(with_unknown.collect());
            }
            additional if additional.is_object() => {
                let name = text(&self.generate("", &schema["propertyNames"]));
                let values = self.forbidden(&name, additional);
                objects.extend(values.into_iter().map(|value| Map::from_iter([(name.clone(), value)])));
                objects.push(Map::from_iter([("a:b".to_owned(), json!("x"))]));
            }
            _ => {}
        }
        objects.into_iter().map(Value::Object).collect()
    }

    /// Returns texts of which most patterns match none: with and without a permitted text after a character that is not.
    fn unusual_texts(&mut self, name: &str, schema: &Value) -> Vec<String> {
        let mut texts = UNUSUAL_TEXTS.map(str::to_owned).to_vec();
        if !schema["pattern"].is_null() {
            let permitted = text(&self.generate(name, schema));
            texts.extend(["(", "\u{1}"].map(|start| format!("{start}{permitted}")));
        }
        texts
    }

    fn resolve(&self, schema: &Value) -> Value {
        let schema = self.checker.resolve(schema);
        // An object that can be null.
        let alternatives = schema["oneOf"].as_array().into_iter().flatten();
        alternatives
            .map(|schema| self.checker.resolve(schema))
            .find(|schema| schema["type"] != "null")
            .unwrap_or(schema)
            .clone()
    }

    fn draw<S: Strategy>(&mut self, strategy: S) -> S::Value {
        strategy.new_tree(&mut self.runner).expect("a value").current()
    }
}

/// Returns the pattern that generates texts of this schema.
fn text_pattern<'s>(name: &str, schema: &'s Value) -> &'s str {
    if schema["format"] == "date-time" {
        return TIME;
    }
    let described = || DESCRIBED_TEXTS.iter().find(|(known, _)| *known == name).map(|(_, pattern)| *pattern);
    match schema["pattern"].as_str() {
        Some(pattern) => {
            let narrower = NARROWER_PATTERNS.iter().find(|(name, _)| definition(name) == pattern);
            narrower.map(|(_, pattern)| *pattern).or_else(described).unwrap_or(pattern)
        }
        None => described().unwrap_or(".{0,20}"),
    }
}

/// Returns the type of a schema other than null.
fn base_type(schema: &Value) -> &str {
    let kinds = schema["type"].as_array().into_iter().flatten();
    [&schema["type"]]
        .into_iter()
        .chain(kinds)
        .filter_map(Value::as_str)
        .find(|kind| *kind != "null")
        .unwrap_or_default()
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().into_iter().flatten().any(|required| required == name)
}

fn members(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn length(value: &Value) -> Option<usize> {
    value.as_u64().and_then(|length| length.try_into().ok())
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
