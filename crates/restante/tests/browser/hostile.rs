//! Mail that wants to act in the browser of its reader: nothing of it runs, and nothing is fetched from elsewhere.

use super::mails;
use super::page::Page;
use super::support::Server;
use super::tricks;

/// Files that browsers show, other than HTML.
const FILES: [(&str, &str); 5] = [
    ("image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg' onload='SCRIPT'><script>SCRIPT</script></svg>"),
    ("image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg'><image href='http://image.test/'/></svg>"),
    ("application/xhtml+xml", "<html xmlns='http://www.w3.org/1999/xhtml'><script>SCRIPT</script></html>"),
    ("text/xml", "<x:script xmlns:x='http://www.w3.org/1999/xhtml'>SCRIPT</x:script>"),
    ("text/xml", "<?xml-stylesheet type='text/xsl' href='http://sheet.test/'?><x/>"),
];

/// Nothing of a mail has run.
#[track_caller]
fn assert_nothing_ran(page: &Page, case: &str) {
    let console = page.console();
    // That it was kept from acting stands there too, in the words of the browser.
    let ran = |line: &String| line.contains("console-api") && line.contains("executed");
    assert!(!console.iter().any(ran), "{case} ran: {console:#?}");
    assert_eq!(page.dialogs(), [""; 0], "{case} opened a dialog");
}

/// Nothing of a mail has run or asked for something.
#[track_caller]
fn assert_harmless(page: &Page, case: &str) {
    assert_nothing_ran(page, case);
    // Chromium connects to a host that a page names, before it looks whether the page may ask there: no policy forbids it.
    let asked = page.asked_outside().into_iter().filter(|asked| !asked.starts_with("a connection"));
    assert_eq!(asked.collect::<Vec<_>>(), [""; 0], "{case} asked somebody else");
}

#[test]
fn attachments_do_not_act() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let pages = tricks::all().map(|trick| ("text/html", trick));
    let others = FILES.map(|(kind, content)| (kind, content.replace("SCRIPT", tricks::SCRIPT)));
    for (kind, content) in pages.chain(others) {
        server.deliver("james@x.org", &mails::files("A file", &[(kind, &content, "file")]));
        let path = format!("/serve/mailbox/james/{}/attach/0/file", server.ids("james").last().unwrap());
        assert_eq!(String::from_utf8_lossy(&server.bytes(&path)), content, "the file is served as it is");
        page.open(&path);
        assert_harmless(&page, &content);
    }
}

#[test]
fn the_preview_does_not_act() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    for trick in tricks::all() {
        server.deliver("james@x.org", &mails::html("A trick", &format!("<p>Read me</p>{trick}")));
        page.open(&format!("/serve/mailbox/james/{}/html", server.ids("james").last().unwrap()));
        assert!(page.text("body").contains("Read me"), "{trick} hides the mail");
        assert_harmless(&page, &trick);
        // Here not even a connection is made: what would ask was taken out of the document.
        assert_eq!(page.asked_outside(), [""; 0], "{trick} named somebody else");
    }
}

#[test]
fn the_preview_does_not_run_scripts_when_it_may_load_pictures() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    for trick in tricks::all() {
        server.deliver("james@x.org", &mails::html("A trick", &format!("<p>Read me</p>{trick}")));
        page.open(&format!("/serve/mailbox/james/{}/html?remote=1", server.ids("james").last().unwrap()));
        assert!(page.text("body").contains("Read me"), "{trick} hides the mail");
        assert_nothing_ran(&page, &trick);
        let asked = page.asked_outside();
        assert!(!asked.iter().any(|url| url.contains("script.test")), "{trick} ran: {asked:#?}");
    }
}
