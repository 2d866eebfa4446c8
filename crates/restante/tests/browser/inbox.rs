//! The inbox: the messages of all mailboxes, live, with the mailboxes on the left.

use serde_json::json;

use super::mailbox::{ROWS, until_rows};
use super::mails::{self, Mail};
use super::page::{DisplayMode, Page, key};
use crate::support::Server;

fn deliver(server: &Server, to: &str, subject: &str) {
    server.deliver(to, &Mail { to, subject, ..Mail::default() }.bytes());
}

/// Delivers one message to several recipients.
fn deliver_to_all(server: &Server, recipients: &[&str], subject: &str) {
    let mut connection = server.connect_smtp();
    connection.expect("220");
    connection.command("EHLO client.test", "250");
    connection.command("MAIL FROM:<ann@x.org>", "250");
    for recipient in recipients {
        connection.command(&format!("RCPT TO:<{recipient}>"), "250");
    }
    connection.command("DATA", "354");
    connection.send(format!("From: Ann <ann@x.org>\r\nTo: team@x.org\r\nSubject: {subject}\r\n\r\nHello\r\n.\r\n"));
    connection.expect("250");
}

#[test]
fn newest_message_is_one_click_away() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/");
    page.until("the instructions", || page.text("empty-list").contains(&server.smtp.port().to_string()));
    deliver(&server, "james@x.org", "First");
    until_rows(&page, &["First"]);
    deliver(&server, "mary@x.org", "Second");
    until_rows(&page, &["Second", "First"]);
    page.expect_title("(2) Inbox · Restante");
    page.expect_texts(".row-to bdi", &["mary@x.org", "james@x.org"]);
    page.click(".message-row");
    page.until("the message", || page.text(".message-subject") == "Second");
    page.until("the read state", || server.json("/api/v1/mailbox/mary")[0]["seen"] == true);
    // The list stays, and the keys move in it.
    page.keys("j");
    page.until("the next message", || page.text(".message-subject") == "First");
    assert!(page.path().starts_with("/messages/"), "{}", page.path());
    page.back();
    page.until("the inbox", || page.path() == "/");
    until_rows(&page, &["Second", "First"]);
    // The old address of the live page.
    page.open("/monitor");
    until_rows(&page, &["Second", "First"]);
    page.assert_quiet();
}

#[test]
fn newest_message_is_opened_by_itself_if_set() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "james@x.org", "First");
    deliver(&server, "mary@x.org", "Second");
    page.open("/status");
    page.eval("localStorage.setItem('restante.setting', '{\"openNewest\":true}')", &json!([]));
    page.open("/");
    page.until("the newest message", || page.text(".message-subject") == "Second");
    // It can be closed.
    page.keys(&[key::ESCAPE, key::ESCAPE].concat());
    page.until("the list", || page.path() == "/");
    page.assert_quiet();
}

#[test]
fn message_to_several_recipients_is_one_row() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/");
    page.find("empty-list send-here");
    deliver_to_all(&server, &["james@x.org", "mary@x.org", "bob@x.org"], "To all");
    until_rows(&page, &["To all"]);
    page.until("the mailboxes", || page.count(".sidebar-mailboxes li") == 3);
    assert_eq!((page.text(".row-to bdi").as_str(), page.text(".row-more").trim()), ("james@x.org", "+2"));
    page.reload();
    until_rows(&page, &["To all"]);
    // Without one of its copies it stays; without all of them it is removed.
    for (mailbox, rows) in [("james", 1), ("mary", 1), ("bob", 0)] {
        ureq::delete(server.url(&format!("/api/v1/mailbox/{mailbox}"))).call().unwrap();
        page.until("the mailbox", || !page.texts(".sidebar-mailboxes bdi").contains(&mailbox.to_owned()));
        page.until("the rows", || page.count(".message-row") == rows);
    }
    page.assert_quiet();
}

