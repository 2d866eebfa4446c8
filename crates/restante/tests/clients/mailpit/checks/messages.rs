//! The list of messages, the fields of a message, its parts, and read marks.

use serde_json::{Value, json};

use super::{Checks, PIXEL, get, run, totals};
use crate::mailpit::differential::answer::{Request, send};
use crate::mailpit::differential::mails::{Mail, multipart};
use crate::mailpit::differential::side::Side;

#[test]
fn messages_are_read_as_in_mailpit() {
    run("messages", |checks| {
        read_marks(checks);
        stored_message(checks);
        parts(checks);
        unsubscribe(checks);
    });
}

fn mails(count: usize) -> Vec<Mail> {
    let text =
        |number| format!("From: Ann <ann@one.test>\nTo: bob@two.test\nSubject: Number {number}\n\nText {number}\n");
    (1..=count).map(|number| Mail::new(&format!("mail-{number}"), &text(number)).to(&["bob@two.test"])).collect()
}

/// Changes messages. Returns the status of the answer.
fn change(side: &Side, method: &'static str, body: &Value) -> Value {
    send(side, &Request::with_body(method, "/api/v1/messages", body.to_string()))["status"].take()
}

fn read_marks(checks: &mut Checks) {
    let side = Side::new(&checks.program, &[], &[]);
    checks.equal("total and unread without messages", totals(&side), json!([0, 0]));

    let side = Side::new(&checks.program, &[], &mails(100));
    checks.equal("total and unread", totals(&side), json!([100, 100]));
    for number in 1..=10 {
        for end in ["", "/raw", "/headers"] {
            let path = format!("/api/v1/message/{{mail-{number}}}{end}");
            checks.equal(&path, send(&side, &Request::get(&path))["status"].take(), 200);
        }
    }
    checks.equal("total and unread after 10 were read", totals(&side), json!([100, 90]));
    let ids: Vec<String> = (1..=10).map(|number| format!("{{mail-{number}}}")).collect();
    for (what, body, unread) in [
        ("10 are marked as unread", json!({"IDs": ids, "Read": false}), 100),
        ("10 are marked as read", json!({"IDs": ids, "Read": true}), 90),
        ("10 are marked as unread again", json!({"IDs": ids, "Read": false}), 100),
        ("all are marked as read", json!({"IDs": [], "Read": true}), 0),
        ("all are marked as unread", json!({"Read": false}), 100),
    ] {
        checks.equal(what, change(&side, "PUT", &body), 200);
        checks.equal(format!("total and unread after {what}"), totals(&side), json!([100, unread]));
    }
    checks.equal("10 are deleted", change(&side, "DELETE", &json!({"IDs": ids})), 200);
    checks.equal("total and unread after 10 were deleted", totals(&side), json!([90, 90]));
    checks.equal("all are deleted", change(&side, "DELETE", &json!({})), 200);
    checks.equal("total and unread after all were deleted", totals(&side), json!([0, 0]));
}

const HTML: (&str, &str) =
    ("Content-Type: text/html; charset=utf-8", "<p>A picture and a file: <img src=\"cid:pixel@one.test\"></p>");
const PICTURE: (&str, &str) = (
    "Content-Type: image/png; name=pixel.png\nContent-ID: <pixel@one.test>\n\
     Content-Disposition: inline; filename=pixel.png\nContent-Transfer-Encoding: base64",
    PIXEL,
);
/// A file with the content `a plain file` and LF.
const FILE: (&str, &str) = (
    "Content-Type: application/x-notes; name=\"My notes.bin\"\n\
     Content-Disposition: attachment; filename=\"My notes.bin\"\nContent-Transfer-Encoding: base64",
    "YSBwbGFpbiBmaWxlCg==",
);

/// Returns a mail with these parts.
fn mail_of(name: &str, parts: &[(&str, &str)]) -> Mail {
    let headers =
        "From: Ann Field <ann@one.test>\nTo: Bob Stone <bob@two.test>\nSubject: Picture and file\nMIME-Version: 1.0\n";
    Mail::new(name, &format!("{headers}{}", multipart("mixed", "border", parts))).to(&["bob@two.test"])
}

