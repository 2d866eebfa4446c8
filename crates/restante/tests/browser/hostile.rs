//! Hostile messages: no script runs and nothing is loaded from other hosts, in any part of a message and on any page.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::active_html;
use super::mails::{self, File, Mail, Picture};
use super::page::{LOADED, Page};
use crate::support::Server;

/// File types other than HTML that browsers display.
const FILES: [(&str, &str); 5] = [
    ("image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg' onload='SCRIPT'><script>SCRIPT</script></svg>"),
    ("image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg'><image href='http://image.test/'/></svg>"),
    ("application/xhtml+xml", "<html xmlns='http://www.w3.org/1999/xhtml'><script>SCRIPT</script></html>"),
    ("text/xml", "<x:script xmlns:x='http://www.w3.org/1999/xhtml'>SCRIPT</x:script>"),
    ("text/xml", "<?xml-stylesheet type='text/xsl' href='http://sheet.test/'?><x/>"),
];

/// Texts for every place where a page shows text of a message.
const TEXTS: [&str; 5] = [
    "<script>SCRIPT</script>",
    "\"><img src=x onerror=SCRIPT>",
    "'><svg onload=SCRIPT>",
    "javascript:SCRIPT",
    "{{constructor.constructor('SCRIPT')()}}${SCRIPT}",
];

/// An image of one pixel.
const DOT: &[u8] = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

/// Elements that make a document navigate.
const NAVIGATING: [&str; 3] = ["http-equiv", "<form", "<base"];

/// Elements for which browsers connect to another host, whatever the policy of the document is.
const CONNECTING: [&str; 8] = [
    "<link rel=preconnect href=http://connected.test/>",
    "<link rel=x rel=preconnect href=http://connected.test/>",
    "<link rel=icon rel=preconnect href=http://connected.test/>",
    "<link rel=&Tab;preconnect href=http://connected.test/>",
    "<link rel=dns-prefetch href=http://connected.test/><link rel='stylesheet&#9;preconnect' href=http://connected.test/>",
    "<iframe src=http://connected.test/></iframe>",
    "<frameset><frame src=http://connected.test/></frameset>",
    "<svg><title><link rel=preconnect href=http://connected.test/></title></svg>",
];

/// XML with such elements.
const CONNECTING_XML: [(&str, &str); 3] = [
    (
        "image/svg+xml",
        "<svg xmlns='http://www.w3.org/2000/svg'><x:link xmlns:x='http://www.w3.org/1999/xhtml' rel='preconnect' \
         href='http://connected.test/'/></svg>",
    ),
    (
        "application/xhtml+xml",
        "<html xmlns='http://www.w3.org/1999/xhtml'><link rel='preconnect' href='http://connected.test/'/></html>",
    ),
    ("text/xml", "<a><x:iframe xmlns:x='http://www.w3.org/1999/xhtml' src='http://connected.test/'/></a>"),
];

/// The number of documents that are loaded concurrently, each in its own frame.
const CONCURRENT_FRAMES: usize = 35;

/// Loads documents of the server in frames without a sandbox, so that only their own policies apply.
const FRAMES: &str = "
    document.querySelectorAll('iframe').forEach(frame => frame.remove());
    const load = path => loaded(() => {
        const frame = Object.assign(document.createElement('iframe'), { src: path });
        document.body.append(frame);
        return frame;
    });
    return Promise.all(arguments[0].map(load)).then(() => 'done')";

/// Loads all these paths, several at a time, and checks that nothing runs.
#[track_caller]
fn load(page: &Page, paths: &[String], check: impl Fn()) {
    page.open("/status");
    for some in paths.chunks(CONCURRENT_FRAMES) {
        page.eval(&format!("{LOADED} {FRAMES}"), &json!([some]));
        check();
    }
}

/// Opens documents that try to navigate as top-level pages, where no other policy applies.
#[track_caller]
fn open_navigating(page: &Page, paths: &[String]) {
    for (path, _) in
        paths.iter().zip(active_html::all()).filter(|(_, trick)| NAVIGATING.iter().any(|goer| trick.contains(goer)))
    {
        page.open(path);
        assert_harmless(page);
    }
}

