//! Compares real responses with the description: every status of every operation, as far as a request can cause it.

use std::collections::HashSet;

use futures_util::stream::pending;
use restante_journal::{Chunk, Journal, Side};
use restante_search::Search;
use restante_settings::Config;
use restante_store::StoreError;

use super::super::client_limits;
use super::super::store_errors::{FailingStore, router_with_store};
use super::*;
use crate::About;
use crate::tests::support::auth_server::AuthServer;
use crate::tests::support::chaos::chaos_server;
use crate::tests::support::relay_server::RelayServer;
use crate::tests::support::sessions;
use crate::tests::support::webhook_server::WebhookServer;

/// The status of internal errors. It is described for every operation, but no request of a test can cause it.
const UNTESTABLE_STATUS: &str = "500";
/// Operations that do not return 503 if the store fails, because they do not use it, or fail an earlier check.
/// Other causes of 503, such as too many connections, do not reach the router.
const WITHOUT_STORE: [&str; 24] = [
    "leaseRun",
    "endRun",
    "isLive",
    "aboutServer",
    "getSimulatedFailures",
    "setSimulatedFailures",
    "describeApi",
    "showApi",
    "search",
    "listSessions",
    "readSession",
    "deleteMatchingMessages",
    "listRelayTargets",
    "listRelayEntries",
    "readRelayEntry",
    "retryRelayEntries",
    "cancelRelayEntries",
    "listWebhookTargets",
    "listWebhookEntries",
    "readWebhookEntry",
    "retryWebhookEntries",
    "cancelWebhookEntries",
    "pauseWebhookTargets",
    "resumeWebhookTargets",
];

