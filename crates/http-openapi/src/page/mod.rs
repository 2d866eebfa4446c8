//! The API page for people. It is rendered from the OpenAPI document, so both have the same content. It has no scripts,
//! and its style sheet is a file of the web interface.

mod html;
mod operation;
mod schema;

use restante_html::push_escaped;
use serde_json::{Map, Value};

use html::{Html, anchor};
use schema::SCHEMA_ANCHOR;

/// The `Content-Security-Policy` of the page: it may load its style sheet and the icon, and nothing else.
pub(super) const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; \
                                 frame-ancestors 'none'";

/// A placeholder for the URL of the server, which depends on the client. No text contains this character.
const BASE_PLACEHOLDER: char = '\u{1}';
/// A placeholder for the URL of WebSockets.
const WS_BASE_PLACEHOLDER: char = '\u{2}';
/// The kind of the anchors of error responses.
const REFUSAL_ANCHOR: &str = "refusal";
/// The sections after the chapters: heading, components, and the function that writes them.
const APPENDICES: [(&str, &str, WriteComponents); 3] = [
    ("Credentials", "securitySchemes", write_credentials),
    ("Errors", "responses", write_refusals),
    ("Schemas", "schemas", write_schemas),
];
/// The methods in the order in which they are shown.
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// Writes a map of components.
type WriteComponents = fn(&mut Html, &Value);

/// The page, with placeholders for the URL of the server.
pub(super) struct Page(Box<str>);

impl Page {
    /// Renders the page of a document.
    pub(super) fn from_document(document: &Value, assets_hash: &str) -> Self {
        let mut html = Html::default();
        html.markup("<!doctype html>\n");
        html.element("html lang=\"en\"", |html| {
            html.element("head", |html| head(html, assets_hash));
            html.element("body", |html| {
                html.markup("<header><a href=\"../\">Restante</a></header>");
                html.element("nav aria-label=\"Contents\"", |html| contents(html, document));
                html.element("main", |html| main(html, document));
            });
        });
        html.markup("\n");
        Self(html.into_string().into())
    }

    /// Returns the page for a client that sees the server under this URL.
    pub(super) fn with_base_url(&self, base: &str) -> String {
        let mut escaped = String::new();
        push_escaped(&mut escaped, base);
        let page = self.0.replace(BASE_PLACEHOLDER, &escaped);
        page.replace(WS_BASE_PLACEHOLDER, &escaped.replacen("http", "ws", 1))
    }
}

fn head(html: &mut Html, hash: &str) {
    html.markup("<meta charset=\"utf-8\"><title>API · Restante</title>");
    html.markup("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    html.markup("<meta name=\"color-scheme\" content=\"light dark\"><meta name=\"robots\" content=\"noindex\">");
    html.markup(&format!("<link rel=\"icon\" href=\"../assets/{hash}/icon.svg\" type=\"image/svg+xml\">"));
    for style in ["css/10-tokens.css", "api-docs.css"] {
        html.markup(&format!("<link rel=\"stylesheet\" href=\"../assets/{hash}/{style}\">"));
    }
}

/// Returns the operations of a chapter: method, path and description.
fn operations<'d>(document: &'d Value, chapter: &'d Value) -> impl Iterator<Item = (&'static str, &'d str, &'d Value)> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let all = paths.flat_map(|(path, item)| METHODS.map(|method| (method, path.as_str(), &item[method])));
    all.filter(move |(_, _, operation)| operation["tags"][0] == chapter["name"])
}

fn chapters(document: &Value) -> impl Iterator<Item = &Value> {
    document["tags"].as_array().into_iter().flatten()
}

fn contents(html: &mut Html, document: &Value) {
    for chapter in chapters(document) {
        html.prose_element("h2", text(&chapter["name"]));
        html.element("ul", |html| {
            for (method, path, operation) in operations(document, chapter) {
                html.element("li", |html| {
                    html.link("", text(&operation["operationId"]), |html| {
                        html.element(&format!("span class=\"method {method}\""), |html| html.text(method));
                        html.element("span", |html| html.text(path));
                    });
                });
            }
        });
    }
    html.prose_element("h2", "Common");
    html.element("ul", |html| {
        for (heading, kind, _) in APPENDICES {
            html.element("li", |html| html.link("", kind, |html| html.text(heading)));
        }
    });
}

fn main(html: &mut Html, document: &Value) {
    html.element("h1", |html| {
        html.text("The API of Restante ");
        html.element("small", |html| html.text(text(&document["info"]["version"])));
    });
    html.paragraphs(text(&document["info"]["description"]));
    html.markup("<p>For programs: <a href=\"openapi.json\">openapi.json</a> (OpenAPI 3.1).</p>");
    for chapter in chapters(document) {
        html.element("section", |html| {
            html.prose_element("h2", text(&chapter["name"]));
            html.paragraphs(text(&chapter["description"]));
            for (method, path, operation) in operations(document, chapter) {
                operation::write(html, method, path, operation);
            }
        });
    }
    for (heading, kind, write) in APPENDICES {
        html.element(&format!("section id=\"{kind}\""), |html| {
            html.prose_element("h2", heading);
            write(html, &document["components"][kind]);
        });
    }
}

fn write_credentials(html: &mut Html, schemes: &Value) {
    html.paragraphs(
        "If users or tokens are configured, requests need credentials. They can be sent in any of these ways.",
    );
    html.element("table", |html| {
        for (name, scheme) in schemes.as_object().into_iter().flatten() {
            html.element("tr", |html| {
                html.prose_element("th", name);
                html.prose_element("td", text(&scheme["description"]));
            });
        }
    });
}

/// Writes all error responses. Operations refer to them by status.
fn write_refusals(html: &mut Html, responses: &Value) {
    html.element("p", |html| {
        html.prose("`application/problem+json`: ");
        html.link(SCHEMA_ANCHOR, "Problem", |html| html.text("Problem"));
        html.text(".");
    });
    let by_name = responses.as_object().into_iter().flat_map(Map::values);
    let mut refusals: Vec<_> =
        by_name.map(|response| (&response["content"]["application/problem+json"], response)).collect();
    refusals.sort_by_key(|(content, _)| content["example"]["status"].as_u64());
    html.element("table", |html| {
        for (content, response) in refusals {
            let status = content["example"]["status"].to_string();
            html.element(&format!("tr id=\"{}\"", anchor(REFUSAL_ANCHOR, &status)), |html| {
                html.prose_element("th", &status);
                html.prose_element("td", text(&response["description"]));
            });
        }
    });
}

fn write_schemas(html: &mut Html, schemas: &Value) {
    for (name, schema) in schemas.as_object().into_iter().flatten() {
        html.element("details", |html| {
            html.element("summary", |html| {
                html.element("code", |html| html.text(name));
                html.prose_element("span class=\"does\"", text(&schema["description"]));
            });
            html.element(&format!("div id=\"{}\"", anchor(SCHEMA_ANCHOR, name)), |html| schema::fields(html, schema));
        });
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
