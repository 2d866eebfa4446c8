//! Codes, links and parts of a message, the test message form, and deleting everything.

use serde_json::{Value, json};

use super::mails::{self, Mail};
use super::page::Page;
use crate::support::Server;

const SIGN_UP: &str =
    "Hello James,\n\nyour verification code is 482913.\nOr open https://shop.test/confirm?token=abc.\n";

#[test]
fn code_can_be_copied() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    server.deliver("james@x.org", &mails::text("No code", "The parcel comes on Monday."));
    server.deliver("james@x.org", &mails::text("Confirm your address", SIGN_UP));
    page.open("/m/james/latest");
    page.until("the code", || page.text(".message-code-value") == "482913");
    // A headless browser has no clipboard.
    page.eval("navigator.clipboard.writeText = async text => { window.copied = text }", &json!([]));
    page.record_texts(".message-code button");
    page.click(".message-code button");
    page.until("the copy", || page.eval("return window.copied ?? null", &json!([])) == "482913");
    page.until("the label of the button", || page.recorded_texts().contains(&"Copied".to_owned()));
    page.keys("j");
    page.until("the other message", || page.text(".message-subject") == "No code");
    page.expect_count(".message-code", 0);
    page.assert_quiet();
}

#[test]
fn code_of_the_header_has_an_origin_and_problems() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let field = |origin: &str| format!("OTP-Token: \"731946\"; origin=\"{origin}\"\r\n");
    let [hostile, origin] = ["javascript:alert(1)//<img src=x onerror=alert(2)>", "https://shop.test:8443"];
    let table = [
        (field(origin), "731946", "731946", origin, None),
        (field(origin), "482913", "731946", origin, Some("Neither the text nor the HTML contains")),
        (field(hostile), "482913", "482913", "", Some(hostile)),
        (field(origin).repeat(2), "482913", "482913", "", Some("2 fields OTP-Token")),
        (format!("OTP-Token: \"{}\"\r\n", "7".repeat(100_000)), "482913", "482913", "", Some("longer than 1024 bytes")),
    ];
    for (number, (header, text, code, origin, problem)) in table.into_iter().enumerate() {
        let (subject, text) =
            (format!("Sign in {}", ["A", "B", "C", "D", "E"][number]), format!("Your code is {text}."));
        let mail = Mail { subject: &subject, header: &header, text: &text, ..Mail::default() };
        server.deliver("james@x.org", &mail.bytes());
        page.open("/m/james/latest");
        page.until("the code", || page.text(".message-subject") == subject && page.text(".message-code-value") == code);
        assert_eq!(
            page.texts(".message-code-origin").concat(),
            if origin.is_empty() { String::new() } else { format!("for {origin}") }
        );
        assert_eq!(page.count(".message-code a"), 0, "the origin is not a link");
        page.expect_count(".message-defects", usize::from(problem.is_some()));
        if let Some(problem) = problem {
            page.click(".message-defects summary");
            page.until("the problem", || page.text(".message-defects .defect-list").contains(problem));
        }
    }
    page.assert_quiet();
}

#[test]
fn links_are_listed_and_only_safe_ones_are_clickable() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let html = "<a href='https://shop.test/a'>Confirm <b>now</b></a> <a href='javascript:alert(1)'>Trick</a>
        <a href='mailto:ann@x.org'><img src='cid:x' alt='Write to us'></a>";
    let mail = Mail { subject: "Links", text: "See https://shop.test/text.", html, ..Mail::default() };
    server.deliver("james@x.org", &mail.bytes());
    page.open("/m/james/latest");
    page.find(".message-subject");
    page.keys("3");
    page.find(".link");
    let rows = page.texts(".link").join("\n");
    for words in ["Confirm now", "https://shop.test/a", "https://shop.test/text", "mailto:ann@x.org", "Write to us"] {
        assert!(rows.contains(words), "{words}: {rows}");
    }
    let followed = "return [...document.querySelectorAll('.link a')].map(a => [a.protocol, a.target, a.rel])";
    let followed = page.eval(followed, &json!([]));
    assert!(followed.as_array().is_some_and(|links| links.len() >= 3), "{followed}");
    for link in followed.as_array().unwrap() {
        assert!(["https:", "mailto:"].contains(&link[0].as_str().unwrap()), "{link}");
        assert_eq!((&link[1], &link[2]), (&json!("_blank"), &json!("noopener noreferrer")));
    }
    server.deliver("james@x.org", &mails::text("None", "Hello"));
    page.open("/m/james/latest");
    page.until("the empty list", || page.text("#panel-links").contains("No links"));
    page.assert_quiet();
}

#[test]
fn links_are_checked_without_requests() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let html = "<a href='https://shop.test/reset'>Choose a new password</a> <a href='http://shop.test/b'>Plain</a>
        <a href='https://evil.test/'>https://shop.test/login</a> <a href='/account'>Relative</a>
        <a href='https://www.shop.test/c'>shop.test/c</a> <a href='tel:+4930'>Call</a> <a href='#top'>Top</a>
        <a href='https://shop.test/d'>Node.js</a> <a href='https://localhost.shop.test/'>Name</a>
        <a href='https://127.0.0.1/'>Address</a>";
    server.deliver("james@x.org", &mails::html("Links", html));
    page.open("/m/james/latest");
    page.find(".message-subject");
    page.keys("3");
    page.find(".link");
    let summary = page.text(".message-links > p");
    assert!(summary.starts_with("9 links, 4 with a problem."), "{summary}");
    let problems = page.texts(".link-problem");
    let expected = ["is not encrypted", "shows another host, shop.test", "is relative", "host is a local one"];
    assert!(
        problems.len() == expected.len() && problems.iter().zip(expected).all(|(one, words)| one.contains(words)),
        "{problems:?}"
    );
    page.assert_quiet();
}

#[test]
fn every_part_can_be_opened_or_downloaded() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let mail = Mail { subject: "Two forms", text: "The text", html: "<p>The HTML</p>", ..Mail::default() };
    server.deliver("james@x.org", &mail.bytes());
    page.open("/m/james/latest");
    page.find(".message-subject");
    page.keys("5");
    page.find(".part-links");
    let ways =
        "return [...document.querySelectorAll('.part-links')].map(links => [...links.children].map(a => a.innerText))";
    // Documents have no Open link, because they could notify their sender.
    let [both, save] = [json!(["Open", "Download"]), json!(["Download"])];
    assert_eq!(page.eval(ways, &json!([])), json!([save, both, save]));
    let content = "return fetch(document.querySelectorAll('.part-links')[arguments[0]].firstElementChild.href).then(answer => answer.text())";
    assert_eq!(page.eval(content, &json!([1])), "The text");
    assert_eq!(page.eval(content, &json!([2])), "<p>The HTML</p>");
    page.assert_quiet();
}

#[test]
fn deleting_all_messages_needs_a_confirmation() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    for mailbox in ["james", "bob"] {
        server.deliver(&format!("{mailbox}@x.org"), &mails::text("Hello", "Hello"));
    }
    page.open("/");
    page.until("the messages", || page.count(".message-row") == 2);
    page.delete_all();
    page.expect_part("dialog", "Delete 2 messages?");
    page.click("dialog [value=no]");
    assert_eq!((server.count("james"), server.count("bob")), (1, 1));
    page.delete_all();
    page.click("dialog [value=yes]");
    page.find("empty-list send-here");
    page.expect_part(".toasts", "Deleted 2 messages.");
    assert_eq!(server.json("/api/v2/mailboxes")["mailboxes"], Value::Array(Vec::new()));
    page.assert_quiet();
}
