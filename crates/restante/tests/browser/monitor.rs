//! The monitor: everything as it arrives, in any mailbox.

use super::mails::Mail;
use super::page::Page;
use crate::support::Server;

const ROWS: &str = ".arrival-link";

fn deliver(server: &Server, to: &str, subject: &str) {
    server.deliver(to, &Mail { to, subject, ..Mail::default() }.bytes());
}

#[track_caller]
fn until_rows(page: &Page, rows: &[&str]) {
    page.until(&format!("the rows {rows:?}"), || page.texts(ROWS) == rows);
}

#[test]
fn arrivals_are_shown_as_they_come() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "james@x.org", "Before");
    page.open("/");
    page.click("[data-page=monitor]");
    until_rows(&page, &["Before"]);
    assert_eq!(page.title(), "Monitor · Restante");
    deliver(&server, "mary@x.org", "Later");
    until_rows(&page, &["Later", "Before"]);
    assert_eq!(page.texts(".arrival-mailbox"), ["mary", "james"]);
    // Nothing moves while it is paused, and nothing is lost.
    page.click("[title^=Pause]");
    deliver(&server, "james@x.org", "Meanwhile");
    deliver(&server, "james@x.org", "At last");
    page.until("the number", || page.text(".monitor-state") == "Paused, 2 waiting");
    assert_eq!(page.texts(ROWS), ["Later", "Before"]);
    page.click("[title^='Resume']");
    until_rows(&page, &["At last", "Meanwhile", "Later", "Before"]);
    assert_eq!(page.text(".monitor-state"), "Live");
    // A filter looks at all words, and at what arrives as well.
    page.fill("monitor-page [type=search]", "JAMES last");
    until_rows(&page, &["At last"]);
    deliver(&server, "mary@x.org", "At last, Mary");
    deliver(&server, "james@x.org", "The very last");
    until_rows(&page, &["The very last", "At last"]);
    page.fill("monitor-page [type=search]", "nobody");
    page.until("the word of it", || page.text("monitor-page").contains("No matching messages"));
    page.fill("monitor-page [type=search]", "mary later");
    until_rows(&page, &["Later"]);
    page.click(ROWS);
    page.until("the message", || page.text(".message-subject") == "Later");
    assert_eq!(page.path(), format!("/m/mary/{}", server.ids("mary")[0]));
    page.assert_quiet();
}

#[test]
fn it_is_found_as_it_was_left() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/monitor");
    page.until("the beginning", || page.text(".monitor-state") == "Live");
    for (to, subject) in [("james@x.org", "One"), ("mary@x.org", "Two"), ("james@x.org", "Three")] {
        deliver(&server, to, subject);
    }
    until_rows(&page, &["Three", "Two", "One"]);
    page.fill("monitor-page [type=search]", "james");
    until_rows(&page, &["Three", "One"]);
    page.click("[title^=Pause]");
    // Whoever looks at something else is told by the title how much waits.
    deliver(&server, "james@x.org", "Four");
    deliver(&server, "james@x.org", "Five");
    page.until("the number", || page.title() == "(2) Monitor · Restante");
    page.click(".arrival:last-child .arrival-link");
    page.until("the message", || page.text(".message-subject") == "One");
    deliver(&server, "james@x.org", "Six");
    page.back();
    page.until("what waits", || page.text(".monitor-state") == "Paused, 3 waiting");
    assert_eq!(page.texts(ROWS), ["Three", "One"]);
    assert_eq!(page.text(".monitor-count"), "2 of 3");
    page.until("the number", || page.title() == "(3) Monitor · Restante");
    page.click("[title^='Resume']");
    until_rows(&page, &["Six", "Five", "Four", "Three", "One"]);
    page.until("the title", || page.title() == "Monitor · Restante");
    page.assert_quiet();
}

#[test]
fn what_is_deleted_is_struck_out() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/monitor");
    page.until("the beginning", || page.text(".monitor-state") == "Live");
    deliver(&server, "james@x.org", "To stay");
    let from = "\"Mary <the other>\" <mary@x.org>";
    server.deliver("james@x.org", &Mail { from, subject: "To go", ..Mail::default() }.bytes());
    until_rows(&page, &["To go", "To stay"]);
    assert_eq!(page.texts(".arrival-from"), ["Mary <the other>", "Ann"]);
    let ids = server.ids("james");
    ureq::delete(server.url(&format!("/api/v1/mailbox/james/{}", ids[1]))).call().unwrap();
    page.until("the deletion", || page.texts(".arrival.gone del") == ["To go"]);
    assert_eq!(page.attribute(".arrival.gone .arrival-link", "href"), None, "it leads nowhere");
    page.click("[title^='Clear this list']");
    page.until("nothing", || page.text("monitor-page").contains("Waiting for messages"));
    assert_eq!(server.count("james"), 1);
    page.assert_quiet();
}

#[test]
fn a_hidden_monitor_is_not_offered() {
    let server = Server::start(&["--web-monitorvisible=false"]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "james@x.org", "Secret");
    page.open("/");
    page.find("send-here .snippet-code");
    page.until("no list", || page.count("mailbox-list") == 0);
    assert_eq!(page.count("[data-page=monitor]:not([hidden])"), 0);
    page.open("/monitor");
    page.until("the word of it", || page.text("monitor-page").contains("The monitor is disabled"));
    assert_eq!(page.count(ROWS), 0);
    page.assert_quiet();
}
