//! Mail that is deleted: with a way back, several at once, all at once, and by whoever leaves before it is over.

use serde_json::json;

use super::large_mailboxes::deliver_many;
use super::mailbox::{deliver, until_rows};
use super::page::{Page, key};
use crate::support::Server;

#[test]
fn what_was_deleted_can_be_brought_back() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, &["One", "Two", "Three"]);
    page.open(&format!("/m/james/{}", server.ids("james")[1]));
    page.hold_time();
    page.click("message-pane .danger");
    until_rows(&page, &["Three", "One"]);
    page.until("the toast", || page.text(".toast").starts_with("Deleted 1 message"));
    page.until("the next message", || page.text(".message-subject") != "Two");
    assert_eq!(server.count("james"), 3, "the server has not been told yet");
    page.click(".toast .button");
    until_rows(&page, &["Three", "Two", "One"]);
    page.until("the message", || page.text(".message-subject") == "Two");
    // This time nobody changes their mind.
    page.click("message-pane .danger");
    until_rows(&page, &["Three", "One"]);
    assert_eq!(server.count("james"), 3);
    page.let_time_pass();
    page.until("the end of the toast", || page.count(".toast") == 0);
    page.until("the end of the message", || server.count("james") == 2);
    until_rows(&page, &["Three", "One"]);
    // And this time they leave before it is over.
    page.click("message-pane .danger");
    until_rows(&page, &["Three"]);
    page.click(".brand");
    page.find("home-page h1");
    page.until("the end of the message", || server.count("james") == 1);
    page.assert_quiet();
}

#[test]
fn several_are_selected_and_deleted_and_all_are_purged() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, &["One", "Two", "Three", "Four", "Five"]);
    page.open("/m/james");
    until_rows(&page, &["Five", "Four", "Three", "Two", "One"]);
    page.hold_time();
    page.click(".message-row:nth-child(2) .row-check");
    page.click(".message-row:nth-child(4) .row-check");
    assert!(page.text("[aria-label='Selected messages']").contains("2 selected"));
    page.click("[aria-label='Selected messages'] .danger");
    until_rows(&page, &["Five", "Three", "One"]);
    page.let_time_pass();
    page.until("their end", || server.count("james") == 3);
    // Someone else deletes one.
    let ids = server.ids("james");
    ureq::delete(server.url(&format!("/api/v1/mailbox/james/{}", ids[2]))).call().unwrap();
    until_rows(&page, &["Three", "One"]);
    // All of the rest, but not without a question.
    page.click("[aria-label='Delete all messages']");
    assert!(page.text("dialog").contains("2 messages"), "{}", page.text("dialog"));
    page.click("dialog [value=no]");
    page.until("the end of the question", || page.count("dialog") == 0);
    assert_eq!(server.count("james"), 2);
    page.click("[aria-label='Delete all messages']");
    page.click("dialog [value=yes]");
    page.until("the invitation", || page.text("mailbox-page").contains("This mailbox is empty"));
    assert_eq!(server.count("james"), 0);
    page.assert_quiet();
}

#[test]
fn whoever_runs_deletes_where_they_stopped() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, &["One", "Two", "Three", "Four"]);
    page.open("/m/james");
    until_rows(&page, &["Four", "Three", "Two", "One"]);
    page.hold_time();
    page.keys(&["j", "j", key::DELETE].concat());
    until_rows(&page, &["Four", "Two", "One"]);
    page.until("the next message", || page.text(".message-subject") == "Two");
    assert_eq!(page.text("[aria-current=true] .row-subject"), "Two");
    assert_eq!(page.path(), format!("/m/james/{}", server.ids("james")[1]));
    page.let_time_pass();
    page.until("the end of the message", || server.count("james") == 3);
    page.assert_quiet();
}

#[test]
fn what_is_not_there_cannot_be_deleted() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, &["One", "Two"]);
    page.open("/m/james/999");
    page.until("the word of it", || page.text("message-view").contains("This message does not exist"));
    until_rows(&page, &["Two", "One"]);
    // The help comes after the key before it has done what it does.
    page.keys(&[key::DELETE, "?"].concat());
    page.find("dialog");
    assert_eq!(page.count(".toast"), 0, "nothing is said to be deleted");
    assert_eq!(page.texts(".message-row .row-subject"), ["Two", "One"]);
    assert_eq!(page.path(), "/m/james/999");
    assert_eq!(server.count("james"), 2);
}

#[test]
fn a_question_does_not_outlive_its_page() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, &["One", "Two"]);
    page.open("/status");
    page.fill("#goto", "james\n");
    until_rows(&page, &["Two", "One"]);
    page.click("[aria-label='Delete all messages']");
    page.find("dialog [value=yes]");
    page.back();
    page.find("status-page h1");
    page.until("the end of the question", || page.count("dialog") == 0);
    // Whoever comes back finds all as it was.
    page.eval("history.forward()", &json!([]));
    until_rows(&page, &["Two", "One"]);
    assert_eq!(page.count("dialog, .toast"), 0);
    assert_eq!(server.count("james"), 2);
    page.assert_quiet();
}

#[test]
fn what_was_deleted_is_gone_when_the_page_is_left_at_once() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver_many(&server, 50);
    page.open("/m/james");
    page.until("all of them", || page.text(".mailbox-counts").starts_with("50 messages"));
    page.hold_time();
    page.click("[aria-label='Select all']");
    page.click("[aria-label='Selected messages'] .danger");
    page.open("about:blank");
    page.until("their end", || server.count("james") == 0);
    page.assert_quiet();
}
