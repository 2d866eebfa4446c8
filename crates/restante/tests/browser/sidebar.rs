//! The sidebar: tags and saved searches. The mailboxes in it are tested with the inbox.

use restante_testdir::TestDir;
use serde_json::json;

use super::mailbox::until_rows;
use super::mails::{self, Mail};
use super::page::Page;
use crate::support::{Server, command};

const TAGS: &str = ".sidebar-tags a bdi";
const SEARCHES: &str = ".sidebar-searches a bdi";

fn deliver_tagged(server: &Server, subject: &str, tags: &str) {
    let header = format!("X-Tags: {tags}\r\n");
    server.deliver("james@x.org", &Mail { subject, header: &header, ..Mail::default() }.bytes());
}

/// Chooses an entry of the menu of the first row of a list.
fn choose(page: &Page, list: &str, entry: u32) {
    page.click(&format!("{list} li:first-child [aria-haspopup=menu]"));
    page.click(&format!("{list} li:first-child .menu-item:nth-child({entry})"));
}

fn rename(page: &Page, list: &str, name: &str) {
    choose(page, list, 1);
    page.fill("dialog input", &format!("{name}\n"));
}

#[test]
fn tags_of_all_messages_are_listed() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver_tagged(&server, "Oldest", "rare");
    for number in 0..110 {
        server.deliver("james@x.org", &mails::text(&format!("Number {number}"), "Hello"));
    }
    page.open("/");
    // The message with the tag is not among the first that are loaded.
    page.until("the tag", || page.texts(TAGS) == ["rare"]);
    deliver_tagged(&server, "New", "fresh");
    page.until("the new tag", || page.texts(TAGS) == ["fresh", "rare"]);
    page.click(".sidebar-tags li:last-child a");
    until_rows(&page, &["Oldest"]);
    page.expect_text(".list-name", "Tag rare");
    page.assert_quiet();
}

#[test]
fn folders_are_below_their_mailbox() {
    const LINKS: &str = ".sidebar-mailboxes a";
    let dir = TestDir::new();
    let (data, mail) = (dir.path().join("data").display().to_string(), dir.path().join("mail.eml"));
    std::fs::write(&mail, mails::text("Sent mail", "Hello")).unwrap();
    for mailbox in ["james,Sent", "james,Archive/<b>2024", "bob,Drafts", "bob"] {
        let import = ["import", "--data", &data, "--mailbox", mailbox, "--received-now", &mail.display().to_string()];
        assert!(command().args(import).output().unwrap().status.success(), "{mailbox}");
    }
    let server = Server::start(&["--data", &data]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/");
    // The mailbox `james` has no messages. Screen readers read the owner before the folder.
    let rows = ["bob1", "bob: Drafts1", "james", "james: Archive/<b>20241", "james: Sent1"];
    let texts = || {
        page.eval(
            "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent.replace(/ unread$/, ''))",
            &json!([LINKS]),
        )
    };
    page.until("the folders", || texts() == json!(rows));
    assert_eq!(
        page.attribute(".sidebar-mailboxes li:nth-child(3) a", "title").as_deref(),
        Some("james: 0 messages, none unread")
    );
    page.click(".sidebar-mailboxes li:nth-child(4) a");
    page.until("the folder", || page.path() == "/m/james%2CArchive%2F%3Cb%3E2024");
    until_rows(&page, &["Sent mail"]);
    page.expect_text(".list-name", "james,Archive/<b>2024");
    page.open("/m/james,Other");
    page.until("the note", || page.text("empty-list h2") == "This folder is empty");
    page.click("empty-list a");
    page.until("the mailbox", || page.path() == "/m/james");
    // Arriving mail does not move the folder away from its owner.
    server.deliver("james@x.org", &mails::text("New", "Hello"));
    page.until("the new message", || texts()[0] == "james1" && texts()[2] == "james: Sent1");
    page.assert_quiet();
}

#[test]
fn tags_can_be_renamed_and_deleted() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver_tagged(&server, "One", "alpha");
    deliver_tagged(&server, "Two", "alpha, beta");
    page.open("/search?q=tag:alpha");
    until_rows(&page, &["Two", "One"]);
    page.click(".message-row");
    page.until("the message", || page.text(".message-subject") == "Two");
    // The query follows the name, and the message stays.
    rename(&page, ".sidebar-tags", "aleph");
    page.until("the name", || page.texts(TAGS) == ["aleph", "beta"]);
    page.until("the query", || page.path().starts_with("/search?q=tag%3Aaleph&id="));
    assert_eq!(page.text(".message-subject"), "Two");
    until_rows(&page, &["Two", "One"]);
    choose(&page, ".sidebar-tags", 2);
    page.expect_part("dialog", "removed from 2 messages");
    page.click("dialog [value=yes]");
    page.until("the other tag", || page.texts(TAGS) == ["beta"]);
    page.until("the inbox", || page.path() == "/");
    assert_eq!(server.count("james"), 2);
    page.assert_quiet();
}

#[test]
fn tag_cannot_get_the_name_of_another_tag() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver_tagged(&server, "One", "alpha, beta");
    page.open("/");
    page.until("the tags", || page.texts(TAGS) == ["alpha", "beta"]);
    rename(&page, ".sidebar-tags", "beta");
    page.until("the problem", || page.texts("dialog .note:not([hidden])").len() == 1);
    assert_eq!(page.texts(TAGS), ["alpha", "beta"]);
}

#[test]
fn searches_can_be_saved_renamed_and_deleted() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver_tagged(&server, "Login code", "auth");
    page.open("/");
    until_rows(&page, &["Login code"]);
    assert_eq!(
        page.eval("return document.querySelector('[aria-label=\"Save this search\"]').hidden", &json!([])),
        true
    );
    page.open("/search?q=code");
    until_rows(&page, &["Login code"]);
    page.click("[aria-label='Save this search']");
    page.fill("dialog input", "Codes\n");
    page.until("the search", || page.texts(SEARCHES) == ["Codes"]);
    page.expect_texts(".sidebar-searches [aria-current] bdi", &["Codes"]);
    // It is stored in the browser.
    page.open("/");
    page.click(".sidebar-searches a");
    page.until("the results", || page.path() == "/search?q=code");
    rename(&page, ".sidebar-searches", "   ");
    page.until("the problem", || page.text("dialog [role=alert]") == "Enter a name.");
    page.fill("dialog input", "Login\n");
    page.until("the name", || page.texts(SEARCHES) == ["Login"]);
    page.expect_attribute(".sidebar-searches .sidebar-more", "title", "Rename or delete Login");
    choose(&page, ".sidebar-searches", 2);
    page.until("no searches", || page.count(SEARCHES) == 0);
    page.expect_focus("mailbox-sidebar .sidebar-link");
    page.assert_quiet();
}

#[test]
fn search_that_does_not_fit_is_not_saved() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver_tagged(&server, "Login code", "auth");
    page.open("/search?q=code");
    until_rows(&page, &["Login code"]);
    let store = "const mailbox = 'x'.repeat(5400);
        localStorage.setItem('restante.searches', JSON.stringify([1, 2, 3].map(n => ({ name: `Number ${n}`, mailbox, query: `${n}` }))))";
    page.eval(store, &json!([]));
    page.click("[aria-label='Save this search']");
    page.fill("dialog input", &format!("{}\n", "x".repeat(64)));
    page.until("the problem", || page.text("dialog [role=alert]").contains("no room"));
}
