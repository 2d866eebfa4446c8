//! Keyboard operation: no test here clicks, and the focus is always visible.

use serde_json::json;

use super::mails;
use super::page::{Page, key};
use crate::support::Server;

/// Returns the focused element and whether the focus is visible. A list keeps the focus and has an active row; the row of a link can
/// show the focus instead of the link.
const FOCUS: &str = "
    const active = document.activeElement;
    const meant = document.getElementById(active.getAttribute('aria-activedescendant')) ?? active;
    const styles = [getComputedStyle(meant), getComputedStyle(meant.parentElement ?? meant, '::before')];
    return {
        name: meant.getAttribute('aria-label') || meant.innerText || meant.id || meant.localName,
        isSeen: styles.some(style => style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 || style.boxShadow !== 'none'),
        isNowhere: active === document.body,
    }";

/// Returns the name of the focused element, and checks that the focus is visible.
#[track_caller]
fn focus(page: &Page) -> String {
    let focus = page.eval(FOCUS, &json!([]));
    let name = focus["name"].as_str().unwrap_or_default().to_owned();
    assert_eq!(focus["isSeen"], true, "the focus is not visible on {name:?}");
    name
}

/// Presses Tab until the element has the focus, which must be visible at every step.
#[track_caller]
fn tab_to(page: &Page, css: &str) {
    for _ in 0..60 {
        page.keys(key::TAB);
        // After the last element the focus leaves the page and then starts again.
        if page.eval(FOCUS, &json!([]))["isNowhere"] == false {
            focus(page);
        }
        if page.eval("return document.activeElement.matches(arguments[0])", &json!([css])) == true {
            return;
        }
    }
    panic!("Tab does not reach {css}");
}

fn deliver(server: &Server, subjects: &[&str]) {
    for subject in subjects {
        server.deliver("james@x.org", &mails::text(subject, "Hello"));
    }
}

#[test]
fn messages_are_read_and_deleted_by_keyboard() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, &["One", "Two", "Three", "Four"]);
    page.open("/status");
    page.find("status-page h1");
    page.keys("o");
    page.keys(&format!("james{}", key::ENTER));
    page.until("the list", || page.count(".message-row") == 4);
    page.keys("j");
    page.until("the newest", || page.text(".message-subject") == "Four");
    page.keys(&["j", key::DOWN, "k"].concat());
    page.until("the second", || page.text("[aria-current=true] .row-subject") == "Three");
    page.until("the second", || page.text(".message-subject") == "Three");
    // Delete and undo.
    page.keys(key::DELETE);
    page.until("the deletion", || page.texts(".row-subject") == ["Four", "Two", "One"]);
    page.keys("z");
    page.until("the end of the dialog", || page.texts(".row-subject") == ["Four", "Three", "Two", "One"]);
    page.until("the second", || page.text(".message-subject") == "Three");
    page.keys("u");
    page.until("the unread state", || server.json("/api/v1/mailbox/james")[2]["seen"] == false);
    // To the message, through its tabs, and back.
    page.keys(key::ENTER);
    tab_to(&page, "[role=tab]");
    assert_eq!(focus(&page), "Text");
    page.keys(&key::RIGHT.repeat(2));
    page.until("the headers", || page.count("#panel-headers:not([hidden]) tr") > 0);
    page.keys(key::ESCAPE);
    page.keys(key::UP);
    page.until("the newest", || page.text(".message-subject") == "Four");
    assert!(focus(&page).contains("Four"));
    // Several at once.
    page.keys(&["x", "j", "j", "x", "#"].concat());
    page.until("the deletion", || page.texts(".row-subject") == ["Three", "One"]);
    page.keys("gi");
    page.until("the inbox", || page.text("list-head h1") == "Inbox");
    page.until("the deletion on the server", || server.count("james") == 2);
    page.assert_quiet();
}

#[test]
fn search_help_dialogs_and_pause_by_keyboard() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, &["One", "Two"]);
    page.open("/m/james");
    page.until("the list", || page.count(".message-row") == 2);
    page.keys("/");
    focus(&page);
    // Results appear while typing.
    page.keys("one");
    page.until("the result", || page.texts(".row-subject") == ["One"]);
    page.keys(key::ENTER);
    page.keys("j");
    page.until("the message", || page.text(".message-subject") == "One");
    page.keys("gi");
    page.until("the inbox", || page.count(".message-row") == 2);
    page.keys("?");
    page.until("the help", || page.text("dialog").contains("Mark as unread"));
    page.keys(key::ESCAPE);
    page.until("the end of the dialog", || page.count("dialog") == 0);
    // Also actions with a confirmation.
    tab_to(&page, "list-head [aria-haspopup=menu]");
    page.keys(key::ENTER);
    page.until("the menu", || focus(&page).contains("desktop notifications"));
    page.keys(&[key::DOWN, key::ENTER].concat());
    page.until("the dialog", || page.text("dialog").contains("2 messages"));
    assert_eq!(focus(&page), "Cancel");
    page.keys(key::ENTER);
    page.until("the end of the dialog", || page.count("dialog") == 0);
    assert_eq!(server.count("james"), 2);
    page.keys("p");
    page.until("the pause", || page.text(".live-state") == "Paused");
    page.keys("jj");
    assert!(focus(&page).contains("One"));
    page.keys(key::ENTER);
    page.until("the message", || page.text(".message-subject") == "One");
    page.keys("gs");
    page.find("status-page h1");
    page.assert_quiet();
}

#[test]
fn focus_is_visible_on_all_pages() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, &["One"]);
    for (path, last) in [
        ("/", ".virtual-port"),
        ("/send", "send-here .snippet-code"),
        ("/settings", "settings-page input, settings-page select"),
        ("/m/james/latest", "#panel-text [role=group]"),
        ("/status", ".status .api"),
        ("/search?q=one", ".virtual-port"),
        ("/sessions", ".session > summary"),
    ] {
        page.open(path);
        page.find(last);
        tab_to(&page, last);
    }
    // The first element skips the bar.
    page.open("/status");
    page.find("status-page h1");
    page.keys(key::TAB);
    assert_eq!(focus(&page), "Skip to content");
    page.assert_quiet();
}
