//! `POST /api/v1/send`: the message that is stored, the limit on its size, and its credentials.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use super::{Checks, PIXEL, get, run, status};
use crate::mailpit::differential::answer::{Request, send as request};
use crate::mailpit::differential::side::Side;
use crate::mailpit::server::Server;

#[test]
fn messages_are_sent_as_in_mailpit() {
    run("send", |checks| {
        message(checks);
        size(checks);
        credentials(checks);
    });
}

fn message(checks: &mut Checks) {
    let side = Side::new(&checks.program, &[], &[]);
    let body = json!({
        "From": {"Email": "ann@one.test", "Name": "Ann Field"},
        "To": [{"Email": "bob@two.test", "Name": "Bob Stone"}],
        "Cc": [{"Email": "cid@two.test", "Name": "Cid 1"}, {"Email": "dan@two.test", "Name": "Dan 2"}],
        "Bcc": ["eve@two.test"],
        "ReplyTo": [{"Email": "desk@one.test", "Name": "Desk"}],
        "Subject": "Sent by a request",
        "Text": "The text of the message",
        "HTML": "<p style=\"color: green\">The <b>HTML</b> of it</p>",
        "Headers": {"X-Build": "4.5.6"},
        "Tags": ["Label 1", "Label 2"],
        "Attachments": [
            {"Filename": "My notes.txt", "Content": BASE64.encode("Notes in a file")},
            {"Filename": "pixel.png", "Content": PIXEL, "ContentID": "pixel", "ContentType": "special/kind"},
        ],
    });
    let answer = request(&side, &Request::with_body("POST", "/api/v1/send", body.to_string()));
    checks.equal("status", answer["status"].clone(), 200);
    let id = answer["body"]["ID"].as_str().unwrap_or_default();
    let message = get(&side, &format!("/api/v1/message/{id}"));
    for (field, value) in [
        ("/Subject", json!("Sent by a request")),
        ("/Text", json!("The text of the message")),
        ("/HTML", json!("<p style=\"color: green\">The <b>HTML</b> of it</p>")),
        ("/From", json!({"Name": "Ann Field", "Address": "ann@one.test"})),
        ("/To", json!([{"Name": "Bob Stone", "Address": "bob@two.test"}])),
        ("/Cc", json!([{"Name": "Cid 1", "Address": "cid@two.test"}, {"Name": "Dan 2", "Address": "dan@two.test"}])),
        ("/Bcc", json!([{"Name": "", "Address": "eve@two.test"}])),
        ("/ReplyTo", json!([{"Name": "Desk", "Address": "desk@one.test"}])),
        ("/Tags", json!(["Label 1", "Label 2"])),
        ("/Attachments/0/FileName", json!("My notes.txt")),
        ("/Attachments/0/ContentType", json!("text/plain")),
        ("/Attachments/1", Value::Null),
        ("/Inline/0/FileName", json!("pixel.png")),
        ("/Inline/0/ContentType", json!("special/kind")),
        ("/Inline/0/ContentID", json!("pixel")),
        ("/Inline/1", Value::Null),
    ] {
        checks.equal(field, message.pointer(field).cloned(), value);
    }
    let headers = get(&side, &format!("/api/v1/message/{id}/headers"));
    checks.equal("X-Build", headers["X-Build"].clone(), json!(["4.5.6"]));
    let part = message["Attachments"][0]["PartID"].as_str().unwrap_or_default();
    checks.equal("content of the file", get(&side, &format!("/api/v1/message/{id}/part/{part}")), "Notes in a file");
}

/// Returns a message with a text of this length.
fn message_of(length: usize) -> String {
    let message = json!({
        "From": {"Email": "ann@one.test"},
        "To": [{"Email": "bob@two.test"}],
        "Subject": "Sent",
        "Text": "X".repeat(length),
    });
    message.to_string()
}

fn size(checks: &mut Checks) {
    for (limit, large) in [("1", 413), ("0", 200)] {
        let server = Server::start(&checks.program, &[("MP_MAX_MESSAGE_SIZE", limit)]);
        for (length, code) in [(12, 200), (2 << 20, large)] {
            let what = format!("{length} characters, MP_MAX_MESSAGE_SIZE={limit}");
            checks.equal(what, post(&server, "", &message_of(length)), code);
        }
    }
}

const UI: &str = "ann:secret";
const SEND: &str = "app:hidden";

/// Variables, and the status of the answer to each of these: without credentials, with those of `MP_SEND_API_AUTH`, with those of
/// `MP_UI_AUTH`, and with wrong ones. The second list is that of Restante.
type Case = (&'static [(&'static str, &'static str)], [u16; 4], [u16; 4]);
const CASES: [Case; 3] = [
    (&[("MP_UI_AUTH", UI), ("MP_SEND_API_AUTH_ACCEPT_ANY", "true")], [200, 200, 200, 200], [401, 401, 200, 401]),
    (&[("MP_UI_AUTH", UI), ("MP_SEND_API_AUTH", SEND)], [401, 200, 401, 401], [401, 401, 200, 401]),
    (&[("MP_UI_AUTH", UI)], [401, 401, 200, 401], [401, 401, 200, 401]),
];
const LOGINS: [&str; 4] = ["", SEND, UI, "app:wrong"];

fn credentials(checks: &mut Checks) {
    for (variables, mailpit, restante) in CASES {
        let server = Server::start(&checks.program, variables);
        for ((login, mailpit), restante) in LOGINS.into_iter().zip(mailpit).zip(restante) {
            let what = format!("send with {login:?} and {variables:?}");
            let code = post(&server, login, &message_of(12));
            if mailpit == restante {
                checks.equal(what, code, mailpit);
            } else {
                let reason = "POST /api/v1/send accepts the credentials of the web interface";
                checks.differs(what, code, [mailpit, restante], reason);
            }
        }
        // Other requests always need the credentials of the web interface.
        for (login, code) in LOGINS.into_iter().zip([401, 401, 200, 401]) {
            let what = format!("list with {login:?} and {variables:?}");
            checks.equal(what, status(&server, "GET /api/v1/messages", &headers(login), ""), code);
        }
    }
}

fn post(server: &Server, login: &str, message: &str) -> u16 {
    status(server, "POST /api/v1/send", &headers(login), message)
}

/// Returns the header lines of a request with this name and password.
fn headers(login: &str) -> Vec<String> {
    let login = (!login.is_empty()).then(|| format!("Authorization: Basic {}", BASE64.encode(login)));
    ["Host: localhost".to_owned(), "Content-Type: application/json".to_owned()].into_iter().chain(login).collect()
}
