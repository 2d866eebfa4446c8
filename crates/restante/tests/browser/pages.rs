//! Every page at its address, with and without a base path and behind a proxy. Pages send requests to their server only.

use serde_json::json;

use super::page::Page;
use super::{mails, proxy};
use crate::support::Server;

/// The addresses of all pages, and a selector that exists when they are complete.
const PAGES: [(&str, &str); 9] = [
    ("/", "mail-page .message-row"),
    ("/monitor", "mail-page .message-row"),
    ("/m/james", "mail-page .message-row"),
    ("/m/james/latest", "mail-page .message-subject"),
    ("/search?q=hello", "mail-page .message-row"),
    ("/send", "send-page .snippet-code"),
    ("/settings", "settings-page h1"),
    ("/status", "status-page .status-words li"),
    ("/api/docs#readMessage", "main details[open] pre"),
];

fn deliver(server: &Server, subject: &str) {
    server.deliver("james@x.org", &mails::html(subject, "<h1>Hello James</h1>"));
}

/// Navigates by links through all pages below this path while messages arrive.
#[track_caller]
fn visit_all_pages(page: &Page, server: &Server, base: &str) {
    page.find("empty-list send-here");
    page.click("[data-page=status]");
    page.until("the counters", || page.text("status-page .figures").contains("Stored messages"));
    page.expect_path(&format!("{base}/status"));
    page.keys("o");
    page.fill("#open-mailbox-name", "james\n");
    page.until("the mailbox", || page.path() == format!("{base}/m/james"));
    deliver(server, "First");
    page.click(".message-row");
    page.until("the message", || page.text(".message-subject") == "First");
    page.expect_path(&format!("{base}/m/james/{}", server.ids("james")[0]));
    assert_eq!(page.in_frame("iframe", |frame| frame.text("h1")), "Hello James");
    // The links of the frame work from a deeper path, also after a reload.
    page.reload();
    page.until("the message", || page.text(".message-subject") == "First");
    page.click(".brand");
    page.until("the mailbox", || page.texts(".sidebar-mailboxes bdi") == ["james"]);
    page.expect_path(&format!("{base}/"));
    page.click(".message-row");
    page.until("the message", || page.path().starts_with(&format!("{base}/messages/")));
    page.reload();
    page.until("the message", || page.text(".message-subject") == "First");
    let outside: Vec<_> = page.requests().into_iter().filter(|url| !url.contains(&format!("{base}/"))).collect();
    assert_eq!(outside, [""; 0], "requests outside of the base path");
    page.assert_quiet();
}

#[test]
fn every_page_has_its_address() {
    let server = Server::start(&["--web-basepath=/mail/box"]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "Hello");
    for (path, landmark) in PAGES {
        for base in ["", "/mail/box"] {
            page.open(&format!("{base}{path}"));
            page.find(landmark);
        }
    }
    page.assert_quiet();
}

#[test]
fn all_requests_stay_below_the_base_path() {
    let server = Server::start(&["--web-basepath=/mail"]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/mail");
    page.find("mail-page");
    page.expect_path("/mail/");
    // Only the address without the trailing slash is outside.
    page.clear_requests();
    visit_all_pages(&page, &server, "/mail");
}

#[test]
fn all_requests_stay_below_a_stripped_prefix() {
    let server = Server::start(&[]);
    let proxy = proxy::start("/tools/mail", server.http);
    let Some(page) = Page::at(proxy) else { return };
    page.open("/tools/mail/");
    visit_all_pages(&page, &server, "/tools/mail");
}

#[test]
fn unknown_address_is_not_found() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/m/james/1/2");
    page.expect_text("h1", "Page not found");
    page.click("main a, .login a");
    page.until("the inbox", || page.path() == "/");
}

#[test]
fn trailing_slash_is_the_same_page() {
    let server = Server::start(&["--web-basepath=/mail"]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "Hello");
    for base in ["", "/mail"] {
        page.open(&format!("{base}/m/james/"));
        page.find(".message-row");
        page.expect_path(&format!("{base}/m/james"));
        page.expect_text("list-head h1", "james");
    }
    page.assert_quiet();
}

#[test]
fn mailbox_field_accepts_valid_names_only() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "Hello");
    for (start, field) in [("/status", "#open-mailbox-name"), ("/send", "#open-mailbox")] {
        page.open(start);
        page.find("main h1");
        page.keys("o");
        page.find(field);
        // A dot segment is rejected at the field with a message.
        page.fill(field, "..\n");
        let complaint = || page.eval("return document.querySelector(arguments[0]).validationMessage", &json!([field]));
        page.until("the message", || {
            complaint()
                == "“..” is not a mailbox name. Enter a name such as james, or an address such as james@example.org."
        });
        assert_eq!(page.path(), start);
        // An address as copied from mail programs.
        page.fill(field, "J K <james@example.org>\n");
        page.find(".message-row");
        page.until("the name", || page.path() == "/m/james");
    }
    page.assert_quiet();
}

#[test]
fn foreign_values_in_local_storage_are_ignored() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "Hello");
    page.open("/");
    let poison = r#"
        localStorage.setItem('restante.recent', '["\\ud800", 5, {}, "james"]');
        localStorage.setItem('restante.theme', '{');
        localStorage.setItem('restante.preview.width', '[[]]');"#;
    page.eval(poison, &json!([]));
    for (path, landmark) in PAGES {
        page.open(path);
        page.find(landmark);
    }
    page.open("/send");
    page.until("the valid name", || page.texts("open-mailbox .chip") == ["james"]);
    page.expect_attribute("[data-tool=theme]", "aria-label", "Theme: system");
    page.assert_quiet();
}

#[test]
fn navigation_focuses_the_heading() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "Hello");
    page.open("/");
    for (link, heading) in [
        ("[data-page=status]", "status-page h1"),
        ("[data-page=settings]", "settings-page h1"),
        (".brand", "mail-page h1"),
    ] {
        page.click(link);
        page.until(heading, || page.is_focused(heading));
    }
    page.back();
    page.until("the heading of the settings", || page.is_focused("settings-page h1"));
    page.assert_quiet();
}
