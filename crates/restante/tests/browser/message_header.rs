//! The headline of a message, its toolbar and its tags.

use serde_json::json;

use super::mails::{self, File, Mail};
use super::page::{DisplayMode, Page, is_near, key};
use crate::support::Server;

/// Returns whether the tabs are at the top of the view, and the headline is above it.
const IS_HEADLINE_AWAY: &str = "
    const top = selector => document.querySelector(selector).getBoundingClientRect().top;
    const { bottom } = document.querySelector('.message-headline').getBoundingClientRect();
    return Math.abs(top('tab-bar') - top('message-view')) < 2 && bottom <= top('message-view')";

/// Returns whether the view has a horizontal scrollbar.
const IS_TOO_WIDE: &str =
    "const { scrollWidth, clientWidth } = document.querySelector('message-view'); return scrollWidth > clientWidth";

#[test]
fn headline_names_all_recipients_and_the_mailbox() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let mail = Mail {
        to: "james+x@x.org",
        subject: "Build failed",
        header: "Cc: QA <qa@x.org>\r\nReply-To: Tickets <tickets@x.org>\r\n",
        text: "See the log.",
        ..Mail::default()
    }
    .bytes();
    let mut connection = server.connect_smtp();
    connection.start_message("james+x@x.org");
    connection.command("RCPT TO:<audit@x.org>", "250");
    connection.send([format!("BDAT {} LAST\r\n", mail.len()).as_bytes(), mail.as_slice()].concat());
    connection.expect("250");
    connection.command("QUIT", "221");
    page.open("/m/james/latest");
    page.expect_text(".message-to", "james+x@x.org");
    page.expect_text(".message-cc", "QA <qa@x.org>");
    page.expect_text(".message-bcc", "audit@x.org");
    page.expect_text(".message-reply-to", "Tickets <tickets@x.org>");
    let mailboxes = || page.text(".message-mailboxes").split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(mailboxes(), "Delivered to james audit");
    let reason = page.attribute(".message-mailboxes a", "title");
    assert_eq!(reason.as_deref(), Some("Recipient: james+x@x.org"));
    // The other copy is linked.
    let other = &server.ids("audit")[0];
    page.click(".message-mailboxes li:last-child a");
    page.until("the other mailbox", || page.path() == format!("/m/audit/{other}"));
    page.until("the mailboxes", || mailboxes() == "Delivered to audit james");
    page.assert_quiet();
}

#[test]
fn reply_to_that_is_the_sender_is_not_shown() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let mail = Mail { subject: "Hello", header: "Reply-To: <ANN@x.org>\r\n", text: "Hello", ..Mail::default() };
    server.deliver("james@x.org", &mail.bytes());
    page.open("/m/james/latest");
    page.until("the message", || page.text(".message-subject") == "Hello");
    page.expect_count(".message-reply-to, .message-cc, .message-bcc, .message-mailboxes li + li", 0);
}

#[test]
fn reply_to_can_have_several_addresses() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let header = "Reply-To: \"Doe, Ann\" <ann@x.org>, bob@x.org (Bob, at home),\r\n Team: \"C. (QA)\" <qa@x.org>;\r\n";
    server.deliver("james@x.org", &Mail { subject: "Hello", header, text: "Hello", ..Mail::default() }.bytes());
    page.open("/m/james/latest");
    page.until("the message", || page.text(".message-subject") == "Hello");
    let expected = ["Doe, Ann <ann@x.org>", "bob@x.org", "C. (QA) <qa@x.org>"];
    page.expect_texts(".message-reply-to .person", &expected);
    page.assert_quiet();
}

#[test]
fn tags_are_links_to_a_search() {
    let hidden = ["/search?q=tag%3Aci&mailbox=james", "/search?q=tag%3A%22run+7%22&mailbox=james"];
    let cases: [(&[&str], [&str; 2]); 2] =
        [(&[], ["/search?q=tag%3Aci", "/search?q=tag%3A%22run+7%22"]), (&["--web-monitorvisible=false"], hidden)];
    for (arguments, expected) in cases {
        let server = Server::start(arguments);
        let Some(page) = Page::of(&server) else { return };
        let mail = Mail { subject: "Hello", header: "X-Tags: ci, run 7\r\n", text: "Hello", ..Mail::default() };
        server.deliver("james@x.org", &mail.bytes());
        page.open(&format!("/m/james/{}", server.ids("james")[0]));
        let links = "return [...document.querySelectorAll('.tag-chips a')].map(link => link.pathname + link.search)";
        page.until("the links", || page.eval(links, &json!([])) == json!(expected));
        page.click(".tag-chips a");
        page.until("the search", || page.path() == expected[0] && page.count(".message-row") == 1);
    }
}

