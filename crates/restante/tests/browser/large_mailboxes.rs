//! Mailboxes with thousands of messages.

use serde_json::{Value, json};

use super::mailbox::{ROWS, deliver, until_rows};
use super::page::{Page, is_near};
use crate::support::Server;

/// The scrolling element of the list.
const PORT: &str = ".virtual-port";
/// More rows than a list can have in the document.
const MANY: usize = 10_000;
/// More messages than can be deleted with undo.
const ABOVE_UNDO_LIMIT: usize = 3_000;
/// Returns whether the row of the open message is visible, within a fraction of a pixel.
const CURRENT_IS_VISIBLE: &str = "
    const port = document.querySelector(arguments[0]).getBoundingClientRect();
    const row = document.querySelector('.message-row[aria-current=true]')?.getBoundingClientRect();
    return Boolean(row) && row.top > port.top - 1 && row.bottom < port.bottom + 1";
/// The number of messages that are sent before the replies are read.
const PIPELINED: usize = 250;

/// Delivers messages by pipelining, in order from `Message 0`.
pub(crate) fn deliver_many(server: &Server, count: usize) {
    let mut connection = server.connect_smtp();
    connection.expect("220");
    connection.command("EHLO client.test", "250");
    let numbers: Vec<_> = (0..count).collect();
    for some in numbers.chunks(PIPELINED) {
        let mails = some.iter().map(|number| {
            let mail = format!("From: Ann <ann@x.org>\r\nSubject: Message {number}\r\n\r\nHello\r\n");
            let length = mail.len();
            format!("MAIL FROM:<ann@x.org>\r\nRCPT TO:<james@x.org>\r\nBDAT {length} LAST\r\n{mail}")
        });
        connection.send(mails.collect::<String>());
        for _ in 0..3 * some.len() {
            connection.expect("250");
        }
    }
}

/// Scrolls the list to a fraction of its height.
#[track_caller]
fn scroll(page: &Page, to: f64) {
    let script = "const port = document.querySelector(arguments[0]); port.scrollTop = arguments[1] * port.scrollHeight";
    page.eval(script, &json!([PORT, to]));
}

/// Scrolls to the end of the list until the wanted rows are shown. The list is loaded page by page: every page is waited for
/// separately.
#[track_caller]
fn scroll_down_until(page: &Page, is_reached: impl Fn(&[String]) -> bool) {
    let mut rows = Vec::new();
    for _ in 0..MANY {
        page.until("the next rows", || {
            scroll(page, 1.0);
            page.texts(ROWS) != rows
        });
        rows = page.texts(ROWS);
        if is_reached(&rows) {
            return;
        }
    }
    panic!("the rows are not in the list, which ends with {rows:?}");
}

/// Returns whether these are the rows at the end of the list.
fn is_end(rows: &[String]) -> bool {
    rows.last().is_some_and(|subject| subject == "Message 0")
}

/// Returns the subject and the position of the first fully visible row.
#[track_caller]
fn top(page: &Page) -> Value {
    page.measure(
        "const port = document.querySelector(arguments[0]).getBoundingClientRect();
         const row = [...document.querySelectorAll('.message-row')].find(row => row.getBoundingClientRect().top > port.top - 1);
         return row && [row.querySelector('.row-subject').textContent, row.getBoundingClientRect().top]",
        &json!([PORT]),
    )
}

/// Returns whether two positions differ by the rounding of a pixel at most.
fn is_same_position(one: &Value, other: &Value) -> bool {
    let [a, b] = [one, other].map(|position| position[1].as_f64().unwrap_or(f64::NAN));
    one[0] == other[0] && is_near(a, b)
}

#[test]
fn large_mailbox_is_shown_with_few_rows() {
    let server = Server::start(&["--storage-mailboxmsgcap=0"]);
    let Some(page) = Page::of(&server) else { return };
    deliver_many(&server, MANY);
    page.open("/m/james");
    page.until("the counts", || page.texts(".list-facts .number") == ["10,000 messages", "10,000 unread"]);
    page.until("the newest", || page.texts(ROWS).first() == Some(&format!("Message {}", MANY - 1)));
    let few = || assert!(page.count(".message-row") < 60, "{} rows are in the document", page.count(".message-row"));
    few();
    // To the end, which is loaded page by page, and to the middle.
    scroll_down_until(&page, is_end);
    few();
    scroll(&page, 0.5);
    page.until("the middle", || page.texts(ROWS).contains(&"Message 4990".to_owned()));
    // The visible rows do not move when messages arrive.
    let before = top(&page);
    deliver(&server, &["A needle", "Hay"]);
    page.until("the arrivals", || page.text(".list-total").starts_with("10,002"));
    let after = top(&page);
    assert!(is_same_position(&after, &before), "the visible rows moved from {before} to {after}");
    page.until("the number of arrivals", || page.text(".virtual-pill") == "2 new");
    page.click(".virtual-pill");
    page.until("the top", || page.texts(ROWS).first().is_some_and(|subject| subject == "Hay"));
    // The search finds one of them.
    page.fill("#search-field", "NEEDLE ann");
    until_rows(&page, &["A needle"]);
    page.fill("#search-field", "4711");
    until_rows(&page, &["Message 4711"]);
    page.click(".message-row");
    page.until("the message", || page.text(".message-subject") == "Message 4711");
    page.assert_quiet();
}

