//! Helpers for reading a message: the HTML source, the main link, tests to copy, the unsubscribe check, scaling, remote content and
//! the tabs.

use serde_json::json;

use super::mails::{self, Mail};
use super::page::{DisplayMode, Page, is_near};
use crate::support::Server;

const RESET: &str = "<p>You asked to reset your password.</p>\n<!-- button -->\n\
    <p><a href=\"https://shop.test/reset?token=5e0c\">Choose a new password</a></p>";

/// Replaces the clipboard, which a headless browser does not have.
fn record_copies(page: &Page) {
    page.eval("navigator.clipboard.writeText = async text => { window.copied = text }", &json!([]));
}

fn copied(page: &Page) -> String {
    page.eval("return window.copied ?? ''", &json!([])).as_str().unwrap_or_default().to_owned()
}

#[test]
fn html_source_is_shown_in_color() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    server.deliver("james@x.org", &mails::html("Reset", RESET));
    page.open("/m/james/latest");
    page.until("the message", || page.text(".message-subject") == "Reset");
    page.keys("6");
    page.click("[title='Decoded HTML']");
    page.until("the colors", || page.texts("message-html-source .html-name") == ["href"]);
    assert_eq!(page.texts("message-html-source .html-comment").concat(), "<!-- button -->");
    assert_eq!(page.texts("message-html-source .html-value").concat(), "\"https://shop.test/reset?token=5e0c\"");
    let shown = "return [...document.querySelectorAll('message-html-source .source-chunk')].map(chunk => chunk.textContent).join('\\n')";
    assert_eq!(page.eval(shown, &json!([])).as_str().map(str::trim_end), Some(RESET));
    page.expect_count("message-html-source .line", 3);
    // The same tab has the source of the message.
    page.click("[title='Source of the message']");
    page.until("the source", || page.texts("message-source .line.head b").contains(&"Subject:".to_owned()));
    page.expect_count("message-html-source", 0);
    page.assert_quiet();
}

#[test]
fn main_link_can_be_opened_and_copied() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    server.deliver("james@x.org", &mails::html("Reset your password", RESET));
    page.open("/m/james/latest");
    page.until("the link", || page.text(".main-link-text") == "Choose a new password");
    page.expect_part(".message-main-link", "shop.test");
    let link =
        "const { href, target, rel } = document.querySelector('.message-main-link a'); return [href, target, rel]";
    let expected = json!(["https://shop.test/reset?token=5e0c", "_blank", "noopener noreferrer"]);
    assert_eq!(page.eval(link, &json!([])), expected);
    record_copies(&page);
    page.click(".message-main-link button");
    page.until("the copy", || copied(&page) == "https://shop.test/reset?token=5e0c");
    server.deliver("james@x.org", &mails::text("No link", "Hello"));
    page.open("/m/james/latest");
    page.until("the message", || page.text(".message-subject") == "No link");
    page.expect_count(".message-main-link", 0);
    page.assert_quiet();
}

#[test]
fn test_code_can_be_copied() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let text = "Your verification code is 482913.";
    server.deliver("james+x@x.org", &mails::text("Your \"code\" isn't old", text));
    page.open("/m/james/latest");
    page.until("the code", || page.text(".message-code-value") == "482913");
    record_copies(&page);
    for (entry, words) in [
        (1, ["def test_your_code_isn_t_old():", ".mailbox(\"james\")", "code = mail.code()", "james+x@x.org"]),
        (2, ["import { Restante } from \"restante\";", ".mailbox(\"james\")", "await mail.code()", "james+x@x.org"]),
        (3, ["/api/v2/mailbox/james/wait", "isn'\\''t old", "/codes", "james+x@x.org"]),
    ] {
        page.click("[title='Copy as test']");
        page.click(&format!(".menu:popover-open .menu-item:nth-child({entry})"));
        page.until("the test", || copied(&page).contains(words[0]));
        let code = copied(&page);
        assert!(words.iter().all(|one| code.contains(one)) && code.contains(&server.url("")), "{code}");
    }
    // Of a long subject, the start is expected: the whole words of 80 characters.
    let subject = "seven! ".repeat(30);
    server.deliver("mary@x.org", &mails::text(subject.trim_end(), "Hello"));
    page.open("/m/mary/latest");
    page.until("the message", || page.text(".message-subject").starts_with("seven!"));
    record_copies(&page);
    let start = &subject[..76];
    for (entry, words) in [
        (1, format!("assert re.search(\"^{start}\", mail.subject)")),
        (2, format!("expect(mail.subject).toMatch(/^{start}/u);")),
        (3, format!("--arg subject '^{start}' '.subject | test($subject)'")),
    ] {
        page.click("[title='Copy as test']");
        page.click(&format!(".menu:popover-open .menu-item:nth-child({entry})"));
        page.until("the test", || copied(&page).contains(&words));
        let code = copied(&page);
        assert!(code.contains(&format!("subject:\"{}\"", &subject[..76])) && !code.contains(&subject[..81]), "{code}");
    }
    page.assert_quiet();
}