#[test]
fn mailbox_is_in_one_line_on_a_phone() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    server.deliver("james@x.org", &mails::text("Hello", "Hello"));
    page.set_display_mode(DisplayMode::Phone);
    page.open("/m/james/latest");
    page.find(".message-mailboxes a");
    let height = "return document.querySelector('.message-mailboxes').getBoundingClientRect().height";
    assert!(page.measure_number(height, &json!([])) <= 30.0);
    // Most of the screen is for the body.
    let top = "return document.querySelector('.panel:not([hidden])').getBoundingClientRect().top";
    assert!(page.measure_number(top, &json!([])) <= 400.0);
}

#[test]
fn tags_can_be_added_and_removed() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    server.deliver("james@x.org", &mails::text("Hello", "Hello"));
    page.open("/m/james/latest");
    page.click(".tag-chip.add");
    page.fill(".tag-form input", "run 7, smoke");
    page.click(".tag-form button");
    page.until("the tags", || page.texts(".tag-chips bdi") == ["run 7", "smoke"]);
    assert_eq!(server.json("/api/v2/messages/latest")["tags"], json!(["run 7", "smoke"]));
    // A tag that another client has added stays.
    let url = server.url(&format!("/api/v2/messages/{}", server.ids("james")[0]));
    ureq::patch(url).content_type("application/json").send(r#"{"tags":["run 7","smoke","zeta"]}"#).unwrap();
    page.click(".tag-remove");
    page.until("the other tags", || page.texts(".tag-chips bdi") == ["smoke", "zeta"]);
    assert_eq!(server.json("/api/v2/messages/latest")["tags"], json!(["smoke", "zeta"]));
    page.reload();
    page.until("the stored tags", || page.texts(".tag-chips bdi") == ["smoke", "zeta"]);
    page.assert_quiet();
}

#[test]
fn subject_has_a_button_only_if_it_is_cut_off() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let subject =
        "A subject that fits into two lines of a window but not into two lines of a phone, because it is long";
    server.deliver("james@x.org", &mails::text(subject, "Hello"));
    page.open("/m/james/latest");
    page.until("the message", || page.text(".message-subject") == subject);
    let buttons = ".message-long .more:not([hidden])";
    page.expect_count(buttons, 0);
    page.set_display_mode(DisplayMode::Phone);
    page.until("the button", || page.texts(buttons) == ["Show the whole subject"]);
    page.click(buttons);
    page.until("the other label", || page.texts(buttons) == ["Show less"]);
    let is_whole = "const { scrollHeight, clientHeight } = document.querySelector('.message-subject'); return scrollHeight <= clientHeight + 1";
    assert_eq!(page.eval(is_whole, &json!([])), true);
    page.assert_quiet();
}

#[test]
fn headline_scrolls_away() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let html = format!("<h1>Long</h1>{}", "<p>One more paragraph.</p>".repeat(200));
    let text = "One more line.\r\n".repeat(200);
    server.deliver("james@x.org", &Mail { subject: "Long", text: &text, html: &html, ..Mail::default() }.bytes());
    for display in [DisplayMode::Light, DisplayMode::Phone] {
        page.set_display_mode(display);
        page.open("/m/james/latest");
        page.in_frame("iframe", |frame| assert_eq!(frame.text("h1"), "Long"));
        // The frame cannot scroll until the headline is out of view.
        page.until("the frame", || page.attribute("iframe", "scrolling").as_deref() == Some("no"));
        page.eval("document.querySelector('message-view').scrollTop = 10_000", &json!([]));
        page.until("the end of the headline", || page.measure(IS_HEADLINE_AWAY, &json!([])) == true);
        assert_eq!(page.measure(IS_TOO_WIDE, &json!([])), false, "{display:?}");
        page.until("the frame", || page.attribute("iframe", "scrolling").as_deref() == Some("auto"));
        let share = "return document.querySelector('iframe').clientHeight / document.querySelector('message-view').clientHeight";
        let share = page.measure_number(share, &json!([]));
        assert!(share > 0.75, "the frame has only {share} of the height in {display:?}");
        page.keys("2");
        page.until("the text", || page.text(".message-text").starts_with("One more line."));
        page.eval("document.querySelector('message-view').scrollTop = 1_000", &json!([]));
        page.until("the end of the headline", || page.measure(IS_HEADLINE_AWAY, &json!([])) == true);
        page.eval("localStorage.clear()", &json!([]));
    }
    page.assert_quiet();
}

