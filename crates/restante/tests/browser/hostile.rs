//! Mail that wants to act in the browser of its reader: nothing of it runs, and nothing is fetched from elsewhere, whatever
//! part of a mail it hides in and wherever that is shown.

use serde_json::json;

use super::active_html;
use super::mails::{self, File, Mail, Picture};
use super::page::Page;
use crate::support::Server;

/// Files that browsers show, other than HTML.
const FILES: [(&str, &str); 5] = [
    ("image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg' onload='SCRIPT'><script>SCRIPT</script></svg>"),
    ("image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg'><image href='http://image.test/'/></svg>"),
    ("application/xhtml+xml", "<html xmlns='http://www.w3.org/1999/xhtml'><script>SCRIPT</script></html>"),
    ("text/xml", "<x:script xmlns:x='http://www.w3.org/1999/xhtml'>SCRIPT</x:script>"),
    ("text/xml", "<?xml-stylesheet type='text/xsl' href='http://sheet.test/'?><x/>"),
];

/// What to write where a page shows a text of the mail.
const WORDS: [&str; 5] = [
    "<script>SCRIPT</script>",
    "\"><img src=x onerror=SCRIPT>",
    "'><svg onload=SCRIPT>",
    "javascript:SCRIPT",
    "{{constructor.constructor('SCRIPT')()}}${SCRIPT}",
];

/// What a document goes elsewhere with.
const GOERS: [&str; 3] = ["http-equiv", "<form", "<base"];

/// Documents that are loaded at the same time, each in a frame of its own.
const TOGETHER: usize = 35;

/// Loads documents of the server in frames without a sandbox, so that only their own policies guard them.
const FRAMES: &str = "
    document.querySelectorAll('iframe').forEach(frame => frame.remove());
    return Promise.all(arguments[0].map(path => new Promise(done => {
        const frame = document.createElement('iframe');
        frame.onload = () => done(path);
        frame.src = path;
        document.body.append(frame);
    })))";

/// Loads all these paths, several at a time; nothing of what they hold runs.
#[track_caller]
fn load(page: &Page, paths: &[String], check: impl Fn()) {
    page.open("/status");
    for some in paths.chunks(TOGETHER) {
        page.eval(FRAMES, &json!([some]));
        check();
    }
}

/// Opens what wants to go elsewhere by itself as a page of its own, where nobody else's policy holds it back.
#[track_caller]
fn open_goers(page: &Page, paths: &[String]) {
    for (path, _) in
        paths.iter().zip(active_html::all()).filter(|(_, trick)| GOERS.iter().any(|goer| trick.contains(goer)))
    {
        page.open(path);
        assert_harmless(page);
    }
}

/// Nothing of a mail has run.
#[track_caller]
fn assert_nothing_ran(page: &Page) {
    let console = page.console();
    // That it was kept from acting stands there too, in the words of the browser; a frame may not open dialogs.
    let ran = |line: &&String| {
        line.contains("console-api") && line.contains("executed") || line.contains("Ignored call to 'alert()'")
    };
    assert_eq!(console.iter().find(ran), None, "something ran: {console:#?}");
    assert_eq!(page.dialogs(), [""; 0], "a dialog opened");
}

/// Nothing of a mail has run or asked for something.
#[track_caller]
fn assert_harmless(page: &Page) {
    assert_nothing_ran(page);
    // Chromium connects to a host that a page names, before it looks whether the page may ask there: no policy forbids it.
    let asked = page.asked_outside().into_iter().filter(|asked| !asked.starts_with("a connection"));
    assert_eq!(asked.collect::<Vec<_>>(), [""; 0], "somebody else was asked");
}

/// Puts a mail for each trick into a mailbox, and returns the paths of their previews.
fn previews(server: &Server) -> Vec<String> {
    for (number, trick) in active_html::all().enumerate() {
        server.deliver("james@x.org", &mails::html(&format!("{number}"), &format!("<p>Read me</p>{trick}")));
    }
    server.ids("james").iter().map(|id| format!("/serve/mailbox/james/{id}/html")).collect()
}

#[test]
fn the_tricks_are_noticed() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    // What the other tests rely on: without the server's care, a trick shows.
    let trick = active_html::all().next().unwrap();
    page.open(&format!("data:text/html,{trick}"));
    page.until("a dialog", || page.dialogs().iter().any(|text| text.starts_with("executed")));
    page.open(&format!("data:text/html,<iframe sandbox=allow-scripts srcdoc='{trick}'></iframe>"));
    page.until("a word of the browser", || {
        page.console().iter().any(|line| line.contains("Ignored call to 'alert()'"))
    });
}

