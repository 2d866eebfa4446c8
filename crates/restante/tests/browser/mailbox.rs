//! The page of a mailbox: messages arrive, are read and are marked. Deleting is in `deletions.rs`, large mailboxes are in
//! `large_mailboxes.rs`.

use super::mails;
use super::page::{Page, key};
use crate::support::Server;

/// The subjects of the rows that are in the document.
pub(crate) const ROWS: &str = ".message-row .row-subject";

/// Delivers messages to James.
pub(crate) fn deliver(server: &Server, subjects: &[&str]) {
    for subject in subjects {
        server.deliver("james@x.org", &mails::text(subject, "Hello James"));
    }
}

/// Waits until the list shows exactly these subjects.
#[track_caller]
pub(crate) fn until_rows(page: &Page, rows: &[&str]) {
    page.until(&format!("the rows {rows:?}"), || page.texts(ROWS) == rows);
}

#[test]
fn new_messages_appear_in_the_open_mailbox() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/m/James@x.org");
    page.until("the empty mailbox", || page.text("mail-page").contains("This mailbox is empty"));
    assert!(page.text("mail-page").contains(&server.smtp.port().to_string()), "the SMTP port is not shown");
    deliver(&server, &["First"]);
    until_rows(&page, &["First"]);
    // The address changes to the server's name of the mailbox.
    page.until("the name", || page.path() == "/m/james");
    page.expect_text("list-head h1", "james");
    page.until("the title", || page.title() == "(1) james · Restante");
    deliver(&server, &["Second", "Third"]);
    until_rows(&page, &["Third", "Second", "First"]);
    page.until("the title", || page.title() == "(3) james · Restante");
    page.expect_texts(".list-facts .number", &["3 messages", "3 unread"]);
    // One of three is read.
    page.click(".message-row");
    page.until("the message", || page.text(".message-subject") == "Third");
    page.until("the title", || page.title() == "(2) Third · james · Restante");
    page.until("the read state", || server.json("/api/v1/mailbox/james")[2]["seen"] == true);
    // The open message stays when others arrive.
    deliver(&server, &["Fourth"]);
    until_rows(&page, &["Fourth", "Third", "Second", "First"]);
    assert_eq!(page.text(".message-subject"), "Third");
    assert_eq!(page.text("[aria-current=true] .row-subject"), "Third");
    // The sidebar shows the number of unread messages.
    page.until("the mailbox", || page.text(".sidebar-mailboxes [aria-current] .sidebar-count") == "3");
    page.click(".brand");
    page.until("the inbox", || page.text("list-head h1") == "Inbox");
    page.assert_quiet();
}

#[test]
fn message_opened_by_address_is_marked_as_read() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, &["One", "Two"]);
    page.open(&format!("/m/james/{}", server.ids("james")[0]));
    page.expect_text(".message-subject", "One");
    page.until("the read state", || server.json("/api/v1/mailbox/james")[0]["seen"] == true);
    page.until("the row", || page.texts(".message-row:not(.unread) .row-subject") == ["One"]);
    // The newest message has its own address.
    page.open("/m/james/latest");
    page.until("the read state", || server.json("/api/v1/mailbox/james")[1]["seen"] == true);
    page.until("the title", || page.title() == "Two · james · Restante");
    // A message that is marked as unread stays unread.
    page.click("[title^='Mark as unread']");
    page.until("the unread state", || server.json("/api/v1/mailbox/james")[1]["seen"] == false);
    deliver(&server, &["Three"]);
    until_rows(&page, &["Three", "Two", "One"]);
    page.expect_texts(".message-row.unread .row-subject", &["Three", "Two"]);
    assert_eq!(server.json("/api/v1/mailbox/james")[1]["seen"], false);
    page.assert_quiet();
}

#[test]
fn read_state_is_shared_between_tabs() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, &["One", "Two"]);
    page.open("/m/james");
    page.until("the counts", || page.texts(".list-facts .number") == ["2 messages", "2 unread"]);
    page.in_new_tab(|other| {
        other.open("/m/james/latest");
        other.until("the message", || other.text(".message-subject") == "Two");
        other.until("the counts", || other.texts(".list-facts .number") == ["2 messages", "1 unread"]);
    });
    page.until("the counts", || page.texts(".list-facts .number") == ["2 messages", "1 unread"]);
    page.expect_texts(".message-row.unread .row-subject", &["One"]);
    page.expect_title("(1) james · Restante");
    page.assert_quiet();
}

#[test]
fn shift_and_arrow_keys_select_a_range() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, &["One", "Two", "Three", "Four", "Five"]);
    page.open("/m/james");
    until_rows(&page, &["Five", "Four", "Three", "Two", "One"]);
    let selected = || page.texts(".message-row[aria-selected=true] .row-subject");
    page.keys("jj");
    page.keys_with_shift(&key::DOWN.repeat(2));
    page.until("the range", || selected() == ["Four", "Three", "Two"]);
    page.expect_part("[aria-label='Selected messages']", "3 selected");
    page.keys_with_shift(key::UP);
    page.until("a shorter range", || selected() == ["Four", "Three"]);
    page.keys(key::ESCAPE);
    page.until("no selection", || selected().is_empty());
    page.assert_quiet();
}