#[test]
fn deleting_and_marking_concerns_all_copies() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver_to_all(&server, &["james@x.org", "mary@x.org"], "One");
    deliver_to_all(&server, &["james@x.org", "mary@x.org"], "Two");
    page.open("/");
    until_rows(&page, &["Two", "One"]);
    let seen = |mailbox: &str, index: usize| server.json(&format!("/api/v1/mailbox/{mailbox}"))[index]["seen"].clone();
    page.click(".message-row");
    page.until("the read state", || seen("james", 1) == true && seen("mary", 1) == true);
    page.keys("u");
    page.until("the unread state", || seen("james", 1) == false && seen("mary", 1) == false);
    page.click("[aria-label='Mark all as read']");
    page.until("the read state", || seen("james", 0) == true && seen("mary", 1) == true);
    page.until("no unread mailbox", || page.count(".sidebar-link.has-unread") == 0);
    page.keys(key::DELETE);
    until_rows(&page, &["One"]);
    page.keys("z");
    until_rows(&page, &["Two", "One"]);
    page.keys(key::DELETE);
    until_rows(&page, &["One"]);
    page.run_paused_timers();
    page.until("the deletion", || server.count("james") == 1 && server.count("mary") == 1);
    page.assert_quiet();
}

#[test]
fn list_can_be_paused() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "james@x.org", "Before");
    page.open("/");
    until_rows(&page, &["Before"]);
    page.until("the connection", || page.text(".live-state") == "Live");
    page.click("[title^=Pause]");
    for number in 0..40 {
        deliver(&server, "mary@x.org", &format!("Number {number}"));
    }
    page.until("the number", || page.text(".live-state") == "Paused, 40 new");
    assert_eq!(page.texts(ROWS), ["Before"]);
    // Messages that are deleted in the meantime are not counted.
    let newest = server.ids("mary").pop().unwrap();
    ureq::delete(server.url(&format!("/api/v1/mailbox/mary/{newest}"))).call().unwrap();
    page.until("the number", || page.text(".live-state") == "Paused, 39 new");
    page.click("[title^=Resume]");
    page.until("the newest", || page.texts(ROWS).first().is_some_and(|subject| subject == "Number 38"));
    page.until("the counts", || page.text(".list-total").starts_with("40 messages"));
    page.expect_text(".live-state", "Live");
    // The pause continues in another list.
    page.keys("p");
    page.until("the pause", || page.text(".live-state") == "Paused");
    page.click("list-filters button");
    page.until("the filter", || page.path() == "/search?q=is%3Aunseen");
    page.until("the rows", || page.count("virtual-list[inert]") == 0 && page.count(".message-row") > 0);
    deliver(&server, "mary@x.org", "Later");
    page.until("the number", || page.text(".live-state") == "Paused, 1 new");
    page.keys("p");
    page.until("the newest", || page.texts(ROWS).first().is_some_and(|subject| subject == "Later"));
    page.assert_quiet();
}

#[test]
fn sidebar_filters_mailboxes() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    for number in 0..9 {
        deliver(&server, &format!("user{number}@x.org"), "Hello");
    }
    deliver(&server, "zoe@x.org", "Hello");
    page.open("/");
    page.until("the mailboxes", || page.count(".sidebar-mailboxes li") == 10);
    page.fill("mailbox-sidebar [type=search]", "user7");
    page.until("one of them", || page.texts(".sidebar-mailboxes bdi") == ["user7"]);
    page.click(".sidebar-mailboxes a");
    page.until("the mailbox", || page.path() == "/m/user7");
    page.expect_count("mailbox-sidebar [aria-current=page]", 1);
    page.fill("mailbox-sidebar [type=search]", "nosuch");
    page.until("the note", || page.text(".sidebar-note") == "No matching mailboxes");
    // A mailbox whose link has the focus is removed with its last message.
    page.fill("mailbox-sidebar [type=search]", "user7");
    page.click(".sidebar-mailboxes a");
    ureq::delete(server.url("/api/v1/mailbox/user7")).call().unwrap();
    page.until("the note", || page.text(".sidebar-note") == "No matching mailboxes");
    page.assert_quiet();
}

