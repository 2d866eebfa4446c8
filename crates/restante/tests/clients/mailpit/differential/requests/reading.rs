//! Requests that read: lists, searches, messages and their parts.

use super::{Request, gets};
use crate::mailpit::differential::answer::send;
use crate::mailpit::differential::mails::Mail;
use crate::mailpit::differential::normal::ALL;
use crate::mailpit::differential::side::Side;

pub(super) fn lists(_: &Side, _: &[Mail]) -> Vec<Request> {
    gets(&[
        "/api/v1/messages",
        ALL,
        "/api/v1/messages?start=5&limit=3",
        "/api/v1/messages?start=1000",
        "/api/v1/messages?limit=0",
        "/api/v1/messages?limit=-1",
        "/api/v1/messages?start=-5&limit=1",
        "/api/v1/messages?start=x&limit=y",
        "/api/v1/messages?start=5&limit=0",
        "/api/v1/messages?limit=1.5",
        "/api/v1/messages?limit=100000&start=98",
        "/api/v1/messages?limit=99999999999999999999",
        "/api/v1/messages?limit=2&limit=3",
        "/api/v1/messages?start=%zz&limit=1",
        "/api/v1/messages?before=2020-01-01",
        "/api/v1/messages?before=2099-01-01T00:00:00Z&limit=1",
        "/api/v1/messages?before=nonsense&limit=1",
        "/api/v1/messages?unknown=x&limit=1",
        "/api/v1/tags",
        "/api/v1/info",
        "/api/v1/webui",
        "/api/v1/chaos",
        "/livez",
        "/readyz",
    ])
}

const QUERIES: [&str; 48] = [
    "text",
    "Text of",
    "\"Text of\"",
    "TEXT",
    "-text",
    "!text",
    "grüße",
    "from:ann",
    "from:Jürgen",
    "from:\"Ann, A.\"",
    "to:bob@example.test",
    "-to:bob@example.test",
    "cc:cid",
    "bcc:eve",
    "addressed:cid@example.test",
    "addressed:cid -to:cid",
    "reply-to:help",
    "subject:unsubscribe",
    "subject:\"no-to\"",
    "!subject:unsubscribe",
    "message-id:one.two@example.test",
    "message-id:absent",
    "\"sealed.asc\"",
    "version.asc",
    "inline.png",
    "tag:weekly",
    "tag:alpha",
    "tag:\"beta gamma\"",
    "-tag:alpha is:tagged",
    "is:tagged",
    "!is:tagged",
    "is:read",
    "is:unread",
    "has:attachment",
    "has:attachments",
    "-has:attachment has:inline",
    "has:inline",
    "larger:2KB",
    "larger:10kb smaller:1MB",
    "smaller:2KB",
    "after:2020-01-01",
    "before:2020-01-01",
    "before:2099-12-31 subject:picture",
    "text.of+plain*",
    "100%",
    "unknown:prefix",
    "from:ann subject:files has:attachment",
    "absent-everywhere",
];

pub(super) fn searches(_: &Side, _: &[Mail]) -> Vec<Request> {
    let mut requests: Vec<_> = QUERIES
        .iter()
        .map(|query| Request::get(format!("/api/v1/search?limit=1000&query={}", encoded(query))))
        .collect();
    requests.extend(gets(&[
        "/api/v1/search",
        "/api/v1/search?query=",
        "/api/v1/search?query=%20",
        "/api/v1/search?query=text&start=3&limit=2",
        "/api/v1/search?query=text&start=1000",
        "/api/v1/search?query=text&limit=0",
        "/api/v1/search?query=after:2026-01-01&tz=Europe/Berlin&limit=1",
        "/api/v1/search?query=after:2026-01-01&tz=Nowhere&limit=1",
        "/api/v1/search?query=before:nonsense&limit=1",
        "/api/v1/search?query=larger:nonsense&limit=1",
        "/api/v1/message/latest?query=subject:files",
        "/api/v1/message/latest?query=absent-everywhere",
    ]));
    requests
}

/// Percent-encodes everything that is not a letter or a digit.
fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

pub(super) fn messages(mailpit: &Side, mails: &[Mail]) -> Vec<Request> {
    let mut requests =
        gets(&["/api/v1/message/latest", "/api/v1/message/latest/headers", "/api/v1/message/latest/raw"]);
    for Mail { name, .. } in mails {
        let message = format!("/api/v1/message/{{{name}}}");
        let view = format!("/view/{{{name}}}");
        let read = send(mailpit, &Request::get(&message));
        for path in ["", "/headers", "/raw"] {
            requests.push(Request::get(format!("{message}{path}")));
        }
        requests.push(Request::get(format!("{view}.html")));
        requests.push(Request::get(format!("{view}.txt")));
        if read["body"]["HTML"].as_str().is_some_and(|html| !html.is_empty()) {
            requests.push(Request::get(format!("{view}.html?embed=1")));
            requests.push(Request::get(format!("{message}/html-check")));
        }
        for list in ["Inline", "Attachments"] {
            for part in read["body"][list].as_array().into_iter().flatten().filter_map(|part| part["PartID"].as_str()) {
                requests.push(Request::get(format!("{message}/part/{part}")));
            }
        }
    }
    requests.extend(gets(&[
        "/api/v1/message/latest/html-check",
        "/api/v1/message/latest/link-check",
        "/api/v1/message/latest/part/1",
        "/api/v1/message/latest/part/2?query=subject:picture",
        "/api/v1/message/{picture}/raw?dl=1",
        "/api/v1/message/{picture}/raw?dl=0",
        "/api/v1/message/{html-links}/link-check",
        "/api/v1/message/{text-links}/link-check",
        "/api/v1/message/{corpus-plain}/link-check",
        "/api/v1/message/{picture}/part/2/thumb",
        "/api/v1/message/{files}/part/2/thumb",
        "/api/v1/message/{only-addresses}/html-check",
        "/view/{picture}",
        "/view/latest",
        "/view/latest.html",
        "/view/latest.txt",
        "/view/latest.html?query=subject:html-simple",
        "/view/latest.txt?query=absent-everywhere",
    ]));
    requests
}

/// HEAD and OPTIONS, and lists that show whether HEAD marks messages as read.
pub(super) fn other_methods(_: &Side, _: &[Mail]) -> Vec<Request> {
    let without_body = |method, path: &str| Request { method, path: path.to_owned(), body: None };
    let mut requests: Vec<_> = [
        "/api/v1/messages",
        "/api/v1/search?query=text",
        "/api/v1/message/{picture}/headers",
        "/api/v1/message/{picture}/raw",
        "/api/v1/message/{picture}/part/2",
        "/api/v1/message/{picture}",
        "/api/v1/message/unknown",
        "/api/v1/tags",
        "/api/v1/info",
        "/view/{html-simple}.html",
        "/view/{files}.txt",
    ]
    .map(|path| without_body("HEAD", path))
    .into();
    requests.push(Request::get("/api/v1/search?query=is:read&limit=1000"));
    requests.extend(["/api/v1/messages", "/api/v1/message/{picture}"].map(|path| without_body("OPTIONS", path)));
    requests
}
