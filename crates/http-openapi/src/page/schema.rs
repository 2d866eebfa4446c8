//! Writes schemas: the type of a value, and tables of the fields of objects.

use serde_json::Value;

use crate::page::html::Html;

/// The kind of the anchors of schemas.
pub(super) const SCHEMA_ANCHOR: &str = "shape";

/// Writes the type of a value of this schema.
pub(super) fn schema_type(html: &mut Html, schema: &Value) {
    if let Some(name) = referenced_name(schema) {
        html.link(SCHEMA_ANCHOR, name, |html| html.text(name));
        return;
    }
    if let Some(values) = schema["enum"].as_array() {
        alternatives(html, values, |html, value| html.element("code", |html| html.text(&value.to_string())));
        return;
    }
    for keyword in ["oneOf", "anyOf"] {
        if let Some(schemas) = schema[keyword].as_array() {
            alternatives(html, schemas, schema_type);
            return;
        }
    }
    match &schema["type"] {
        Value::String(name) => named_type(html, name, schema),
        Value::Array(names) => {
            alternatives(html, names, |html, name| named_type(html, name.as_str().unwrap_or_default(), schema));
        }
        _ => html.text("anything"),
    }
}

/// Writes a table of the fields of an object, or the type of another schema.
pub(super) fn fields(html: &mut Html, schema: &Value) {
    let parts = schema["allOf"].as_array().map_or(std::slice::from_ref(schema), Vec::as_slice);
    for name in parts.iter().filter_map(referenced_name) {
        html.element("p", |html| {
            html.text("All fields of ");
            html.link(SCHEMA_ANCHOR, name, |html| html.text(name));
            html.text(", and:");
        });
    }
    let objects = parts.iter().filter_map(|part| Some((part, part["properties"].as_object()?)));
    let mut rows = objects.flat_map(|(part, fields)| fields.iter().map(move |field| (part, field))).peekable();
    if rows.peek().is_none() {
        html.element("p", |html| schema_type(html, schema));
        return;
    }
    html.element("table", |html| {
        for (part, (name, field)) in rows {
            let is_required =
                part["required"].as_array().is_some_and(|names| names.iter().any(|required| required == name));
            html.element("tr", |html| {
                html.element("th", |html| html.element("code", |html| html.text(name)));
                html.element("td", |html| {
                    schema_type(html, field);
                    html.text(if is_required { "" } else { ", optional" });
                });
                html.prose_element("td", description(field));
            });
        }
    });
}

/// Returns the description of a field. If the field can be null, the description is next to the schema reference.
fn description(field: &Value) -> &str {
    let alternatives = field["oneOf"].as_array().into_iter().flatten();
    [field].into_iter().chain(alternatives).find_map(|schema| schema["description"].as_str()).unwrap_or_default()
}

fn named_type(html: &mut Html, name: &str, schema: &Value) {
    match name {
        "array" => {
            html.text("array of ");
            schema_type(html, &schema["items"]);
        }
        "object" if schema["additionalProperties"].is_object() => {
            html.text("map of ");
            schema_type(html, &schema["additionalProperties"]);
        }
        "string" if schema["format"] == "date-time" => html.text("time (RFC 3339)"),
        other => html.text(other),
    }
}

/// Writes values with "or" between them.
fn alternatives(html: &mut Html, values: &[Value], write: impl Fn(&mut Html, &Value)) {
    for (index, value) in values.iter().enumerate() {
        html.text(if index == 0 { "" } else { " or " });
        write(html, value);
    }
}

/// Returns the name of the schema that a schema refers to.
fn referenced_name(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}
