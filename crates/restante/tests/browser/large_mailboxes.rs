//! Mailboxes of thousands of messages, which are as easy to live with as ten.

use serde_json::{Value, json};

use super::mailbox::{ROWS, deliver, until_rows};
use super::page::Page;
use crate::support::Server;

/// What the list is scrolled in.
const PORT: &str = ".virtual-port";
/// Many enough that no list could show them all.
const MANY: usize = 10_000;
/// More than can be deleted with a way back.
const THOUSANDS: usize = 3_000;
/// Whether the row of the open message is in sight; a fraction of a pixel may be missing.
const CURRENT_IS_SEEN: &str = "
    const port = document.querySelector(arguments[0]).getBoundingClientRect();
    const row = document.querySelector('.message-row[aria-current=true]')?.getBoundingClientRect();
    return Boolean(row) && row.top > port.top - 1 && row.bottom < port.bottom + 1";
/// So many are sent before the replies are read.
const AT_ONCE: usize = 250;

/// Puts many messages into a mailbox, without waiting for each: from `Message 0` on, in this order.
pub(crate) fn deliver_many(server: &Server, count: usize) {
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

/// Scrolls the list: 1 is its end.
#[track_caller]
fn scroll(page: &Page, to: f64) {
    let script = "const port = document.querySelector(arguments[0]); port.scrollTop = arguments[1] * port.scrollHeight";
    page.eval(script, &json!([PORT, to]));
}

/// What the first row that is wholly in sight is about, and where it stands.
#[track_caller]
fn top(page: &Page) -> Value {
    page.eval(
        "const port = document.querySelector(arguments[0]).getBoundingClientRect();
         const row = [...document.querySelectorAll('.message-row')].find(row => row.getBoundingClientRect().top >= port.top);
         return row && [row.querySelector('.row-subject').textContent, row.getBoundingClientRect().top]",
        &json!([PORT]),
    )
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
    scroll(&page, 1.0);
    page.until("the end", || page.texts(ROWS).last().is_some_and(|subject| subject == "Message 0"));
    few();
    scroll(&page, 0.5);
    page.until("the middle", || page.texts(ROWS).contains(&"Message 4990".to_owned()));
    // What is read there does not move when something arrives.
    let before = top(&page);
    deliver(&server, &["A needle", "Hay"]);
    page.until("the arrivals", || page.text(".mailbox-counts").starts_with("10,002"));
    assert_eq!(top(&page), before, "what is read does not move");
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

#[test]
fn a_place_in_a_long_list_is_found_again() {
    let server = Server::start(&["--storage-mailboxmsgcap=0"]);
    let Some(page) = Page::of(&server) else { return };
    deliver_many(&server, THOUSANDS);
    // By the address of a message far down.
    page.open(&format!("/m/james/{}", server.ids("james")[100]));
    page.until("the message", || page.text(".message-subject") == "Message 100");
    page.until("its row", || page.eval(CURRENT_IS_SEEN, &json!([PORT])) == true);
    assert_eq!(page.text("[aria-current=true] .row-subject"), "Message 100");
    // By the way back, even to where no message is open.
    page.open("/m/james");
    page.until("all of them", || page.text(".mailbox-counts").starts_with("3,000"));
    scroll(&page, 0.5);
    page.until("the middle", || page.texts(ROWS).contains(&"Message 1490".to_owned()));
    let before = top(&page);
    page.until("its mark", || page.eval("return Boolean(history.state?.sight)", &json!([])) == true);
    page.click("[data-page=status]");
    page.find("status-page h1");
    page.back();
    page.until("what was in sight", || page.count(PORT) == 1 && top(&page) == before);
    page.assert_quiet();
}

#[test]
fn thousands_are_deleted_after_a_question() {
    let server = Server::start(&["--storage-mailboxmsgcap=0"]);
    let Some(page) = Page::of(&server) else { return };
    deliver_many(&server, THOUSANDS);
    page.open("/m/james");
    page.until("all of them", || page.text(".mailbox-counts").starts_with("3,000"));
    // All but the newest.
    page.click("[aria-label='Select all']");
    page.click(".message-row .row-check");
    page.until("the number", || page.text("[aria-label='Selected messages']").contains("2,999 selected"));
    page.click("[aria-label='Selected messages'] .danger");
    assert!(page.text("dialog").contains("2,999 messages"), "{}", page.text("dialog"));
    assert_eq!(server.count("james"), THOUSANDS, "the question comes first");
    page.click("dialog [value=yes]");
    until_rows(&page, &["Message 2999"]);
    assert_eq!(server.count("james"), 1, "what is gone from the list is gone");
    page.assert_quiet();
}