/// Requests to a server in which mailbox `test` contains [`MAIL`], which has text, HTML and attachments, and the expected statuses.
const TABLE: &[(&str, &str, u16)] = &[
    ("GET /api/v1/mailbox/test", "", 200),
    ("GET /api/v1/mailbox/nobody", "", 200),
    ("GET /api/v1/mailbox/test?limit=1&after=0&before=9", "", 200),
    ("GET /api/v1/mailbox/test?limit=x", "", 200),
    ("PATCH /api/v1/mailbox/test/latest\nContent-Type: text/html", "{}", 200),
    ("GET /api/v1/mailbox/test\nIf-None-Match: *", "", 304),
    ("GET /api/v1/mailbox/test/latest", "", 200),
    ("GET /api/v1/mailbox/test/latest\nIf-None-Match: *", "", 304),
    ("GET /api/v1/mailbox/test/17", "", 404),
    ("GET /api/v1/mailbox/test/latest/source", "", 200),
    ("GET /api/v1/mailbox/test/latest/source\nIf-None-Match: *", "", 304),
    ("GET /api/v1/mailbox/test/17/source", "", 404),
    ("PATCH /api/v1/mailbox/test/latest", "", 200),
    ("PATCH /api/v1/mailbox/test/latest", "{\"seen\":false}", 200),
    ("PATCH /api/v1/mailbox/test/17", "{\"seen\":false}", 404),
    ("DELETE /api/v1/mailbox/test/17", "", 404),
    ("DELETE /api/v1/mailbox/test/17/source", "", 404),
    ("GET /api/v2/mailboxes", "", 200),
    ("GET /api/v2/mailboxes?prefix=x", "", 200),
    ("GET /api/v2/mailboxes?limit=1", "", 200),
    ("GET /api/v2/usage", "", 200),
    ("GET /api/v2/mailbox/test/latest", "", 200),
    ("GET /api/v2/mailbox/test/latest\nIf-None-Match: *", "", 304),
    ("GET /api/v2/mailbox/test/17", "", 404),
    ("GET /api/v2/mailbox/test/latest/body?format=text", "", 200),
    ("GET /api/v2/mailbox/test/latest/body?format=html\nIf-None-Match: *", "", 304),
    ("GET /api/v2/mailbox/test/latest/body?format=pdf", "", 400),
    ("GET /api/v2/mailbox/test/17/body?format=text", "", 404),
    ("GET /api/v2/mailbox/test/latest/attachments.zip", "", 200),
    ("GET /api/v2/mailbox/test/latest/attachments.zip\nIf-None-Match: *", "", 304),
    ("GET /api/v2/mailbox/test/17/attachments.zip", "", 404),
    ("GET /api/v2/mailbox/test/attachments?ids=1794699770123456,17", "", 200),
    ("GET /api/v2/mailbox/test/attachments?ids=17\nIf-None-Match: *", "", 304),
    ("GET /api/v2/mailbox/test/attachments", "", 400),
    ("POST /api/v2/mailbox/test/mark", "{\"ids\":[\"1794699770123456\"],\"seen\":true}", 200),
    ("POST /api/v2/mailbox/test/delete", "{\"ids\":[\"17\"]}", 200),
    ("GET /api/v2/mailbox/test/wait", "", 200),
    ("GET /api/v2/mailbox/test/wait?count=2&timeout=1ms", "", 408),
    ("GET /api/v2/mailbox/test/wait?after=9999999999999999&timeout=0", "", 408),
    ("GET /api/v2/mailbox/test/wait?expect=none", "", 409),
    ("GET /api/v2/mailbox/nobody/wait?expect=none&timeout=1ms", "", 204),
    ("GET /api/v2/mailbox/test/wait?match=(", "", 400),
    ("GET /api/v2/wait", "", 200),
    ("GET /api/v2/wait?count=2&timeout=1ms", "", 408),
    ("GET /api/v2/wait?expect=none", "", 409),
    ("GET /api/v2/wait?expect=none&timeout=1ms&match=nothing", "", 204),
    ("GET /api/v2/wait?mach=x", "", 400),
    ("GET /api/v2/messages", "", 200),
    ("GET /api/v2/messages?limit=1&after=0&before=9", "", 200),
    ("GET /api/v2/messages?q=number", "", 200),
    ("GET /api/v2/messages\nIf-None-Match: *", "", 304),
    ("GET /api/v2/messages?limit=0", "", 400),
    ("GET /api/v2/messages?mailbox=Test@example.org", "", 200),
    ("GET /api/v2/messages?mailbox=nobody&q=number", "", 200),
    ("GET /api/v2/messages?mailbox=test\nIf-None-Match: *", "", 304),
    ("GET /api/v2/messages?mailbox=a%20b", "", 400),
    ("PATCH /api/v2/messages", "{\"seen\":true}", 200),
    ("PATCH /api/v2/messages?mailbox=test&q=number", "{\"seen\":false}", 200),
    ("PATCH /api/v2/messages?prefix=x", "{\"seen\":false}", 400),
    ("POST /api/v2/messages/mark", "{\"ids\":[\"1794699770123456\",\"17\"],\"seen\":true}", 200),
    ("POST /api/v2/messages/delete", "{\"ids\":[\"17\"]}", 200),
    ("DELETE /api/v2/messages?q=nothing", "", 200),
    ("DELETE /api/v2/messages?mailbox=nobody", "", 200),
    ("DELETE /api/v2/messages", "", 400),
    ("GET /api/v2/messages/latest", "", 200),
    ("GET /api/v2/messages/latest\nIf-None-Match: *", "", 304),
    ("GET /api/v2/messages/17", "", 404),
    ("PATCH /api/v2/messages/latest", "{\"seen\":true,\"tags\":[\"run 7\"]}", 200),
    ("PATCH /api/v2/messages/17", "{\"seen\":true}", 404),
    ("DELETE /api/v2/messages/17", "", 404),
    ("GET /api/v2/tags", "", 200),
    ("PATCH /api/v2/tags/run%207", "{\"name\":\"run 8\"}", 200),
    ("PATCH /api/v2/tags/run%207", "{\"name\":\"run 9\"}", 404),
    ("PATCH /api/v2/messages/latest", "{\"tags\":[\"run 8\",\"other\"]}", 200),
    ("PATCH /api/v2/tags/other", "{\"name\":\"RUN 8\"}", 409),
    ("DELETE /api/v2/tags/run%208", "", 200),
    ("DELETE /api/v2/tags/run%208", "", 404),
    ("GET /api/v2/messages/latest/details", "", 200),
    ("GET /api/v2/messages/latest/details\nIf-None-Match: *", "", 304),
    ("GET /api/v2/messages/17/details", "", 404),
    ("GET /api/v2/messages/latest/source", "", 200),
    ("GET /api/v2/messages/latest/source\nIf-None-Match: *", "", 304),
    ("GET /api/v2/messages/latest/source?download=true", "", 200),
    ("GET /api/v2/messages/17/source", "", 404),
    ("GET /api/v2/messages/latest/body?format=html", "", 200),
    ("GET /api/v2/messages/latest/body?format=html&download=true", "", 200),
    ("GET /api/v2/messages/latest/body?format=text\nIf-None-Match: *", "", 304),
    ("GET /api/v2/messages/latest/body", "", 400),
    ("GET /api/v2/messages/17/body?format=text", "", 404),
    ("GET /api/v2/messages/latest/attachments.zip", "", 200),
    ("GET /api/v2/messages/latest/attachments.zip\nIf-None-Match: *", "", 304),
    ("GET /api/v2/messages/17/attachments.zip", "", 404),
    ("GET /api/v2/messages/latest/html", "", 200),
    ("GET /api/v2/messages/latest/html\nIf-None-Match: *", "", 304),
    ("GET /api/v2/messages/17/html", "", 404),
    ("GET /api/v2/messages/latest/links", "", 200),
    ("GET /api/v2/messages/latest/links\nIf-None-Match: *", "", 304),
    ("GET /api/v2/messages/17/links", "", 404),
    ("GET /api/v2/messages/latest/html-check", "", 200),
    ("GET /api/v2/messages/latest/html-check\nIf-None-Match: *", "", 304),
    ("GET /api/v2/messages/17/html-check", "", 404),
    ("GET /api/v2/messages/latest/codes", "", 200),
    ("GET /api/v2/messages/latest/codes\nIf-None-Match: *", "", 304),
    ("GET /api/v2/messages/17/codes", "", 404),
    ("GET /api/v2/messages/latest/unsubscribe", "", 200),
    ("GET /api/v2/messages/latest/unsubscribe\nIf-None-Match: *", "", 304),
    ("GET /api/v2/messages/17/unsubscribe", "", 404),
    ("GET /api/v2/messages/latest/parts", "", 200),
    ("GET /api/v2/messages/latest/parts\nIf-None-Match: *", "", 304),
    ("GET /api/v2/messages/17/parts", "", 404),
    ("GET /api/v2/messages/latest/parts/0", "", 200),
    ("GET /api/v2/messages/latest/parts/0\nIf-None-Match: *", "", 304),
    ("GET /api/v2/messages/latest/parts/99", "", 404),
    ("GET /api/v2/messages/latest/attachments/0", "", 200),
    ("GET /api/v2/messages/latest/attachments/0\nIf-None-Match: *", "", 304),
    ("GET /api/v2/messages/latest/attachments/9", "", 404),
    ("GET /api/v2/messages/latest/transcript", "", 200),
    ("GET /api/v2/messages/17/transcript", "", 404),
    ("GET /api/v2/search?q=number", "", 200),
    ("GET /api/v2/search?q=(", "", 400),
    ("GET /api/v2/mailbox/test/latest/transcript", "", 200),
    ("GET /api/v2/mailbox/test/17/transcript", "", 404),
    ("GET /api/v2/sessions", "", 200),
    ("GET /api/v2/sessions?refused=perhaps", "", 400),
    ("GET /api/v2/sessions/1794699770123456", "", 200),
    ("GET /api/v2/sessions/17", "", 404),
    ("GET /api/v2/mailbox/test/latest/links", "", 200),
    ("GET /api/v2/mailbox/test/latest/links\nIf-None-Match: *", "", 304),
    ("GET /api/v2/mailbox/test/17/links", "", 404),
    ("GET /api/v2/mailbox/test/latest/html-check", "", 200),
    ("GET /api/v2/mailbox/test/latest/html-check\nIf-None-Match: *", "", 304),
    ("GET /api/v2/mailbox/test/17/html-check", "", 404),
    ("GET /api/v2/mailbox/test/latest/codes", "", 200),
    ("GET /api/v2/mailbox/test/latest/codes\nIf-None-Match: *", "", 304),
    ("GET /api/v2/mailbox/test/17/codes", "", 404),
    ("GET /api/v2/mailbox/test/latest/unsubscribe", "", 200),
    ("GET /api/v2/mailbox/test/latest/unsubscribe\nIf-None-Match: *", "", 304),
    ("GET /api/v2/mailbox/test/17/unsubscribe", "", 404),
    ("GET /api/v2/mailbox/test/latest/parts", "", 200),
    ("GET /api/v2/mailbox/test/latest/parts\nIf-None-Match: *", "", 304),
    ("GET /api/v2/mailbox/test/17/parts", "", 404),
    ("GET /api/v2/mailbox/test/latest/parts/0", "", 200),
    ("GET /api/v2/mailbox/test/latest/parts/1\nIf-None-Match: *", "", 304),
    ("GET /api/v2/mailbox/test/latest/parts/99", "", 404),
    ("GET /api/v1/monitor/messages", "", 426),
    ("GET /api/v1/monitor/messages/test", "", 426),
    ("GET /api/v2/monitor/messages", "", 426),
    ("GET /api/v2/monitor/messages/test", "", 426),
    ("GET /api/v2/server", "", 200),
    ("GET /api/openapi.json", "", 200),
    ("GET /api/openapi.json\nIf-None-Match: *", "", 304),
    ("GET /api/docs", "", 200),
    ("GET /api/docs\nIf-None-Match: *", "", 304),
    ("GET /livez", "", 200),
    ("GET /readyz", "", 200),
    ("GET /serve/mailbox/test/latest", "", 200),
    ("GET /serve/mailbox/test/latest\nIf-None-Match: *", "", 304),
    ("GET /serve/mailbox/test/latest/html", "", 200),
    ("GET /serve/mailbox/test/latest/html?remote=1&scheme=dark\nIf-None-Match: *", "", 304),
    ("GET /serve/mailbox/test/latest/html?remote=2", "", 400),
    ("GET /serve/mailbox/test/latest/source", "", 200),
];

