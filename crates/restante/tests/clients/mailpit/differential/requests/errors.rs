//! Requests that fail.

use super::{Request, gets};
use crate::mailpit::differential::mails::Mail;
use crate::mailpit::differential::side::Side;

pub(super) fn errors(_: &Side, _: &[Mail]) -> Vec<Request> {
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
        "/api/v1/swagger.json",
        "/api/v1/message/{picture}/part/x",
        "/api/v1/message/{picture}/part/1.1.1",
        "/api/v1/message/99999999999999999999999",
        "/api/v1/message/latest?query=",
        "/view/unknown.html",
        "/view/unknown.txt",
    ]);
    requests.extend(
        [
            ("PUT", "/api/v1/messages", ""),
            ("PUT", "/api/v1/messages", "{"),
            ("PUT", "/api/v1/messages", "{\"IDs\": \"x\"}"),
            ("PUT", "/api/v1/messages", "[]"),
            ("PUT", "/api/v1/messages", "{\"Read\": 1}"),
            ("PUT", "/api/v1/messages", "{\"IDs\": [\"unknown\"], \"Read\": true}"),
            ("PUT", "/api/v1/messages", "{\"IDs\": [\"{picture}\"], \"Search\": \"x\"}"),
            ("PUT", "/api/v1/tags", ""),
            ("PUT", "/api/v1/tags", "{\"IDs\": [], \"Tags\": [\"x\"]}"),
            ("PUT", "/api/v1/tags", "{\"IDs\": [\"{picture}\"], \"Tags\": \"x\"}"),
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
            ("DELETE", "/api/v1/message/{picture}", ""),
            ("PUT", "/api/v1/tags", "{\"IDs\": [\"unknown\"], \"Tags\": [\"x\"]}"),
        ]
        .map(|(method, path, body)| Request::with_body(method, path, body)),
    );
    // A tag of an unknown message, which is then removed.
    requests.push(Request::get("/api/v1/tags?of=unknown"));
    requests.push(Request::with_body("DELETE", "/api/v1/tags/x", ""));
    requests.extend(gets(&["/api/v1/tags", "/api/v1/chaos", "/api/v1/messages?limit=3"]));
    requests
}