/// Checks fields of a JSON document, named by their paths.
fn fields(checks: &mut Checks, what: &str, document: &Value, expected: &[(&str, Value)]) {
    for (path, value) in expected {
        checks.equal(format!("{what} {path}"), document.pointer(path).cloned(), value.clone());
    }
}

/// The same message with every kind of compression, and with a tenant.
fn stored_message(checks: &mut Checks) {
    let variables = [("0", ""), ("1", ""), ("2", ""), ("3", ""), ("1", "Branch 3"), ("1", "shop.one.test")];
    for (compression, tenant) in variables {
        let what = format!("compression {compression}, tenant {tenant:?}:");
        let variables = [("MP_COMPRESSION", compression), ("MP_TENANT_ID", tenant)];
        let side = Side::new(&checks.program, &variables, &[mail_of("both", &[HTML, PICTURE, FILE])]);
        let common = [
            ("/From/Name", json!("Ann Field")),
            ("/From/Address", json!("ann@one.test")),
            ("/To/0/Name", json!("Bob Stone")),
            ("/To/0/Address", json!("bob@two.test")),
            ("/To/1", Value::Null),
            ("/Subject", json!("Picture and file")),
            ("/MessageID", json!("both@example.test")),
        ];
        let list = get(&side, "/api/v1/messages");
        let summary =
            [("/Snippet", json!("A picture and a file:")), ("/Attachments", json!(1)), ("/Read", json!(false))];
        fields(checks, &format!("{what} summary"), &list["messages"][0], &common);
        fields(checks, &format!("{what} summary"), &list["messages"][0], &summary);
        let message = get(&side, "/api/v1/message/{both}");
        let parts = [
            ("/Attachments/0/FileName", json!("My notes.bin")),
            ("/Attachments/0/Size", json!(13)),
            ("/Attachments/1", Value::Null),
            ("/Inline/0/FileName", json!("pixel.png")),
            ("/Inline/0/Size", json!(68)),
            ("/Inline/1", Value::Null),
        ];
        fields(checks, &format!("{what} message"), &message, &common);
        fields(checks, &format!("{what} message"), &message, &parts);
        for (list, length) in [("Attachments", 13), ("Inline", 68)] {
            let part = message[list][0]["PartID"].as_str().unwrap_or_default();
            let url = side.server.url(&side.with_ids(&format!("/api/v1/message/{{both}}/part/{part}")));
            let content = ureq::get(url).call().unwrap().body_mut().read_to_vec().unwrap();
            checks.equal(format!("{what} length of part in {list}"), content.len(), length);
        }
        checks.equal(format!("{what} deletion"), change(&side, "DELETE", &json!({})), 200);
        checks.equal(format!("{what} after deletion"), totals(&side), json!([0, 0]));
    }
}

fn parts(checks: &mut Checks) {
    let mails =
        [mail_of("picture", &[HTML, PICTURE]), mail_of("file", &[HTML, FILE]), mail_of("both", &[HTML, PICTURE, FILE])];
    let side = Side::new(&checks.program, &[], &mails);
    for (name, inline, attached) in [("picture", 1, 0), ("file", 0, 1), ("both", 1, 1)] {
        let message = get(&side, &format!("/api/v1/message/{{{name}}}"));
        let length = |list: &str| message[list].as_array().map(Vec::len);
        checks.equal(format!("{name}: inline parts"), length("Inline"), inline);
        checks.equal(format!("{name}: attachments"), length("Attachments"), attached);
        let picture = [("/Inline/0/ContentID", json!("pixel@one.test")), ("/Inline/0/ContentType", json!("image/png"))];
        let file = [
            ("/Attachments/0/ContentID", json!("")),
            ("/Attachments/0/ContentType", json!("application/x-notes")),
            ("/Attachments/0/Checksums/MD5", json!("e8dfee15566336c18a72f5726c0f2624")),
            ("/Attachments/0/Checksums/SHA1", json!("e0307dcd6e9b727485dd426b25a7e0ec9c1b3720")),
            (
                "/Attachments/0/Checksums/SHA256",
                json!("d41e4cc453b631ac2d2f538b73924e7393fd7ac168ec5a3def68ca0bfc233d09"),
            ),
        ];
        fields(checks, name, &message, if inline == 1 { &picture } else { &[] });
        fields(checks, name, &message, if attached == 1 { &file } else { &[] });
    }
}