/// Checks responses against the description, and records which ones were seen.
struct ResponseChecker<'d> {
    checker: Checker<'d>,
    operations: Vec<(&'static str, &'d str, &'d Value)>,
    seen: HashSet<(String, String)>,
}

impl<'d> ResponseChecker<'d> {
    fn new(document: &'d Value) -> Self {
        Self { checker: Checker { document }, operations: operations(document), seen: HashSet::new() }
    }

    /// Returns the operation of a request. If several match, returns the one with the most literal path.
    fn operation(&self, request: &str) -> &'d Value {
        let (method, target) = request.lines().next().and_then(|line| line.split_once(' ')).expect("a request line");
        let path = target.split('?').next().expect("a path");
        let fits = |template: &str| {
            let (mut wanted, mut given) = (template.split('/'), path.split('/'));
            wanted.all(|wanted| given.next().is_some_and(|given| wanted == given || wanted.starts_with('{')))
                && (given.next().is_none() || template.ends_with("{file}"))
        };
        let named =
            self.operations.iter().filter(|(known, template, _)| known.eq_ignore_ascii_case(method) && fits(template));
        named.min_by_key(|(_, template, _)| names(template).len()).unwrap_or_else(|| panic!("{request}")).2
    }

    /// Checks a response and records it.
    fn check(&mut self, request: &str, response: &TestResponse) {
        let operation = self.operation(request);
        let status = response.status.as_str();
        let described = &operation["responses"][status];
        assert!(described.is_object(), "{request}: {status} is not described: {:?}", response.body);
        let described = self.checker.resolve(described);
        let content_type = response.header("content-type").split(';').next().unwrap_or_default();
        match described["content"].as_object() {
            Some(contents) => {
                let content = contents.get(content_type).or(contents.get("*/*"));
                let content = content.unwrap_or_else(|| panic!("{request}: {content_type} is not described"));
                self.check_body(request, &content["schema"], response);
            }
            None => assert!(response.body.is_empty(), "{request}: a body is not described"),
        }
        let headers = described["headers"].as_object().into_iter().flat_map(Map::keys);
        // `Retry-After` is not sent with every error.
        for name in headers.filter(|name| *name != "Retry-After") {
            assert!(response.headers.contains_key(name.as_str()), "{request}: {name} is missing");
        }
        let id = operation["operationId"].as_str().expect("an id");
        self.seen.insert((id.to_owned(), status.to_owned()));
    }

    fn check_body(&self, request: &str, schema: &Value, response: &TestResponse) {
        if response.header("content-type").contains("json") {
            assert!(response.body.ends_with(b"\n"), "{request}");
            assert_eq!(self.checker.problems(schema, &response.json()), [""; 0], "{request}: {:?}", response.body);
        }
    }

    /// Returns a valid request for an operation, without headers and body.
    fn request((method, path, _): (&str, &str, &Value)) -> String {
        let path = path
            .replace("{name}", "test@example.org")
            .replace("{id}", "17")
            .replace("{index}", "0")
            .replace("{tag}", "x")
            .replace("{file}", "x");
        let query = match path.rsplit('/').next() {
            Some("attachments") => "?ids=17",
            Some("wait") => "?timeout=0",
            _ => "",
        };
        format!("{} {path}{query}", method.to_uppercase())
    }

    /// Returns the described responses that were not seen.
    fn unseen(&self) -> Vec<String> {
        let mut unseen = Vec::new();
        for (_, _, operation) in &self.operations {
            let id = operation["operationId"].as_str().expect("an id");
            for status in operation["responses"].as_object().expect("responses").keys() {
                let is_seen = self.seen.contains(&(id.to_owned(), status.clone()));
                let is_exempt = status == UNTESTABLE_STATUS || (status == "503" && WITHOUT_STORE.contains(&id));
                if !is_seen && !is_exempt && operation["x-frame"].is_null() {
                    unseen.push(format!("{id} {status}"));
                }
            }
        }
        unseen
    }
}

