//! Search results: the field in the bar, filters, live results, and navigation. The query language is tested in
//! `restante-search`.

use serde_json::json;

use super::active_html;
use super::mailbox::{ROWS, until_rows};
use super::mails::{self, Mail};
use super::page::{Page, key};
use crate::support::Server;

fn deliver(server: &Server, to: &str, subject: &str, text: &str) {
    server.deliver(to, &mails::text(subject, text));
}

#[test]
fn results_appear_while_typing_with_matches_marked() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "james@x.org", "Welcome", "Hello James, your login code is 4711.");
    deliver(&server, "bob@x.org", "Log in", "Hello Bob, your login code is 4712.");
    deliver(&server, "james@x.org", "News", "Nothing of that kind.");
    page.open("/");
    until_rows(&page, &["News", "Log in", "Welcome"]);
    page.keys("s");
    page.until("the field", || page.is_focused("#search-field"));
    // At once: with single keys, a search could start at the first quotation mark, which is not a valid query.
    page.command("Input.insertText", &json!({ "text": "\"login code\"" }));
    until_rows(&page, &["Log in", "Welcome"]);
    page.expect_path("/search?q=%22login+code%22");
    page.until("the counts", || page.texts(".list-facts .number") == ["2 messages", "2 unread"]);
    page.until("the title", || page.title() == "(2) \"login code\" · Restante");
    let marked = page.texts(".row-snippet mark").join(" ");
    assert!(marked.contains("login") && marked.contains("code") && !marked.contains("Hello"), "{marked}");
    // Also in subjects; a word matches the beginning of words.
    page.fill("#search-field", "wel");
    page.until("the subject", || page.texts(".row-subject mark") == ["Welcome"]);
    page.fill("#search-field", "\"login code\"");
    until_rows(&page, &["Log in", "Welcome"]);
    // Messages are opened in the list of results.
    page.keys(key::ENTER);
    page.keys("jj");
    page.until("the message", || page.text(".message-subject") == "Welcome");
    page.until("its address", || page.path().starts_with("/search?q=%22login+code%22&id="));
    page.keys("k");
    page.until("the message", || page.text(".message-subject") == "Log in");
    page.back();
    page.until("the results", || page.path() == "/search?q=%22login+code%22");
    // New messages are found too.
    deliver(&server, "mary@x.org", "Again", "Hello Mary, your login code is 4713.");
    deliver(&server, "mary@x.org", "Other", "Nothing of that kind.");
    until_rows(&page, &["Again", "Log in", "Welcome"]);
    // Without a query all messages are shown.
    page.click("#search-field");
    page.keys(key::ESCAPE);
    page.until("the inbox", || page.path() == "/");
    page.until("all messages", || page.count(".message-row") == 5);
    page.assert_quiet();
}

#[test]
fn field_searches_the_current_mailbox() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "james@x.org", "Mine", "The secret word");
    deliver(&server, "bob@x.org", "His", "The secret word");
    page.open("/m/james");
    until_rows(&page, &["Mine"]);
    page.fill("#search-field", "secret");
    page.until("the results", || page.path() == "/search?q=secret&mailbox=james");
    until_rows(&page, &["Mine"]);
    page.expect_text("list-head h1", "Search in james");
    page.fill("#search-field", "nowhere");
    page.until("the empty result", || page.text("empty-list").contains("No messages found"));
    page.click("empty-list a");
    page.until("the wider search", || page.path() == "/search?q=nowhere");
    page.fill("#search-field", "secret\n");
    until_rows(&page, &["His", "Mine"]);
    page.assert_quiet();
}

#[test]
fn filters_are_terms_of_the_query() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "james@x.org", "Plain", "Hello");
    let file = super::mails::File { kind: "text/plain", name: "a.txt", content: b"Hello" };
    server.deliver("mary@x.org", &Mail { subject: "With a file", files: &[file], ..Mail::default() }.bytes());
    server.deliver("bob@x.org", &Mail { subject: "Tagged", header: "X-Tags: run7\r\n", ..Mail::default() }.bytes());
    page.open("/");
    until_rows(&page, &["Tagged", "With a file", "Plain"]);
    let filter = |label: &str| {
        let script = "[...document.querySelectorAll('list-filters button')].find(one => one.textContent === arguments[0]).click()";
        page.eval(script, &json!([label]));
    };
    filter("Attachments");
    until_rows(&page, &["With a file"]);
    page.expect_path("/search?q=has%3Aattachment");
    filter("Unread");
    page.until("both terms", || page.path() == "/search?q=has%3Aattachment+is%3Aunseen");
    until_rows(&page, &["With a file"]);
    filter("Attachments");
    until_rows(&page, &["Tagged", "With a file", "Plain"]);
    filter("Unread");
    page.until("the inbox", || page.path() == "/");
    filter("Today");
    until_rows(&page, &["Tagged", "With a file", "Plain"]);
    filter("Today");
    page.until("the inbox", || page.path() == "/");
    // The sidebar lists the tags; the filters show the one of the query, which can be removed.
    page.click(".sidebar-tags a");
    until_rows(&page, &["Tagged"]);
    page.expect_path("/search?q=tag%3Arun7");
    page.expect_texts(".sidebar-tags [aria-current] bdi", &["run7"]);
    page.click("list-filters .tag");
    page.until("the inbox", || page.path() == "/");
    // A filter applies to all alternatives of a query.
    page.open("/search?q=plain+or+file");
    until_rows(&page, &["With a file", "Plain"]);
    filter("Attachments");
    until_rows(&page, &["With a file"]);
    page.expect_path("/search?q=%28plain+or+file%29+has%3Aattachment");
    filter("Attachments");
    until_rows(&page, &["With a file", "Plain"]);
    page.assert_quiet();
}