#[test]
fn scroll_position_is_restored() {
    let server = Server::start(&["--storage-mailboxmsgcap=0"]);
    let Some(page) = Page::of(&server) else { return };
    deliver_many(&server, ABOVE_UNDO_LIMIT);
    // By the address of a message far down the list.
    page.open(&format!("/m/james/{}", server.ids("james")[100]));
    page.until("the message", || page.text(".message-subject") == "Message 100");
    page.until("its row", || page.measure(CURRENT_IS_VISIBLE, &json!([PORT])) == true);
    page.expect_text("[aria-current=true] .row-subject", "Message 100");
    // By navigating back, even without an open message.
    page.open("/m/james");
    page.until("the counts", || page.text(".list-total").starts_with("3,000"));
    scroll_down_until(&page, |rows| rows.iter().any(|subject| subject.starts_with("Message 14")));
    let before = top(&page);
    assert_ne!(before, Value::Null, "no row is visible");
    page.click("[data-page=status]");
    page.find("status-page h1");
    page.back();
    page.until("the restored position", || page.count(PORT) == 1 && is_same_position(&top(&page), &before));
    page.assert_quiet();
}

#[test]
fn large_deletion_needs_a_confirmation() {
    let server = Server::start(&["--storage-mailboxmsgcap=0"]);
    let Some(page) = Page::of(&server) else { return };
    deliver_many(&server, ABOVE_UNDO_LIMIT);
    page.open("/m/james");
    scroll_down_until(&page, is_end);
    scroll(&page, 0.0);
    page.until("the top", || page.texts(ROWS)[0] == "Message 2999");
    // All except for the newest.
    page.click("[aria-label='Select all']");
    page.click(".message-row .row-check");
    page.until("the number", || page.text("[aria-label='Selected messages']").contains("2,999 selected"));
    page.click("[aria-label='Selected messages'] .danger");
    page.expect_part("dialog", "2,999 messages");
    assert_eq!(server.count("james"), ABOVE_UNDO_LIMIT, "messages were deleted before the confirmation");
    page.click("dialog [value=yes]");
    until_rows(&page, &["Message 2999"]);
    assert_eq!(server.count("james"), 1, "messages were not deleted");
    page.assert_quiet();
}

#[test]
fn messages_that_are_not_loaded_can_be_marked_and_deleted() {
    let server = Server::start(&["--storage-mailboxmsgcap=0"]);
    let Some(page) = Page::of(&server) else { return };
    deliver_many(&server, 1_000);
    deliver(&server, &["Hay"]);
    page.open("/search?q=message");
    page.until("the rows", || page.texts(ROWS).first().is_some_and(|subject| subject == "Message 999"));
    let select_everything = || {
        page.click("[aria-label='Select all']");
        page.click(".select-everything");
        page.until("the selection", || page.text("[aria-label='Selected messages']").contains("All selected"));
    };
    let unread = || {
        let all = server.json("/api/v1/mailbox/james");
        all.as_array().unwrap().iter().filter(|message| message["seen"] == false).count()
    };
    // The selection ends with its rows.
    select_everything();
    page.keys(super::page::key::ESCAPE);
    page.until("the end of the selection", || page.count(".message-row[aria-selected=true]") == 0);
    select_everything();
    page.click("[aria-label='Selected messages'] [title='Mark read']");
    page.until("the read state", || unread() == 1);
    select_everything();
    page.click("[aria-label='Selected messages'] .danger");
    page.expect_part("dialog", "all matching messages");
    page.click("dialog [value=yes]");
    page.until("the deletion", || page.text("empty-list").contains("No messages found"));
    assert_eq!(server.count("james"), 1, "another message was deleted");
    page.assert_quiet();
}