async fn send(router: &Router, request: &str, body: impl Into<Body>) -> TestResponse {
    send_request(router, request, body.into(), Peer::default()).await
}

#[tokio::test]
async fn responses_match_description() {
    let document = document().await;
    let mut checker = ResponseChecker::new(&document);
    table_requests(&mut checker).await;
    arrivals(&mut checker).await;
    without_search(&mut checker).await;
    simulated_failures(&mut checker).await;
    runs(&mut checker).await;
    extracts(&mut checker).await;
    deletions(&mut checker).await;
    relays(&mut checker).await;
    webhooks(&mut checker).await;
    with_auth(&mut checker).await;
    files(&mut checker).await;
    request_checks(&mut checker).await;
    bodies(&mut checker).await;
    over_limits(&mut checker).await;
    with_failing_store(&mut checker).await;
    assert_eq!(checker.unseen(), [""; 0], "these responses are described, but no request here causes them");
}

async fn table_requests(checker: &mut ResponseChecker<'_>) {
    let server = server(&Config::default()).await;
    for &(request, body, status) in TABLE {
        let response = send(&server.router, request, body).await;
        assert_eq!(response.status, status, "{request}");
        checker.check(request, &response);
    }
}

fn info(config: &Config) -> ServerInfo {
    ServerInfo { about: About::new(config, None, [None, None], Timestamp::UNIX_EPOCH), ..ServerInfo::default() }
}

