//! Sending over HTTP.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::support::accounts::Accounts;

async fn source(server: &TestServer, id: &str) -> String {
    server.request(&format!("GET /api/v2/messages/{id}/source")).await.text().to_owned()
}

#[tokio::test]
async fn message_is_composed_and_delivered() {
    let server = server();
    let id = server
        .send(&json!({
            "From": {"Email": "ann@example.org", "Name": "Ännchen <1>"},
            "To": [{"Email": "bob@example.org", "Name": "Example, Bob"}],
            "Cc": [{"Email": "Carl <carl@example.org>"}],
            "Bcc": ["dora@example.org"],
            "ReplyTo": [{"Email": "support@example.org", "Name": "Support"}],
            "Subject": "Grüße\r\nX-Injected: 1",
            "Text": "Hello",
            "HTML": "<img src=cid:logo>",
            "Attachments": [
                {"Content": "data:text/plain;base64,SGVs\nbG8=", "Filename": "a.txt"},
                {"Content": "iVBORw0KGgo=", "ContentID": "logo"},
                {"Content": "AAEC", "Filename": "b", "ContentType": "application/x-b"},
            ],
            "Tags": ["one", "two, three"],
            "Headers": {"X-Kind": "welcome", "Message-ID": "<1@example.org>"},
        }))
        .await;
    let message = server.request(&format!("GET /api/v2/messages/{id}")).await.json();
    assert_eq!(message["mailboxes"], json!(["bob", "carl", "dora"]));
    assert_eq!(message["tags"], json!(["one", "two", "three"]));
    let source = source(&server, &id).await;
    assert!(source.starts_with("Return-Path: <ann@example.org>\r\nReceived: from [192.0.2.7] "), "{source}");
    for line in [
        "To: \"Example, Bob\" <bob@example.org>",
        "Cc: carl@example.org",
        "Reply-To: Support <support@example.org>",
        "X-Kind: welcome",
        "Message-ID: <1@example.org>",
        "Content-Type: text/plain; charset=utf-8",
        "Content-Type: image/png",
        "Content-Disposition: inline",
        "Content-ID: <logo>",
        "Content-Type: application/x-b",
        "Content-Disposition: attachment; filename=\"b\"",
    ] {
        assert!(source.contains(&format!("\r\n{line}\r\n")), "{line}: {source}");
    }
    assert!(!source.contains("dora") && !source.contains("\r\nX-Injected"), "{source}");
}

/// The fields are exactly those of Mailpit: hidden recipients, and no field Received.
#[tokio::test]
async fn headers_of_sent_message_are_those_of_mailpit() {
    let server = server();
    let mail = json!({
        "From": {"Email": "ann@example.org"},
        "To": [{"Email": "bob@example.org"}],
        "Cc": [{"Email": "carl@example.org"}],
        "Bcc": ["dora@example.org", "BOB@example.org", "emil@example.org"],
        "Headers": {"X-Kind": "welcome"},
    });
    let headers = async |fields: Value| {
        let mut mail = mail.clone();
        mail["Headers"] = fields;
        let id = server.send(&mail).await;
        server.request(&format!("GET /api/v1/message/{id}/headers")).await.json()
    };
    let found = headers(json!({"X-Kind": "welcome"})).await;
    let names: Vec<_> = found.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = [
        "Bcc",
        "Cc",
        "Content-Transfer-Encoding",
        "Content-Type",
        "Date",
        "From",
        "Message-Id",
        "Mime-Version",
        "Return-Path",
        "Subject",
        "To",
        "X-Kind",
    ];
    assert_eq!(names, expected);
    assert_eq!(found["Bcc"], json!(["dora@example.org, emil@example.org"]));
    // A field of the message itself stays.
    assert_eq!(headers(json!({"Received": "by example.org"})).await["Received"], json!(["by example.org"]));
}

#[tokio::test]
async fn line_ends_are_kept() {
    let server = server();
    let texts = [
        "one",
        "one\n",
        "one\r\n",
        "one\ntwo",
        "one\r\ntwo",
        "one\rtwo\r",
        "\n",
        "\r\n\n\r",
        "blank \ntab\t\r\nend ",
        ".\n..\n--\n",
        "Grüße aus dem Süden\nund ein Link: https://example.org/?a=b\n",
        "ежедневно\r\nежедневно\n",
        &format!("{}\nshort", "long ".repeat(300)),
    ];
    for text in texts {
        let read = async |fields: Value| {
            let mut mail = json!({"From": {"Email": "a@b.c"}, "To": [{"Email": "x@y.z"}]});
            mail.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            let id = server.send(&mail).await;
            server.request(&format!("GET /api/v1/message/{id}")).await.json()
        };
        let file = json!([{"Content": "AAEC", "Filename": "a.bin"}]);
        let [plain, html, both, with_file] = [
            read(json!({"Text": text})).await,
            read(json!({"HTML": text})).await,
            read(json!({"Text": text, "HTML": text})).await,
            read(json!({"Text": text, "Attachments": file})).await,
        ];
        let found = [&plain["Text"], &html["HTML"], &both["Text"], &both["HTML"], &with_file["Text"]];
        assert_eq!(found.map(|found| found.as_str()), [Some(text); 5]);
    }
}

