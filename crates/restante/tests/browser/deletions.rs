//! Mail that is deleted: with a way back, several at once, all at once, and by whoever leaves before it is over.

use super::mailbox::{deliver, until_rows};
use super::page::Page;
use super::support::Server;

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