/// Creates a server with all features and some data.
pub(super) async fn server(config: &Config) -> TestServer {
    let search = Arc::new(Search::new(None));
    let journal = Arc::new(Journal::in_memory(1 << 20));
    journal.append(sessions::chunk(FIRST, 0, sessions::session_info(FIRST), &[(0, Side::Server, "220 mx")]));
    let transaction_chunk =
        sessions::chunk(FIRST, 1, sessions::session_info(FIRST), &[(12, Side::Client, "MAIL FROM:<>")]);
    journal.append(Chunk { transaction: Some(sessions::transaction(&[("test", FIRST)])), ..transaction_chunk });
    let store = Arc::new(MemoryStore::new(Limits::default()));
    let mailroom_settings = restante_mailroom::Settings {
        domain: "localhost".to_owned(),
        policy: config.smtp.policy.clone(),
        ..restante_mailroom::Settings::default()
    };
    let extensions = Extensions { store_observers: vec![search.clone()], ..Extensions::default() };
    let mailroom = Mailroom::new(mailroom_settings, store.clone(), extensions).with_journal(journal);
    let mailroom = Arc::new(mailroom);
    search.start(&mailroom);
    let settings = Settings {
        max_message_bytes: 1 << 16,
        services: crate::Services { search: Some(search), ..crate::Services::default() },
        ..Settings::default()
    };
    let server = TestServer { store, router: router_with_info(mailroom, settings, info(config)) };
    server.add_message(0, "test", MAIL).await;
    server
}