#[tokio::test]
async fn names_of_members_match_in_any_case() {
    let server = server();
    let body = r#"{"from":{"email":"a@b.c"},"to":[{"email":"x@y.z"}],"SUBJECT":"hi","HTML":null,"unknown":[1]} rest"#;
    let response = server.request_body("POST /api/v1/send", body).await;
    assert_eq!(response.status, 200, "{}", response.text());
    let id = response.json()["ID"].as_str().unwrap().to_owned();
    assert!(source(&server, &id).await.contains("\r\nSubject: hi\r\n"));
}

#[tokio::test]
async fn invalid_requests_get_the_errors_of_mailpit() {
    let server = server();
    let valid = r#""From":{"Email":"a@b.c"},"To":[{"Email":"x@y.z"}]"#;
    let table = [
        ("", "EOF"),
        ("{", "unexpected EOF"),
        ("{}", "error building message: from not set"),
        ("null", "error building message: from not set"),
        (r#"{"From":{"Email":""},"To":[{"Email":"x@y.z"}]}"#, "error building message: from not set"),
        (r#"{"From":{"Email":"a@b.c"}}"#, "error building message: no recipients (to, cc, bcc) set"),
        (r#"{"To":[{"Email":"nope"}]}"#, "invalid To address: nope"),
        (r#"{"Cc":[{"Name":"x"}]}"#, "invalid Cc address: "),
        (r#"{"Bcc":["nope"]}"#, "invalid Bcc address: nope"),
        (r#"{"ReplyTo":[{"Email":"nope"}]}"#, "invalid Reply-To address: nope"),
        (&format!(r#"{{{valid},"Headers":{{"subject":"x"}}}}"#), "cannot overwrite header: \"subject\""),
        (&format!(r#"{{{valid},"Tags":["a"],"Headers":{{"X-Tags":"x"}}}}"#), "cannot overwrite header: \"X-Tags\""),
        (
            &format!(r#"{{{valid},"Attachments":[{{"Content":"!!","Filename":"f.txt"}}]}}"#),
            "error decoding base64 attachment \"f.txt\": illegal base64 data at input byte 0",
        ),
        (
            &format!(r#"{{{valid},"Attachments":[{{"Content":"aGVsbG8","Filename":"f.txt"}}]}}"#),
            "error decoding base64 attachment \"f.txt\": illegal base64 data at input byte 4",
        ),
    ];
    for (body, expected) in table {
        let response = server.request_body("POST /api/v1/send", body.to_owned()).await;
        assert_eq!((response.status.as_u16(), response.json()), (400, json!({"Error": expected})), "{body}");
        assert!(response.header("content-type").starts_with("application/json"));
    }
    for wrong_type in [r#"{"From":"a"}"#, "[]", r#"{"Bcc":[{"Email":"x"}]}"#, r#"{"Headers":{"a":1}}"#] {
        let response = server.request_body("POST /api/v1/send", wrong_type).await;
        assert_eq!(response.status, 400, "{wrong_type}");
        let error = response.json()["Error"].as_str().expect("a text").to_owned();
        assert!(error.starts_with("json: cannot unmarshal"), "{error}");
    }
}

#[tokio::test]
async fn limits_and_policy_apply() {
    let server = server();
    let fields =
        |text: usize| json!({"From": {"Email": "a@b.c"}, "To": [{"Email": "x@y.z"}], "Text": "x".repeat(text)});
    for bytes in [110_000, 500_000] {
        let response = server.request_body("POST /api/v1/send", fields(bytes).to_string()).await;
        assert_eq!(response.status, 413, "{bytes}");
        assert!(response.json()["Error"].is_string());
    }
    let many: Vec<String> = (0..1001).map(|number| format!("user{number}@example.org")).collect();
    let response =
        server.request_body("POST /api/v1/send", json!({"From": {"Email": "a@b.c"}, "Bcc": many}).to_string()).await;
    assert_eq!(response.json(), json!({"Error": "error building message: more than 1000 recipients"}));
    assert_eq!(server.request("GET /api/v2/usage").await.json()["messages"], 0);
    assert_eq!(server.request("GET /api/v1/send").await.status, 405);
}

#[tokio::test]
async fn token_sends_only_to_its_mailboxes() {
    let accounts = Accounts::new(Duration::from_hours(1));
    let token = accounts.token(&["bob"]).await;
    let send = async |to: Value, header: &str| {
        let body = json!({"From": {"Email": "a@b.c"}, "To": to}).to_string();
        accounts.server.request_body(&format!("POST /api/v1/send\n{header}"), body).await
    };
    let (bob, carl) = (json!({"Email": "bob@example.org"}), json!({"Email": "carl@example.org"}));
    assert_eq!(send(json!([bob]), &token).await.status, 200);
    let refused = send(json!([bob, carl]), &token).await;
    assert_eq!(refused.status, 403);
    assert!(refused.json()["Error"].is_string());
    assert_eq!(send(json!([bob]), "").await.status, 401);
    // The header has hidden recipients that the token covers.
    let body = json!({"From": {"Email": "a@b.c"}, "Bcc": ["bob@example.org", "carl@example.org"]}).to_string();
    let all = accounts.token(&[]).await;
    accounts.server.request_body(&format!("POST /api/v1/send\n{all}"), body).await;
    for (token, hidden) in [(all, "bob@example.org, carl@example.org"), (token, "bob@example.org")] {
        let headers = accounts.server.request(&format!("GET /api/v1/message/latest/headers\n{token}")).await.json();
        assert_eq!(headers["Bcc"], json!([hidden]));
    }
    assert_eq!(accounts.server.store.usage().await.unwrap().messages, 2);
}