#[test]
fn toolbar_moves_to_other_messages_and_offers_downloads() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    server.deliver("james@x.org", &mails::text("One", "Hello"));
    let files = &[File { kind: "text/csv", name: "table.csv", content: b"a;b\r\n" }];
    server.deliver(
        "james@x.org",
        &Mail { subject: "Two", text: "Hello", html: "<p>Hello</p>", files, ..Mail::default() }.bytes(),
    );
    page.open("/m/james/latest");
    page.until("the message", || page.text(".message-subject") == "Two");
    page.until("the position", || page.text(".message-position") == "1 of 2");
    page.until("the end of the list", || {
        page.attribute("[title='Previous message (k)']", "aria-disabled").as_deref() == Some("true")
    });
    page.click(".message-tools [title=Download]");
    let entries = ".menu:popover-open .menu-label";
    page.until("the menu", || {
        page.texts(entries) == ["Source (.eml)", "HTML (.html)", "Text (.txt)", "All attachments (.zip)", "table.csv"]
    });
    let links =
        "return [...document.querySelectorAll('.menu:popover-open a')].map(link => link.pathname + link.search)";
    let links: Vec<String> = serde_json::from_value(page.eval(links, &json!([]))).unwrap();
    assert_eq!(String::from_utf8(server.bytes(&links[1])).unwrap(), "<p>Hello</p>");
    assert!(server.bytes(&links[3]).starts_with(b"PK"));
    // The menu is used by keyboard; Escape returns to the button.
    page.keys(key::DOWN);
    page.until("the second entry", || page.is_focused(".menu:popover-open .menu-item:nth-child(2)"));
    page.keys(key::ESCAPE);
    page.until("the end of the menu", || page.count(".menu:popover-open") == 0);
    page.expect_focus(".message-tools [title=Download]");
    page.click("[title='Next message (j)']");
    page.until("the other message", || page.text(".message-subject") == "One");
    page.until("the position", || page.text(".message-position") == "2 of 2");
    page.click(".message-tools [title=Download]");
    page.until("the menu", || page.texts(entries) == ["Source (.eml)", "Text (.txt)"]);
    page.assert_quiet();
}

#[test]
fn lines_that_are_not_wrapped_scroll_below_the_headline() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    server.deliver("james@x.org", format!("Subject: Wide\r\n\r\n{}\r\n", "word ".repeat(150)).as_bytes());
    page.open("/m/james/latest");
    page.until("the message", || page.text(".message-subject") == "Wide");
    page.keys("6");
    page.until("the source", || page.count(".message-source:not(.wrapped) .line") > 0);
    page.until("the width", || page.measure(IS_TOO_WIDE, &json!([])) == true);
    let left = "
        const view = document.querySelector('message-view');
        view.scrollLeft = 100;
        const left = element => element.getBoundingClientRect().left;
        return [view.scrollLeft, left(document.querySelector('.message-head')) - left(view)]";
    let left: [f64; 2] = serde_json::from_value(page.measure(left, &json!([]))).unwrap();
    assert!(is_near(left[0], 100.0) && is_near(left[1], 0.0), "{left:?}");
    page.assert_quiet();
}

/// Returns the titles of the visible buttons in the toolbar that are disabled.
const DISABLED: &str =
    "return [...document.querySelectorAll('.message-tools button:disabled:not([hidden])')].map(one => one.title)";

#[test]
fn deleted_message_has_no_actions() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    server.deliver("james@x.org", &mails::text("One", "Hello"));
    let id = server.ids("james").pop().unwrap();
    page.open(&format!("/m/james/{id}"));
    page.until("the actions", || page.eval(DISABLED, &json!([])) == json!([]));
    ureq::delete(server.url(&format!("/api/v1/mailbox/james/{id}"))).call().unwrap();
    page.until("the hint", || page.text("message-view .empty").contains("This message does not exist"));
    let all = json!(["Copy as test", "Download", "Mark as unread (u)", "Delete (Del)"]);
    page.until("no actions", || page.eval(DISABLED, &json!([])) == all);
}

#[test]
fn message_outside_of_the_list_has_actions() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    for subject in ["One", "Two", "Three"] {
        server.deliver("james@x.org", &mails::text(subject, "Hello"));
    }
    // A message that is read is not among the unread ones.
    let id = &server.ids("james")[1];
    let url = server.url(&format!("/api/v1/mailbox/james/{id}"));
    ureq::patch(url).content_type("application/json").send(r#"{"seen":true}"#).unwrap();
    page.open(&format!("/search?q=is:unseen&mailbox=james&id={id}"));
    page.until("the list", || page.texts(".row-subject") == ["Three", "One"]);
    page.until("the message", || page.text(".message-subject") == "Two");
    assert_eq!(page.text(".message-position"), "");
    page.until("the actions", || page.eval(DISABLED, &json!([])) == json!([]));
    page.click("[title='Mark as unread (u)']");
    page.until("the message in the list", || page.texts(".row-subject") == ["Three", "Two", "One"]);
    // It is not marked as read again, although it is shown and listed now.
    page.until("the mark", || page.count(".message-row.unread") == 3);
    assert_eq!(server.json("/api/v1/mailbox/james")[1]["seen"], false);
    page.assert_quiet();
}
