//! Every page as a visitor first meets it: it is there at its address, with and without a base path and behind a proxy, and
//! asks nobody but its server.

use serde_json::json;

use super::page::Page;
use super::{mails, proxy};
use crate::support::Server;

/// The addresses of all pages, and what is there when they are whole.
const PAGES: [(&str, &str); 6] = [
    ("/", "home-page .mailbox-row"),
    ("/m/james", "mailbox-page .message-row"),
    ("/m/james/latest", "mailbox-page .message-subject"),
    ("/monitor", "monitor-page .arrival"),
    ("/status", "status-page .status-words li"),
    ("/api/docs#readMessage", "main details[open] pre"),
];

fn deliver(server: &Server, subject: &str) {
    server.deliver("james@x.org", &mails::html(subject, "<h1>Hello James</h1>"));
}

/// Goes from page to page by their links, all below this path, while mail arrives.
#[track_caller]
fn tour(page: &Page, server: &Server, base: &str) {
    page.find("home-page h1");
    page.click("[data-page=status]");
    page.until("the figures", || page.text("status-page .figures").contains("Stored messages"));
    assert_eq!(page.path(), format!("{base}/status"));
    page.fill("#goto", "james\n");
    page.find("mailbox-page h1");
    assert_eq!(page.path(), format!("{base}/m/james"));
    deliver(server, "First");
    page.click(".message-row");
    page.until("the message", || page.text(".message-subject") == "First");
    assert_eq!(page.path(), format!("{base}/m/james/{}", server.ids("james")[0]));
    assert_eq!(page.inside("iframe", |frame| frame.text("h1")), "Hello James");
    // From deeper below, the links in the frame lead where they led before; so they do after a reload.
    page.reload();
    page.until("the message", || page.text(".message-subject") == "First");
    page.click("[data-page=monitor]");
    page.until("the arrival", || page.texts(".arrival-link") == ["First"]);
    assert_eq!(page.path(), format!("{base}/monitor"));
    page.back();
    page.find("mailbox-page h1");
    page.click(".brand");
    page.until("the mailbox", || page.texts(".mailbox-row .mailbox-name") == ["james"]);
    assert_eq!(page.path(), format!("{base}/"));
    let strays: Vec<_> = page.requests().into_iter().filter(|url| !url.contains(&format!("{base}/"))).collect();
    assert_eq!(strays, [""; 0], "nothing is asked from above the base path");
    page.assert_quiet();
}

#[test]
fn each_page_is_at_its_address() {
    let server = Server::start(&["--web-basepath=/mail/box"]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "Hello");
    for (path, landmark) in PAGES {
        for base in ["", "/mail/box"] {
            page.open(&format!("{base}{path}"));
            page.find(landmark);
        }
    }
    page.assert_quiet();
}

#[test]
fn a_base_path_is_never_left() {
    let server = Server::start(&["--web-basepath=/mail"]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/mail");
    page.find("home-page");
    assert_eq!(page.path(), "/mail/");
    // The address without the slash is the only one outside.
    page.forget_requests();
    tour(&page, &server, "/mail");
}

#[test]
fn a_stripped_prefix_is_never_left() {
    let server = Server::start(&[]);
    let proxy = proxy::start("/tools/mail", server.http);
    let Some(page) = Page::at(proxy) else { return };
    page.open("/tools/mail/");
    tour(&page, &server, "/tools/mail");
}

#[test]
fn an_unknown_address_is_no_page() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/m/james/1/2");
    assert!(page.text("body").contains("404"), "{}", page.text("body"));
}

#[test]
fn a_slash_at_the_end_is_no_other_page() {
    let server = Server::start(&["--web-basepath=/mail"]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "Hello");
    for base in ["", "/mail"] {
        page.open(&format!("{base}/m/james/"));
        page.find(".message-row");
        assert_eq!(page.path(), format!("{base}/m/james"));
        assert_eq!(page.text("mailbox-page h1"), "james");
    }
    page.assert_quiet();
}

#[test]
fn mailboxes_are_opened_by_any_name_that_can_be_one() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "Hello");
    for (start, field) in [("/status", "#goto"), ("/", "#open-mailbox")] {
        page.open(start);
        // A step up is refused where it was typed, in a sentence.
        page.fill(field, "..\n");
        let complaint = || page.eval("return document.querySelector(arguments[0]).validationMessage", &json!([field]));
        page.until("the complaint", || {
            complaint() == "“..” is not a mailbox name. Enter a name such as james, or an address such as james@example.org."
        });
        assert_eq!(page.path(), start);
        // An address as mail programs copy it.
        page.fill(field, "J K <james@example.org>\n");
        page.find(".message-row");
        page.until("the name", || page.path() == "/m/james");
    }
    page.assert_quiet();
}

#[test]
fn what_others_wrote_into_the_memory_is_overlooked() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "Hello");
    page.open("/");
    let poison = r#"
        localStorage.setItem('restante.recent', '["\\ud800", 5, {}, "james"]');
        localStorage.setItem('restante.theme', '{');
        localStorage.setItem('restante.preview.width', '[[]]');"#;
    page.eval(poison, &json!([]));
    for (path, landmark) in PAGES {
        page.open(path);
        page.find(landmark);
    }
    page.open("/");
    page.until("what can be a name", || page.texts("open-mailbox .chip") == ["james"]);
    assert_eq!(page.attribute("[data-tool=theme]", "aria-label").as_deref(), Some("Theme: system"));
    page.assert_quiet();
}

#[test]
fn the_focus_goes_to_the_heading_of_another_page() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "Hello");
    page.open("/");
    for (link, heading) in [
        ("[data-page=status]", "status-page h1"),
        ("[data-page=monitor]", "monitor-page h1"),
        (".brand", "home-page h1"),
        (".mailbox-row", "mailbox-page h1"),
    ] {
        page.click(link);
        page.until(heading, || page.is_focused(heading));
    }
    page.back();
    page.until("the heading at home", || page.is_focused("home-page h1"));
    page.assert_quiet();
}