#[test]
fn results_can_be_marked_and_deleted() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    for (to, subject) in [("james@x.org", "Code 1"), ("mary@x.org", "Code 2"), ("mary@x.org", "Keep")] {
        deliver(&server, to, subject, "Hello");
    }
    page.open("/search?q=code");
    until_rows(&page, &["Code 2", "Code 1"]);
    page.click("[aria-label='Mark all as read']");
    page.until("the read state", || page.count(".message-row.unread") == 0);
    assert_eq!(server.json("/api/v1/mailbox/mary")[1]["seen"], false, "another message was marked");
    page.delete_all();
    page.expect_part("dialog", "Delete 2 messages?");
    page.click("dialog [value=yes]");
    page.until("the empty result", || page.text("empty-list").contains("No messages found"));
    assert_eq!((server.count("james"), server.count("mary")), (0, 1));
    page.assert_quiet();
}

#[test]
fn invalid_query_is_explained() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "james@x.org", "Hello", "Hello");
    page.open("/search?q=hello+before:soon");
    page.until("the error", || page.text("empty-list").contains("a date such as"));
    assert!(
        page.text(".search-error-position").contains("hello before:soon"),
        "{}",
        page.text(".search-error-position")
    );
    page.expect_text(".search-error-position mark", "s");
    page.expect_part(".search-help", "has:attachment");
    page.expect_count(ROWS, 0);
    page.fill("#search-field", "hello before:2100-01-01\n");
    until_rows(&page, &["Hello"]);
}

#[test]
fn results_are_loaded_page_by_page() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    for number in 0..120 {
        deliver(&server, "james@x.org", &format!("Number {number}"), "One of many");
    }
    page.open("/search?q=many");
    page.until("the newest", || page.texts(ROWS).first().is_some_and(|subject| subject == "Number 119"));
    page.until("the oldest", || {
        page.eval(
            "const port = document.querySelector('.virtual-port'); port.scrollTop = port.scrollHeight",
            &json!([]),
        );
        page.texts(ROWS).last().is_some_and(|subject| subject == "Number 0")
    });
    page.until("the counts", || page.text(".list-total").starts_with("120 messages"));
    page.assert_quiet();
}

#[test]
fn results_are_not_interpreted_as_html() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let words = format!("<img src=x onerror=\"{}\"><b>needle</b>\u{202e}", active_html::script(1));
    let from = format!("{} <ann@x.org>", mails::word(&words));
    server.deliver("james@x.org", &Mail { from: &from, subject: &words, text: &words, ..Mail::default() }.bytes());
    page.open("/search?q=needle");
    page.until("the message", || page.count(".message-row") == 1);
    let shown = words.replace('\u{202e}', "[U+202E]");
    page.expect_text(".row-sender bdi", &shown);
    // The rest of a line is cut off, so it is not part of the visible text.
    let subject = page.eval("return document.querySelector('.row-subject').textContent", &json!([]));
    assert_eq!(subject, shown);
    let excerpt = page.eval("return document.querySelector('.row-snippet').textContent", &json!([]));
    assert!(excerpt.as_str().unwrap().contains("<b>needle</b>"), "{excerpt}");
    assert_eq!(page.eval("return document.querySelector('.row-snippet mark').textContent", &json!([])), "needle");
    page.expect_count(".message-row b, .message-row img", 0);
    // Neither is the query.
    page.fill("#search-field", "\"<img src=x onerror=alert(1)>\n");
    page.until("the response", || page.count("empty-list .empty") > 0);
    page.expect_count("mail-page img", 0);
    assert_eq!(page.dialogs(), [""; 0]);
    assert_eq!(page.external_requests(), [""; 0]);
}

#[test]
fn search_is_limited_to_mailboxes_if_the_monitor_is_hidden() {
    let server = Server::start(&["--web-monitorvisible=false"]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "james@x.org", "Hello", "Hello");
    page.open("/search?q=hello");
    page.until("the explanation", || page.text("mail-page").contains("Searching all mailboxes is disabled"));
    page.expect_count(ROWS, 0);
    page.open("/m/james");
    page.fill("#search-field", "hello\n");
    page.until("the search", || page.path() == "/search?q=hello&mailbox=james");
    until_rows(&page, &["Hello"]);
    page.assert_quiet();
}
