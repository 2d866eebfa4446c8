//! The search page: the field in the bar, the results, and navigation. The query language is tested in `restante-search`.

use serde_json::json;

use super::active_html;
use super::mails::{self, Mail};
use super::page::{Page, key};
use crate::support::Server;

/// The subjects of the results.
const RESULTS: &str = ".hit-link";

fn deliver(server: &Server, to: &str, subject: &str, text: &str) {
    server.deliver(to, &mails::text(subject, text));
}

#[test]
fn results_are_shown_with_matches_marked() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "james@x.org", "Welcome", "Hello James, your login code is 4711.");
    deliver(&server, "bob@x.org", "Log in", "Hello Bob, your login code is 4712.");
    deliver(&server, "james@x.org", "News", "Nothing of that kind.");
    page.open("/");
    page.find("home-page h1");
    // From any page, by keyboard.
    page.keys(&format!("s\"login code\"{}", key::ENTER));
    page.until("the results", || page.texts(RESULTS) == ["Log in", "Welcome"]);
    assert_eq!(page.path(), "/search?q=%22login+code%22");
    assert_eq!(page.texts(".hit-mailbox"), ["bob", "james"]);
    assert_eq!(page.text(".search-count"), "2 messages");
    assert_eq!(page.title(), "\"login code\" · Search · Restante");
    let marked = page.texts(".hit-snippet mark").join(" ");
    assert!(marked.contains("login") && marked.contains("code") && !marked.contains("Hello"), "{marked}");
    // Open a message, and return to the same state.
    page.keys("jj");
    page.keys(key::ENTER);
    page.until("the message", || page.text(".message-subject") == "Welcome");
    page.back();
    page.until("the results", || page.texts(RESULTS) == ["Log in", "Welcome"]);
    page.until("the row", || page.eval("return document.activeElement.innerText", &json!([])) == "Welcome");
    // Another query, without a page load.
    page.fill("#search", "subject:news\n");
    page.until("another message", || page.texts(RESULTS) == ["News"]);
    page.back();
    page.until("the first query", || page.texts(RESULTS) == ["Log in", "Welcome"]);
    page.assert_quiet();
}

#[test]
fn field_searches_the_current_mailbox() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "james@x.org", "Mine", "The secret word");
    deliver(&server, "bob@x.org", "His", "The secret word");
    page.open("/m/james");
    page.find(".message-row");
    // A search finds what the filter does not.
    page.fill("message-list input[type=search]", "secret");
    page.until("the empty result", || page.text("message-list .list-none").contains("No message has these words"));
    page.click("message-list .list-none a");
    page.until("the message", || page.texts(RESULTS) == ["Mine"]);
    assert_eq!(page.text("search-page h1"), "Search in james");
    page.click(".search-wider");
    page.until("both", || page.texts(RESULTS) == ["His", "Mine"]);
    assert_eq!(page.text("search-page h1"), "Search all messages");
    // The field in the bar searches the current mailbox.
    page.click(".hit-mailbox");
    page.until("the mailbox", || page.path() == "/m/bob");
    assert_eq!(page.attribute("#search-field", "placeholder").as_deref(), Some("Search in bob…"));
    page.fill("#search-field", "secret\n");
    page.until("the message", || page.texts(RESULTS) == ["His"]);
    assert_eq!(page.path(), "/search?q=secret&mailbox=bob");
    page.fill("#search", "nowhere\n");
    page.until("the empty result", || page.text(".search-notes").contains("No messages found"));
    page.assert_quiet();
}

#[test]
fn invalid_query_is_explained() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "james@x.org", "Hello", "Hello");
    page.open("/search");
    assert!(page.text(".search-help").contains("has:attachment"), "the search syntax is not shown");
    page.fill("#search", "hello before:soon\n");
    page.until("the error", || page.text(".search-problem").contains("a date such as"));
    assert!(
        page.text(".search-error-position").contains("hello before:soon"),
        "{}",
        page.text(".search-error-position")
    );
    assert_eq!(page.text(".search-error-position mark"), "s");
    assert_eq!(page.count(RESULTS), 0);
    page.fill("#search", "hello before:2100-01-01\n");
    page.until("the message", || page.texts(RESULTS) == ["Hello"]);
    assert_eq!(page.count(".search-problem"), 0);
}

#[test]
fn results_are_loaded_page_by_page() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    for number in 0..120 {
        deliver(&server, "james@x.org", &format!("Number {number}"), "One of many");
    }
    page.open("/search?q=many");
    page.until("the first page", || page.count(RESULTS) == 50);
    assert_eq!(page.text(".search-count"), "50 messages, and more");
    page.click(".search-more button");
    page.until("the second page", || page.count(RESULTS) == 100);
    page.click(".search-more button");
    page.until("all", || page.count(RESULTS) == 120);
    assert_eq!(page.text(".search-count"), "120 messages");
    assert_eq!(page.eval("return document.querySelector('.search-more button').hidden", &json!([])), true);
    // Invisible rows are not rendered, but exist.
    let ends =
        "const all = [...document.querySelectorAll(arguments[0])]; return [all[0].textContent, all.at(-1).textContent]";
    assert_eq!(page.eval(ends, &json!([RESULTS])), json!(["Number 119", "Number 0"]));
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
    page.until("the message", || page.count(".hit") == 1);
    let shown = words.replace('\u{202e}', "[U+202E]");
    assert_eq!(page.text(RESULTS), shown);
    assert_eq!(page.text(".hit-from bdi"), shown);
    assert!(page.text(".hit-snippet").contains("<b>needle</b>"), "{}", page.text(".hit-snippet"));
    assert_eq!(page.texts(".hit-snippet mark"), ["needle"]);
    assert_eq!(page.count(".hit b, .hit img"), 0);
    // Neither is the query.
    page.fill("#search", "\"<img src=x onerror=alert(1)>\n");
    page.until("the response", || page.count(".search-problem, .search-notes .empty") > 0);
    assert_eq!(page.count("search-page img"), 0);
    assert_eq!(page.dialogs(), [""; 0]);
    assert_eq!(page.external_requests(), [""; 0]);
}

#[test]
fn search_is_limited_to_mailboxes_if_the_monitor_is_hidden() {
    let server = Server::start(&["--web-monitorvisible=false"]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "james@x.org", "Hello", "Hello");
    page.open("/search?q=hello");
    page.until("the explanation", || page.text(".search-notes").contains("does not allow searching all mailboxes"));
    assert_eq!(page.count(RESULTS), 0);
    page.open("/m/james");
    page.fill("#search-field", "hello\n");
    page.until("the message", || page.texts(RESULTS) == ["Hello"]);
    page.assert_quiet();
}
