//! Writes an operation: its parameters, its responses, and a command to try it.

use serde_json::{Map, Value};

use crate::page::html::{Html, anchor};
use crate::page::{BASE_PLACEHOLDER, REFUSAL_ANCHOR, WS_BASE_PLACEHOLDER, schema};

/// The values for names in a path in example commands.
const EXAMPLE_VALUES: [(&str, &str); 4] = [("{name}", "bob"), ("{id}", "latest"), ("{index}", "0"), ("{file}", "file")];

/// Writes an operation.
pub(super) fn write(html: &mut Html, method: &str, path: &str, operation: &Value) {
    html.element("details", |html| {
        html.element("summary", |html| {
            html.element(&format!("span class=\"method {method}\""), |html| html.text(&method.to_uppercase()));
            html.element("code class=\"path\"", |html| breakable(html, path));
            html.prose_element("span class=\"does\"", text(&operation["summary"]));
        });
        html.element(&format!("div id=\"{}\"", anchor("", text(&operation["operationId"]))), |html| {
            html.paragraphs(text(&operation["description"]));
            scope(html, &operation["security"]);
            parameters(html, &operation["parameters"]);
            body(html, &operation["requestBody"]);
            responses(html, operation);
            html.element("h3", |html| html.text("Try it"));
            html.element("pre", |html| html.text(&example_command(method, path, operation)));
        });
    });
}

/// Writes a path with line break opportunities, because it can be longer than a narrow window is wide.
fn breakable(html: &mut Html, path: &str) {
    for segment in path.split_inclusive('/') {
        html.text(segment);
        html.markup("<wbr>");
    }
}

fn scope(html: &mut Html, security: &Value) {
    let mut scopes = security.as_array().into_iter().flatten().filter_map(Value::as_object).flat_map(Map::values);
    if let Some(scope) = scopes.find_map(|scopes| scopes[0].as_str()) {
        html.element("p class=\"scope\"", |html| {
            html.text("If authentication is enabled, this requires the scope ");
            html.element("code", |html| html.text(scope));
            html.text(".");
        });
    }
}

fn parameters(html: &mut Html, parameters: &Value) {
    let Some(parameters) = parameters.as_array().filter(|parameters| !parameters.is_empty()) else { return };
    html.element("h3", |html| html.text("Parameters"));
    html.element("table", |html| {
        for parameter in parameters {
            html.element("tr", |html| {
                html.element("th", |html| html.element("code", |html| html.text(text(&parameter["name"]))));
                html.element("td", |html| {
                    html.text(text(&parameter["in"]));
                    html.text(", ");
                    schema::schema_type(html, &parameter["schema"]);
                    let is_required = parameter["required"] == true && parameter["in"] != "path";
                    html.text(if is_required { ", required" } else { "" });
                });
                html.prose_element("td", text(&parameter["description"]));
            });
        }
    });
}

fn body(html: &mut Html, body: &Value) {
    let Some(contents) = body["content"].as_object() else { return };
    html.element("h3", |html| html.text("Body"));
    html.prose_element("p", text(&body["description"]));
    for (content_type, content) in contents {
        html.element("p", |html| write_content_type(html, content_type, content));
        example(html, &content["example"]);
    }
}

fn responses(html: &mut Html, operation: &Value) {
    let Some(responses) = operation["responses"].as_object() else { return };
    html.element("h3", |html| html.text("Responses"));
    for (status, response) in responses.iter().filter(|(_, response)| response["$ref"].is_null()) {
        html.element("p", |html| {
            html.element("strong", |html| html.text(status));
            html.text(" ");
            html.prose(text(&response["description"]));
            for (content_type, content) in response["content"].as_object().into_iter().flatten() {
                html.text(" ");
                write_content_type(html, content_type, content);
            }
        });
        for content in response["content"].as_object().into_iter().flat_map(Map::values) {
            example(html, &content["example"]);
        }
    }
    html.element("p class=\"refusals\"", |html| {
        html.text("Errors:");
        for (status, _) in responses.iter().filter(|(_, response)| !response["$ref"].is_null()) {
            html.text(" ");
            html.link(REFUSAL_ANCHOR, status, |html| html.text(status));
        }
        html.text(".");
    });
    if operation["x-frame"].is_object() {
        html.element("p", |html| {
            html.text("The schema of events is ");
            schema::schema_type(html, &operation["x-frame"]);
            html.text(".");
        });
    }
}

fn write_content_type(html: &mut Html, content_type: &str, content: &Value) {
    html.element("code", |html| html.text(content_type));
    let schema = &content["schema"];
    if schema.is_object() && schema["type"] != "string" {
        html.text(": ");
        schema::schema_type(html, schema);
    }
}

/// Writes an example with line breaks.
fn example(html: &mut Html, value: &Value) {
    if !value.is_null() {
        html.element("pre", |html| html.text(&format!("{value:#}")));
    }
}

/// Returns a command that sends the request.
fn example_command(method: &str, path: &str, operation: &Value) -> String {
    let mut path = EXAMPLE_VALUES.iter().fold(path.to_owned(), |path, (name, value)| path.replace(name, value));
    let is_needed = |parameter: &&Value| parameter["in"] == "query" && parameter["required"] == true;
    let parameters = operation["parameters"].as_array().into_iter().flatten().filter(is_needed);
    for (index, parameter) in parameters.enumerate() {
        path.push(if index == 0 { '?' } else { '&' });
        path.push_str(text(&parameter["name"]));
        path.push_str("=…");
    }
    let responses = &operation["responses"];
    if responses["101"].is_object() && responses["200"].is_null() {
        return format!("websocat {WS_BASE_PLACEHOLDER}{path}");
    }
    let endless = if responses["200"]["content"]["text/event-stream"].is_object() { "-N " } else { "" };
    let verb = if method == "get" { String::new() } else { format!("-X {} ", method.to_uppercase()) };
    // DELETE does not accept `latest`, so that a client does not delete another message than intended.
    let path = if method == "delete" { path.replace("latest", "ID") } else { path };
    let body = match operation["requestBody"]["content"]["application/json"]["example"] {
        Value::Null => String::new(),
        ref example => format!(" \\\n  -H 'Content-Type: application/json' -d '{example}'"),
    };
    format!("curl {endless}{verb}'{BASE_PLACEHOLDER}{path}'{body}")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
