//! Changes, each followed by requests that show its effect.

use super::{Request, gets};
use crate::mailpit::differential::mails::Mail;
use crate::mailpit::differential::side::Side;

pub(super) fn tags(_: &Side, _: &[Mail]) -> Vec<Request> {
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

pub(super) fn read_marks(_: &Side, _: &[Mail]) -> Vec<Request> {
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
pub(super) fn sent(_: &Side, _: &[Mail]) -> Vec<Request> {
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

pub(super) fn deletions(_: &Side, _: &[Mail]) -> Vec<Request> {
    let effect = ["/api/v1/messages?limit=2", "/api/v1/tags"];
    let mut requests = Vec::new();
    for (path, body) in [
        ("/api/v1/search?query=subject:unsubscribe", None),
        ("/api/v1/search?query=absent-everywhere", None),
        ("/api/v1/messages", Some("{\"IDs\": [\"{picture}\"]}")),
        ("/api/v1/messages", Some("{\"ids\": [\"{files}\"]}")),
        ("/api/v1/messages", Some("{}")),
    ] {
        requests.push(match body {
            Some(body) => Request::with_body("DELETE", path, body),
            None => Request { method: "DELETE", path: path.to_owned(), body: None },
        });
        requests.extend(gets(&effect));
        requests.push(Request::get("/api/v1/message/{picture}"));
    }
    requests.push(Request::get("/api/v1/message/latest"));
    requests.push(Request::with_body("DELETE", "/api/v1/messages", "not JSON"));
    requests
}