/// Checks that no script of a message has run.
#[track_caller]
fn assert_nothing_ran(page: &Page) {
    let console = page.console();
    // The browser also logs blocked actions; a frame may not open dialogs.
    let ran = |line: &&String| {
        line.contains("console-api") && line.contains("executed") || line.contains("Ignored call to 'alert()'")
    };
    assert_eq!(console.iter().find(ran), None, "a script ran: {console:#?}");
    assert_eq!(page.dialogs(), [""; 0], "dialogs");
}

/// Checks that no script of a message has run and that nothing was requested.
#[track_caller]
fn assert_harmless(page: &Page) {
    assert_nothing_ran(page);
    // Chromium connects to a named host before it checks the policy of the page, so connections are ignored.
    let requests = page.external_requests().into_iter().filter(|requests| !requests.starts_with("a connection"));
    assert_eq!(requests.collect::<Vec<_>>(), [""; 0], "requests to other hosts");
}

/// Stores a message for each entry, and returns the paths of their previews.
fn previews(server: &Server) -> Vec<String> {
    for (number, trick) in active_html::all().enumerate() {
        server.deliver("james@x.org", &mails::html(&format!("{number}"), &format!("<p>Read me</p>{trick}")));
    }
    server.ids("james").iter().map(|id| format!("/serve/mailbox/james/{id}/html")).collect()
}

#[test]
fn running_tricks_are_detected() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    // The other tests rely on this: without the server's protection, the script runs.
    let trick = active_html::all().next().unwrap();
    page.open(&format!("data:text/html,{trick}"));
    page.until("a dialog", || page.dialogs().iter().any(|text| text.starts_with("executed")));
    page.open(&format!("data:text/html,<iframe sandbox=allow-scripts srcdoc='{trick}'></iframe>"));
    page.until("the log entry of the browser", || {
        page.console().iter().any(|line| line.contains("Ignored call to 'alert()'"))
    });
}

#[test]
fn attachments_run_no_scripts() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let pages = active_html::all().map(|trick| ("text/html", trick));
    let others = FILES.map(|(kind, content)| (kind, content.replace("SCRIPT", &active_html::script(0))));
    let contents: Vec<_> = pages.chain(others).collect();
    let mut paths = Vec::new();
    for some in contents.chunks(CONCURRENT_FRAMES) {
        let files: Vec<_> =
            some.iter().map(|(kind, content)| File { kind, name: "file", content: content.as_bytes() }).collect();
        server.deliver("james@x.org", &Mail { subject: "Files", files: &files, ..Mail::default() }.bytes());
        let id = server.ids("james").pop().unwrap();
        for (index, (_, content)) in some.iter().enumerate() {
            let path = format!("/serve/mailbox/james/{id}/attach/{index}/file");
            assert_eq!(String::from_utf8_lossy(&server.bytes(&path)), *content, "the file was changed");
            paths.push(path);
        }
    }
    load(&page, &paths, || assert_harmless(&page));
    open_navigating(&page, &paths);
}

#[test]
fn preview_runs_no_scripts() {
    let server = Server::start(&["--storage-mailboxmsgcap=0"]);
    let Some(page) = Page::in_complete_browser(&server) else { return };
    let paths = previews(&server);
    assert_eq!(paths.len(), active_html::all().count());
    load(&page, &paths, || {
        assert_harmless(&page);
        // There is not even a connection: the sanitizer has removed all remote URLs.
        assert_eq!(page.external_requests(), [""; 0], "connections to other hosts");
    });
    open_navigating(&page, &paths);
    // With remote content allowed, images are loaded but no script runs.
    let paths: Vec<_> = paths.iter().map(|path| format!("{path}?remote=1")).collect();
    load(&page, &paths, || {
        assert_nothing_ran(&page);
        let requests = page.external_requests();
        assert!(!requests.iter().any(|url| url.contains("script.test")), "a script ran: {requests:#?}");
    });
    assert!(page.external_requests().contains(&"http://image.test/".to_owned()), "images were not loaded");
}

