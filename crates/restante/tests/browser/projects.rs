//! The switch between projects in the sidebar, the page of a project, and what a user of one project sees.

use restante_testdir::TestDir;
use serde_json::json;

use super::login::USERS;
use super::mailbox::until_rows;
use super::mails;
use super::page::{Page, key};
use crate::support::Server;

const RULES: &str = "--projects-rules=shop domain=shop.test; acme domain=acme.test";
pub(crate) const SWITCH: &str = "project-switch [aria-haspopup=menu]";
/// The name of the current project on the switch.
const CURRENT: &str = "project-switch button .truncate";
const ENTRIES: &str = "project-switch .menu-item";

/// Starts a server with two messages in the project `shop`, one in `acme` and one in none.
pub(crate) fn server_with_projects(arguments: &[&str]) -> Server {
    let server = Server::start(&[&[RULES], arguments].concat());
    for (to, subject) in
        [("bob@shop.test", "Order"), ("bob@shop.test", "Invoice"), ("ann@acme.test", "Anvil"), ("eve@x.org", "Other")]
    {
        server.deliver(to, &mails::text(subject, "Hello"));
    }
    server
}

/// Returns the words of the entries of the open menu.
fn entries(page: &Page) -> Vec<String> {
    page.texts(ENTRIES).iter().map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[track_caller]
fn until_entries(page: &Page, expected: &[&str]) {
    page.until(&format!("the entries {expected:?}"), || entries(page) == expected);
}

#[track_caller]
fn until_title(page: &Page, expected: &str) {
    page.until(&format!("the title {expected}"), || page.title() == expected);
}

#[track_caller]
fn use_switch(page: &Page, server: &Server, base: &str) {
    page.open(&format!("{base}/"));
    until_rows(page, &["Other", "Anvil", "Invoice", "Order"]);
    until_title(page, "(4) Inbox · Restante");
    page.until("the switch", || page.texts(CURRENT) == ["All mail"]);
    // By keyboard. The selected entry has the focus.
    page.eval("document.querySelector(arguments[0]).focus()", &json!([SWITCH]));
    page.keys(key::DOWN);
    let all = ["All mail", "acme 1 message, 1 unread", "shop 2 messages, 2 unread"];
    until_entries(page, &all);
    page.expect_focus("project-switch [aria-checked=true]");
    // A new message changes the count in the open menu, and the focus stays.
    page.keys(key::DOWN);
    page.until("the next entry", || page.is_focused(&format!("{ENTRIES}:nth-child(2)")));
    server.deliver("ann@acme.test", &mails::text("Hammer", "Hello"));
    until_entries(page, &["All mail", "acme 2 messages, 2 unread", "shop 2 messages, 2 unread"]);
    page.expect_focus(&format!("{ENTRIES}:nth-child(2)"));
    assert_eq!(page.attribute(&format!("{ENTRIES}:nth-child(3)"), "href"), Some(format!("{base}/p/shop/")));
    page.keys(key::DOWN);
    page.keys(key::ENTER);
    page.until("the path", || page.path() == format!("{base}/p/shop/"));
    until_rows(page, &["Invoice", "Order"]);
    until_title(page, "(2) Inbox · shop · Restante");
    page.expect_text("list-head h1", "Inbox · shop");
    page.until("the mailbox", || page.texts(".sidebar-mailboxes a bdi") == ["bob"]);
    page.click(".sidebar-mailboxes a");
    page.until("the mailbox", || page.path() == format!("{base}/p/shop/m/bob"));
    until_title(page, "(2) bob · shop · Restante");
    // Counts of other projects are loaded when the menu opens.
    page.until("the switch", || page.texts(CURRENT) == ["shop"]);
    server.deliver("ann@acme.test", &mails::text("Tongs", "Hello"));
    page.click(SWITCH);
    until_entries(page, &["All mail", "acme 3 messages, 3 unread", "shop 2 messages, 2 unread"]);
    page.click(&format!("{ENTRIES}:nth-child(2)"));
    page.until("the path", || page.path() == format!("{base}/p/acme/"));
    until_rows(page, &["Tongs", "Hammer", "Anvil"]);
    page.click(SWITCH);
    page.click(&format!("{ENTRIES}:nth-child(1)"));
    page.until("the path", || page.path() == format!("{base}/"));
    page.until("all messages", || page.count(".message-row") == 6);
    until_title(page, "(6) Inbox · Restante");
    page.assert_quiet();
}

#[test]
fn switch_lists_projects_with_counts() {
    let server = server_with_projects(&[]);
    let Some(page) = Page::of(&server) else { return };
    use_switch(&page, &server, "");
}

#[test]
fn switch_works_in_firefox_below_a_base_path() {
    let server = server_with_projects(&["--web-basepath=/mail"]);
    let Some(page) = Page::in_firefox(&server) else { return };
    use_switch(&page, &server, "/mail");
}

#[test]
fn reading_and_deleting_change_the_counts() {
    let server = server_with_projects(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/p/shop/");
    until_rows(&page, &["Invoice", "Order"]);
    page.click(SWITCH);
    until_entries(&page, &["All mail", "acme 1 message, 1 unread", "shop 2 messages, 2 unread"]);
    page.keys(key::ESCAPE);
    page.until("the end of the menu", || page.count("project-switch :popover-open") == 0);
    page.expect_focus(SWITCH);
    page.click(".message-row");
    page.until("the message", || page.text(".message-subject") == "Invoice");
    page.click(SWITCH);
    until_entries(&page, &["All mail", "acme 1 message, 1 unread", "shop 2 messages, 1 unread"]);
    page.keys(key::ESCAPE);
    // A project without messages is not in the list of the server.
    ureq::delete(server.url("/p/shop/api/v2/mailboxes")).call().unwrap();
    page.find("empty-list :is(h1, h2)");
    page.click(SWITCH);
    until_entries(&page, &["All mail", "shop 0 messages, none unread", "acme 1 message, 1 unread"]);
    page.keys(key::ESCAPE);
    // All mail can be reached if no project has messages.
    ureq::delete(server.url("/p/acme/api/v2/mailboxes")).call().unwrap();
    page.open("/p/shop/");
    page.click(SWITCH);
    until_entries(&page, &["All mail", "shop 0 messages, none unread"]);
}

#[test]
fn there_is_no_switch_without_projects() {
    let server = Server::start(&[RULES]);
    let Some(page) = Page::of(&server) else { return };
    server.deliver("eve@x.org", &mails::text("Other", "Hello"));
    page.open("/");
    page.find(".sidebar-mailboxes a");
    page.expect_count("project-switch[hidden]", 1);
    // It appears with the first message of a project, and until then nothing is requested.
    assert!(!page.requests().iter().any(|url| url.contains("/projects")), "{:?}", page.requests());
    server.deliver("bob@shop.test", &mails::text("Order", "Hello"));
    page.until("the switch", || page.texts(CURRENT) == ["All mail"]);
    ureq::delete(server.url("/p/shop/api/v2/mailboxes")).call().unwrap();
    page.until("the end of the switch", || page.count("project-switch[hidden]") == 1);
    page.assert_quiet();
}

#[test]
fn user_of_one_project_sees_its_name() {
    let dir = TestDir::new();
    let file = dir.path().join("users");
    std::fs::write(&file, format!("#restante ann:read,write shop:*\n{USERS}")).unwrap();
    let server = server_with_projects(&[&format!("--auth-users={}", file.display())]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/p/shop/m/bob");
    page.until("the login page", || page.path().starts_with("/p/shop/login"));
    page.fill("#user", "ann");
    page.fill("#password", "secret\n");
    for (path, title) in [("/p/shop/m/bob", "(2) bob · shop · Restante"), ("/", "(2) Inbox · shop · Restante")] {
        page.until("the page", || page.path() == path);
        until_rows(&page, &["Invoice", "Order"]);
        until_title(&page, title);
        page.until("the label", || page.texts(".project-label") == ["shop"]);
        page.find(".sidebar-mailboxes a");
        page.expect_count(SWITCH, 0);
        page.open("/");
    }
    page.assert_quiet();
}

#[test]
fn projects_have_their_own_saved_searches() {
    let server = server_with_projects(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/p/shop/search?q=invoice");
    until_rows(&page, &["Invoice"]);
    page.click("[aria-label='Save this search']");
    page.fill("dialog input", "Invoices\n");
    let searches = || page.texts(".sidebar-searches a bdi");
    page.until("the search", || searches() == ["Invoices"]);
    for (path, expected) in [("/", 0), ("/p/acme/", 0), ("/p/shop/", 1)] {
        page.open(path);
        page.find(".sidebar-mailboxes a");
        assert_eq!(searches().len(), expected, "{path}");
    }
}
