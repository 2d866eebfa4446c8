//! Deleting messages: with undo, several at once, all at once, and when the page is left early.

use serde_json::json;

use super::large_mailboxes::deliver_many;
use super::mailbox::{deliver, until_rows};
use super::page::{Page, key};
use crate::support::Server;

#[test]
fn deletion_can_be_undone() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, &["One", "Two", "Three"]);
    page.open(&format!("/m/james/{}", server.ids("james")[1]));
    page.click("message-pane .danger");
    until_rows(&page, &["Three", "One"]);
    page.until("the toast", || page.text(".toast").starts_with("Deleted 1 message"));
    page.until("the next message", || page.text(".message-subject") != "Two");
    assert_eq!(server.count("james"), 3, "the message was deleted at once");
    page.click(".toast .button");
    until_rows(&page, &["Three", "Two", "One"]);
    page.until("the message", || page.text(".message-subject") == "Two");
    // Without undo.
    page.click("message-pane .danger");
    until_rows(&page, &["Three", "One"]);
    assert_eq!(server.count("james"), 3);
    page.run_paused_timers();
    page.until("the end of the toast", || page.count(".toast") == 0);
    page.until("the deletion", || server.count("james") == 2);
    until_rows(&page, &["Three", "One"]);
    // The page is left before the time for undo is over.
    page.click("message-pane .danger");
    until_rows(&page, &["Three"]);
    page.click(".brand");
    page.until("the inbox", || page.text("list-head h1") == "Inbox");
    page.until("the deletion", || server.count("james") == 1);
    page.assert_quiet();
}

#[test]
fn selected_messages_are_deleted_and_a_mailbox_is_emptied() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, &["One", "Two", "Three", "Four", "Five"]);
    page.open("/m/james");
    until_rows(&page, &["Five", "Four", "Three", "Two", "One"]);
    page.click(".message-row:nth-child(2) .row-check");
    page.click(".message-row:nth-child(4) .row-check");
    page.expect_part("[aria-label='Selected messages']", "2 selected");
    page.click("[aria-label='Selected messages'] .danger");
    until_rows(&page, &["Five", "Three", "One"]);
    page.run_paused_timers();
    page.until("the deletion", || server.count("james") == 3);
    // Another client deletes a message.
    let ids = server.ids("james");
    ureq::delete(server.url(&format!("/api/v1/mailbox/james/{}", ids[2]))).call().unwrap();
    until_rows(&page, &["Three", "One"]);
    // Emptying the mailbox needs a confirmation.
    page.delete_all();
    page.expect_part("dialog", "2 messages");
    page.click("dialog [value=no]");
    page.until("the end of the dialog", || page.count("dialog") == 0);
    assert_eq!(server.count("james"), 2);
    page.delete_all();
    page.click("dialog [value=yes]");
    page.until("the empty mailbox", || page.text("mail-page").contains("This mailbox is empty"));
    assert_eq!(server.count("james"), 0);
    page.assert_quiet();
}

#[test]
fn quick_steps_delete_the_message_at_the_cursor() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, &["One", "Two", "Three", "Four"]);
    page.open("/m/james");
    until_rows(&page, &["Four", "Three", "Two", "One"]);
    page.keys(&["j", "j", key::DELETE].concat());
    until_rows(&page, &["Four", "Two", "One"]);
    page.until("the next message", || page.text(".message-subject") == "Two");
    page.expect_text("[aria-current=true] .row-subject", "Two");
    page.expect_path(&format!("/m/james/{}", server.ids("james")[1]));
    page.run_paused_timers();
    page.until("the deletion", || server.count("james") == 3);
    page.assert_quiet();
}

#[test]
fn missing_message_cannot_be_deleted() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, &["One", "Two"]);
    page.open("/m/james/999");
    page.until("the error", || page.text("message-view").contains("This message does not exist"));
    until_rows(&page, &["Two", "One"]);
    // The help is shown after the previous key was handled.
    page.keys(&[key::DELETE, "?"].concat());
    page.find("dialog");
    assert_eq!(page.count(".toast"), 0, "a deletion is reported");
    assert_eq!(page.texts(".message-row .row-subject"), ["Two", "One"]);
    assert_eq!(page.path(), "/m/james/999");
    assert_eq!(server.count("james"), 2);
}

#[test]
fn dialog_closes_with_its_page() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, &["One", "Two"]);
    page.open("/status");
    page.keys("o");
    page.fill("#open-mailbox-name", "james\n");
    until_rows(&page, &["Two", "One"]);
    page.delete_all();
    page.find("dialog [value=yes]");
    page.back();
    page.find("status-page h1");
    page.until("the end of the dialog", || page.count("dialog") == 0);
    // Nothing has changed after the return.
    page.eval("history.forward()", &json!([]));
    until_rows(&page, &["Two", "One"]);
    page.expect_count("dialog, .toast", 0);
    assert_eq!(server.count("james"), 2);
    page.assert_quiet();
}

#[test]
fn pending_deletion_completes_when_the_page_is_left() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver_many(&server, 50);
    page.open("/m/james");
    page.until("all of them", || page.text(".list-total").starts_with("50 messages"));
    page.click("[aria-label='Select all']");
    page.click("[aria-label='Selected messages'] .danger");
    page.open("about:blank");
    page.until("the deletion", || server.count("james") == 0);
    page.assert_quiet();
}
