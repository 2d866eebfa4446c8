//! The bar: navigation, shortcuts, the menu of narrow screens, the field that opens a mailbox, the search field, and the page for
//! unknown addresses.

use serde_json::json;

use super::mails;
use super::page::{DisplayMode, Page, key};
use crate::support::Server;

/// Returns the texts of the visible elements that match a selector.
fn visible_texts(page: &Page, css: &str) -> Vec<String> {
    let script = "return [...document.querySelectorAll(arguments[0])].filter(e => e.checkVisibility({ visibilityProperty: true })).map(e => e.textContent)";
    serde_json::from_value(page.eval(script, &json!([css]))).unwrap()
}

fn deliver_to(server: &Server, mailboxes: &[&str]) {
    for mailbox in mailboxes {
        server.deliver(&format!("{mailbox}@x.org"), &mails::text("Hello", "Hello"));
    }
}

fn open_status(page: &Page) {
    page.open("/status");
    page.find("status-page h1");
}

#[test]
fn links_and_keys_lead_to_all_pages() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    open_status(&page);
    let entries = ["Inbox", "Sessions", "Status", "API docs", "Settings", "Connect your app"];
    page.until("the navigation", || visible_texts(&page, ".main-nav a") == entries);
    // The sidebar shows the inbox in the place of the navigation.
    let current = || visible_texts(&page, ":is(.main-nav, mailbox-sidebar) [aria-current=page]");
    assert_eq!(current(), ["Status"]);
    for (name, path, entry) in [
        ("inbox", "/", "Inbox"),
        ("sessions", "/sessions", "Sessions"),
        ("settings", "/settings", "Settings"),
        ("docs", "/api/docs", "API docs"),
        ("send", "/send", "Connect your app"),
        ("status", "/status", "Status"),
    ] {
        page.click(&format!("[data-page={name}]"));
        page.until(path, || page.path() == path && current() == [entry]);
    }
    for (keys, path) in [
        ("gi", "/"),
        ("gt", "/sessions"),
        ("gr", "/relay"),
        ("gw", "/webhooks"),
        ("g,", "/settings"),
        ("gs", "/status"),
    ] {
        page.keys(keys);
        page.until(keys, || page.path() == path);
    }
    page.keys("?");
    page.until("the help", || page.text("dialog").contains("Go to the settings"));
    page.assert_quiet();
}

#[test]
fn field_suggests_mailboxes() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver_to(&server, &["ben", "bob", "carol"]);
    open_status(&page);
    page.keys("o");
    let names = || page.texts("#open-mailbox-name-suggestions bdi");
    page.until("all names", || names() == ["ben", "bob", "carol"]);
    page.keys("b");
    page.until("the matching names", || names() == ["ben", "bob"]);
    page.keys(&key::DOWN.repeat(2));
    page.until("the selection", || page.texts("#open-mailbox-name-suggestions [aria-selected=true] bdi") == ["bob"]);
    let active = page.attribute("#open-mailbox-name", "aria-activedescendant");
    assert_eq!(active, page.attribute("#open-mailbox-name-suggestions [aria-selected=true]", "id"));
    page.keys(key::ENTER);
    page.until("the mailbox", || page.path() == "/m/bob");
    page.find(".message-row");
    // Mailboxes that were opened recently are first.
    open_status(&page);
    page.keys("o");
    page.until("the names", || names() == ["bob", "ben", "carol"]);
    page.keys(key::ESCAPE);
    page.until("the end of the dialog", || page.count("dialog") == 0);
    // A suggestion can be clicked.
    page.keys("o");
    page.until("the names", || names().len() == 3);
    page.click("#open-mailbox-name-suggestions li:last-child");
    page.until("the mailbox", || page.path() == "/m/carol");
    page.assert_quiet();
}