/// Values of `List-Unsubscribe`, and the links in them. Without a link, the value is invalid.
const UNSUBSCRIBE: [(&str, &[&str]); 14] = [
    ("<mailto:leave@one.test>", &["mailto:leave@one.test"]),
    ("<https://one.test>", &["https://one.test"]),
    ("<HTTPS://ONE.TEST>", &["HTTPS://ONE.TEST"]),
    ("<mailto:leave@one.test>, <http://one.test>", &["mailto:leave@one.test", "http://one.test"]),
    ("<mailto:leave@one.test>, <https://one.test/a>", &["mailto:leave@one.test", "https://one.test/a"]),
    ("<https://one.test>, <mailto:leave@one.test>", &["https://one.test", "mailto:leave@one.test"]),
    ("<https://one.test> , \t\t<mailto:leave@one.test>", &["https://one.test", "mailto:leave@one.test"]),
    ("<https://one.test> ,<mailto:leave@one.test>", &["https://one.test", "mailto:leave@one.test"]),
    ("<mailto:leave@one.test>,<https://one.test>", &["mailto:leave@one.test", "https://one.test"]),
    ("<https://one.test> ,\n  <mailto:leave@one.test>", &["https://one.test", "mailto:leave@one.test"]),
    ("<mailto:leave@one.test?subject=please%20leave>", &["mailto:leave@one.test?subject=please%20leave"]),
    ("(Write a mail) <mailto:leave@one.test?subject=a%20b>", &["mailto:leave@one.test?subject=a%20b"]),
    ("<mailto:leave@one.test> (Write a mail)", &["mailto:leave@one.test"]),
    (
        "(Write a mail) <mailto:leave@one.test>, (Or visit) <http://one.test>",
        &["mailto:leave@one.test", "http://one.test"],
    ),
];
/// Invalid values.
const NOT_UNSUBSCRIBE: [&str; 12] = [
    "mailto:leave@one.test",
    "<mailto::leave@one.test>",
    "https://one.test/",
    "mailto:leave@one.test, <https://one.test/>",
    "<MAILTO:leave@one.test>",
    "<mailto:leave@one.test>, <mailto:other@one.test>",
    "<http://on\\e.test>, <http://two.test>",
    "<http://one.test>, <mailto:leave@one.test>, <http://two.test>",
    "<mailto:leave@one.test>, <one.test>",
    "<mailto: leave@one.test>, <leave@two.test>",
    "<mailto:leave@one.test?subject=please leave>",
    "<http:///one.test>",
];

fn unsubscribe(checks: &mut Checks) {
    let values = UNSUBSCRIBE.map(|(value, _)| value).into_iter().chain(NOT_UNSUBSCRIBE);
    let mail = |(number, value)| {
        let text = format!("From: ann@one.test\nTo: bob@two.test\nSubject: List\nList-Unsubscribe: {value}\n\nText\n");
        Mail::new(&format!("list-{number}"), &text).to(&["bob@two.test"])
    };
    let side = Side::new(&checks.program, &[], &values.enumerate().map(mail).collect::<Vec<_>>());
    let unsubscribe =
        |number: usize| get(&side, &format!("/api/v1/message/{{list-{number}}}"))["ListUnsubscribe"].take();
    for (number, (value, links)) in UNSUBSCRIBE.iter().enumerate() {
        checks.equal(format!("errors of {value}"), unsubscribe(number)["Errors"].take(), "");
        checks.equal(format!("links of {value}"), unsubscribe(number)["Links"].take(), *links);
    }
    for (number, value) in NOT_UNSUBSCRIBE.iter().enumerate() {
        let errors = unsubscribe(UNSUBSCRIBE.len() + number)["Errors"].take();
        checks.equal(format!("{value} has errors"), errors.as_str().is_some_and(|errors| !errors.is_empty()), true);
    }
}
