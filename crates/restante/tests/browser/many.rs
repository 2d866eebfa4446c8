//! Mailboxes of thousands of messages, which are as easy to live with as ten.

use serde_json::{Value, json};

use super::mailbox::{ROWS, deliver, until_rows};
use super::page::Page;
use super::support::Server;

/// What the list is scrolled in.
const PORT: &str = ".virtual-port";
/// Many enough that no list could show them all.
const MANY: usize = 10_000;
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
