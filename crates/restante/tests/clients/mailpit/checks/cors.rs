//! Requests of pages of other origins.

use super::{run, status};
use crate::mailpit::server::Server;

#[test]
fn origins_are_allowed_as_in_mailpit() {
    run("cors", |checks| {
        for (origins, rows) in SETTINGS {
            let server = Server::start(&checks.program, &[("MP_API_CORS", origins)]);
            for (origin, host, is_allowed) in rows {
                let what = format!("MP_API_CORS={origins:?}, Origin {origin:?}, Host {host}");
                checks.equal(what, answer(&server, origin, host), if *is_allowed { 200 } else { 403 });
            }
        }
    });
}

/// `Origin` and `Host` of a request, and whether it is allowed.
type Row = (&'static str, &'static str, bool);
/// Values of `MP_API_CORS`, and requests.
const SETTINGS: [(&str, &[Row]); 9] = [
    (
        "",
        &[
            ("", HOST, true),
            ("http://one.test", HOST, false),
            ("http://mail.local", HOST, true),
            ("http://mail.local:8025", HOST, false),
        ],
    ),
    (
        "one.test",
        &[("http://one.test", HOST, true), ("https://one.test", HOST, true), ("http://two.test", HOST, false)],
    ),
    (
        "one.test,two.test",
        &[("http://one.test", HOST, true), ("http://two.test", HOST, true), ("http://three.test", HOST, false)],
    ),
    (
        "one.test two.test",
        &[("http://one.test", HOST, true), ("http://two.test", HOST, true), ("http://three.test", HOST, false)],
    ),
    (
        "one.test, Two.Test:8080",
        &[
            ("http://two.test:8080", HOST, true),
            ("http://two.test", HOST, false),
            ("HTTP://MAIL.LOCAL", HOST, true),
            ("null", HOST, false),
        ],
    ),
    ("*", &[("http://one.test", HOST, true), ("https://two.test:8443", HOST, true)]),
    (
        "http://one.test,https://two.test:8443",
        &[("http://one.test", HOST, true), ("https://two.test:8443", HOST, true), ("https://two.test", HOST, false)],
    ),
    ("http://one.test,*,https://two", &[("http://one.test", HOST, true), ("http://other.test", HOST, true)]),
    (
        "one.test,two.test,three.test",
        &[
            ("", HOST, true),
            // The port is a part of the origin.
            ("http://one.test:1234", HOST, false),
            ("http://mail.local:1234", HOST, false),
            ("http://mail.local:1234", "mail.local:1234", true),
            ("http://four.test", HOST, false),
            ("http://two.test", HOST, true),
            // Upper and lower case are the same.
            ("HTTP://ONE.TEST", HOST, true),
            ("HTTP://TWO.TEST", HOST, true),
            ("http://one.test", "MAIL.LOCAL", true),
            ("http://mail.local", "MAIL.LOCAL", true),
            ("HTTP://FOUR.TEST", HOST, false),
            ("HtTp://OnE.tEsT", HOST, true),
            ("http://öne.test", HOST, false),
            ("http://twö.test", HOST, false),
            ("http://öne.test", "MAIL.LOCAL", false),
            ("HtTp://ÖnE.tEsT", HOST, false),
        ],
    ),
];
const HOST: &str = "mail.local";

/// Returns the status of the answer to a request of a page.
fn answer(server: &Server, origin: &str, host: &str) -> u16 {
    let origin = (!origin.is_empty()).then(|| format!("Origin: {origin}"));
    let headers: Vec<String> = [format!("Host: {host}")].into_iter().chain(origin).collect();
    status(server, "GET /api/v1/messages", &headers, "")
}