#[test]
fn copied_test_passes_with_the_next_message() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let subject = "482 913 is your code for order 2026-77";
    server.deliver("james@x.org", &mails::text(subject, "Your verification code is 482 913."));
    page.open("/m/james/latest");
    page.until("the code", || page.text(".message-code-value") == "482913");
    record_copies(&page);
    let pattern = "^.+ is your code for order .+$";
    for (entry, words) in [
        (1, [&format!("assert re.search(\"{pattern}\", mail.subject)"), "assert re.search(\"^[0-9]{6}$\", code)"]),
        (2, [&format!("expect(mail.subject).toMatch(/{pattern}/u)"), "expect(code).toMatch(/^[0-9]{6}$/u)"]),
        (3, [&format!("--arg subject '{pattern}' '.subject | test($subject)'"), "--arg code '^[0-9]{6}$'"]),
    ] {
        page.click("[title='Copy as test']");
        page.click(&format!(".menu:popover-open .menu-item:nth-child({entry})"));
        page.until("the test", || copied(&page).contains(words[0]));
        let code = copied(&page);
        assert!(words.iter().all(|one| code.contains(one)), "{code}");
        assert!(code.contains(r#"subject:"is your code for order""#), "{code}");
        assert!(!code.contains("482") && !code.contains("2026-77"), "{code}");
    }
    page.assert_quiet();
}

#[test]
fn unsubscribe_header_is_checked() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let list = "List-Unsubscribe: <https://shop.test/off?u=1>, <mailto:off@shop.test>\r\n";
    let one_click = format!("{list}List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n");
    for (subject, header) in [("Good", one_click.as_str()), ("Bad", list), ("None", "")] {
        server.deliver("james@x.org", &Mail { subject, header, text: "News", ..Mail::default() }.bytes());
    }
    let ids = server.ids("james");
    page.open(&format!("/m/james/{}", ids[0]));
    page.until("the check", || page.text(".unsubscribe.good") == "Unsubscribe: one-click");
    page.open(&format!("/m/james/{}", ids[1]));
    page.until("the check", || page.text(".unsubscribe.bad") == "Unsubscribe: no one-click");
    page.click(".unsubscribe summary");
    page.until("the reason", || page.text(".unsubscribe").contains("The field List-Unsubscribe-Post is missing."));
    page.expect_part(".unsubscribe", "https://shop.test/off?u=1");
    page.open(&format!("/m/james/{}", ids[2]));
    page.until("the message", || page.text(".message-subject") == "None");
    page.expect_count(".unsubscribe", 0);
    page.assert_quiet();
}

