//! Sends what the document permits, which is accepted, and what it forbids, which is refused. The requests are generated from the
//! document.

use restante_http_core::response::links::encode_segment;
use restante_settings::Config;

use super::responses::server;
use super::values::Generator;
use super::*;
use crate::tests::support::relay_server::RelayServer;
use crate::tests::support::webhook_server::WebhookServer;

/// The number of generated values of each parameter and each body.
const CASES: usize = 8;
/// The statuses of refused values.
const REFUSED: [&str; 4] = ["400", "413", "415", "422"];

/// Parameters and bodies for which the server accepts more than the document permits. The description of each says so.
const LENIENT: &[(&str, &str)] = &[
    // Version 1 ignores the parameters that it cannot use, because Inbucket ignores all.
    ("listMessages", "after"),
    ("listMessages", "before"),
    ("listMessages", "limit"),
    // As in Inbucket, `null` changes nothing.
    ("markMessage", ""),
];

/// An operation that requests are sent to.
struct Target<'d> {
    method: String,
    path: &'d str,
    operation: &'d Value,
}

/// The values of a request.
#[derive(Clone, Debug, Default)]
struct Values {
    path: Vec<(String, String)>,
    query: Vec<(String, String)>,
    body: Option<Value>,
}

/// The servers that requests are sent to. Requests of the relay and the webhooks need targets.
struct Servers {
    server: TestServer,
    relay: RelayServer,
    webhooks: WebhookServer,
}

impl Servers {
    async fn new() -> Self {
        let relay = RelayServer::started().await;
        relay.deliver("test@example.org", "").await;
        let webhooks = WebhookServer::new().await;
        webhooks.add_entry("bob", 0, "stored").await;
        Self { server: server(&Config::default()).await, relay, webhooks }
    }

    async fn send(&self, target: &Target<'_>, values: &Values) -> (String, TestResponse) {
        let mut path = target.path.to_owned();
        for (name, value) in &values.path {
            path = path.replace(&format!("{{{name}}}"), &encode(value));
        }
        let pairs: Vec<String> = values.query.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
        let query = if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) };
        let request = format!("{} {path}{query}", target.method);
        let body = values.body.as_ref().map(Value::to_string).unwrap_or_default();
        let shown = format!("{request} {body}");
        let response = if path.contains("/relay") || path.ends_with("/release") {
            self.relay.post(&request, &body).await
        } else if path.contains("/webhooks") {
            self.webhooks.post(&request, &body).await
        } else {
            let request = format!("{request}\nContent-Type: application/json");
            self.server.request_with(&request, body, Peer::default()).await
        };
        (shown, response)
    }
}

fn encode(text: &str) -> String {
    encode_segment(text).to_string()
}

