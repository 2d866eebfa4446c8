//! The tab with the check of a message's HTML.

use serde_json::json;

use super::mails;
use super::page::Page;
use crate::support::Server;

const NEWSLETTER: &str = "<style>\n.grid { display: grid }\n@media screen { p { opacity: 0.5 } }\n</style>\n\
    <div class=\"grid\"><p>News</p></div>\n<p style=\"border-radius: 3px\">More</p>";

#[test]
fn html_check_shows_features_and_clients() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    server.deliver("james@x.org", &mails::html("News", NEWSLETTER));
    page.open("/m/james/latest");
    page.until("the message", || page.text(".message-subject") == "News");
    // The tab shows the result before it is opened. It is requested once.
    let badge = || page.eval("return document.querySelector('#tab-html-check .badge').textContent", &json!([]));
    page.until("the badge", || badge().as_str().is_some_and(|text| text.ends_with('%')));
    page.keys("8");
    page.find(".check-feature");
    assert_eq!(page.requests().iter().filter(|url| url.ends_with("/html-check")).count(), 1);
    assert!(page.text(".check-score").ends_with(" % supported"), "{}", page.text(".check-score"));

    let features = page.texts(".check-feature");
    let find = |title: &str| features.iter().find(|text| text.starts_with(title)).cloned().unwrap_or_default();
    let grid = find("display:grid");
    assert!(grid.contains("1 use, line 2") && grid.contains("Not in ") && grid.contains("Outlook"), "{features:#?}");
    assert!(find("border-radius").contains("1 use, line 6"), "{features:#?}");
    assert!(find("opacity").contains("2 uses, line 3"), "{features:#?}");

    let link = "const { href, target, rel } = [...document.querySelectorAll('.check-name a')].find(a => a.textContent === 'display:grid'); return [href, target, rel]";
    let expected = json!(["https://www.caniemail.com/features/css-display-grid/", "_blank", "noopener noreferrer"]);
    assert_eq!(page.eval(link, &json!([])), expected);

    // The table has one row for each client; the rest is shown on demand.
    let rows = page.count(".check-clients tbody tr");
    page.click(".check-clients tbody button");
    page.until("more clients", || page.count(".check-clients tbody tr") > rows);
    assert!(page.texts(".check-clients tbody th").iter().any(|client| client.starts_with("Gmail")));

    // Only the selected clients count. The selection stays for other messages.
    let with_all = badge();
    page.eval("document.querySelector('message-view').scrollTop = 0", &json!([]));
    page.click(".check-filter [data-family=apple-mail]");
    let clients = || page.texts(".check-clients tbody th");
    page.until("the clients", || !clients().is_empty() && clients().iter().all(|one| one.starts_with("Apple Mail")));
    page.until("another result", || badge() != with_all);
    page.reload();
    page.until("the clients", || !clients().is_empty() && clients().iter().all(|one| one.starts_with("Apple Mail")));
    page.click(".check-filter button");
    page.until("all clients", || badge() == with_all);
    page.assert_quiet();
}

#[test]
fn messages_without_html_have_no_html_check() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    server.deliver("james@x.org", &mails::html("Plain", "<p>Hello</p>"));
    server.deliver("james@x.org", &mails::text("Text", "Hello"));
    page.open("/m/james/latest");
    page.until("the message", || page.text(".message-subject") == "Text");
    assert_eq!(page.attribute("#tab-html-check", "aria-disabled").as_deref(), Some("true"));
    page.keys("8");
    page.expect_count("message-html-check", 0);
    page.keys("j");
    page.until("the other message", || page.text(".message-subject") == "Plain");
    page.keys("8");
    page.until("the check", || page.text(".message-html-check").contains("1 element"));
    page.assert_quiet();
}
