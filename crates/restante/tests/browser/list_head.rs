//! The head of a list: its name, its counts, the state of the connection; and the title and the icon of the window.

use serde_json::json;

use super::large_mailboxes::deliver_many;
use super::mailbox::{deliver, until_rows};
use super::page::{DisplayMode, Page, is_near};
use crate::support::Server;

/// Returns whether the name is shown in full, and the facts that are visible at least in part but not in full.
const CLIPPED: &str = "
    const name = document.querySelector('.list-name');
    const facts = document.querySelector('.list-facts').getBoundingClientRect();
    const cut = [...document.querySelectorAll('.list-facts > *')].filter(fact => {
        const box = fact.getBoundingClientRect();
        return box.width > 0 && box.top < facts.bottom && box.right > facts.right + 1;
    });
    return [name.scrollWidth <= name.clientWidth, cut.map(fact => fact.textContent)]";

/// The distance of the first row from the top of the window.
const TOP: &str = "return document.querySelector('.message-row').getBoundingClientRect().top";

#[test]
fn name_and_numbers_are_never_cut() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, &["One", "Two"]);
    for mode in [DisplayMode::Light, DisplayMode::Phone] {
        page.set_display_mode(mode);
        page.open("/");
        until_rows(&page, &["Two", "One"]);
        assert_eq!(page.measure(CLIPPED, &json!([])), json!([true, []]), "{mode:?}");
    }
    page.set_display_mode(DisplayMode::Light);
    page.click(".message-row");
    page.until("the message", || page.text(".message-subject") == "Two");
    assert_eq!(page.measure(CLIPPED, &json!([])), json!([true, []]), "next to a message");
}

#[test]
fn position_counts_all_messages() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver_many(&server, 120);
    page.open("/");
    page.click(".message-row");
    page.until("the position", || page.text(".message-position") == "1 of 120");
}

#[test]
fn title_and_icon_show_the_unread_messages() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, &["One", "Two"]);
    page.open("/");
    page.until("the title", || page.title() == "(2) Inbox · Restante");
    let icon = || page.attribute("link[rel=icon]", "href").unwrap_or_default();
    assert!(icon().starts_with("data:image/svg+xml,"), "{}", icon());
    page.click("[aria-label='Mark all as read']");
    page.until("the title", || page.title() == "Inbox · Restante");
    page.until("the icon", || icon().ends_with("/icon.svg"));
    page.assert_quiet();
}

#[test]
fn lost_connection_does_not_move_the_list() {
    let mut server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, &["One"]);
    page.open("/");
    until_rows(&page, &["One"]);
    page.until("the connection", || page.text(".live-state") == "Live");
    let before = page.measure_number(TOP, &json!([]));
    server.kill();
    page.until("the state", || page.text(".live-state") == "Connection lost");
    let after = page.measure_number(TOP, &json!([]));
    assert!(is_near(after, before), "the list moved from {before} to {after}");
}

#[test]
fn invalid_query_has_no_state() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/search?q=from:");
    page.until("the error", || page.text("empty-list").contains("This query is not valid"));
    assert_eq!(page.eval("return document.querySelector('.live-state').checkVisibility()", &json!([])), false);
}