impl Target<'_> {
    fn id(&self) -> &str {
        self.operation["operationId"].as_str().expect("an id")
    }

    /// Returns the parameters at this location: names and schemas, and whether they are required.
    fn parameters(&self, location: &str) -> Vec<(&str, &Value, bool)> {
        let all = self.operation["parameters"].as_array().map_or(&[][..], Vec::as_slice);
        let here = all.iter().filter(|parameter| parameter["in"] == location);
        here.map(|parameter| {
            let name = parameter["name"].as_str().expect("a name");
            (name, &parameter["schema"], parameter["required"] == true)
        })
        .collect()
    }

    fn body_schema(&self) -> Option<&Value> {
        let schema = &self.operation["requestBody"]["content"]["application/json"]["schema"];
        schema.is_object().then_some(schema)
    }

    /// Returns the values that a request needs.
    fn required_values(&self, generator: &mut Generator<'_>) -> Values {
        let mut values =
            Values { body: self.body_schema().map(|schema| generator.permitted("", schema)), ..Values::default() };
        for (name, schema, _) in self.parameters("path") {
            let text = generator.permitted_texts(name, schema).remove(0);
            values.path.push((name.to_owned(), text));
        }
        for (name, schema, is_required) in self.parameters("query") {
            // One of the parameters is required, which the description says.
            if is_required || self.id() == "deleteMatchingMessages" && name == "mailbox" {
                values.set_query(name, generator.permitted_texts(name, schema));
            }
            // The default is longer than the test may take.
            if name == "timeout" {
                values.set_query(name, vec!["0".to_owned()]);
            }
        }
        values
    }

    /// Returns requests with each parameter, and with bodies.
    fn permitted_values(&self, generator: &mut Generator<'_>) -> Vec<Values> {
        let mut all = Vec::new();
        for _ in 0..CASES {
            all.push(self.required_values(generator));
            for (name, schema, _) in self.parameters("query") {
                let mut values = self.required_values(generator);
                values.set_query(name, generator.permitted_texts(name, schema));
                all.push(values);
            }
        }
        if let Some(schema) = self.body_schema()
            && generator.is_open(schema)
        {
            let mut values = self.required_values(generator);
            values.body.as_mut().expect("a body")["unknown"] = 1.into();
            all.push(values);
        }
        all
    }

    /// Returns the values that a request for something that exists needs.
    fn existing_values(&self, generator: &mut Generator<'_>) -> Values {
        let mut values = self.required_values(generator);
        for (name, value) in &mut values.path {
            *value = match name.as_str() {
                "name" => "test".to_owned(),
                "id" if self.path.contains("/relay/") || self.path.contains("/webhooks/") => "1".to_owned(),
                "id" if self.path.contains("/sessions/") || self.method == "DELETE" => FIRST.to_string(),
                "id" => "latest".to_owned(),
                "index" => "0".to_owned(),
                _ => "x".to_owned(),
            };
        }
        values
    }

    /// Returns requests with one forbidden value each, and the name of the parameter. The body has no name.
    fn forbidden_values(&self, generator: &mut Generator<'_>) -> Vec<(&str, Values)> {
        let mut all = Vec::new();
        for (name, schema, _) in self.parameters("path") {
            // An empty segment makes another path.
            for text in generator.forbidden_texts(name, schema).into_iter().filter(|text| !text.is_empty()) {
                let mut values = self.existing_values(generator);
                values.path.retain(|(known, _)| known != name);
                values.path.push((name.to_owned(), text));
                all.push((name, values));
            }
        }
        for (name, schema, _) in self.parameters("query") {
            for text in generator.forbidden_texts(name, schema) {
                let mut values = self.existing_values(generator);
                values.set_query(name, vec![text]);
                all.push((name, values));
            }
        }
        if let Some(schema) = self.body_schema() {
            for body in generator.forbidden("", schema) {
                all.push(("", Values { body: Some(body), ..self.existing_values(generator) }));
            }
        }
        all
    }
}

impl Values {
    fn set_query(&mut self, name: &str, texts: Vec<String>) {
        self.query.retain(|(known, _)| known != name);
        self.query.extend(texts.into_iter().map(|text| (name.to_owned(), text)));
    }
}

/// Returns the operations with responses that end. Event streams do not.
fn targets(document: &Value) -> Vec<Target<'_>> {
    let operations = operations(document).into_iter().filter(|(_, _, operation)| operation["x-frame"].is_null());
    operations.map(|(method, path, operation)| Target { method: method.to_uppercase(), path, operation }).collect()
}

#[tokio::test]
async fn permitted_requests_are_accepted() {
    let document = document().await;
    let mut generator = Generator::new(&document);
    let (mut servers, mut faults) = (Servers::new().await, Vec::new());
    for target in targets(&document) {
        for values in target.permitted_values(&mut generator) {
            let (request, response) = servers.send(&target, &values).await;
            let status = response.status.as_str();
            let is_described = target.operation["responses"][status].is_object();
            if !is_described || REFUSED.contains(&status) || status == "500" {
                faults.push(format!("{request}: {status} {:?}", response.body));
            }
        }
        if target.method != "GET" {
            servers.server = server(&Config::default()).await;
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test]
async fn forbidden_requests_are_refused() {
    let document = document().await;
    let mut generator = Generator::new(&document);
    let servers = Servers::new().await;
    let (mut faults, mut lenient) = (Vec::new(), BTreeSet::new());
    for target in targets(&document) {
        for (name, values) in target.forbidden_values(&mut generator) {
            let (request, response) = servers.send(&target, &values).await;
            let status = response.status.as_u16();
            let is_in_path = target.path.contains(&format!("{{{name}}}"));
            if matches!(status, 400 | 422) || status == 404 && is_in_path {
                assert!(!response.problem(status).is_empty(), "{request}");
            } else if status == 200 && LENIENT.contains(&(target.id(), name)) {
                lenient.insert((target.id().to_owned(), name.to_owned()));
            } else {
                faults.push(format!("{request}: {status} {:?}", response.body));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_eq!(lenient.len(), LENIENT.len(), "a row of the table matches no request");
}
