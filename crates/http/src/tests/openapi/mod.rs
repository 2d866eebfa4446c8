//! Compares the description of the API with the service: it contains exactly the routes, it is consistent, and real
//! responses match it.

mod events;
mod patterns;
mod requests;
mod responses;
mod schema;
mod values;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use restante_settings::ApiName;
use serde_json::{Map, Value};

use super::*;
use crate::apis::Apis;
use schema::Checker;

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// Returns the OpenAPI document as a client gets it.
async fn document() -> Value {
    TestServer::new().request("GET /api/openapi.json").await.json()
}

/// Returns all operations: method, path and description.
fn operations(document: &Value) -> Vec<(&'static str, &str, &Value)> {
    let paths = document["paths"].as_object().expect("paths");
    let all = paths.iter().flat_map(|(path, item)| METHODS.map(|method| (method, path.as_str(), &item[method])));
    all.filter(|(_, _, operation)| operation.is_object()).collect()
}

/// Collects every object in the document, with its location.
fn objects<'d>(value: &'d Value, at: &str, found: &mut Vec<(String, &'d Value)>) {
    match value {
        Value::Object(object) => {
            found.push((at.to_owned(), value));
            object.iter().for_each(|(name, value)| objects(value, &format!("{at}/{name}"), found));
        }
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(index, value)| objects(value, &format!("{at}/{index}"), found));
        }
        _ => {}
    }
}

/// Returns the names in braces in a path.
fn names(path: &str) -> BTreeSet<&str> {
    path.split('{').skip(1).filter_map(|rest| rest.split('}').next()).collect()
}

/// The methods of a route are determined with a request for a method that it does not support.
#[tokio::test]
async fn description_contains_exactly_the_routes() {
    let document = document().await;
    let server = TestServer::new();
    let described: BTreeSet<(String, String)> =
        operations(&document).iter().map(|(method, path, _)| (method.to_uppercase(), (*path).to_owned())).collect();
    let mut routed = BTreeSet::new();
    let apis = Apis::new(ServerInfo::default());
    for (path, _) in [ApiName::Rest, ApiName::Web, ApiName::Operations]
        .into_iter()
        .flat_map(|api| apis.get(api))
        .flat_map(|api| &api.routes)
    {
        let response = server.request(&format!("PROPFIND {path}")).await;
        response.problem(405);
        let methods = response.header("allow").split(',').filter(|method| *method != "HEAD");
        routed.extend(methods.map(|method| (method.to_owned(), path.replace("{*", "{"))));
    }
    let missing: Vec<_> = routed.difference(&described).filter(|(_, path)| path.starts_with("/api/")).collect();
    assert!(missing.is_empty(), "these have no description in http-openapi/src/api: {missing:?}");
    let unknown: Vec<_> = described.difference(&routed).collect();
    assert!(unknown.is_empty(), "these are described, but there is no such route: {unknown:?}");
}

#[tokio::test]
async fn description_is_consistent() {
    let document = document().await;
    assert_eq!(document["openapi"], "3.1.0");
    let checker = Checker { document: &document };
    let (mut all, mut references) = (Vec::new(), BTreeSet::new());
    objects(&document, "", &mut all);
    for (at, object) in all {
        checker.resolve(object);
        references.extend(object.get("$ref").and_then(Value::as_str));
        if let (Some(schema), Some(example)) = (object.get("schema"), object.get("example")) {
            assert_eq!(checker.problems(schema, example), [""; 0], "the example at {at}");
        }
    }
    for kind in ["schemas", "responses"] {
        for (name, component) in document["components"][kind].as_object().expect("components") {
            let location = format!("#/components/{kind}/{name}");
            assert!(references.contains(location.as_str()), "nothing refers to {location}");
            assert!(component.get("$ref").is_none(), "{location} is only a reference");
        }
    }
    let chapters: Vec<&Value> = document["tags"].as_array().expect("tags").iter().map(|tag| &tag["name"]).collect();
    let mut ids = BTreeSet::new();
    for (method, path, operation) in operations(&document) {
        let name = format!("{method} {path}");
        assert!(ids.insert(operation["operationId"].as_str().expect("an id")), "{name}");
        assert!(operation["summary"].as_str().is_some_and(|summary| !summary.is_empty()), "{name}");
        assert!(chapters.contains(&&operation["tags"][0]), "{name}");
        let parameters = operation["parameters"].as_array().map_or(&[][..], Vec::as_slice);
        let in_path: Vec<&str> = parameters
            .iter()
            .filter(|parameter| parameter["in"] == "path" && parameter["required"] == true)
            .filter_map(|parameter| parameter["name"].as_str())
            .collect();
        assert_eq!(in_path.len(), names(path).len(), "{name}");
        assert_eq!(in_path.into_iter().collect::<BTreeSet<_>>(), names(path), "{name}");
        assert!(
            parameters.iter().all(|parameter| parameter["description"].as_str().is_some_and(|text| !text.is_empty())),
            "{name}"
        );
        for (status, response) in operation["responses"].as_object().expect("responses") {
            assert!(checker.resolve(response)["description"].is_string(), "{name} {status}");
        }
    }
}

/// Generated clients and fuzzers use the patterns to create names and ids.
#[tokio::test]
async fn names_and_ids_in_paths_have_patterns() {
    let document = document().await;
    let checker = Checker { document: &document };
    let mut found = BTreeSet::new();
    for (method, path, operation) in operations(&document) {
        for parameter in
            operation["parameters"].as_array().into_iter().flatten().filter(|parameter| parameter["in"] == "path")
        {
            let (name, schema) = (parameter["name"].as_str().expect("a name"), &parameter["schema"]);
            let (right, wrong): (&[&str], &[&str]) = match name {
                "name" => (&["bob", "Bob+Shop@example.org", "[192.0.2.1]", "jöran"], &["", "a b", "a..b", "a@"]),
                "id" => (&["17", "1794699770123456"], &["", "017", "x", "Latest"]),
                _ => continue,
            };
            let accepts = |text: &str| checker.problems(schema, &text.into()).is_empty();
            assert!(right.iter().all(|text| accepts(text)), "{method} {path} {name}");
            assert!(!wrong.iter().any(|text| accepts(text)), "{method} {path} {name}");
            let accepts_latest = method != "delete" && !path.contains("/sessions/") && !path.contains("/entries/");
            assert!(name != "id" || accepts("latest") == accepts_latest, "{method} {path}");
            found.insert(name);
        }
    }
    assert_eq!(found.len(), 2);
}

#[tokio::test]
async fn description_contains_server_url() {
    let table = [("", None, "/"), ("/mail", None, "/mail"), ("/mail", Some("https://x.org/m"), "https://x.org/m")];
    for (base_path, public_url, expected) in table {
        let (base_path, public_url) = (base_path.to_owned(), public_url.map(str::to_owned));
        let server = TestServer::with(Settings { base_path: base_path.clone(), public_url, ..Settings::default() });
        let document = server.request(&format!("GET {base_path}/api/openapi.json")).await.json();
        assert_eq!(document["servers"], serde_json::json!([{ "url": expected }]));
    }
}

#[test]
fn copy_in_docs_is_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let copy = fs::read_to_string(file).expect("docs/openapi.json");
    let current = crate::openapi().expect("JSON");
    assert!(copy == current, "run `cargo run -p restante -- docs openapi > docs/openapi.json`");
}