#[test]
fn mailpit_view_runs_no_scripts() {
    let server = Server::start(&["--storage-mailboxmsgcap=0"]);
    let Some(page) = Page::of(&server) else { return };
    previews(&server);
    let paths: Vec<_> = server.ids("james").iter().map(|id| format!("/view/{id}.html")).collect();
    assert_eq!(paths.len(), active_html::all().count());
    load(&page, &paths, || assert_harmless(&page));
    open_navigating(&page, &paths);
}

#[test]
fn documents_of_messages_open_no_connections() {
    let server = Server::start(&[]);
    let Some(page) = Page::in_complete_browser(&server) else { return };
    let html = CONNECTING.map(|content| ("text/html", content));
    for (kind, content) in html.into_iter().chain(CONNECTING_XML) {
        let file = File { kind, name: "file", content: content.as_bytes() };
        server.deliver(
            "james@x.org",
            &Mail { subject: "File", html: content, files: &[file], ..Mail::default() }.bytes(),
        );
        let part = server.json("/api/v1/message/latest")["Attachments"][0]["PartID"].as_str().unwrap().to_owned();
        let paths = [
            "/view/latest.html".to_owned(),
            format!("/api/v1/message/latest/part/{part}"),
            "/serve/mailbox/james/latest/attach/0/file".to_owned(),
        ];
        for path in paths {
            page.open(&path);
            assert_eq!(page.external_requests(), [""; 0], "{content} in {path}");
        }
    }
    // The images of an SVG are shown, and without the protection of the server there are connections.
    let svg = "<svg xmlns='http://www.w3.org/2000/svg' width='20' height='10'/>";
    let file = File { kind: "image/svg+xml", name: "file", content: svg.as_bytes() };
    server.deliver("james@x.org", &Mail { subject: "Image", files: &[file], ..Mail::default() }.bytes());
    page.open("/serve/mailbox/james/latest/attach/0/file");
    page.until("the image", || page.eval("return document.images[0].naturalWidth", &json!([])) == 20);
    page.open(&format!("data:text/html,{}", CONNECTING[1]));
    page.until("a connection", || !page.external_requests().is_empty());
}

/// Returns the elements that act on their own as lists of their name and their attributes. The browser decides which elements
/// a document has: it parses `svg` and `math` differently from other elements. Frames and shadow trees are examined too.
fn active_elements(page: &Page) -> Vec<Vec<String>> {
    let root = page.command("DOM.getDocument", &json!({ "depth": -1, "pierce": true }))["root"].take();
    assert!(root["children"].is_array(), "no document: {root}");
    let (mut nodes, mut active) = (vec![root], Vec::new());
    while let Some(mut node) = nodes.pop() {
        for list in ["children", "shadowRoots"] {
            nodes.extend(node[list].as_array_mut().map(std::mem::take).unwrap_or_default());
        }
        nodes.extend(Some(node["contentDocument"].take()).filter(Value::is_object));
        let attributes = node["attributes"].as_array().into_iter().flatten();
        let words: Vec<_> = [&node["localName"]]
            .into_iter()
            .chain(attributes)
            .filter_map(|word| Some(word.as_str()?.to_owned()))
            .collect();
        let has = |name: &str, values: &[&str]| {
            words[1..].chunks(2).any(|pair| pair[0] == name && values.contains(&&*pair[1]))
        };
        let acts = match words.first().map_or("", String::as_str) {
            "" | "basefont" => false,
            "base" | "iframe" | "frame" => true,
            _ => has("http-equiv", &["refresh"]) || has("rel", &["preconnect", "prefetch", "preload", "dns-prefetch"]),
        };
        active.extend(acts.then_some(words));
    }
    active
}

