//! A mailbox that somebody looks at: mail arrives and goes, is selected, deleted and brought back, and ten thousand messages
//! are as easy to live with as ten.

use serde_json::{Value, json};

use super::mails;
use super::page::Page;
use super::support::Server;

/// The subjects in the list, as far as they are in the page.
const ROWS: &str = ".message-row .row-subject";
/// What the list is scrolled in.
const PORT: &str = ".virtual-port";
/// Many enough that no list could show them all.
const MANY: usize = 10_000;
/// So many are sent before the replies are read.
const AT_ONCE: usize = 250;

fn deliver(server: &Server, subjects: &[&str]) {
    for subject in subjects {
        server.deliver("james@x.org", &mails::text(subject, "Hello James"));
    }
}

#[track_caller]
fn until_rows(page: &Page, rows: &[&str]) {
    page.until(&format!("the rows {rows:?}"), || page.texts(ROWS) == rows);
}

/// Puts many messages into a mailbox, without waiting for each: from `Message 0` on, in this order.
fn deliver_many(server: &Server, count: usize) {
    let mut talk = server.talk();
    talk.expect("220");
    talk.say("EHLO client.test", "250");
    let numbers: Vec<_> = (0..count).collect();
    for some in numbers.chunks(AT_ONCE) {
        let mails = some.iter().map(|number| {
            let mail = format!("From: Ann <ann@x.org>\r\nSubject: Message {number}\r\n\r\nHello\r\n");
            let length = mail.len();
            format!("MAIL FROM:<ann@x.org>\r\nRCPT TO:<james@x.org>\r\nBDAT {length} LAST\r\n{mail}")
        });
        talk.send(mails.collect::<String>());
        for _ in 0..3 * some.len() {
            talk.expect("250");
        }
    }
}

#[test]
fn mail_arrives_while_one_looks() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/");
    page.fill("#open-mailbox", "James@x.org\n");
    page.until("the invitation", || page.text("mailbox-page").contains("This mailbox is empty"));
    assert!(page.text("mailbox-page").contains(&server.smtp.port().to_string()), "it says where to send mail");
    deliver(&server, &["First"]);
    until_rows(&page, &["First"]);
    // The server's own name is in the address as soon as it is known.
    page.until("the name", || page.path() == "/m/james");
    assert_eq!(page.text("mailbox-page h1"), "james");
    page.until("the title", || page.title() == "(1) james · Restante");
    deliver(&server, &["Second", "Third"]);
    until_rows(&page, &["Third", "Second", "First"]);
    page.until("the title", || page.title() == "(3) james · Restante");
    assert_eq!(page.text(".mailbox-counts"), "3 messages, 3 unread");
    // Reading one leaves two.
    page.click(".message-row");
    page.until("the message", || page.text(".message-subject") == "Third");
    page.until("the title", || page.title() == "(2) Third · james · Restante");
    page.until("the mark", || server.json("/api/v1/mailbox/james")[2]["seen"] == true);
    // What is read stays when more arrives.
    deliver(&server, &["Fourth"]);
    until_rows(&page, &["Fourth", "Third", "Second", "First"]);
    assert_eq!(page.text(".message-subject"), "Third");
    assert_eq!(page.text("[aria-current=true] .row-subject"), "Third");
    // The mailbox is remembered at home.
    page.click(".brand");
    page.until("the mailbox", || page.texts("open-mailbox .chip") == ["james"]);
    page.until("its numbers", || page.texts(".mailbox-row").iter().any(|row| row.contains("4 messages")));
    page.assert_quiet();
}

#[test]
fn a_message_opened_by_its_address_counts_as_read() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, &["One", "Two"]);
    page.open(&format!("/m/james/{}", server.ids("james")[0]));
    assert_eq!(page.text(".message-subject"), "One");
    page.until("the mark", || server.json("/api/v1/mailbox/james")[0]["seen"] == true);
    page.until("the row", || page.texts(".message-row:not(.unread) .row-subject") == ["One"]);
    // The newest one has an address of its own.
    page.open("/m/james/latest");
    page.until("the mark", || server.json("/api/v1/mailbox/james")[1]["seen"] == true);
    page.until("the title", || page.title() == "Two · james · Restante");
    // Marked as unread, it stays so.
    page.click("[title^='Mark as unread']");
    page.until("no mark", || server.json("/api/v1/mailbox/james")[1]["seen"] == false);
    deliver(&server, &["Three"]);
    until_rows(&page, &["Three", "Two", "One"]);
    assert_eq!(page.texts(".message-row.unread .row-subject"), ["Three", "Two"]);
    assert_eq!(server.json("/api/v1/mailbox/james")[1]["seen"], false);
    page.assert_quiet();
}

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
fn many_messages_are_no_burden() {
    let server = Server::start(&["--storage-mailboxmsgcap=0"]);
    let Some(page) = Page::of(&server) else { return };
    deliver_many(&server, MANY);
    page.open("/m/james");
    page.until("all of them", || page.text(".mailbox-counts") == "10,000 messages, 10,000 unread");
    assert_eq!(page.texts(ROWS)[0], format!("Message {}", MANY - 1));
    let few = || assert!(page.count(".message-row") < 60, "{} rows are in the page", page.count(".message-row"));
    few();
    // To the end, and somewhere between.
    let scroll = |to: f64| {
        page.eval(
            "const port = document.querySelector(arguments[0]); port.scrollTop = arguments[1] * port.scrollHeight",
            &json!([PORT, to]),
        )
    };
    scroll(1.0);
    page.until("the end", || page.texts(ROWS).last().is_some_and(|subject| subject == "Message 0"));
    few();
    scroll(0.5);
    page.until("the middle", || page.texts(ROWS).contains(&"Message 4990".to_owned()));
    // What is read there does not move when something arrives.
    let top = || {
        page.eval(
            "const port = document.querySelector(arguments[0]).getBoundingClientRect();
             const row = [...document.querySelectorAll('.message-row')].find(row => row.getBoundingClientRect().top >= port.top);
             return [row.querySelector('.row-subject').textContent, row.getBoundingClientRect().top]",
            &json!([PORT]),
        )
    };
    let before: Value = top();
    deliver(&server, &["A needle", "Hay"]);
    page.until("the arrivals", || page.text(".mailbox-counts").starts_with("10,002"));
    assert_eq!(top(), before, "what is read does not move");
    page.until("the word of the arrivals", || page.text(".virtual-pill") == "2 new");
    page.click(".virtual-pill");
    page.until("the top", || page.texts(ROWS).first().is_some_and(|subject| subject == "Hay"));
    // One is found among all.
    page.fill("message-list [type=search]", "NEEDLE ann");
    until_rows(&page, &["A needle"]);
    page.fill("message-list [type=search]", "4711");
    until_rows(&page, &["Message 4711"]);
    page.click(".message-row");
    page.until("the message", || page.text(".message-subject") == "Message 4711");
    page.assert_quiet();
}
