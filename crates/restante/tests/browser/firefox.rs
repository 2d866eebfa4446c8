//! The main pages in Firefox, one after another. The details of each page are tested in Chromium.

use serde_json::json;

use super::mailbox::{deliver, until_rows};
use super::mails::{File, Mail};
use super::page::{Page, key};
use crate::support::Server;

/// A message with HTML, an image on another host, and an attachment.
const ORDER: Mail<'_> = Mail {
    from: "Shop <shop@x.org>",
    to: "james@x.org",
    subject: "Your order",
    header: "",
    text: "Thank you for your order of a teapot.",
    html: "<h1>Thank you</h1><p>for your order of a teapot</p><img src='http://image.test/teapot.png' alt=''>",
    pictures: &[],
    files: &[File { kind: "text/plain", name: "invoice.txt", content: b"One teapot" }],
};

#[test]
fn main_pages_work_in_firefox() {
    let server = Server::start(&[]);
    let Some(page) = Page::in_firefox(&server) else { return };
    // The inbox is empty, then messages arrive.
    page.open("/");
    page.until("the instructions", || page.text("empty-list").contains(&server.smtp.port().to_string()));
    server.deliver("james@x.org", &ORDER.bytes());
    until_rows(&page, &["Your order"]);
    deliver(&server, &["Hello"]);
    until_rows(&page, &["Hello", "Your order"]);
    // A message: its HTML without content of other hosts, its attachment, its header.
    page.click(".message-row:nth-child(2)");
    page.until("the message", || page.text(".message-subject") == "Your order");
    page.until("the preview", || page.in_frame(".preview", |frame| frame.text("body")).contains("Thank you"));
    page.find(".remote-note");
    assert_eq!(page.external_requests(), [""; 0], "remote content is loaded without a click");
    page.expect_texts(".card-name", &["invoice.txt"]);
    page.click("#tab-headers");
    page.until("the header", || page.text("#panel-headers").contains("Your order"));
    page.click("#tab-html");
    page.until("the read state", || server.json("/api/v1/mailbox/james")[0]["seen"] == true);
    page.screenshot("firefox-message");
    // The keys move in the list, and Back returns to it.
    page.keys("k");
    page.until("the newer message", || page.text(".message-subject") == "Hello");
    page.keys("j");
    page.until("the older message", || page.text(".message-subject") == "Your order");
    page.back();
    page.until("the inbox", || page.path() == "/");
    page.click(".message-row:nth-child(2)");
    page.until("the message", || page.text(".message-subject") == "Your order");
    // Deleting can be undone.
    page.pause_timers();
    page.click("message-pane .danger");
    until_rows(&page, &["Hello"]);
    page.click(".toast .button");
    until_rows(&page, &["Hello", "Your order"]);
    page.click("message-pane .danger");
    until_rows(&page, &["Hello"]);
    page.run_paused_timers();
    page.until("the deletion", || server.count("james") == 1);
    // The search, which is live.
    page.fill("#search-field", &format!("teapot{}", key::ENTER));
    page.until("no results", || page.path().starts_with("/search?q=teapot") && page.count(".message-row") == 0);
    server.deliver("james@x.org", &ORDER.bytes());
    until_rows(&page, &["Your order"]);
    // A setting takes effect at once and is stored.
    page.open("/settings");
    let scheme = || page.eval("return getComputedStyle(document.documentElement).colorScheme", &json!([]));
    page.click("[data-setting=theme] [value=dark]");
    page.until("the dark theme", || scheme() == "dark");
    page.reload();
    page.find("[data-setting=theme] [value=dark]:checked");
    assert_eq!(scheme(), "dark");
    page.assert_quiet();
}

#[test]
fn errors_in_firefox_are_detected() {
    let server = Server::start(&[]);
    let Some(page) = Page::in_firefox(&server) else { return };
    page.open("/status");
    page.find("status-page h1");
    page.eval("setTimeout(() => { throw new Error('the first') })", &json!([]));
    page.until("the error", || page.console().iter().any(|line| line.contains("the first")));
    page.eval("setTimeout(() => location.href = 'http://other.test/')", &json!([]));
    // The browser also requests the icon of the page, at any time.
    page.until("the request", || page.external_requests().contains(&"http://other.test/".to_owned()));
}
