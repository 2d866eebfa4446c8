//! Every page as a visitor first meets it: it is there at its address, with and without a base path, and asks nobody but
//! its server.

use super::page::Page;
use super::support::Server;

/// The addresses of all pages, and the element that each is.
const PAGES: [(&str, &str); 5] = [
    ("/", "home-page"),
    ("/m/james", "mailbox-page"),
    ("/m/james/latest", "mailbox-page"),
    ("/monitor", "monitor-page"),
    ("/status", "status-page"),
];

#[test]
fn each_page_is_at_its_address() {
    let server = Server::start(&["--web-basepath=/mail/box"]);
    let Some(page) = Page::of(&server) else { return };
    for (path, element) in PAGES {
        for base in ["", "/mail/box"] {
            page.open(&format!("{base}{path}"));
            page.find(&format!("main > {element} h1"));
        }
    }
    page.assert_quiet();
}

#[test]
fn a_base_path_is_never_left() {
    let server = Server::start(&["--web-basepath=/mail/box"]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/mail/box");
    page.find("home-page");
    assert_eq!(page.path(), "/mail/box/");
    page.click("[data-place=status]");
    page.find("status-page");
    assert_eq!(page.path(), "/mail/box/status");
    page.fill("#goto", "james\n");
    page.find("mailbox-page");
    assert_eq!(page.path(), "/mail/box/m/james");
    // From deeper below, the links in the frame lead where they led before.
    page.click("[data-place=monitor]");
    page.find("monitor-page");
    assert_eq!(page.path(), "/mail/box/monitor");
    page.back();
    page.find("mailbox-page");
    page.click(".brand");
    page.find("home-page");
    assert_eq!(page.path(), "/mail/box/");
    let strays: Vec<_> = page.requests().into_iter().filter(|url| !url.contains("/mail/box")).collect();
    assert_eq!(strays, [""; 0], "nothing is asked from above the base path");
    page.assert_quiet();
}

#[test]
fn an_unknown_address_is_no_page() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/m/james/1/2");
    assert!(page.text("body").contains("404"), "{}", page.text("body"));
}