#[test]
fn narrow_screens_have_a_menu_and_dialogs() {
    const SMALL_CONTROLS: &str = "
        const controls = [...document.querySelectorAll('.bar :is(a, button, input)')].filter(e => e.checkVisibility({ visibilityProperty: true }));
        return controls.filter(e => {
            const { width, height } = (e.closest('.search-box') ?? e).getBoundingClientRect();
            return width < 44 || height < 44;
        }).map(e => e.outerHTML)";
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver_to(&server, &["bob", "carol"]);
    page.set_display_mode(DisplayMode::Phone);
    open_status(&page);
    let entries = || visible_texts(&page, ".main-nav a");
    assert_eq!(entries(), [""; 0]);
    page.click("[data-tool=menu]");
    page.until("the menu", || entries().len() == 6);
    page.expect_attribute("[data-tool=menu]", "aria-expanded", "true");
    page.keys(key::ESCAPE);
    page.until("the closed menu", || entries().is_empty());
    page.expect_focus("[data-tool=menu]");
    page.click("[data-tool=menu]");
    page.click("[data-page=settings]");
    page.find("settings-page h1");
    assert_eq!(entries(), [""; 0]);

    page.click("[data-tool=search]");
    page.until("the search field", || page.is_focused("#search-field"));
    page.click("[data-tool=menu]");
    assert_eq!(page.measure(SMALL_CONTROLS, &json!([])), json!([]));
    page.fill("#search-field", "hello\n");
    page.until("the results", || page.path() == "/search?q=hello");

    page.click("[data-tool=mailbox]");
    page.until("the field of the dialog", || page.is_focused("#open-mailbox-name"));
    page.until("the suggestions", || page.texts("dialog [role=option] bdi") == ["bob", "carol"]);
    page.keys(&["car", key::ENTER].concat());
    page.until("the mailbox", || page.path() == "/m/car");
    page.expect_count("dialog", 0);
    page.click("[data-tool=mailbox]");
    page.until("the suggestions", || page.texts("dialog [role=option] bdi").last().is_some_and(|name| name == "carol"));
    page.click("dialog [role=option]:last-child");
    page.until("the mailbox", || page.path() == "/m/carol");
    page.assert_quiet();
}

#[test]
fn search_field_shows_the_query_and_the_mailbox() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver_to(&server, &["bob", "carol"]);
    page.open("/m/bob");
    page.until("the mailbox", || page.text(".search-scope") == "in bob");
    page.fill("#search-field", "hello\n");
    page.until("the results", || page.path() == "/search?q=hello&mailbox=bob");
    page.expect_text(".search-scope", "in bob");
    let query = || page.eval("return document.querySelector('#search-field').value", &json!([]));
    assert_eq!(query(), "hello");
    page.click(".search-scope button");
    page.until("the results in all mailboxes", || page.path() == "/search?q=hello");
    assert_eq!(query(), "hello");
    assert_eq!(visible_texts(&page, ".search-scope"), [""; 0]);
    page.click("[data-page=status]");
    page.until("the empty field", || query() == "");
    // From a page without a list, the field leads to the results.
    page.keys("s");
    page.keys(&["hello", key::ENTER].concat());
    page.until("the results", || page.path() == "/search?q=hello");
    page.assert_quiet();
}

#[test]
fn unknown_address_shows_links() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    open_status(&page);
    let visit = "history.pushState(null, '', '/no/such/page'); dispatchEvent(new PopStateEvent('popstate'))";
    page.eval(visit, &json!([]));
    page.until("the page", || page.text("missing-page h1") == "Page not found");
    page.expect_part("missing-page", "/no/such/page");
    page.click("missing-page a");
    page.until("the inbox", || page.path() == "/");
    page.assert_quiet();
}

#[test]
fn hidden_monitor_hides_all_mail() {
    let server = Server::start(&["--web-monitorvisible=false"]);
    let Some(page) = Page::of(&server) else { return };
    deliver_to(&server, &["bob"]);
    open_status(&page);
    let entries = ["Status", "API docs", "Settings", "Connect your app"];
    page.until("the navigation", || visible_texts(&page, ".main-nav a") == entries);
    assert_eq!(visible_texts(&page, ".search-box"), [""; 0]);
    page.keys("o");
    page.keys("b");
    // No name is suggested before the mailbox was opened.
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(page.texts("#open-mailbox-name-suggestions bdi"), [""; 0]);
    page.keys(&["ob", key::ENTER].concat());
    page.until("the mailbox", || page.path() == "/m/bob");
    page.until("the search in the mailbox", || page.text(".search-scope") == "in bob");
    assert_eq!(visible_texts(&page, ".search-scope button"), [""; 0]);
    page.assert_quiet();
}
