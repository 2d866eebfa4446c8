//! The attachments of a message: the strip below the body, the viewer, and invitations.

use base64::Engine as _;
use serde_json::json;

use super::mails::{self, File, Mail, Picture};
use super::page::{Page, key};
use crate::support::Server;

/// One red pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

const PDF: &[u8] =
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj \
    3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n";

const INVITATION: &[u8] = b"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nMETHOD:REQUEST\r\nBEGIN:VEVENT\r\nUID:1@x\r\n\
    DTSTART;TZID=Europe/Berlin:20261120T150000\r\nDURATION:PT1H\r\nSUMMARY:Sprint re\r\n view\r\n\
    LOCATION:Room 2\\, second floor\r\nORGANIZER;CN=\"Ann; Lee\":mailto:ann@x.org\r\nATTENDEE:mailto:james@x.org\r\n\
    RRULE:FREQ=WEEKLY\r\nBEGIN:VALARM\r\nSUMMARY:Not this one\r\nEND:VALARM\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";

fn pixel() -> Vec<u8> {
    base64::prelude::BASE64_STANDARD.decode(PIXEL).unwrap()
}

/// Delivers a message with an inline image and three files, and opens it.
fn open(server: &Server, page: &Page) -> String {
    let pixel = pixel();
    let mail = Mail {
        subject: "Files",
        text: "See the files.",
        html: "<p>See the files.</p><img src=cid:logo@x width=10 height=10>",
        pictures: &[Picture { id: "logo@x", kind: "image/png", content: &pixel }],
        files: &[
            File { kind: "text/csv", name: "Übersicht.csv", content: b"a;b\r\n1;2\r\n" },
            File { kind: "image/png", name: "pixel.png", content: &pixel },
            File { kind: "application/zip", name: "all.zip", content: b"PK" },
        ],
        ..Mail::default()
    };
    server.deliver("james@x.org", &mail.bytes());
    let id = server.ids("james").pop().unwrap();
    page.open(&format!("/m/james/{id}"));
    page.until("the message", || page.text(".message-subject") == "Files");
    id
}

#[test]
fn attachments_are_a_strip_without_inline_images() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let id = open(&server, &page);
    page.expect_texts(".card-name", &["Übersicht.csv", "pixel.png", "all.zip"]);
    page.expect_attribute(".cards", "aria-label", "3 attachments");
    assert!(page.text(".card-type").starts_with("CSV · "), "{}", page.text(".card-type"));
    let picture = "return document.querySelector('.card img')?.naturalWidth";
    page.until("the thumbnail", || page.eval(picture, &json!([])) == 1);
    let paths = "return [...document.querySelectorAll('.card-download')].map(link => link.pathname + link.search)";
    let paths: Vec<String> = serde_json::from_value(page.eval(paths, &json!([]))).unwrap();
    assert_eq!(server.bytes(&paths[0]), b"a;b\r\n1;2\r\n");
    // It is above the tabs.
    let is_above =
        "const [strip, tabs] = ['.cards', 'tab-bar'].map(css => document.querySelector(css).getBoundingClientRect());
        return strip.bottom <= tabs.top + 1";
    assert_eq!(page.measure(is_above, &json!([])), true);
    page.keys("5");
    page.until("the parts", || page.text(".message-parts").contains("cid:logo@x"));
    assert_eq!(page.texts(".card-name").len(), 3);
    // The menu has each of them, too.
    page.click("[title=Download]");
    let files = page.texts(".menu:popover-open .menu-label");
    assert_eq!(files[files.len() - 4..], ["All attachments (.zip)", "Übersicht.csv", "pixel.png", "all.zip"]);
    page.keys(key::ESCAPE);
    // A message with an inline image only has no attachments.
    let pixel = pixel();
    let pictures = &[Picture { id: "logo@x", kind: "image/png", content: &pixel }];
    let html = "<p>News</p><img src=cid:logo@x>";
    server.deliver("james@x.org", &Mail { subject: "News", text: "News", html, pictures, ..Mail::default() }.bytes());
    let newest = server.ids("james").pop().unwrap();
    assert_ne!(newest, id);
    page.open(&format!("/m/james/{newest}"));
    page.until("the message", || page.text(".message-subject") == "News");
    page.expect_count(".cards", 0);
    page.assert_quiet();
}

