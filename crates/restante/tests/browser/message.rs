//! The page of a message with each of its tabs.

use base64::Engine as _;
use serde_json::json;

use super::mails::{self, File, Mail, Picture};
use super::page::Page;
use crate::support::Server;

/// One red pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

const TEXT: &str = "Hello James,\r\n\r\nthe report is at https://example.org/report?week=7 (see mailto:ann@x.org).\r\n\
    > What about the report?\r\n-- \r\nAnn";

const HTML: &str = "<h1>Hello James</h1><p>The <a href='https://example.org/report'>report</a>.</p>\
    <img id=near src=cid:near@x width=40 height=40><img id=far src=http://tracker.test/open.gif>";

/// Returns the brightness of a screenshot at an empty place of the message, from 0 to 1; 1 before it is shown.
const BRIGHTNESS: &str = "
    const picture = new Image();
    picture.src = `data:image/png;base64,${arguments[0]}`;
    return picture.decode().then(() => {
        const frame = document.querySelector('iframe');
        if (!frame) return 1;
        const { left, bottom, width } = frame.getBoundingClientRect();
        const context = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d');
        // The frame can extend below the window.
        context.drawImage(picture, -(left + width / 2), -(Math.min(bottom, innerHeight) - 20));
        const [red, green, blue] = context.getImageData(0, 0, 1, 1).data;
        return (red + green + blue) / 3 / 255;
    })";

/// More lines than a page could have elements.
const LINES: usize = 100_000;

/// Returns the number and the text of the line in the middle of the visible source: `[7, 6]` for `Line 6`.
const MIDDLE_LINE: &str = "
    const seen = document.querySelector('message-view').getBoundingClientRect();
    const line = [...document.querySelectorAll('.line')].find(line => line.getBoundingClientRect().bottom > seen.top + seen.height / 2);
    if (!line || line.getBoundingClientRect().top > seen.bottom || getComputedStyle(line, '::before').content === 'none') return null;
    return [Number(line.dataset.line), Number(line.textContent.trim().slice('Line '.length))]";

fn brightness(page: &Page) -> f64 {
    let picture = page.command("Page.captureScreenshot", &json!({}));
    page.eval(BRIGHTNESS, &json!([picture["data"]])).as_f64().unwrap()
}

/// Delivers a message with every kind of part, and opens it.
fn open(server: &Server, page: &Page) -> String {
    let pixel = pixel();
    let mail = Mail {
        from: &format!("{} <zoe@x.org>", mails::word("Zoë")),
        to: "",
        subject: "The report – at last",
        header: "X-Campaign: weekly\r\nX-Note: =?utf-8?Q?Gr=C3=BC=C3=9Fe?=\r\n",
        text: TEXT,
        html: HTML,
        pictures: &[Picture { id: "near@x", kind: "image/png", content: &pixel }],
        files: &[
            File { kind: "text/csv", name: "Übersicht.csv", content: b"a;b\r\n1;2\r\n" },
            File { kind: "image/png", name: "pixel.png", content: &pixel },
        ],
    };
    server.deliver("james@x.org", &mail.bytes());
    let id = server.ids("james").pop().unwrap();
    page.open(&format!("/m/james/{id}"));
    page.expect_text(".message-subject", "The report – at last");
    id
}

fn pixel() -> Vec<u8> {
    base64::prelude::BASE64_STANDARD.decode(PIXEL).unwrap()
}

