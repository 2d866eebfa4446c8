//! The members of messages of many kinds, as Mailpit 1.30 returns them for the same messages.

use serde_json::{Value, json};

use crate::support::*;

/// A message, and the members of the response that are checked.
struct Row {
    mail: &'static str,
    expected: Value,
}

fn row(mail: &'static str, expected: Value) -> Row {
    Row { mail, expected }
}

/// Returns the response about a message.
async fn message(mail: &str) -> Value {
    let server = TestServer::new();
    server.add_message(0, "test", mail).await;
    server.request("GET /api/v1/message/latest").await.json()
}

async fn check(rows: Vec<Row>) {
    for Row { mail, expected } in rows {
        let message = message(mail).await;
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&message[name], value, "{name} of {mail}");
        }
    }
}

/// Returns the ids, names, types and Content-IDs of files.
fn files(list: &Value) -> Value {
    let file =
        |file: &Value| json!([file["PartID"], file["FileName"], file["ContentType"], file["ContentID"], file["Size"]]);
    list.as_array().unwrap().iter().map(file).collect()
}

#[tokio::test]
async fn addresses() {
    let address = |name: &str, address: &str| json!({"Name": name, "Address": address});
    check(vec![
        row(
            "From: Jane <jane@x.org>\r\nTo: a@x, B <b@x>\r\nCc: c@x\r\nReply-To: =?utf-8?q?J=C3=B6?= <j@x>\r\n\r\n",
            json!({
                "From": address("Jane", "jane@x.org"),
                "To": [address("", "a@x"), address("B", "b@x")],
                "Cc": [address("", "c@x")],
                "Bcc": [],
                "ReplyTo": [address("Jö", "j@x")],
            }),
        ),
        row(
            "Subject: x\r\n\r\n",
            json!({"From": address("", ""), "To": [], "Cc": [], "ReplyTo": [], "ReturnPath": "a@example.org"}),
        ),
        row("From: nobody\r\nTo: undisclosed-recipients:;\r\n\r\n", json!({"From": address("nobody", ""), "To": []})),
        row(
            "To: Team: a@x, b@x;\r\nBcc: hidden@x\r\n\r\n",
            json!({
                "To": [address("", "a@x"), address("", "b@x")],
                "Bcc": [address("", "hidden@x")],
            }),
        ),
    ])
    .await;
}

#[tokio::test]
async fn header_fields() {
    check(vec![
        row("Message-ID: <1@x>\r\nSubject: =?iso-2022-jp?B?GyRCRnxLXBsoQg==?=\r\nDate: Sat, 14 Nov 2026 09:30:00 +0100\r\n\r\n", json!({
            "MessageID": "1@x",
            "Subject": "日本",
            "Date": "2026-11-14T09:30:00+01:00",
        })),
        row("Date: yesterday\r\n\r\n", json!({"MessageID": "", "Subject": "", "Date": "2026-11-14T23:42:50.123Z"})),
        row("List-Unsubscribe: <https://x.org/u>,\r\n <mailto:u@x.org>\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n\r\n", json!({
            "ListUnsubscribe": {
                "Header": "<https://x.org/u>, <mailto:u@x.org>",
                "Links": ["https://x.org/u", "mailto:u@x.org"],
                "Errors": "",
                "HeaderPost": "List-Unsubscribe=One-Click",
            },
        })),
        row("List-Unsubscribe: x\r\n\r\n", json!({
            "ListUnsubscribe": {"Header": "x", "Links": [], "Errors": "\"x\" no valid unsubscribe links found", "HeaderPost": ""},
        })),
        row("List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n\r\n", json!({
            "ListUnsubscribe": {"Header": "", "Links": [], "Errors": "", "HeaderPost": ""},
        })),
    ])
    .await;
}

