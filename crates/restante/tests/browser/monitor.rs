//! The monitor page.

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
fn arrivals_are_shown_live_paused_and_filtered() {
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
    // While paused, the list does not change and no arrival is lost.
    page.click("[title^=Pause]");
    deliver(&server, "james@x.org", "Meanwhile");
    deliver(&server, "james@x.org", "At last");
    page.until("the number", || page.text(".monitor-state") == "Paused, 2 waiting");
    assert_eq!(page.texts(ROWS), ["Later", "Before"]);
    page.click("[title^='Resume']");
    until_rows(&page, &["At last", "Meanwhile", "Later", "Before"]);
    assert_eq!(page.text(".monitor-state"), "Live");
    // The filter matches all words, also of new arrivals.
    page.fill("monitor-page [type=search]", "JAMES last");
    until_rows(&page, &["At last"]);
    deliver(&server, "mary@x.org", "At last, Mary");
    deliver(&server, "james@x.org", "The very last");
    until_rows(&page, &["The very last", "At last"]);
    page.fill("monitor-page [type=search]", "nobody");
    page.until("the empty result", || page.text("monitor-page").contains("No matching messages"));
    page.fill("monitor-page [type=search]", "mary later");
    until_rows(&page, &["Later"]);
    page.click(ROWS);
    page.until("the message", || page.text(".message-subject") == "Later");
    assert_eq!(page.path(), format!("/m/mary/{}", server.ids("mary")[0]));
    page.assert_quiet();
}

#[test]
fn state_is_kept_when_the_page_is_left() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/monitor");
    page.until("the connection", || page.text(".monitor-state") == "Live");
    for (to, subject) in [("james@x.org", "One"), ("mary@x.org", "Two"), ("james@x.org", "Three")] {
        deliver(&server, to, subject);
    }
    until_rows(&page, &["Three", "Two", "One"]);
    page.fill("monitor-page [type=search]", "james");
    until_rows(&page, &["Three", "One"]);
    page.click("[title^=Pause]");
    // In a hidden tab the title shows the number of waiting arrivals.
    deliver(&server, "james@x.org", "Four");
    deliver(&server, "james@x.org", "Five");
    page.until("the number", || page.title() == "(2) Monitor · Restante");
    page.click(".arrival:last-child .arrival-link");
    page.until("the message", || page.text(".message-subject") == "One");
    deliver(&server, "james@x.org", "Six");
    page.back();
    page.until("the waiting arrivals", || page.text(".monitor-state") == "Paused, 3 waiting");
    assert_eq!(page.texts(ROWS), ["Three", "One"]);
    assert_eq!(page.text(".monitor-count"), "2 of 3");
    page.until("the number", || page.title() == "(3) Monitor · Restante");
    page.click("[title^='Resume']");
    until_rows(&page, &["Six", "Five", "Four", "Three", "One"]);
    page.until("the title", || page.title() == "Monitor · Restante");
    page.assert_quiet();
}

#[test]
fn deleted_messages_are_struck_out() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/monitor");
    page.until("the connection", || page.text(".monitor-state") == "Live");
    deliver(&server, "james@x.org", "To stay");
    let from = "\"Mary <the other>\" <mary@x.org>";
    server.deliver("james@x.org", &Mail { from, subject: "To go", ..Mail::default() }.bytes());
    until_rows(&page, &["To go", "To stay"]);
    assert_eq!(page.texts(".arrival-from"), ["Mary <the other>", "Ann"]);
    let ids = server.ids("james");
    ureq::delete(server.url(&format!("/api/v1/mailbox/james/{}", ids[1]))).call().unwrap();
    page.until("the deletion", || page.texts(".arrival.gone del") == ["To go"]);
    assert_eq!(page.attribute(".arrival.gone .arrival-link", "href"), None, "the deleted message has a link");
    page.click("[title^='Clear this list']");
    page.until("the empty list", || page.text("monitor-page").contains("Waiting for messages"));
    assert_eq!(server.count("james"), 1);
    page.assert_quiet();
}

#[test]
fn hidden_monitor_is_not_linked() {
    let server = Server::start(&["--web-monitorvisible=false"]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "james@x.org", "Secret");
    page.open("/");
    page.find("send-here .snippet-code");
    page.until("no list", || page.count("mailbox-list") == 0);
    assert_eq!(page.count("[data-page=monitor]:not([hidden])"), 0);
    page.open("/monitor");
    page.until("the explanation", || page.text("monitor-page").contains("The monitor is disabled"));
    assert_eq!(page.count(ROWS), 0);
    page.assert_quiet();
}