#[test]
fn images_and_texts_open_in_the_page() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let id = open(&server, &page);
    page.click(".card-main");
    page.until("the text", || page.text(".viewer-text") == "a;b\n1;2");
    page.expect_text(".viewer-title", "Übersicht.csv");
    // The file that cannot be shown is skipped.
    assert_eq!(page.text(".viewer-foot [role=status]"), "1 of 2");
    // In the text, the arrow keys scroll.
    page.click(".viewer-text");
    page.keys(key::RIGHT);
    assert_eq!(page.text(".viewer-foot [role=status]"), "1 of 2");
    page.click(".viewer-title");
    page.keys(key::RIGHT);
    page.until("the image", || {
        page.eval("return document.querySelector('.viewer-image img')?.naturalWidth", &json!([])) == 1
    });
    page.expect_text(".viewer-foot [role=status]", "2 of 2");
    page.click(".viewer-image");
    page.until("the zoom", || page.attribute(".viewer-image", "aria-pressed").as_deref() == Some("true"));
    let attachments = server.json(&format!("/api/v2/messages/{id}/details"))["attachments"].clone();
    let attachments = attachments.as_array().unwrap();
    let md5 = attachments.iter().find(|one| one["filename"] == "pixel.png").unwrap()["md5"].as_str().unwrap();
    page.eval("navigator.clipboard.writeText = async text => { window.copied = text }", &json!([]));
    page.click(".viewer-tools button");
    page.until("the checksum", || page.eval("return window.copied ?? null", &json!([])) == md5);
    page.keys(key::ESCAPE);
    page.until("the end of the viewer", || page.count("dialog") == 0);
    page.expect_focus(".card-main");
    page.assert_quiet();
}

#[test]
fn pdf_files_open_in_a_frame() {
    let server = Server::start(&[]);
    let Some(page) = Page::in_complete_browser(&server) else { return };
    let files = &[File { kind: "application/pdf", name: "invoice.pdf", content: PDF }];
    server.deliver("james@x.org", &Mail { subject: "Invoice", text: "Attached.", files, ..Mail::default() }.bytes());
    let id = server.ids("james").pop().unwrap();
    page.open(&format!("/m/james/{id}"));
    page.click(".card-main");
    page.find(".viewer h2");
    let path = format!("/api/v2/messages/{id}/attachments/0");
    assert_eq!(page.attribute(".viewer-pdf", "src"), Some(path.clone()));
    assert_eq!(server.bytes(&path), PDF);
    // A frame with the focus gets the keys.
    page.expect_count(".viewer-keys:not([hidden])", 0);
    page.eval("document.querySelector('.viewer-pdf').focus()", &json!([]));
    page.until("the hint", || page.count(".viewer-keys:not([hidden])") == 1);
    page.click(".viewer-title");
    page.until("the end of the hint", || page.count(".viewer-keys:not([hidden])") == 0);
    page.keys(key::ESCAPE);
    page.until("the end of the viewer", || page.count("dialog") == 0);
    // In a browser that does not show PDF files.
    page.eval("Object.defineProperty(navigator, 'pdfViewerEnabled', { value: false })", &json!([]));
    page.click(".card-main");
    page.expect_part(".viewer-failed", "Download the file instead");
}

#[test]
fn invitations_are_shown_as_cards() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let files = &[File { kind: "text/calendar; method=REQUEST", name: "invite.ics", content: INVITATION }];
    server.deliver("james@x.org", &Mail { subject: "Sprint", text: "Please join.", files, ..Mail::default() }.bytes());
    page.open("/m/james/latest");
    page.until("the card", || page.text(".invitation h2").starts_with("Sprint review"));
    let card = page.text(".invitation");
    for words in ["Invitation", "Room 2, second floor", "Ann; Lee", "1 person", "repeats"] {
        assert!(card.contains(words), "{words}: {card}");
    }
    page.expect_count(".invitation", 1);
    page.expect_attribute(".invitation time", "datetime", "2026-11-20T14:00:00.000Z");
    // A day that does not exist is not shown.
    let days = b"BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTART:20260230\r\nSUMMARY:Never\r\nEND:VEVENT\r\n\
        BEGIN:VEVENT\r\nUID:2\r\nDTSTART:20280229\r\nSUMMARY:Leap day\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
    let files = &[File { kind: "text/calendar", name: "days.ics", content: days }];
    server.deliver("james@x.org", &Mail { subject: "Days", text: "Hello", files, ..Mail::default() }.bytes());
    page.open("/m/james/latest");
    page.until("the cards", || page.count(".invitation h2") == 2);
    let times = "return [...document.querySelectorAll('.invitation time')].map(time => time.dateTime)";
    assert_eq!(page.eval(times, &json!([])), json!(["2028-02-29"]));
    // Broken files have no card.
    let broken = b"BEGIN:VEVENT\r\nEND:VCALENDAR\r\nDTSTART:99999999T999999Z\r\n:::;;;\"\r\nBEGIN:VEVENT";
    let files = &[File { kind: "text/calendar", name: "broken.ics", content: broken }];
    server.deliver("james@x.org", &Mail { subject: "Broken", text: "Hello", files, ..Mail::default() }.bytes());
    page.open("/m/james/latest");
    page.until("the message", || page.text(".message-subject") == "Broken");
    page.until("no card", || page.count(".invitation") == 0);
    // A message without a calendar has none either.
    server.deliver("james@x.org", &mails::text("Plain", "Hello"));
    page.open("/m/james/latest");
    page.until("the message", || page.text(".message-subject") == "Plain");
    page.expect_count(".invitation, message-invitations", 0);
    page.assert_quiet();
}