#[test]
fn wide_messages_are_scaled_to_a_phone() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let wide = "<body style='margin: 0'><table width='600'><tr><td>Wide</td></tr></table></body>";
    let fluid = "<table width='600' style='width: 100%; max-width: 600px'><tr><td>Fluid</td></tr></table>";
    let responsive = "<style>@media (max-width: 480px) { table { width: 100% } }</style><table width='600'><tr><td>Responsive</td></tr></table>";
    let for_others = "<!--[if mso]><table width='600'><![endif]--><p>For others</p>";
    // Padding counts, and so do the columns of a table without a width.
    let padded = "<div style='padding: 0 30px'><table width='340'><tr><td>Padded</td></tr></table></div>";
    let columns = format!("<table><tr>{}</tr></table>", "<td>Column</td>".repeat(12));
    let table = [
        ("Wide", wide),
        ("Fluid", fluid),
        ("Responsive", responsive),
        ("For others", for_others),
        ("Padded", padded),
        ("Columns", &columns),
    ];
    for (subject, html) in table {
        server.deliver("james@x.org", &mails::html(subject, html));
    }
    let ids = server.ids("james");
    let width = || page.in_frame("iframe", |frame| frame.eval("return innerWidth", &json!([])));
    let toggle = "tab-bar .panel-bar > .button:not([hidden])";
    page.open(&format!("/m/james/{}", ids[0]));
    page.click(".widths [title=Phone]");
    page.until("the scaled frame", || page.count(".preview.scaled") == 1 && width() == 616);
    let shown = "return document.querySelector('iframe').getBoundingClientRect().width";
    assert!(is_near(page.measure_number(shown, &json!([])), 375.0));
    page.click(toggle);
    page.until("the plain frame", || page.count(".preview.scaled") == 0 && width() == 375);
    page.click(toggle);
    page.until("the scaled frame", || width() == 616);
    for id in &ids[1..4] {
        page.open(&format!("/m/james/{id}"));
        page.until("the decision", || page.attribute(".device", "data-fits").as_deref() == Some("true"));
        assert_eq!((page.count(".preview.scaled"), width()), (0, json!(375)));
    }
    for id in &ids[4..] {
        page.open(&format!("/m/james/{id}"));
        page.until("the scaled frame", || {
            page.count(".preview.scaled") == 1 && width().as_u64().is_some_and(|width| width > 400)
        });
    }
    // On a phone the whole message is scaled.
    page.set_display_mode(DisplayMode::Phone);
    page.open(&format!("/m/james/{}", ids[0]));
    page.until("the scaled frame", || width() == 616);
    assert!(is_near(page.measure_number(shown, &json!([])), 390.0));
    page.assert_quiet();
}

#[test]
fn remote_content_can_always_be_loaded() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    server.deliver("james@x.org", &mails::html("News", "<img src=http://tracker.test/open.gif>"));
    page.open("/m/james/latest");
    page.until("the note", || page.text(".remote-note").contains("blocked: tracker.test"));
    page.assert_quiet();
    page.click(".remote-note .button:last-child");
    page.until("the note", || page.text(".remote-note").contains("always loaded"));
    page.until("the request", || page.external_requests().contains(&"http://tracker.test/open.gif".to_owned()));
    page.reload();
    page.until("the note", || page.text(".remote-note").contains("always loaded"));
    page.click(".remote-note .button:last-child");
    page.until("the note", || page.text(".remote-note").contains("blocked"));
    page.reload();
    page.until("the note", || page.text(".remote-note").contains("blocked"));
    assert_eq!(page.console(), [""; 0]);
}

#[test]
fn tabs_that_do_not_fit_are_in_a_menu() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    server.deliver("james@x.org", &mails::html("Tabs", "<p>Hello</p>"));
    page.open("/m/james/latest");
    page.until("the message", || page.text(".message-subject") == "Tabs");
    let visible = "[role=tab]:not([hidden])";
    page.until("the tabs", || page.count(visible) > 4);
    let wide = page.count(visible);
    let is_cut_off =
        "const { scrollWidth, clientWidth } = document.querySelector('.tabs'); return scrollWidth > clientWidth";
    page.set_display_mode(DisplayMode::Phone);
    page.until("fewer tabs", || page.count(visible) < wide);
    assert_eq!(page.measure(is_cut_off, &json!([])), false);
    page.click(".more-tabs");
    let hidden = page.count("[role=tab][hidden]");
    assert!(hidden > 1, "{hidden}");
    page.until("the menu", || page.count(".menu:popover-open .menu-item") == hidden);
    page.click(".menu:popover-open .menu-item:last-child");
    page.until("the last tab", || page.text("#panel-html-check").contains("100 % supported"));
    page.expect_attribute("#tab-html-check", "aria-selected", "true");
    assert!(page.texts(visible).iter().any(|tab| tab.starts_with("HTML check")));
    assert_eq!(page.measure(is_cut_off, &json!([])), false);
    page.expect_focus("#tab-html-check");
    page.assert_quiet();
}

#[test]
fn default_tab_is_a_setting() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    server.deliver("james@x.org", &mails::html("Tabs", "<p>Hello</p>"));
    page.open("/m/james/latest");
    let selected = || page.text("[role=tab][aria-selected=true]");
    page.until("the default", || selected() == "HTML");
    page.keys("4");
    page.until("another tab", || selected() == "Headers");
    page.reload();
    page.until("the last tab", || selected() == "Headers");
    page.eval("localStorage.setItem('restante.setting', '{\"defaultTab\":\"source\"}')", &json!([]));
    page.reload();
    page.until("the tab of the setting", || selected() == "Source");
    page.assert_quiet();
}
