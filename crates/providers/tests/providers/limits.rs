//! Hostile requests to the APIs of mail providers: they are refused in the form of the provider, and nothing is stored.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::conversations::server;
use crate::support::*;

/// The routes that send messages with JSON.
const ROUTES: [&str; 19] = [
    "/v2/email/outbound-emails",
    "/v2/email/outbound-bulk-emails",
    "/emails",
    "/emails/batch",
    "/v3/mail/send",
    "/email",
    "/email/batch",
    "/v3/smtp/email",
    "/v3.1/send",
    "/v1/email",
    "/v1/bulk-email",
    "/api/1.0/messages/send",
    "/api/send",
    "/api/batch",
    "/emails:send",
    "/api/v1/transmissions",
    "/transactional-email/v1alpha1/regions/fr-par/emails",
    "/v1.0/me/sendMail",
    "/gmail/v1/users/me/messages/send",
];
const LINE_BREAK: &str = "x\r\nBcc: mallory@example.org";

async fn stored(server: &TestServer) -> usize {
    server.request("GET /api/v2/messages").await.json()["messages"].as_array().map_or(0, Vec::len)
}

/// Returns the requests with JSON in the conversations of a provider.
fn requests_of<'c>(conversations: &'c str) -> Vec<(&'c str, Value)> {
    let steps = conversations.split("\n---- request\n").flat_map(|part| part.split("\n==== ")).map(|part| {
        let part = part.strip_prefix("==== ").unwrap_or(part);
        if part.starts_with("POST ") { part } else { part.split_once('\n').map_or("", |(_, rest)| rest) }
    });
    let parse = |step: &'c str| {
        let (head, body) = step.split_once("\n\n")?;
        let body = serde_json::Deserializer::from_str(body).into_iter::<Value>().next()?.ok()?;
        let is_request = head.starts_with("POST ") && head.lines().skip(1).all(|line| line.contains(": "));
        (is_request && (body.is_object() || body.is_array())).then_some((head, body))
    };
    steps.filter_map(parse).collect()
}

/// Returns the paths of all texts in a value.
fn texts_of(value: &Value, path: &str, texts: &mut Vec<String>) {
    match value {
        Value::String(_) => texts.push(path.to_owned()),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| texts_of(item, &format!("{path}/{index}"), texts));
        }
        Value::Object(members) => {
            let escape = |name: &str| name.replace('~', "~0").replace('/', "~1");
            members.iter().for_each(|(name, item)| texts_of(item, &format!("{path}/{}", escape(name)), texts));
        }
        _ => {}
    }
}

/// Every text of a request is replaced by one with a line break. No message gets another header field or recipient by it.
#[tokio::test]
async fn line_breaks_add_no_header_fields() {
    let mut count = 0;
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/providers/conversations")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let server = server();
        for (head, body) in requests_of(&text).into_iter().take(6) {
            let mut texts = Vec::new();
            texts_of(&body, "", &mut texts);
            // These are complete messages.
            texts.retain(|path| !path.ends_with("/raw_message") && !path.ends_with("/email_rfc822"));
            for changed in texts {
                let mut body = body.clone();
                *body.pointer_mut(&changed).unwrap() = LINE_BREAK.into();
                let response = server.request_with(head, body.to_string(), Peer::default()).await;
                assert!(!response.status.is_server_error(), "{head} {body}: {}", response.text());
                count += 1;
            }
        }
        assert_eq!(server.request("GET /api/v1/mailbox/mallory").await.json(), Value::Array(vec![]), "{path:?}");
        for message in server.request("GET /api/v2/messages?limit=1000").await.json()["messages"].as_array().unwrap() {
            let id = message["id"].as_str().unwrap();
            let source = server.request(&format!("GET /api/v2/messages/{id}/source")).await;
            let text = String::from_utf8_lossy(&source.body).into_owned();
            let header = text.split("\r\n\r\n").next().unwrap_or_default();
            assert!(!header.lines().any(|line| line.starts_with("Bcc")), "{path:?}: {header}");
        }
    }
    assert!(count > 500, "only {count} requests");
}

