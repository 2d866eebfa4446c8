//! Search with the real program: in memory, in a data directory, after a restart, after a crash, and with a damaged index.

use std::time::Instant;

use serde_json::{Value, json};

use crate::support::disk::Disk;
use crate::support::exposition::Exposition;
use crate::support::{Server, TEST_TIMEOUT};

fn send(server: &Server, mailbox: &str, subject: &str, text: &str) {
    let mail = format!("From: Ann <ann@x.org>\r\nSubject: {subject}\r\nX-Run: {text}\r\n\r\n{text}\r\n");
    server.deliver(&format!("{mailbox}@x.org"), mail.as_bytes());
}

/// Searches until the index is complete, and returns the response.
fn search(server: &Server, query: &str) -> Value {
    let deadline = Instant::now() + TEST_TIMEOUT;
    loop {
        let response = server.json(&format!("/api/v2/search?{query}"));
        if response["complete"] == true || Instant::now() > deadline {
            return response;
        }
    }
}

/// Returns the results as `mailbox: subject`.
fn found(server: &Server, query: &str) -> Vec<String> {
    let response = search(server, query);
    let messages = response["messages"].as_array().unwrap_or_else(|| panic!("{response}"));
    messages.iter().map(|message| format!("{}: {}", text(&message["mailbox"]), text(&message["subject"]))).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// Returns the status and the text of an error response.
fn refused(server: &Server, query: &str) -> (u16, String) {
    let problem = problem(server, query);
    let status = problem["status"].as_u64().and_then(|status| status.try_into().ok());
    (status.unwrap(), text(&problem["detail"]).to_owned())
}

/// Returns the problem document of an invalid query.
fn problem(server: &Server, query: &str) -> Value {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut response = agent.get(server.url(&format!("/api/v2/search?{query}"))).call().unwrap();
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    let problem: Value = serde_json::from_str(&response.body_mut().read_to_string().unwrap()).unwrap();
    assert_eq!(problem["status"], response.status().as_u16());
    problem
}

#[test]
fn finds_messages_in_memory_by_content() {
    let server = Server::start(&[]);
    send(&server, "ann", "Welcome", "Your code is 424242, na\u{ef}ve one");
    send(&server, "bob", "Invoice", "Pay the code");
    let table: &[(&str, &[&str])] = &[
        ("q=code", &["bob: Invoice", "ann: Welcome"]),
        ("q=", &["bob: Invoice", "ann: Welcome"]),
        ("", &["bob: Invoice", "ann: Welcome"]),
        ("q=CODE%20NAIVE", &["ann: Welcome"]),
        ("q=code%20-invoice", &["ann: Welcome"]),
        ("q=%22your%20code%22%20or%20subject:invoice", &["bob: Invoice", "ann: Welcome"]),
        ("q=from:ann@x.org%20header:X-Run=pay", &["bob: Invoice"]),
        ("q=code&mailbox=Ann%2Btag@x.org", &["ann: Welcome"]),
        ("q=code&limit=1", &["bob: Invoice"]),
        ("q=has:attachment%20or%20is:seen", &[]),
        ("q=nothing", &[]),
    ];
    for (query, expected) in table {
        assert_eq!(found(&server, query), *expected, "{query}");
    }
}

#[test]
fn response_has_all_fields() {
    let server = Server::start(&[]);
    send(&server, "ann", "Welcome", "Your code is 424242.");
    let mut response = search(&server, "q=424242%20code");
    let record = server.json("/api/v1/mailbox/ann")[0].clone();
    let snippet = response["messages"][0].as_object_mut().unwrap().remove("snippet").unwrap();
    assert_eq!(response, json!({"messages": [record], "next": null, "complete": true}));
    let part = |text: &str, hit: bool| json!({"text": text, "hit": hit});
    let expected =
        [part("Your ", false), part("code", true), part(" is ", false), part("424242", true), part(".", false)];
    assert_eq!(snippet, json!(expected));
    let body = String::from_utf8(server.bytes("/api/v2/search?q=nothing")).unwrap();
    assert_eq!(body, "{\"messages\":[],\"next\":null,\"complete\":true}\n");

    let page = Exposition::parse(&String::from_utf8(server.bytes("/metrics")).unwrap());
    assert!((page.value("restante_search_indexed") - 1.0).abs() < f64::EPSILON);
    assert!(page.value("restante_search_seconds_count") >= 2.0);
}

#[test]
fn pages_are_linked_by_cursors() {
    let server = Server::start(&[]);
    for number in 0..5 {
        send(&server, "ann", &number.to_string(), "word");
    }
    let (mut subjects, mut query) = (Vec::new(), "q=word&limit=2".to_owned());
    loop {
        let page = search(&server, &query);
        let messages = page["messages"].as_array().unwrap();
        subjects.extend(messages.iter().map(|message| text(&message["subject"]).to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        query = format!("q=word&limit=2&before={next}");
    }
    assert_eq!(subjects, ["4", "3", "2", "1", "0"]);
}

#[test]
fn rejects_invalid_queries() {
    let server = Server::start(&[]);
    let table = [
        ("q=(a", 400, "At character 1 of the query: this parenthesis is never closed."),
        ("q=a%20before:soon", 400, "At character 10 of the query: before: must be followed by a date"),
        ("q=a&q=b", 400, "The parameter q is given twice."),
        ("q=a&limit=0", 400, "The parameter limit must be at least 1."),
        ("q=a&before=x", 400, "The parameter before must be a whole number."),
        ("q=a&mailbox=@", 400, "This is not a mailbox name"),
    ];
    for (query, status, detail) in table {
        let (got, sentence) = refused(&server, query);
        assert!(got == status && sentence.starts_with(detail), "{query}: {got} {sentence}");
    }
    // A program that shows the query can mark the position of the error.
    assert_eq!(problem(&server, "q=a%20before:soon")["position"], 9);
    assert_eq!(problem(&server, "q=a&limit=0")["position"], Value::Null);
    let without = Server::start(&["--search-enabled=false"]);
    assert_eq!(refused(&without, "q=a").0, 404);
}

#[test]
fn deletions_and_marks_are_reflected() {
    let server = Server::start(&[]);
    send(&server, "ann", "one", "word");
    send(&server, "ann", "two", "word");
    assert_eq!(found(&server, "q=word").len(), 2);
    let [one, two] = <[String; 2]>::try_from(server.ids("ann")).unwrap();
    ureq::patch(server.url(&format!("/api/v1/mailbox/ann/{two}"))).send("{\"seen\":true}").unwrap();
    assert_eq!(found(&server, "q=is:seen"), ["ann: two"]);
    ureq::delete(server.url(&format!("/api/v1/mailbox/ann/{one}"))).call().unwrap();
    assert_eq!(found(&server, "q=word"), ["ann: two"]);
    ureq::delete(server.url("/api/v1/mailbox/ann")).call().unwrap();
    assert_eq!(found(&server, "q=word"), <[&str; 0]>::default());
}

#[test]
fn index_survives_restarts_and_is_rebuilt_if_damaged() {
    let disk = Disk::new("search");
    let file = disk.data().join("search.db");
    let mut server = disk.server(&[]);
    send(&server, "ann", "one", "word");
    assert_eq!(found(&server, "q=word"), ["ann: one"]);
    server.signal("TERM");
    assert!(server.wait().success());

    let mut server = disk.server(&[]);
    assert_eq!(found(&server, "q=word"), ["ann: one"]);
    send(&server, "ann", "two", "word");
    server.kill();

    let mut server = disk.server(&[]);
    assert_eq!(found(&server, "q=word"), ["ann: two", "ann: one"], "after a crash");
    server.signal("TERM");
    assert!(server.wait().success());

    std::fs::write(&file, "this is not an index".repeat(1000)).unwrap();
    let mut server = disk.server(&[]);
    assert_eq!(found(&server, "q=word"), ["ann: two", "ann: one"], "with a damaged file");
    server.signal("TERM");
    assert!(server.wait().success());
    let log = server.full_log();
    assert!(log.contains("cannot use the search index, rebuilding it"), "{log}");

    let mut server = disk.server(&["--search-enabled=false"]);
    assert!(!file.exists(), "the outdated index still exists");
    server.signal("TERM");
    assert!(server.wait().success());
    assert_eq!(found(&disk.server(&[]), "q=word"), ["ann: two", "ann: one"], "after the index was rebuilt");
}