/// Delivers messages that are stored or discarded.
async fn arrivals(checker: &mut ResponseChecker<'_>) {
    let mut config = Config::default();
    for (stores, status) in [(true, 201), (false, 200)] {
        config.smtp.policy.default_store = stores;
        let server = server(&config).await;
        for (kind, body) in
            [("message/rfc822", MAIL), ("application/json", "{\"from\":\"ann@x.org\",\"text\":\"Hello\"}")]
        {
            let request = format!("POST /api/v2/mailbox/test@example.org\nContent-Type: {kind}");
            let response = send(&server.router, &request, body).await;
            assert_eq!(response.status, status, "{request} {:?}", response.body);
            checker.check(&request, &response);
        }
    }
}

/// The search is disabled.
async fn without_search(checker: &mut ResponseChecker<'_>) {
    let requests = [
        ("GET /api/v2/search?q=x", ""),
        ("GET /api/v2/messages?q=x", ""),
        ("PATCH /api/v2/messages?q=x", "{\"seen\":true}"),
        ("DELETE /api/v2/messages?q=x", ""),
    ];
    for (request, body) in requests {
        let response = TestServer::new().request_with(request, body, Peer::default()).await;
        response.problem(404);
        checker.check(request, &response);
    }
}

/// Reads and sets simulated failures, if they are enabled and if they are not.
async fn simulated_failures(checker: &mut ResponseChecker<'_>) {
    for (server, status) in [(chaos_server(), 200), (TestServer::new(), 404)] {
        for request in ["GET /api/v2/chaos", "PUT /api/v2/chaos\nContent-Type: application/json"] {
            let response = server.request_with(request, "{}", Peer::default()).await;
            assert_eq!(response.status, status, "{request}");
            checker.check(request, &response);
        }
    }
}

/// Leases and ends a run, and ends one that does not exist.
async fn runs(checker: &mut ResponseChecker<'_>) {
    let server = TestServer::new();
    let request = "POST /api/v2/runs\nContent-Type: application/json";
    let response = server.request_with(request, "{}", Peer::default()).await;
    checker.check(request, &response);
    for (name, status) in [(response.json()["project"].as_str().unwrap(), 200), ("current", 404)] {
        let request = format!("DELETE /api/v2/runs/{name}");
        let response = server.request(&request).await;
        assert_eq!(response.status, status, "{request}");
        checker.check(&request, &response);
    }
}

/// Requests the links, codes and unsubscribe addresses of a message that has all of them.
async fn extracts(checker: &mut ResponseChecker<'_>) {
    let server = TestServer::new();
    let mail = "Subject: Your code\r\nList-Id: <shop.example>\r\nList-Unsubscribe: <https://shop.example/u>, <mailto:u@shop.example>\r\n\
                List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n\r\nYour verification code is 482913.\r\n\
                https://shop.example/confirm\r\n";
    server.add_message(0, "shop", mail).await;
    for (path, list) in [("links", "links"), ("codes", "codes"), ("unsubscribe", "links")] {
        let request = format!("GET /api/v2/mailbox/shop/latest/{path}");
        let response = server.request(&request).await;
        assert!(
            response.json()[list].as_array().is_some_and(|found| !found.is_empty()),
            "{request} {:?}",
            response.body
        );
        checker.check(&request, &response);
    }
}

async fn deletions(checker: &mut ResponseChecker<'_>) {
    for path in [
        "v1/mailbox/test",
        "v1/mailbox/test/1794699770123456",
        "v1/mailbox/test/1794699770123456/source",
        "v2/mailboxes",
        "v2/messages/1794699770123456",
    ] {
        let server = TestServer::with_everything().await;
        let request = format!("DELETE /api/{path}");
        let response = server.request(&request).await;
        assert_eq!(response.status, 200);
        checker.check(&request, &response);
    }
}