#[test]
fn html_is_shown_without_remote_content() {
    let server = Server::start(&[]);
    let Some(page) = Page::in_complete_browser(&server) else { return };
    open(&server, &page);
    page.expect_text(".message-from .person", "Zoë <zoe@x.org>");
    page.expect_text(".message-to", "james@x.org");
    page.in_frame("iframe", |frame| {
        assert_eq!(frame.text("h1"), "Hello James");
        assert_eq!(frame.attribute("a", "rel").as_deref(), Some("noopener noreferrer nofollow"));
        assert_eq!(frame.attribute("a", "target").as_deref(), Some("_blank"));
        frame.until("the image", || frame.attribute("img[width]", "src").is_some_and(|src| src.starts_with("data:")));
        let loaded = "return document.querySelector('img[width]').naturalWidth";
        frame.until("the image", || frame.eval(loaded, &json!([])) == 1);
    });
    page.expect_part(".remote-note", "Remote content blocked: tracker.test");
    page.assert_quiet();
    // On demand only the remote content is requested.
    page.click(".remote-note .button");
    // The browser may open two connections for one request.
    let requests = || {
        page.external_requests()
            .into_iter()
            .filter(|requests| !requests.starts_with("a connection"))
            .collect::<Vec<_>>()
    };
    page.until("the request", || requests() == ["http://tracker.test/open.gif"]);
    page.until("the note", || page.text(".remote-note").contains("loaded once"));
    page.in_frame("iframe", |frame| {
        let widths = "return [...document.images].map(image => image.naturalWidth)";
        frame.until("both images", || frame.eval(widths, &json!([])) == json!([1, 16]));
    });
    // It was loaded for this view only.
    page.reload();
    page.until("the note", || page.text(".remote-note").contains("blocked"));
    assert_eq!(requests(), ["http://tracker.test/open.gif"]);
    assert_eq!(page.console(), [""; 0]);
}

#[test]
fn html_preview_has_widths_and_color_schemes() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    open(&server, &page);
    let width = || page.in_frame("iframe", |frame| frame.eval("return innerWidth", &json!([])));
    for (button, expected) in [("Phone", 375), ("Tablet", 768)] {
        page.click(&format!(".widths [title={button}]"));
        page.until(button, || width() == expected);
    }
    page.click(".widths [title='Full width']");
    page.until("the full width", || width().as_u64().is_some_and(|width| width != 768 && width > 400));
    let dark = || brightness(&page) < 0.5;
    assert!(!dark());
    page.click("[aria-label='Color scheme of the preview'] [title=Dark]");
    page.until("the dark scheme", dark);
    page.reload();
    page.until("the dark scheme after a reload", dark);
    page.assert_quiet();
}

#[test]
fn each_tab_shows_its_content() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let id = open(&server, &page);
    page.keys("2");
    page.until("the text", || page.text(".message-text").starts_with("Hello James,"));
    let links = "return [...document.querySelectorAll('.message-text a')].map(a => [a.href, a.target, a.rel])";
    let away = |href: &str| json!([href, "_blank", "noopener noreferrer"]);
    assert_eq!(
        page.eval(links, &json!([])),
        json!([away("https://example.org/report?week=7"), away("mailto:ann@x.org")])
    );
    page.expect_text(".message-text .quoted", "> What about the report?");

    page.keys("4");
    page.until("the headers", || page.texts(".message-headers tbody th").contains(&"X-Campaign".to_owned()));
    page.fill("message-headers [type=search]", "x-note");
    page.until("the filtered header", || page.texts(".message-headers tbody th") == ["X-Note"]);
    page.expect_part(".message-headers tbody td", "Grüße");
    page.click(".message-headers .more");
    page.expect_text(".header-raw", "=?utf-8?Q?Gr=C3=BC=C3=9Fe?=");

    page.keys("5");
    page.find(".message-parts tbody tr");
    let types = page.texts(".message-parts .part-type > .mono");
    let expected = [
        "multipart/mixed",
        "multipart/alternative",
        "text/plain",
        "multipart/related",
        "text/html",
        "image/png",
        "text/csv",
        "image/png",
    ];
    assert_eq!(types, expected);
    page.expect_part(".message-parts", "This message is well-formed.");

    page.keys("6");
    let source = String::from_utf8(server.bytes(&format!("/api/v1/mailbox/james/{id}/source"))).unwrap();
    let shown = "return [...document.querySelectorAll('.source-chunk')].map(chunk => chunk.textContent).join('\\n')";
    page.until("the source", || page.count(".message-source .line") > 0);
    assert_eq!(page.eval(shown, &json!([])).as_str().unwrap(), source.trim_end().replace("\r\n", "\n"));
    page.expect_count(".message-source .line", source.lines().count());
    page.assert_quiet();
}