#[test]
fn mailpit_view_has_no_elements_that_act_on_their_own() {
    let server = Server::start(&["--storage-mailboxmsgcap=0"]);
    let Some(page) = Page::of(&server) else { return };
    // The same document without the protection of the server has them.
    let html = "<iframe srcdoc='&lt;base&gt;'></iframe><link rel=preconnect><div><template shadowrootmode=open><base>";
    page.open(&format!("data:text/html,{html}"));
    let names: HashSet<_> = active_elements(&page).into_iter().map(|mut words| words.swap_remove(0)).collect();
    assert_eq!(names, ["iframe", "link", "base"].map(str::to_owned).into());
    previews(&server);
    let paths = server.ids("james").into_iter().map(|id| format!("/view/{id}.html"));
    let is_active = |html: &String| {
        let html = html.to_ascii_lowercase();
        ["<meta", "<base", "<link", "<iframe", "<frame"].iter().any(|text| html.contains(text))
    };
    for (path, trick) in paths.zip(active_html::all()).filter(|(_, trick)| is_active(trick)) {
        page.open(&path);
        assert_eq!(active_elements(&page), [[""; 0]; 0], "{trick}");
    }
}

#[test]
fn mailpit_view_shows_images_of_the_message() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let html = "<p>Hello</p><img src=\"cid:dot\"><img src=\"http://image.test/\"><a href=\"/status\">Go</a>";
    let pictures = [Picture { id: "dot", kind: "image/gif", content: DOT }];
    server.deliver("james@x.org", &Mail { subject: "View", html, pictures: &pictures, ..Mail::default() }.bytes());
    page.open("/view/latest.html");
    page.expect_text("p", "Hello");
    page.until("the image", || page.eval("return document.images[0].naturalWidth", &json!([])) == 1);
    assert_harmless(&page);
    page.click("a");
    page.until("the target of the link", || page.path() == "/status");
    page.open("/view/latest");
    page.until("the message", || page.text(".message-subject") == "View");
}

#[test]
fn texts_of_a_message_are_not_interpreted_as_html() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/");
    for words in TEXTS.map(|words| words.replace("SCRIPT", &active_html::script(1))) {
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
        page.until("the arrival", || page.texts(".message-row").iter().any(|row| row.contains(&words)));
        page.open(&format!("/m/james/{}", server.ids("james").last().unwrap()));
        page.expect_text(".message-subject", &words.replace("  ", " "));
        let tabs = ["html", "text", "links", "headers", "parts", "source", "session", "html-check"];
        for (at, tab) in tabs.iter().enumerate() {
            page.keys(&(at + 1).to_string());
            page.find(&format!("#panel-{tab} > * > *"));
        }
        page.keys("6");
        for title in ["Decoded HTML", "Source of the message"] {
            page.click(&format!("[title='{title}']"));
            page.find("#panel-source .line");
        }
        page.until("the row", || page.texts(".message-row").iter().any(|row| row.contains(&words)));
        assert_harmless(&page);
        page.open("/");
    }
    page.assert_quiet();
}

#[test]
fn mailbox_names_are_not_interpreted_as_html() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    // A valid name.
    let name = "'=onload=alert`1`{{x}}";
    server.deliver(&format!("{name}@x.org"), &mails::text("Hello", "Hello"));
    page.open("/");
    page.until("the mailbox", || page.texts(".sidebar-mailboxes bdi") == [name]);
    page.click(".sidebar-mailboxes a");
    page.until("the message", || page.texts(".row-subject") == ["Hello"]);
    page.expect_text("list-head h1", name);
    page.assert_quiet();
    // Invalid names in the address.
    for words in TEXTS.map(|words| words.replace("SCRIPT", &active_html::script(1))) {
        let encoded = page.eval("return encodeURIComponent(arguments[0])", &json!([words]));
        page.open(&format!("/m/{}", encoded.as_str().unwrap()));
        page.until("the error", || page.text("mail-page").contains("This mailbox name is not valid"));
        assert!(page.title().contains(&words), "{}", page.title());
        assert_harmless(&page);
    }
}