/// Releases messages, and lists and changes the entries of the relay queue.
async fn relays(checker: &mut ResponseChecker<'_>) {
    let server = RelayServer::started().await;
    let message = server.deliver("bob@example.org", "").await;
    let in_loop = server.deliver("bob@example.org", &"X-Restante-Relay: mx\r\n".repeat(5)).await;
    let requests = [
        (format!("POST /api/v2/messages/{message}/release"), "{\"to\":[\"qa@example.org\"]}", 202),
        (format!("POST /api/v2/messages/{message}/release"), "{\"to\":[\"qa@other.org\"]}", 403),
        (format!("POST /api/v2/messages/{in_loop}/release"), "{}", 409),
        ("POST /api/v2/messages/17/release".to_owned(), "{}", 404),
        ("GET /api/v2/relay".to_owned(), "", 200),
        ("GET /api/v2/relay/entries".to_owned(), "", 200),
        ("GET /api/v2/relay/entries?state=new".to_owned(), "", 400),
        ("GET /api/v2/relay/entries/1".to_owned(), "", 200),
        ("GET /api/v2/relay/entries/17".to_owned(), "", 404),
        ("POST /api/v2/relay/cancel".to_owned(), "{\"all\":true}", 200),
        ("POST /api/v2/relay/retry".to_owned(), "{\"ids\":[\"1\"]}", 200),
    ];
    for (request, body, status) in requests {
        let response = server.post(&request, body).await;
        assert_eq!(response.status, status, "{request} {:?}", response.body);
        checker.check(&request, &response);
    }
}

/// Lists and changes the targets of webhooks and the entries of their queue.
async fn webhooks(checker: &mut ResponseChecker<'_>) {
    let server = WebhookServer::new().await;
    server.add_entry("bob", 0, "stored").await;
    let requests = [
        ("GET /api/v2/webhooks", "", 200),
        ("GET /api/v2/webhooks/entries", "", 200),
        ("GET /api/v2/webhooks/entries?state=new", "", 400),
        ("GET /api/v2/webhooks/entries/1", "", 200),
        ("GET /api/v2/webhooks/entries/17", "", 404),
        ("POST /api/v2/webhooks/cancel", "{\"all\":true}", 200),
        ("POST /api/v2/webhooks/retry", "{\"ids\":[\"1\"]}", 200),
        ("POST /api/v2/webhooks/pause", "{\"all\":true}", 200),
        ("POST /api/v2/webhooks/resume", "{\"target\":\"none\"}", 200),
    ];
    for (request, body, status) in requests {
        let response = server.post(request, body).await;
        assert_eq!(response.status, status, "{request} {:?}", response.body);
        checker.check(request, &response);
    }
}

async fn files(checker: &mut ResponseChecker<'_>) {
    let server = TestServer::with_everything().await;
    for (begin, end) in [("/mailbox/dattach/", "/"), ("/mailbox/vattach/", "/"), ("/serve/mailbox/", "/attach/")] {
        for (index, headers, status) in [(0, "", 200), (1, "\nIf-None-Match: *", 304), (9, "", 404)] {
            let request = format!("GET {begin}test/latest{end}{index}/some/file{headers}");
            let response = server.request(&request).await;
            assert_eq!(response.status, status, "{request}");
            checker.check(&request, &response);
        }
    }
    for path in ["", "/html", "/source"] {
        let request = format!("GET /serve/mailbox/test/17{path}");
        checker.check(&request, &server.request(&request).await);
    }
    let request = "GET /serve/mailbox/test/latest/source\nIf-None-Match: *";
    checker.check(request, &server.request(request).await);
}

