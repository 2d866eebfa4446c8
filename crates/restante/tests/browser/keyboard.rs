//! Everything by keys alone: no test here clicks. Whoever has no mouse sees where they are.

use serde_json::json;

use super::mails;
use super::page::{Page, key};
use crate::support::Server;

/// Where the focus is, and whether that can be seen. A list keeps the focus itself and means one of its rows; a link may
/// leave it to the row around it to be framed.
const FOCUS: &str = "
    const active = document.activeElement;
    const meant = document.getElementById(active.getAttribute('aria-activedescendant')) ?? active;
    const styles = [getComputedStyle(meant), getComputedStyle(meant.parentElement ?? meant, '::before')];
    return {
        name: meant.getAttribute('aria-label') || meant.innerText || meant.id || meant.localName,
        isSeen: styles.some(style => style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 || style.boxShadow !== 'none'),
        isNowhere: active === document.body,
    }";

/// Where the focus is; it can be seen there.
#[track_caller]
fn focus(page: &Page) -> String {
    let focus = page.eval(FOCUS, &json!([]));
    let name = focus["name"].as_str().unwrap_or_default().to_owned();
    assert_eq!(focus["isSeen"], true, "the focus can be seen on {name:?}");
    name
}

/// Goes on with the tabulator until the focus is where it shall be; it can be seen all the way.
#[track_caller]
fn tab_to(page: &Page, css: &str) {
    for _ in 0..60 {
        page.keys(key::TAB);
        // The end of the page is nowhere; from there it goes on at the beginning.
        if page.eval(FOCUS, &json!([]))["isNowhere"] == false {
            focus(page);
        }
        if page.eval("return document.activeElement.matches(arguments[0])", &json!([css])) == true {
            return;
        }
    }
    panic!("{css} is not reached by the tabulator");
}

fn deliver(server: &Server, subjects: &[&str]) {
    for subject in subjects {
        server.deliver("james@x.org", &mails::text(subject, "Hello"));
    }
}

#[test]
fn mail_is_read_and_deleted_by_keys() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, &["One", "Two", "Three", "Four"]);
    page.open("/");
    page.find("home-page h1");
    page.hold_time();
    page.keys("o");
    page.keys(&format!("james{}", key::ENTER));
    page.until("the list", || page.count(".message-row") == 4);
    page.keys("j");
    page.until("the newest", || page.text(".message-subject") == "Four");
    page.keys(&["j", key::DOWN, "k"].concat());
    page.until("the second", || page.text("[aria-current=true] .row-subject") == "Three");
    page.until("the second", || page.text(".message-subject") == "Three");
    // It goes, and comes back.
    page.keys(key::DELETE);
    page.until("the deletion", || page.texts(".row-subject") == ["Four", "Two", "One"]);
    page.keys("z");
    page.until("its end", || page.texts(".row-subject") == ["Four", "Three", "Two", "One"]);
    page.until("the second", || page.text(".message-subject") == "Three");
    page.keys("u");
    page.until("the mark", || server.json("/api/v1/mailbox/james")[2]["seen"] == false);
    // Into the message, through its tabs, and back.
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
    page.keys("gh");
    page.find("home-page h1");
    page.until("the end of the messages", || server.count("james") == 2);
    page.assert_quiet();
}

#[test]
fn the_rest_is_done_by_keys() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, &["One", "Two"]);
    page.open("/m/james");
    page.until("the list", || page.count(".message-row") == 2);
    page.keys("/");
    focus(&page);
    page.keys("one");
    page.until("the filtered row", || page.texts(".row-subject") == ["One"]);
    page.keys(key::ENTER);
    page.until("the message", || page.text(".message-subject") == "One");
    page.keys(key::ESCAPE);
    page.until("the end of the filter", || page.count(".message-row") == 2);
    page.keys("?");
    page.until("the help", || page.text("dialog").contains("Mark as unread"));
    page.keys(key::ESCAPE);
    page.until("its end", || page.count("dialog") == 0);
    // Even what asks first.
    tab_to(&page, "[aria-label='Delete all messages']");
    page.keys(key::ENTER);
    page.until("the question", || page.text("dialog").contains("2 messages"));
    assert_eq!(focus(&page), "Cancel");
    page.keys(key::ENTER);
    page.until("its end", || page.count("dialog") == 0);
    assert_eq!(server.count("james"), 2);
    page.keys("gm");
    page.until("the monitor", || page.texts(".arrival-link") == ["Two", "One"]);
    page.keys("p");
    page.until("the pause", || page.text(".monitor-state") == "Paused");
    page.keys("jj");
    assert_eq!(focus(&page), "One");
    page.keys(key::ENTER);
    page.until("the message", || page.text(".message-subject") == "One");
    page.keys("gs");
    page.find("status-page h1");
    page.assert_quiet();
}

#[test]
fn the_focus_is_seen_everywhere() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, &["One"]);
    for (path, last) in [
        ("/", "send-here .snippet-code"),
        ("/m/james/latest", "#panel-text [role=group]"),
        ("/monitor", ".arrival-link"),
        ("/status", ".status-head a"),
        ("/search?q=one", ".hit-link"),
        ("/sessions", ".session > summary"),
    ] {
        page.open(path);
        page.find(last);
        tab_to(&page, last);
    }
    // The first step leads past the bar.
    page.open("/status");
    page.find("status-page h1");
    page.keys(key::TAB);
    assert_eq!(focus(&page), "Skip to content");
    page.assert_quiet();
}