#[tokio::test]
async fn deep_and_huge_values_are_refused() {
    let deep = "[".repeat(100_000);
    let list = |item: &str, count: usize| format!("[{}]", vec![item; count].join(","));
    let (person, entry) = (r#"{"email":"bob@example.org"}"#, r#""bob@example.org""#);
    let many = list(person, 100_000);
    for route in ROUTES {
        let server = server();
        let bodies = [
            deep.clone(),
            format!("{{\"to\":{deep}}}"),
            "{\"a\":".repeat(50_000),
            many.clone(),
            format!("{{\"to\":{many},\"recipients\":{many},\"personalizations\":{many}}}"),
            format!("{{\"to\":{0},\"To\":{0},\"Messages\":{0}}}", list(entry, 50_000)),
            format!(
                "{{\"headers\":{{{}}}}}",
                (0..50_000).map(|n| format!("\"X-{n}\":\"\"")).collect::<Vec<_>>().join(",")
            ),
            String::from_utf8_lossy(&[0xff; 1000]).into_owned(),
        ];
        for body in bodies {
            let response = server.request_with(&format!("POST {route}"), body, Peer::default()).await;
            assert!(response.status.is_client_error(), "{route} {}: {}", response.status, response.text());
        }
        assert_eq!(stored(&server).await, 0, "{route}");
    }
}

/// A request that would make messages of more than its limit together is refused, and stores nothing.
#[tokio::test]
async fn copies_for_many_recipients_are_limited() {
    let server = server();
    let personalizations = |count: usize, data: &str| {
        let one = format!("{{\"to\":[{{\"email\":\"bob@example.org\"}}],\"dynamic_template_data\":{data}}}");
        vec![one; count].join(",")
    };
    let send = async |rest: &str, personalizations: String| {
        let body = format!(
            "{{\"from\":{{\"email\":\"ann@example.org\"}},\"subject\":\"Hi\",\"personalizations\":[{personalizations}],{rest}}}"
        );
        server.request_with("POST /v3/mail/send", body, Peer::default()).await.status.as_u16()
    };
    let content = format!("\"content\":[{{\"type\":\"text/plain\",\"value\":\"{}\"}}]", "x".repeat(500_000));
    assert_eq!(send(&content, personalizations(1000, "{}")).await, 413);
    assert_eq!(send(&content, personalizations(10_000, "{}")).await, 400);
    // Files share their memory until messages are composed.
    let file = format!("\"attachments\":[{{\"filename\":\"a\",\"content\":\"{}\"}}]", "A".repeat(900_000));
    let text = "\"content\":[{\"type\":\"text/plain\",\"value\":\"x\"}]";
    assert_eq!(send(&format!("{text},{file}"), personalizations(1000, "{}")).await, 413);

    let template = "{\"name\":\"t\",\"generation\":\"dynamic\"}";
    let created = server.request_with("POST /v3/templates", template, Peer::default()).await.json();
    let id = created["id"].as_str().unwrap();
    let html = format!("{{{{#each a}}}}{}{{{{/each}}}}", "x".repeat(100_000));
    let version = serde_json::json!({"name": "v", "subject": "Hi", "html_content": html, "active": 1});
    let stored_version =
        server.request_with(&format!("POST /v3/templates/{id}/versions"), version.to_string(), Peer::default()).await;
    assert_eq!(stored_version.status, 201, "{}", stored_version.text());
    let data = format!("{{\"a\":[{}]}}", ["1"; 20].join(","));
    let with_template = format!("\"template_id\":\"{id}\"");
    assert_eq!(send(&with_template, personalizations(1, &data)).await, 413, "a message of 2 MB");
    assert_eq!(stored(&server).await, 0);
}

#[tokio::test]
async fn templates_are_limited() {
    let server = server();
    let create = async |project: &str, name: &str, html: &str| {
        let body = serde_json::json!({"templateName": name, "subject": "x", "htmlContent": html}).to_string();
        let request = format!("POST {project}/v3/smtp/templates");
        server.request_with(&request, body, Peer::default()).await.status.as_u16()
    };
    assert_eq!(create("", "large", &"x".repeat(600_000)).await, 413);
    assert_eq!(create("", &"x".repeat(2_000), "x").await, 413, "a long name");
    let long = "x".repeat(500_000);
    let mut created = 0;
    while create("/p/one", "name", &long).await == 201 {
        created += 1;
        assert!(created < 100, "no limit");
    }
    assert_eq!(create("/p/two", "other", "x").await, 201, "another project");
}

#[tokio::test]
async fn messages_of_a_request_have_different_ids() {
    let server = server();
    let message = serde_json::json!({"from": "ann@example.org", "to": "bob@example.org", "subject": "Hi", "text": "x"});
    let body = Value::from(vec![message.clone(), message]);
    let response = server.request_with("POST /emails/batch", body.to_string(), Peer::default()).await.json();
    assert_ne!(response["data"][0]["id"], response["data"][1]["id"]);
    let mut ids = std::collections::HashSet::new();
    for entry in server.request("GET /api/v1/mailbox/bob").await.json().as_array().unwrap() {
        let path = format!("GET /api/v1/mailbox/bob/{}", entry["id"].as_str().unwrap());
        let message = server.request(&path).await.json();
        assert!(ids.insert(message["header"]["Message-Id"].to_string()), "{message}");
    }
    assert_eq!(ids.len(), 2);
}

/// One message of a request is too large for its mailbox: none is stored.
#[tokio::test]
async fn messages_of_a_request_are_stored_together() {
    let server = server();
    let message = |to: &str, size: usize| serde_json::json!({"from": "ann@example.org", "to": to, "subject": "Hi", "text": "x".repeat(size)});
    let body = serde_json::json!([message("bob@example.org", 1), message("carol@example.org", 1_500_000)]);
    let response = server.request_with("POST /emails/batch", body.to_string(), Peer::default()).await;
    assert!(response.status.is_client_error(), "{}", response.status);
    assert_eq!(stored(&server).await, 0);
}