/// Requests that are refused whatever the operation is.
async fn request_checks(checker: &mut ResponseChecker<'_>) {
    let server = TestServer::new();
    for (headers, status) in [("Host: a b", 400), ("Host: evil.example", 421), ("Sec-Fetch-Dest: script", 403)] {
        for operation in checker.operations.clone() {
            // Health checks accept any host.
            if operation.2["responses"][status.to_string()].is_null() || operation.2["x-frame"].is_object() {
                continue;
            }
            let request = format!("{}\n{headers}", ResponseChecker::request(operation));
            let response = server.request(&request).await;
            assert_eq!(response.status, status, "{request}");
            checker.check(&request, &response);
        }
    }
}

/// With authentication, every operation except the public ones requires credentials with exactly the described scopes.
async fn with_auth(checker: &mut ResponseChecker<'_>) {
    let auth_server = AuthServer::with_info(Settings::default(), info(&Config::default())).await;
    let tokens = [
        ("read", &auth_server.reader),
        ("write", &auth_server.writer),
        ("admin", &auth_server.admin),
        ("relay", &auth_server.relayer),
    ];
    for operation in checker.operations.clone() {
        let (_, _, described) = operation;
        if described["responses"]["401"].is_null() {
            continue;
        }
        let request = ResponseChecker::request(operation);
        let response = auth_server.server.request(&request).await;
        assert_eq!(response.status, 401, "{request}");
        checker.check(&request, &response);
        let required = described["security"][1]["basic"].as_array().unwrap();
        for (scope, token) in tokens {
            let is_enough = required.iter().all(|required| required == scope);
            // An accepted event stream does not end.
            if is_enough && described["x-frame"].is_object() {
                continue;
            }
            let response = auth_server.server.request(&format!("{request}\nAuthorization: Bearer {token}")).await;
            assert_eq!(response.status != 403, is_enough, "{request} with {scope}");
            checker.check(&request, &response);
        }
    }
}

/// Invalid request bodies of all kinds.
async fn bodies(checker: &mut ResponseChecker<'_>) {
    let server = server(&Config::default()).await;
    // The clock is paused, so that body timeouts pass immediately.
    tokio::time::pause();
    let has_body = |(_, _, operation): &(&str, &str, &Value)| operation["requestBody"].is_object();
    for operation in checker.operations.clone().into_iter().filter(has_body) {
        let request = ResponseChecker::request(operation);
        let json = format!("{request}\nContent-Type: application/json");
        let table = [
            (json.clone(), Body::from(" ".repeat(2 << 20)), 413),
            (format!("{request}\nContent-Type: text/html"), Body::from("{}"), 415),
            (json.clone(), Body::from("[]"), 422),
            (json, Body::from_stream(pending::<Result<Bytes, std::io::Error>>()), 408),
        ];
        for (request, body, status) in table {
            if status == 415 && operation.2["responses"]["415"].is_null() {
                continue;
            }
            let response = send(&server.router, &request, body).await;
            assert_eq!(response.status, status, "{request}");
            checker.check(&request, &response);
        }
    }
    tokio::time::resume();
}

/// A client that has reached its limit on open requests.
async fn over_limits(checker: &mut ResponseChecker<'_>) {
    let (server, proxy) = (client_limits::server(Some(1)), client_limits::peer("10.0.0.1"));
    let _open = client_limits::send_unread(&server, proxy, "192.0.2.1").await;
    for operation in checker.operations.clone() {
        let request = format!("{}\nX-Forwarded-For: 192.0.2.1", ResponseChecker::request(operation));
        let response = server.request_with(&request, Body::empty(), proxy).await;
        assert_eq!(response.status, 429, "{request}");
        checker.check(&request, &response);
    }
}

/// A store that fails.
async fn with_failing_store(checker: &mut ResponseChecker<'_>) {
    let router = router_with_store(FailingStore::with(StoreError::Unavailable));
    for operation in checker.operations.clone() {
        let (_, _, described) = operation;
        let id = described["operationId"].as_str().expect("an id");
        if WITHOUT_STORE.contains(&id) || described["x-frame"].is_object() {
            continue;
        }
        let request = format!("{}\nContent-Type: application/json", ResponseChecker::request(operation));
        // The example in the description is a valid body.
        let body = &described["requestBody"]["content"]["application/json"]["example"];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let response = send(&router, &request, body).await;
        assert_eq!(response.status, 503, "{request}");
        checker.check(&request, &response);
    }
}