#[test]
fn problems_of_a_message_are_shown() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let broken = "From: Ann <ann@x.org>\r\nSubject: Broken\r\nMIME-Version: 1.0\r\n\
        Content-Type: multipart/mixed; boundary=limit\r\n\r\n--limit\r\nContent-Type: text/plain\r\n\
        Content-Transfer-Encoding: base64\r\n\r\nSGVsbG8*=!\r\n";
    server.deliver("james@x.org", broken.as_bytes());
    page.open("/m/james/latest");
    page.until("the problems", || page.text(".message-defects").contains("problem"));
    page.click(".message-defects summary");
    let defects = server.json(&format!("/api/v2/mailbox/james/{}", server.ids("james")[0]))["defects"].clone();
    let names: Vec<_> = defects.as_array().unwrap().iter().map(|defect| defect["name"].as_str().unwrap()).collect();
    assert!(!names.is_empty());
    page.expect_texts(".message-head .defect-list strong", &names);
    page.keys("5");
    page.until("the problems", || page.texts(".part-defects strong") == names);
    page.assert_quiet();
}

#[test]
fn html_without_text_is_no_problem() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    server.deliver("james@x.org", &mails::html("HTML only", "<p>Hello</p>"));
    page.open("/m/james/latest");
    page.until("the message", || page.text(".message-subject") == "HTML only");
    page.expect_count(".message-defects", 0);
    page.keys("5");
    page.until("the parts", || page.text(".message-parts").contains("This message is well-formed."));
}

#[test]
fn click_on_a_message_needs_three_requests() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let header = "List-Unsubscribe: <https://shop.test/off>\r\n";
    let html = "<p>Your verification code is 482913.</p><a href='https://shop.test/verify'>Confirm</a>";
    let mail = Mail { subject: "Welcome", header, text: "Your verification code is 482913.", html, ..Mail::default() };
    server.deliver("james@x.org", &mail.bytes());
    page.open("/");
    page.find(".message-row");
    page.clear_requests();
    page.click(".message-row .row-subject");
    page.in_frame("iframe", |frame| assert_eq!(frame.text("a"), "Confirm"));
    page.expect_count(".message-code, .message-main-link, .unsubscribe, .message-mailboxes", 4);
    let id = &server.ids("james")[0];
    let is_content = |url: &String| url.contains(&format!("/messages/{id}")) && !url.ends_with("/html-check");
    let requests: Vec<_> = page.requests().into_iter().filter(is_content).collect();
    assert_eq!(requests.len(), 2, "the third one marks it as read: {requests:#?}");
    page.assert_quiet();
}

#[test]
fn long_messages_are_printed_on_several_pages() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let lines = "<p>One more line of a long message.</p>\n".repeat(300);
    server.deliver("james@x.org", &mails::html("Long HTML", &lines));
    server.deliver("mary@x.org", &mails::text("Long text", &"One more line of a long message.\r\n".repeat(300)));
    for (mailbox, ready) in [("james", "iframe"), ("mary", ".text-chunk")] {
        page.open(&format!("/m/{mailbox}/latest"));
        page.find(ready);
        let pdf = page.command("Page.printToPDF", &json!({}));
        let pdf = base64::prelude::BASE64_STANDARD.decode(pdf["data"].as_str().unwrap()).unwrap();
        let pages = String::from_utf8_lossy(&pdf).matches("/Type /Page\n").count();
        assert!(pages >= 5, "{pages} pages of {mailbox}");
    }
}

