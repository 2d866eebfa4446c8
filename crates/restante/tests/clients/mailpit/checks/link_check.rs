//! The links that the link check finds.

use serde_json::Value;

use super::{get, run};
use crate::mailpit::differential::mails::{Mail, multipart};
use crate::mailpit::differential::side::Side;

/// HTML, and its links: those of `a`, then style sheets, then pictures.
const HTML: (&str, &[&str]) = (
    "<html><head><link rel=stylesheet href=\"http://css.invalid/all.css\">\
     <script src=\"https://script.invalid/a.js\"></script></head><body>\
     <a href=\"http://one.invalid\">one</a> <a href=\"https://one.invalid\">one</a> <a href=\"HTTPS://ONE.INVALID\">one</a>\
     <a href='https://quoted.invalid/a'>two</a> <a href=\"http://one.invalid\">again</a> <p href=\"http://p.invalid\">no link</p>\
     <a href=\"http://with blanks.invalid\">blanks</a> <a href=\"http://one.invalid/?a=1&amp;b=2\">entity</a>\
     <a href=\"ftp://ftp.invalid\">ftp</a> <a href=\"one.invalid\">relative</a> <a href=\"//one.invalid/x\">no scheme</a>\
     <a href=\"https://\">no host</a> <a href=\"\">empty</a> <a href=\"https://one.invalid/path?q=1#end\">all</a>\
     <img src=https://image.invalid/a.png></body></html>",
    &[
        "http://one.invalid",
        "https://one.invalid",
        "HTTPS://ONE.INVALID",
        "https://quoted.invalid/a",
        "http://with blanks.invalid",
        "http://one.invalid/?a=1&b=2",
        "https://one.invalid/path?q=1#end",
        "http://css.invalid/all.css",
        "https://image.invalid/a.png",
    ],
);
/// Text, and its links.
const TEXT: (&str, &[&str]) = (
    "A line with http://one.invalid https://one.invalid\n HTTPS://ONE.INVALID\n [http://bracket.invalid]\n www.name.invalid\n \
     |||http://one.invalid/?a=b-c|||\n <https://angle.invalid/ with blanks>\n ftp://ftp.invalid http://one.invalid",
    &[
        "http://one.invalid",
        "https://one.invalid",
        "HTTPS://ONE.INVALID",
        "http://bracket.invalid",
        "http://one.invalid/?a=b-c",
        "https://angle.invalid/ with blanks",
    ],
);

#[test]
fn links_are_found_as_in_mailpit() {
    run("link_check", |checks| {
        let anchor = |number| format!("<a href=\"http://many.invalid/{number}\">link</a>\n");
        let anchors = (0..150).map(anchor).collect::<Vec<_>>().concat();
        let mails = [
            mail("html", &[("Content-Type: text/plain", "No links"), ("Content-Type: text/html", HTML.0)]),
            mail("text", &[("Content-Type: text/plain", TEXT.0)]),
            mail("many", &[("Content-Type: text/plain", "http://text.invalid"), ("Content-Type: text/html", &anchors)]),
        ];
        let side = Side::new(&checks.program, &[("MP_DISABLE_LINK_CHECK_RATE_LIMIT", "true")], &mails);
        let links = |name: &str| {
            let check = get(&side, &format!("/api/v1/message/{{{name}}}/link-check"));
            let links = check["Links"].as_array().cloned().unwrap_or_default();
            let mut urls: Vec<String> =
                links.iter().map(|link| link["URL"].as_str().unwrap_or_default().to_owned()).collect();
            urls.sort_unstable();
            urls
        };
        for (name, (_, expected)) in [("html", HTML), ("text", TEXT)] {
            let found = links(name);
            for url in expected {
                checks.equal(format!("{name} has {url}"), found.iter().any(|found| found == url), true);
            }
            let others: Vec<Value> =
                found.iter().filter(|url| !expected.contains(&url.as_str())).map(|url| url.as_str().into()).collect();
            checks.equal(format!("{name}: other links"), others, Value::Array(Vec::new()));
        }
        let many = links("many");
        checks.equal("most links of a message", many.len(), 100);
        checks.equal(
            "links of the text after 100 of the HTML",
            many.contains(&"http://text.invalid".to_owned()),
            false,
        );
    });
}

fn mail(name: &str, parts: &[(&str, &str)]) -> Mail {
    let parts = multipart("alternative", "border", parts);
    let text = format!("From: ann@one.test\nTo: bob@two.test\nSubject: {name}\nMIME-Version: 1.0\n{parts}");
    Mail::new(name, &text).to(&["bob@two.test"])
}
