//! The API documentation: its contents, and the console that sends requests.

use serde_json::json;

use super::mails;
use super::page::Page;
use crate::support::Server;

/// Fills a field of the console of an operation.
fn fill(page: &Page, operation: &str, name: &str, value: &str) {
    page.fill(&format!("#{operation} .console [name={name}]"), value);
}

fn send(page: &Page, operation: &str) {
    page.click(&format!("#{operation} .console [type=submit]"));
}

#[test]
fn page_has_the_bar_the_theme_and_all_operations() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/settings");
    page.click("[name=theme][value=dark]");
    page.click("[data-page=docs]");
    page.until("the operations", || page.count(".docs-contents a") > 50);
    page.expect_path("/api/docs");
    page.expect_attribute("html", "data-theme", "dark");
    let document = server.json("/api/openapi.json");
    let methods = document["paths"].as_object().unwrap().values().map(|path| path.as_object().unwrap().len());
    page.expect_count(".docs-contents a", methods.sum::<usize>());
    // All links of the contents and of all operations have a target.
    page.eval("document.querySelectorAll('.docs-part').forEach(part => part.open = true)", &json!([]));
    page.until("all consoles", || page.count(".console") == page.count(".docs-contents a"));
    let missing = "return [...document.querySelectorAll('docs-page a')].map(link => link.hash.slice(1))
        .filter(id => id !== '' && !document.getElementById(id))";
    assert_eq!(page.eval(missing, &json!([])), json!([]));

    page.open("/api/docs#purgeMailbox");
    page.reload();
    page.find("#purgeMailbox[open] pre");
    page.fill("docs-page [type=search]", "unsubscribe");
    page.until("the filtered list", || {
        let shown = page.texts(".docs-contents li:not([hidden])");
        !shown.is_empty() && shown.iter().all(|entry| entry.to_lowercase().contains("unsubscribe"))
    });
    page.click(".docs-contents li:not([hidden]) a");
    page.until("the operation", || page.count(".docs-part[open]") == 2);
    page.back();
    page.until("the address", || page.path() == "/api/docs#purgeMailbox");
    // A fragment that is not valid.
    page.open("/api/docs#%");
    page.reload();
    page.find(".docs-contents a");
    page.assert_quiet();
}

#[test]
fn console_sends_requests() {
    let server = Server::start(&["--web-basepath=/mail"]);
    let Some(page) = Page::of(&server) else { return };
    server.deliver("james@x.org", &mails::text("Hello", "Hello"));
    page.open("/mail/api/docs#listMessages");
    fill(&page, "listMessages", "name", "james");
    fill(&page, "listMessages", "limit", "5");
    let command = page.text("#listMessages .console-command pre");
    assert_eq!(command, format!("curl '{}'", server.url("/mail/api/v1/mailbox/james?limit=5")));
    send(&page, "listMessages");
    page.until("the status", || page.text("#listMessages .console-status").starts_with("200 OK"));
    page.expect_part("#listMessages .console-body", "\"subject\": \"Hello\"");
    page.click("#listMessages .console-result summary");
    page.until("the headers", || page.text("#listMessages .console-result details").contains("content-type:"));
    page.click("#listMessages .console-command button");
    page.until("the copy", || page.text(".toasts").contains("Copied"));

    // The body is proposed, and quoted in the command.
    page.open("/mail/api/docs#addMessage");
    fill(&page, "addMessage", "name", "bob");
    page.fill("#addMessage textarea", r#"{"from":"ann@x.org","subject":"It's me","text":"Hello"}"#);
    let command = page.text("#addMessage .console-command pre");
    assert!(command.contains("-X POST") && command.contains(r"It'\''s me"), "{command}");
    send(&page, "addMessage");
    page.until("the status", || page.text("#addMessage .console-status").starts_with("201"));
    assert_eq!(server.json("/api/v1/mailbox/bob/latest")["subject"], "It's me");

    // Events never end: only the command is shown.
    page.open("/mail/api/docs#monitor");
    page.until("the command", || page.text("#monitor .console-command pre").starts_with("websocat 'ws://"));
    page.expect_count("#monitor .console [type=submit]", 0);
    page.assert_quiet();
}

#[test]
fn console_asks_before_it_deletes() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    server.deliver("james@x.org", &mails::text("Hello", "Hello"));
    page.open("/api/docs#purgeMailbox");
    fill(&page, "purgeMailbox", "name", "james");
    send(&page, "purgeMailbox");
    page.expect_part("dialog", "DELETE /api/v1/mailbox/james");
    page.click("dialog [value=no]");
    page.until("the end of the dialog", || page.count("dialog") == 0);
    assert_eq!(server.count("james"), 1);
    send(&page, "purgeMailbox");
    page.click("dialog [value=yes]");
    page.until("the status", || page.text("#purgeMailbox .console-status").starts_with("200 OK"));
    assert_eq!(server.count("james"), 0);
    page.assert_quiet();
}