#[test]
fn attached_documents_can_only_be_downloaded() {
    let server = Server::start(&[]);
    let Some(page) = Page::in_complete_browser(&server) else { return };
    let drawing =
        b"<svg xmlns='http://www.w3.org/2000/svg' width='8' height='8'><image href='http://tracker.test/svg'/></svg>";
    let mail = Mail {
        subject: "Attached",
        text: "See there.",
        files: &[
            File { kind: "text/html", name: "page.html", content: b"<link rel=preconnect href=http://tracker.test>" },
            File { kind: "image/svg+xml", name: "drawing.svg", content: drawing },
            File { kind: "application/xhtml+xml", name: "page.xhtml", content: b"<html/>" },
            File { kind: "image/png", name: "pixel.png", content: &pixel() },
        ],
        ..Mail::default()
    };
    server.deliver("james@x.org", &mail.bytes());
    page.open("/m/james/latest");
    page.until("all of them", || page.count(".card") == 4);
    // Links download the file, buttons show it. An image runs no scripts and loads nothing.
    let elements =
        "return [...document.querySelectorAll('.card-main')].map(main => [main.localName, main.download ?? null])";
    let [save, show] = [json!(["a", ""]), json!(["button", null])];
    assert_eq!(page.eval(elements, &json!([])), json!([save, show, save, show]));
    // They cannot be opened in the list of parts either.
    page.keys("5");
    page.find(".message-parts tbody tr");
    let opened =
        "return [...document.querySelectorAll('message-view a[target=_blank]:not([download])')].map(link => link.href)";
    let opened: Vec<String> = serde_json::from_value(page.eval(opened, &json!([]))).unwrap();
    let message = server.url(&format!("/api/v2/messages/{}", server.ids("james")[0]));
    assert_eq!(opened, [format!("{message}/parts/1"), format!("{message}/attachments/3")]);
    page.assert_quiet();
}

#[test]
fn focus_stays_when_remote_content_is_loaded() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    open(&server, &page);
    page.click(".remote-note .button");
    page.until("the note", || page.text(".remote-note").contains("loaded once"));
    page.in_frame("iframe", |frame| {
        let width = "return document.querySelector('img:not([width])')?.naturalWidth";
        frame.until("the image", || frame.eval(width, &json!([])) == 16);
    });
    page.expect_focus(".remote-note .button");
    // The shortcuts of the page still work.
    page.keys("?");
    page.find("dialog");
    assert_eq!(page.console(), [""; 0]);
}

#[test]
fn long_source_is_shown_with_few_elements() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let head = "From: Ann <ann@x.org>\r\nSubject: Long\r\n\r\n";
    let lines: Vec<_> = (0..LINES).map(|number| format!("Line {number}\r\n")).collect();
    server.deliver("james@x.org", format!("{head}{}", lines.concat()).as_bytes());
    let source = server.bytes(&format!("/api/v1/mailbox/james/{}/source", server.ids("james")[0]));
    let before = String::from_utf8(source).unwrap().lines().position(|line| line == "Line 0").unwrap();
    page.open("/m/james/latest");
    page.until("the message", || page.text(".message-subject") == "Long");
    page.keys("6");
    page.until("the source", || page.count(".message-source .line") > 0);
    let few = || assert!(page.count("*") < 3_000, "{} elements are in the document", page.count("*"));
    few();
    // The number of a line in the middle must match its text.
    page.eval(
        "const view = document.querySelector('message-view'); view.scrollTop = view.scrollHeight / 2",
        &json!([]),
    );
    let middle =
        || -> (usize, usize) { serde_json::from_value(page.measure(MIDDLE_LINE, &json!([]))).unwrap_or_default() };
    page.until("a number", || middle().0 > 0);
    let (number, shown_number) = middle();
    assert_eq!(number, shown_number + before + 1, "wrong line number");
    assert!((LINES / 4..LINES / 4 * 3).contains(&shown_number), "line {shown_number} is not in the middle");
    few();
    page.assert_quiet();
}
