//! The requests of the comparison, in stages: reading first, then changes, each followed by requests that show its effect.

use super::Side;
use super::answer::{Request, send};
use super::mails::Mail;
use super::normal::ALL;

/// Returns the requests of a stage. Ids of parts are those of Mailpit.
type Stage = fn(&Side, &[Mail]) -> Vec<Request>;

/// The stages in their order.
pub(crate) const STAGES: [Stage; 8] = [lists, searches, messages, errors, tags, read_marks, sent, deletions];

fn gets(paths: &[&str]) -> Vec<Request> {
    paths.iter().map(|path| Request::get(*path)).collect()
}

fn lists(_: &Side, _: &[Mail]) -> Vec<Request> {
    gets(&[
        "/api/v1/messages",
        ALL,
        "/api/v1/messages?start=5&limit=3",
        "/api/v1/messages?start=1000",
        "/api/v1/messages?limit=0",
        "/api/v1/messages?limit=-1",
        "/api/v1/messages?start=-5&limit=1",
        "/api/v1/messages?start=x&limit=y",
        "/api/v1/messages?before=2020-01-01",
        "/api/v1/tags",
        "/api/v1/webui",
        "/api/v1/chaos",
        "/livez",
        "/readyz",
    ])
}

const QUERIES: [&str; 44] = [
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

fn searches(_: &Side, _: &[Mail]) -> Vec<Request> {
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

fn messages(mailpit: &Side, mails: &[Mail]) -> Vec<Request> {
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
        "/api/v1/message/{html-links}/link-check",
        "/api/v1/message/{text-links}/link-check",
        "/api/v1/message/{corpus-plain}/link-check",
        "/api/v1/message/{picture}/part/2/thumb",
        "/api/v1/message/{files}/part/2/thumb",
        "/api/v1/message/{only-addresses}/html-check",
        "/view/latest",
        "/view/latest.html",
        "/view/latest.txt",
    ]));
    requests
}

fn errors(_: &Side, _: &[Mail]) -> Vec<Request> {
    let mut requests = gets(&[
        "/api/v1/message/unknown",
        "/api/v1/message/unknown/headers",
        "/api/v1/message/unknown/raw",
        "/api/v1/message/unknown/part/1",
        "/api/v1/message/unknown/part/1/thumb",
        "/api/v1/message/unknown/html-check",
        "/api/v1/message/unknown/link-check",
        "/api/v1/message/{picture}/part/99",
        "/api/v1/message/{picture}/part/99/thumb",
        "/api/v1/message/{picture}/sa-check",
        "/api/v1/message/{picture}/unknown",
        "/api/v1/unknown",
        "/view/unknown.html",
        "/view/unknown.txt",
    ]);
    requests.extend(
        [
            ("PUT", "/api/v1/messages", ""),
            ("PUT", "/api/v1/messages", "{"),
            ("PUT", "/api/v1/messages", "{\"IDs\": \"x\"}"),
            ("PUT", "/api/v1/messages", "{\"IDs\": [\"unknown\"], \"Read\": true}"),
            ("PUT", "/api/v1/messages", "{\"IDs\": [\"{picture}\"], \"Search\": \"x\"}"),
            ("PUT", "/api/v1/tags", ""),
            ("PUT", "/api/v1/tags", "{\"IDs\": [], \"Tags\": [\"x\"]}"),
            ("PUT", "/api/v1/tags", "{\"IDs\": [\"unknown\"], \"Tags\": [\"x\"]}"),
            ("PUT", "/api/v1/tags/absent", "{\"Name\": \"x\"}"),
            ("PUT", "/api/v1/tags/Alpha", "{\"Name\": \"\"}"),
            ("PUT", "/api/v1/tags/Alpha", "{"),
            ("DELETE", "/api/v1/tags/absent", ""),
            ("DELETE", "/api/v1/search", ""),
            ("DELETE", "/api/v1/search?query=", ""),
            ("PUT", "/api/v1/chaos", "{"),
            ("PUT", "/api/v1/chaos", "{\"Sender\": {\"ErrorCode\": 200, \"Probability\": 5}}"),
            ("PUT", "/api/v1/chaos", "{\"Sender\": {\"ErrorCode\": 451, \"Probability\": 101}}"),
            ("POST", "/api/v1/message/{picture}/release", "{\"To\": [\"x@example.test\"]}"),
            ("POST", "/api/v1/send", ""),
            ("POST", "/api/v1/send", "{"),
            ("POST", "/api/v1/send", "{}"),
            ("POST", "/api/v1/send", "{\"From\": {\"Email\": \"ann@example.test\"}}"),
            (
                "POST",
                "/api/v1/send",
                "{\"From\": {\"Email\": \"ann@example.test\"}, \"To\": [{\"Email\": \"broken\"}]}",
            ),
            (
                "POST",
                "/api/v1/send",
                "{\"From\": {\"Email\": \"ann@example.test\"}, \"To\": [{\"Email\": \"bob@example.test\"}], \
                 \"Attachments\": [{\"Content\": \"%\", \"Filename\": \"x\"}]}",
            ),
            ("POST", "/api/v1/messages", "{}"),
        ]
        .map(|(method, path, body)| Request::with_body(method, path, body)),
    );
    requests.extend(gets(&["/api/v1/tags", "/api/v1/chaos", "/api/v1/messages?limit=3"]));
    requests
}