#[tokio::test]
async fn texts() {
    check(vec![
        row("\r\none\r\ntwo\r\n", json!({"Text": "one\r\ntwo\r\n", "HTML": ""})),
        row("Content-Type: text/plain; charset=koi8-r\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=EB=CF=D4=\r\n!\r\n",
            json!({"Text": "Кот!\r\n"})),
        row("Content-Type: text/plain; charset=iso-2022-jp\r\n\r\n\x1b$BF|K\\\x1b(B\r\n", json!({"Text": "日本\r\n"})),
        row("Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\nR3LDvMOfZQ==\r\n", json!({"Text": "Grüße"})),
        row("Content-Type: text/plain; format=flowed\r\n\r\nflows \r\non\r\n", json!({"Text": "flows \r\non\r\n"})),
        row("Content-Type: text/html\r\n\r\n<h1>Hi</h1><p>a <a href=\"http://x\">b</a></p>\r\n", json!({
            "Text": "**\nHi\n**\n\na b ( http://x )",
            "HTML": "<h1>Hi</h1><p>a <a href=\"http://x\">b</a></p>\r\n",
        })),
        row("Content-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\none\r\n--b\r\n\
             Content-Type: text/html\r\n\r\n<p>one\r\n--b--\r\n", json!({"Text": "one", "HTML": "<p>one"})),
        row("Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\none\r\n--b\r\n\
             Content-Type: text/plain; name=a.log\r\n\r\ntwo\r\n--b--\r\n", json!({"Text": "one\n--\ntwo", "Inline": [], "Attachments": []})),
        row("Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nunclosed\r\n", json!({"Text": "unclosed\r\n"})),
        row("Content-Type: multipart/signed; boundary=b; protocol=\"application/pgp-signature\"\r\n\r\n--b\r\n\
             Content-Type: text/plain\r\n\r\nsigned\r\n--b\r\nContent-Type: application/pgp-signature\r\n\r\nx\r\n--b--\r\n",
            json!({"Text": "signed", "Inline": [], "Attachments": []})),
    ])
    .await;
}

#[tokio::test]
async fn files_of_messages() {
    let table = [
        (
            "Content-Type: application/pdf\r\nContent-Disposition: attachment; filename=\"scan 1.pdf\"\r\n\r\nabc",
            json!([]),
            json!([["0", "scan 1.pdf", "application/pdf", "", 3]]),
        ),
        (
            "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: multipart/related; boundary=c\r\n\r\n\
             --c\r\nContent-Type: text/html\r\n\r\n<img src=\"cid:1\">\r\n--c\r\nContent-Type: image/png\r\nContent-ID: <1>\r\n\r\nx\r\n\
             --c--\r\n--b\r\nContent-Type: text/csv; charset=iso-8859-1\r\nContent-Disposition: attachment; filename*=utf-8''%E2%82%AC.csv\r\n\
             Content-Transfer-Encoding: quoted-printable\r\n\r\n=FC\r\n--b--\r\n",
            json!([["1.2", "1", "image/png", "1", 1]]),
            json!([["2", "€.csv", "text/csv", "", 2]]),
        ),
        (
            "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: message/rfc822\r\n\
             Content-Disposition: attachment; filename=a.eml\r\n\r\nSubject: inner\r\n\r\nx\r\n--b\r\n\
             Content-Type: message/rfc822\r\n\r\nSubject: nameless\r\n\r\nx\r\n--b--\r\n",
            json!([]),
            json!([["1", "a.eml", "message/rfc822", "", 19]]),
        ),
        (
            "Content-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nx\r\n--b\r\n\
             Content-Type: text/calendar; method=REQUEST; name=invite.ics\r\n\r\nBEGIN:VCALENDAR\r\n--b--\r\n",
            json!([["2", "invite.ics", "text/calendar", "", 15]]),
            json!([]),
        ),
        (
            "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n--b\r\nContent-Type: image/png; name=../../a.png\r\n\
             Content-Disposition: inline\r\n\r\nx\r\n--b\r\nContent-Type: application/octet-stream\r\n\
             Content-Disposition: inline; filename=b\r\n\r\nx\r\n--b--\r\n",
            json!([["2", "../../a.png", "image/png", "", 1], ["3", "b", "application/octet-stream", "", 1]]),
            json!([["3", "b", "application/octet-stream", "", 1]]),
        ),
    ];
    for (mail, inline, attachments) in table {
        let message = message(mail).await;
        assert_eq!((files(&message["Inline"]), files(&message["Attachments"])), (inline, attachments), "{mail}");
    }
}