#[test]
fn phone_shows_the_list_or_the_message() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "james@x.org", "First");
    deliver(&server, "mary@x.org", "Second");
    page.set_display_mode(DisplayMode::Phone);
    page.open("/");
    until_rows(&page, &["Second", "First"]);
    page.click(".message-row");
    page.until("the message", || page.text(".message-subject") == "Second");
    let is_visible =
        |css: &str| page.eval("return document.querySelector(arguments[0]).checkVisibility()", &json!([css])) == true;
    page.until("only the message", || !is_visible(".list-pane") && is_visible("message-pane"));
    page.keys("j");
    page.until("the next message", || page.text(".message-subject") == "First");
    page.click(".message-tools .back");
    page.until("the list", || page.path() == "/");
    page.until("only the list", || is_visible(".list-pane") && !is_visible("message-pane"));
    // The mailboxes are an overlay.
    page.until("no mailboxes", || !is_visible("mailbox-sidebar"));
    page.click(".sidebar-toggle");
    page.until("the mailboxes", || is_visible("mailbox-sidebar"));
    page.click(".sidebar-mailboxes li:last-child a");
    page.until("the mailbox", || page.path().starts_with("/m/"));
    page.until("no mailboxes", || !is_visible("mailbox-sidebar"));
    page.assert_quiet();
}

#[test]
fn inbox_is_hidden_with_the_monitor() {
    let server = Server::start(&["--web-monitorvisible=false"]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "james@x.org", "Secret");
    page.open("/");
    page.find("open-mailbox input");
    page.find("send-here .snippet-code");
    assert_eq!((page.count(".message-row"), page.count(".sidebar-mailboxes li")), (0, 0));
    page.open("/m/james");
    until_rows(&page, &["Secret"]);
    assert_eq!(page.eval("return document.querySelector('mailbox-sidebar').checkVisibility()", &json!([])), false);
    page.assert_quiet();
}

#[test]
fn greeting_of_the_operator_is_shown_if_there_is_no_mail() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/");
    page.find("get-started .greeting");
    server.deliver("james@x.org", &mails::text("Hello", "Hello"));
    until_rows(&page, &["Hello"]);
    page.open("/send");
    page.find("get-started .greeting");
    page.assert_quiet();
}

#[test]
fn deletion_can_be_undone_after_a_filter_was_chosen() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "james@x.org", "One");
    deliver(&server, "mary@x.org", "Two");
    page.open("/");
    until_rows(&page, &["Two", "One"]);
    page.keys(&["j", key::DELETE].concat());
    until_rows(&page, &["One"]);
    page.click("list-filters button:nth-child(3)");
    page.until("the filter", || page.path().starts_with("/search?q=after%3Atoday"));
    page.until("the list", || page.count("virtual-list[inert]") == 0);
    until_rows(&page, &["One"]);
    page.keys("z");
    until_rows(&page, &["Two", "One"]);
    page.run_paused_timers();
    assert_eq!((server.count("james"), server.count("mary")), (1, 1));
    page.assert_quiet();
}

#[test]
fn open_message_stays_in_the_list_of_unread_messages() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    for subject in ["One", "Two", "Three"] {
        deliver(&server, "james@x.org", subject);
    }
    page.open("/search?q=is:unseen");
    until_rows(&page, &["Three", "Two", "One"]);
    page.keys("jj");
    page.until("the message", || page.text(".message-subject") == "Two");
    page.until("the read state", || server.json("/api/v1/mailbox/james")[1]["seen"] == true);
    deliver(&server, "mary@x.org", "Four");
    page.until("the new message", || page.texts(ROWS).first().is_some_and(|subject| subject == "Four"));
    assert!(page.texts(ROWS).contains(&"Two".to_owned()), "the open message left the list");
    page.keys("j");
    page.until("the next message", || page.text(".message-subject") == "One");
    page.assert_quiet();
}

#[test]
fn message_without_one_of_its_copies_stays_in_the_inbox() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver_to_all(&server, &["james@x.org", "mary@x.org"], "To both");
    page.open("/m/james");
    until_rows(&page, &["To both"]);
    page.keys(&["j", key::DELETE].concat());
    page.until("the empty mailbox", || page.text("mail-page").contains("This mailbox is empty"));
    // The deletion is sent while the inbox is loading.
    page.click(".brand");
    page.until("the deletion", || server.count("james") == 0);
    page.until("the inbox", || page.text("list-head h1") == "Inbox");
    until_rows(&page, &["To both"]);
    assert_eq!(server.count("mary"), 1);
    page.assert_quiet();
}