fn tags(_: &Side, _: &[Mail]) -> Vec<Request> {
    let effect =
        ["/api/v1/tags", "/api/v1/message/{picture}", "/api/v1/search?query=is:tagged", "/api/v1/messages?limit=1"];
    let mut requests = Vec::new();
    for (method, path, body) in [
        (
            "PUT",
            "/api/v1/tags",
            "{\"IDs\": [\"{picture}\", \"{files}\"], \"Tags\": [\"zeta\", \"Alpha\", \"a/b<c>\", \" space \"]}",
        ),
        ("PUT", "/api/v1/tags", "{\"IDs\": [\"{files}\"], \"Tags\": []}"),
        ("PUT", "/api/v1/tags/zeta", "{\"Name\": \"Omega\"}"),
        ("PUT", "/api/v1/tags/Omega", "{\"Name\": \"alpha\"}"),
        ("DELETE", "/api/v1/tags/alpha", ""),
        ("DELETE", "/api/v1/tags/delta", ""),
    ] {
        requests.push(Request::with_body(method, path, body));
        requests.extend(gets(&effect));
    }
    requests
}

fn read_marks(_: &Side, _: &[Mail]) -> Vec<Request> {
    let effect = ["/api/v1/search?query=is:unread&limit=1000", "/api/v1/messages?limit=1"];
    let mut requests = Vec::new();
    for body in [
        "{}",
        "{\"Read\": true, \"IDs\": [\"{picture}\", \"{files}\", \"unknown\"]}",
        "{\"Read\": true, \"Search\": \"subject:unsubscribe\"}",
        "{\"Read\": false, \"Search\": \"subject:unsubscribe-broken\"}",
        "{\"read\": true}",
        "{\"Read\": false, \"ids\": [\"{picture}\"]}",
    ] {
        requests.push(Request::with_body("PUT", "/api/v1/messages", body));
        requests.extend(gets(&effect));
    }
    requests
}

/// Messages sent by the API. Their ids differ, so they are read as the latest.
fn sent(_: &Side, _: &[Mail]) -> Vec<Request> {
    let mut requests = Vec::new();
    for body in [
        "{\"From\": {\"Email\": \"ann@example.test\", \"Name\": \"Ann\"}, \"To\": [{\"Email\": \"bob@example.test\", \"Name\": \"Bob\"}], \
         \"Cc\": [{\"Email\": \"cid@example.test\"}], \"Bcc\": [\"eve@example.test\"], \"ReplyTo\": [{\"Email\": \"r@example.test\"}], \
         \"Subject\": \"Grüße\", \"Text\": \"Text\", \"HTML\": \"<p>HTML</p>\", \"Tags\": [\"sent\"], \
         \"Headers\": {\"X-Test\": \"value\", \"Message-ID\": \"<sent@example.test>\"}, \
         \"Attachments\": [{\"Content\": \"SGVsbG8=\", \"Filename\": \"hello.txt\"}]}",
        "{\"From\": {\"Email\": \"ann@example.test\"}, \"Bcc\": [\"eve@example.test\"], \"Text\": \"only hidden\"}",
        "{\"From\": {\"Email\": \"ann@example.test\"}, \"To\": [{\"Email\": \"bob@example.test\"}], \"HTML\": \"<b>x</b>\"}",
    ] {
        requests.push(Request::with_body("POST", "/api/v1/send", body));
        requests.extend(gets(&[
            "/api/v1/message/latest",
            "/api/v1/message/latest/headers",
            "/api/v1/messages?limit=1",
            "/view/latest.txt",
            "/view/latest.html",
        ]));
    }
    requests
}

fn deletions(_: &Side, _: &[Mail]) -> Vec<Request> {
    let effect = ["/api/v1/messages?limit=2", "/api/v1/tags"];
    let mut requests = Vec::new();
    for (path, body) in [
        ("/api/v1/search?query=subject:unsubscribe", None),
        ("/api/v1/search?query=absent-everywhere", None),
        ("/api/v1/messages", Some("{\"IDs\": [\"{picture}\"]}")),
        ("/api/v1/messages", Some("{\"ids\": [\"{files}\"]}")),
        ("/api/v1/messages", Some("not JSON")),
    ] {
        requests.push(match body {
            Some(body) => Request::with_body("DELETE", path, body),
            None => Request { method: "DELETE", path: path.to_owned(), body: None },
        });
        requests.extend(gets(&effect));
        requests.push(Request::get("/api/v1/message/{picture}"));
    }
    requests.push(Request::get("/api/v1/message/latest"));
    requests
}
