//! One message: its members, what changes it, and which clients may read it.

use serde_json::json;

use crate::support::accounts::Accounts;
use crate::support::auth_server::AuthServer;
use crate::support::messages::add_copies;
use crate::support::*;

#[tokio::test]
async fn message_has_all_members_in_order() {
    let server = TestServer::with_everything().await;
    let response = server.request(&format!("GET /api/v1/message/{}", id(0))).await;
    assert_eq!((response.status.as_u16(), response.header("cache-control")), (200, "no-store"));
    let size = "Return-Path: <a@example.org>\r\n".len() + MAIL.len();
    let expected = format!(
        r#"{{"ID":"{}","MessageID":"","From":{{"Name":"A","Address":"a@example.org"}},"To":[],"Cc":[],"Bcc":[],"#,
        id(0)
    ) + r#""ReplyTo":[],"ReturnPath":"a@example.org","Subject":"Grüße","#
        + r#""ListUnsubscribe":{"Header":"","Links":[],"Errors":"","HeaderPost":""},"#
        + r#""Date":"2026-11-14T23:42:50.123Z","Tags":[],"Username":"","#
        + r#""Text":"Grüße <\"x\"> http://example.org/?a&b","#
        + r#""HTML":"<p>Grüße</p><img src=\"cid:logo@x\"><img src=\"http://tracker.example/x\">"#
        + r#"<script>alert(1)</script>","#
        + &format!(r#""Size":{size},"#)
        + r#""Inline":[{"PartID":"1.2","FileName":"../logo\"<b>.png","ContentType":"image/png","ContentID":"logo@x","#
        + r#""Size":3,"Checksums":{"MD5":"900150983cd24fb0d6963f7d28e17f72","#
        + r#""SHA1":"a9993e364706816aba3e25717850c26c9cd0d89d","#
        + r#""SHA256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}}],"Attachments":[]}"#
        + "\n";
    assert_eq!(response.text(), expected);
    assert_eq!(server.request("GET /api/v1/message/latest").await.text(), expected);
    let head = server.request("HEAD /api/v1/message/latest").await;
    assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
}

#[tokio::test]
async fn unknown_messages_are_not_found() {
    let server = TestServer::new();
    for path in ["", "/headers", "/raw", "/part/1", "/part/1/thumb"] {
        let latest = server.request(&format!("GET /api/v1/message/latest{path}")).await;
        assert_eq!((latest.status.as_u16(), latest.text()), (404, "Message not found"), "{path}");
        for id in ["1", "x", "-1", "%00"] {
            let unknown = server.request(&format!("GET /api/v1/message/{id}{path}")).await;
            assert_eq!((unknown.status.as_u16(), unknown.text()), (404, "404 page not found"), "{id}{path}");
            assert_eq!(unknown.header("content-type"), "text/plain");
        }
    }
}

#[tokio::test]
async fn reading_marks_all_copies() {
    for (path, marks) in [
        ("/api/v1/message/latest", true),
        ("/view/latest.html", true),
        ("/view/latest.txt", true),
        ("/api/v1/message/latest/headers", false),
        ("/api/v1/message/latest/raw", false),
        ("/api/v1/message/latest/part/1.2", false),
        ("/api/v2/messages/latest", false),
    ] {
        let server = TestServer::new();
        add_copies(&server, 0, &["bob", "carol"], &[]).await;
        assert_eq!(server.request(&format!("GET {path}")).await.status, 200, "{path}");
        let entry = server.request("GET /api/v2/messages/latest").await.json();
        assert_eq!(entry["seen"], marks, "{path}");
    }
}

#[tokio::test]
async fn head_requests_mark_nothing() {
    let server = TestServer::new();
    server.add_message(0, "test", "Content-Type: text/html\r\n\r\n<p>Hi").await;
    let id = id(0);
    for path in [
        format!("/api/v1/message/{id}"),
        "/api/v1/message/latest".to_owned(),
        format!("/view/{id}.html"),
        "/view/latest.txt".to_owned(),
    ] {
        let head = server.request(&format!("HEAD {path}")).await;
        assert_eq!((head.status.as_u16(), head.text()), (200, ""), "{path}");
        let entry = server.request(&format!("GET /api/v2/messages/{id}")).await.json();
        assert_eq!(entry["seen"], false, "{path}");
    }
}

#[tokio::test]
async fn changes_are_visible_at_once() {
    let server = TestServer::new();
    let message = add_copies(&server, 0, &["bob", "carol"], &["b", "A"]).await;
    let read = async || server.request("GET /api/v1/message/latest").await.json();
    let first = read().await;
    assert_eq!(first["Tags"], json!(["A", "b"]));
    assert_eq!(first["Username"], "ci");
    let bcc = json!([{"Name": "", "Address": "bob@example.org"}, {"Name": "", "Address": "carol@example.org"}]);
    assert_eq!(first["Bcc"], bcc, "no header field names them");
    server.request_with(&format!("PATCH /api/v2/messages/{message}"), r#"{"tags":["c"]}"#, Peer::default()).await;
    let changed = read().await;
    assert_eq!(changed["Tags"], json!(["c"]));
    assert_eq!((changed["Text"].clone(), changed["ID"].clone()), (first["Text"].clone(), first["ID"].clone()));
}

#[tokio::test]
async fn limited_clients_see_their_copies_only() {
    let accounts = Accounts::new(std::time::Duration::from_hours(1));
    let (all, carol, dave) =
        (accounts.token(&[]).await, accounts.token(&["carol"]).await, accounts.token(&["dave"]).await);
    let message = add_copies(&accounts.server, 0, &["bob", "carol"], &[]).await;
    let path = format!("/api/v1/message/{message}");
    // In any order, so that no cached response is used for a client that may see less.
    for (token, bcc) in [(&all, 2), (&carol, 1), (&all, 2), (&carol, 1)] {
        let response = accounts.server.request(&format!("GET {path}\n{token}")).await;
        assert_eq!(response.json()["Bcc"].as_array().map(Vec::len), Some(bcc), "{}", response.text());
    }
    for path in ["", "/headers", "/raw", "/part/1.2", "/part/1.2/thumb"].map(|below| format!("{path}{below}")) {
        assert_eq!(accounts.server.request(&format!("GET {path}\n{dave}")).await.status, 404, "{path}");
        assert_eq!(accounts.server.request(&format!("GET {path}\n{carol}")).await.status, 200, "{path}");
        assert_eq!(accounts.server.request(&format!("GET {path}")).await.status, 401, "{path}");
    }
    for path in [format!("/view/{message}.html"), format!("/view/{message}.txt"), "/view/latest.txt".to_owned()] {
        assert_eq!(accounts.server.request(&format!("GET {path}\n{dave}")).await.status, 404, "{path}");
        assert_eq!(accounts.server.request(&format!("GET {path}\n{carol}")).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn clients_without_write_access_do_not_mark() {
    let accounts = AuthServer::new().await;
    let (server, reader) = (&accounts.server, &accounts.reader);
    let response = server.request(&format!("GET /api/v1/message/latest\nAuthorization: Bearer {reader}")).await;
    assert_eq!((response.status.as_u16(), response.json()["Subject"].as_str()), (200, Some("two")));
    let entry = server.request(&format!("GET /api/v2/messages/latest\nAuthorization: Bearer {reader}")).await;
    assert_eq!(entry.json()["seen"], false);
    let writer = &accounts.writer;
    let denied = server.request(&format!("GET /api/v1/message/latest\nAuthorization: Bearer {writer}")).await;
    assert_eq!(denied.status, 403);
}

#[tokio::test]
async fn limited_clients_mark_their_copies_only() {
    let accounts = Accounts::new(std::time::Duration::from_hours(1));
    let (all, carol) = (accounts.token(&[]).await, accounts.token(&["carol"]).await);
    let message = add_copies(&accounts.server, 0, &["bob", "carol"], &[]).await;
    accounts.server.request(&format!("GET /api/v1/message/{message}\n{carol}")).await;
    for (mailbox, is_seen) in [("bob", false), ("carol", true)] {
        let list = accounts.server.request(&format!("GET /api/v1/mailbox/{mailbox}\n{all}")).await.json();
        assert_eq!(list[0]["seen"], is_seen, "{mailbox}");
    }
}

#[tokio::test]
async fn headers_are_unfolded_and_sorted() {
    let server = TestServer::with_everything().await;
    let response = server.request("GET /api/v1/message/latest/headers").await;
    let expected = r#"{"Content-Type":["multipart/mixed; boundary=b"],"From":["A <a@example.org>"],"#.to_owned()
        + r#""Return-Path":["<a@example.org>"],"Subject":["=?utf-8?q?Gr=C3=BC=C3=9Fe?="],"#
        + r#""X-Twice":["one two","three"]}"#
        + "\n";
    assert_eq!((response.status.as_u16(), response.text()), (200, expected.as_str()));
}

#[tokio::test]
async fn source_is_exact() {
    let server = TestServer::with_everything().await;
    let source = format!("Return-Path: <a@example.org>\r\n{MAIL}");
    let shown = server.request("GET /api/v1/message/latest/raw").await;
    assert_eq!((shown.status.as_u16(), shown.text()), (200, source.as_str()));
    assert_eq!(shown.header("content-type"), "text/plain; charset=utf-8");
    assert_eq!(shown.header("content-disposition"), "");
    let saved = server.request("GET /api/v1/message/latest/raw?dl=1").await;
    assert_eq!(saved.text(), source);
    assert_eq!(saved.header("content-disposition"), format!("attachment; filename=\"{}.eml\"", id(0)));
    assert_eq!(server.request("GET /api/v1/message/latest/raw?dl=0").await.header("content-disposition"), "");
    let unmodified =
        server.request(&format!("GET /api/v1/message/latest/raw\nIf-None-Match: {}", shown.header("etag"))).await;
    assert_eq!((unmodified.status.as_u16(), unmodified.body.len()), (304, 0));
}

#[tokio::test]
async fn other_sites_cannot_read() {
    let server = TestServer::with_everything().await;
    for path in ["/api/v1/message/latest", "/api/v1/message/latest/part/1.2", "/view/latest.html", "/view/latest.txt"] {
        let site =
            "Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: cors\nSec-Fetch-Dest: empty\nOrigin: http://evil.example";
        let response = server.request(&format!("GET {path}\n{site}")).await;
        assert_eq!(response.status, 403, "{path}");
        let allowed = server.request(&format!("GET {path}")).await;
        assert_eq!(allowed.header("cross-origin-resource-policy"), "same-origin", "{path}");
        assert_eq!(allowed.header("access-control-allow-origin"), "", "{path}");
    }
}
