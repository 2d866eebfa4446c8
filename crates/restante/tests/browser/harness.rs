//! Tests of the test harness itself, with pages that are written here.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;

use super::page::{DisplayMode, Page, key};
use crate::support::Server;

/// Returns a data URL with this HTML.
fn document(html: &str) -> String {
    format!("data:text/html;base64,{}", BASE64_STANDARD.encode(format!("<meta charset=utf-8>{html}")))
}

#[test]
fn page_can_be_read_and_used() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open(&document(
        "<title>Try</title><input value=old><button onclick=\"setTimeout(() => {
            const item = document.createElement('li');
            item.textContent = document.querySelector('input').value;
            document.querySelector('ul').append(item);
        }, 100)\">Add</button><ul></ul><p>
        <script>document.onkeydown = event => document.querySelector('p').dataset.keys += ' ' + event.key</script>",
    ));
    assert_eq!(page.title(), "Try");
    page.fill("input", "Grüße");
    page.click("button");
    assert_eq!(page.text("li"), "Grüße");
    page.click("button");
    page.until("a second item", || page.count("li") == 2);
    assert_eq!(page.texts("li"), ["Grüße", "Grüße"]);
    page.keys("j?");
    page.keys(&[key::UP, key::DOWN, key::DELETE, key::ENTER, key::ESCAPE, key::TAB].concat());
    let pressed = "j ? ArrowUp ArrowDown Delete Enter Escape Tab";
    page.until("the keys", || page.attribute("p", "data-keys").is_some_and(|keys| keys.ends_with(pressed)));
    page.reload();
    assert_eq!(page.count("li"), 0);
    assert_eq!(page.eval("return Promise.resolve(arguments[0] + 1)", &json!([2])), 3);
    page.assert_quiet();
}

#[test]
fn click_waits_until_a_button_is_enabled() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open(&document(
        "<button disabled onclick=\"this.dataset.clicks = 1 + Number(this.dataset.clicks ?? 0)\">Add</button>
        <script>setTimeout(() => document.querySelector('button').disabled = false, 3000)</script>",
    ));
    page.click("button");
    assert_eq!(page.attribute("button", "data-clicks").as_deref(), Some("1"));
    page.assert_quiet();
}

#[test]
fn display_modes_and_screenshots() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open(&document("<meta name=viewport content='width=device-width'><p>Hello"));
    let seen = "return [innerWidth, matchMedia('(prefers-color-scheme: dark)').matches, 'ontouchstart' in window]";
    for (display, expected) in [
        (DisplayMode::Light, json!([1280, false, false])),
        (DisplayMode::Dark, json!([1280, true, false])),
        (DisplayMode::Phone, json!([390, false, true])),
    ] {
        page.set_display_mode(display);
        page.reload();
        assert_eq!(page.eval(seen, &json!([])), expected, "{display:?}");
    }
    let picture = std::fs::read(page.screenshot("harness")).unwrap();
    assert!(picture.starts_with(b"\x89PNG"));
}

#[test]
fn network_is_recorded_and_can_be_disabled() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/livez");
    page.open("/readyz");
    page.back();
    assert_eq!(page.path(), "/livez");
    page.until("the request", || page.requests().contains(&server.url("/livez")));
    let status = "return fetch('/api/v1/mailbox/ann').then(answer => answer.status, () => 'failed')";
    assert_eq!(page.eval(status, &json!([])), 200);
    page.offline(true);
    assert_eq!(page.eval(status, &json!([])), "failed");
    page.offline(false);
    assert_eq!(page.eval(status, &json!([])), 200);
    assert_eq!(page.external_requests(), [""; 0]);
}

#[test]
fn running_scripts_are_detected() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    // Directly, in a frame, and in a frame with its own origin, which may not open dialogs.
    let scripts = [
        "<script>SCRIPT</script>",
        "<img src=x: onerror='SCRIPT'>",
        "<iframe srcdoc='<script>SCRIPT</script>'></iframe>",
        "<iframe sandbox='allow-scripts' srcdoc='<script>SCRIPT</script>'></iframe>",
    ];
    for (number, case) in scripts.iter().enumerate() {
        let mark = format!("executed {number}");
        page.open(&document(&case.replace("SCRIPT", &format!("console.log(`{mark}`); alert(`{mark}`)"))));
        page.until(case, || page.console().iter().any(|line| line.contains(&mark)));
        let may_ask = !case.contains("sandbox");
        page.until(case, || page.dialogs().contains(&mark) || !may_ask);
    }
}

#[test]
fn external_requests_are_detected() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let cases = [
        ("<img src=http://a.test/>", "http://a.test/"),
        ("<img src=https://b.test/>", "b.test"),
        ("<img src=http://192.0.2.1/>", "http://192.0.2.1/"),
        ("<link rel=preconnect href=http://c.test>", "a connection"),
        ("<iframe sandbox srcdoc='<img src=http://d.test/>'></iframe>", "http://d.test/"),
        ("<iframe src=http://e.test/></iframe>", "http://e.test/"),
        ("<meta http-equiv=refresh content='0; url=http://f.test/'>", "http://f.test/"),
        ("<form action=http://g.test/></form><script>document.forms[0].submit()</script>", "http://g.test/"),
        ("<script>new WebSocket('ws://h.test/')</script>", "ws://h.test/"),
        ("<img src=http://elsewhere.example/>", "http://elsewhere.example/"),
    ];
    for (html, expected) in cases {
        page.open(&document(html));
        page.until(html, || page.external_requests().iter().any(|url| url.contains(expected)));
    }
}

#[test]
fn frames_can_be_entered() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open(&document("<p>out</p><iframe sandbox srcdoc='<p>in</p>'></iframe>"));
    page.find("iframe");
    assert_eq!(page.in_frame("iframe", |frame| frame.text("p")), "in");
    assert_eq!(page.text("p"), "out");
    page.assert_quiet();
}