#[test]
fn attachments_do_not_act() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let pages = active_html::all().map(|trick| ("text/html", trick));
    let others = FILES.map(|(kind, content)| (kind, content.replace("SCRIPT", &active_html::script(0))));
    let contents: Vec<_> = pages.chain(others).collect();
    let mut paths = Vec::new();
    for some in contents.chunks(TOGETHER) {
        let files: Vec<_> =
            some.iter().map(|(kind, content)| File { kind, name: "file", content: content.as_bytes() }).collect();
        server.deliver("james@x.org", &Mail { subject: "Files", files: &files, ..Mail::default() }.bytes());
        let id = server.ids("james").pop().unwrap();
        for (index, (_, content)) in some.iter().enumerate() {
            let path = format!("/serve/mailbox/james/{id}/attach/{index}/file");
            assert_eq!(String::from_utf8_lossy(&server.bytes(&path)), *content, "the file is served as it is");
            paths.push(path);
        }
    }
    load(&page, &paths, || assert_harmless(&page));
    open_goers(&page, &paths);
}

#[test]
fn the_preview_does_not_act() {
    let server = Server::start(&["--storage-mailboxmsgcap=0"]);
    let Some(page) = Page::of(&server) else { return };
    let paths = previews(&server);
    assert_eq!(paths.len(), active_html::all().count());
    load(&page, &paths, || {
        assert_harmless(&page);
        // Here not even a connection is made: what would ask was taken out of the document.
        assert_eq!(page.asked_outside(), [""; 0], "somebody else was named");
    });
    open_goers(&page, &paths);
    // When it may load pictures, it does, but runs nothing.
    let paths: Vec<_> = paths.iter().map(|path| format!("{path}?remote=1")).collect();
    load(&page, &paths, || {
        assert_nothing_ran(&page);
        let asked = page.asked_outside();
        assert!(!asked.iter().any(|url| url.contains("script.test")), "something ran: {asked:#?}");
    });
    assert!(page.asked_outside().contains(&"http://image.test/".to_owned()), "pictures are loaded when they may be");
}

#[test]
fn no_text_of_a_mail_acts_in_a_page() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/monitor");
    for words in WORDS.map(|words| words.replace("SCRIPT", &active_html::script(1))) {
        let word = mails::word(&words);
        let quoted = words.replace('"', "\\\"");
        let mail = Mail {
            from: &format!("{word} <ann@x.org>"),
            to: &format!("{word} <james@x.org>"),
            subject: &words,
            header: &format!("X-Raw: {words}\r\nX-Word: {word}\r\nDate: {words}\r\nMessage-ID: <{words}>\r\n"),
            text: &words,
            html: &format!("<p title=\"{words}\">{words}</p><img src=\"cid:{words}\">"),
            pictures: &[Picture { id: &words, kind: &format!("image/png; name=\"{quoted}\""), content: b"no picture" }],
            files: &[
                File { kind: "image/png", name: &words, content: b"no picture" },
                File {
                    kind: &format!("text/html; charset=\"{quoted}\""),
                    name: "page.html",
                    content: words.as_bytes(),
                },
            ],
        };
        server.deliver("james@x.org", &mail.bytes());
        page.until("the arrival", || page.texts(".arrival").iter().any(|row| row.contains(&words)));
        page.open(&format!("/m/james/{}", server.ids("james").last().unwrap()));
        assert_eq!(page.text(".message-subject"), words.replace("  ", " "));
        for tab in ["html", "text", "links", "headers", "parts", "source", "session", "attachments"] {
            page.click(&format!("#tab-{tab}"));
            page.find(&format!("#panel-{tab} > * > *"));
        }
        page.until("the row", || page.texts(".message-row").iter().any(|row| row.contains(&words)));
        assert_harmless(&page);
        page.open("/monitor");
    }
    page.assert_quiet();
}

#[test]
fn no_name_of_a_mailbox_acts_in_a_page() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    // One that can be.
    let name = "'=onload=alert`1`{{x}}";
    server.deliver(&format!("{name}@x.org"), &mails::text("Hello", "Hello"));
    page.open("/");
    page.until("the mailbox", || page.texts(".mailbox-row .mailbox-name") == [name]);
    page.click(".mailbox-row");
    page.until("the message", || page.texts(".row-subject") == ["Hello"]);
    assert_eq!(page.text("mailbox-page h1"), name);
    page.click("[data-page=monitor]");
    page.until("the arrival", || page.texts(".arrival-mailbox") == [name]);
    page.assert_quiet();
    // And others that only stand in the address.
    for words in WORDS.map(|words| words.replace("SCRIPT", &active_html::script(1))) {
        let encoded = page.eval("return encodeURIComponent(arguments[0])", &json!([words]));
        page.open(&format!("/m/{}", encoded.as_str().unwrap()));
        page.until("a refusal", || page.text("mailbox-page").contains("This mailbox name is not valid"));
        assert!(page.title().contains(&words), "{}", page.title());
        assert_harmless(&page);
    }
}
