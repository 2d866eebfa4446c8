//! Webhooks in the web interface: the page with the targets and the queue. What it shares with the relay is tested there.

use serde_json::json;

use super::mails;
use super::page::{Page, key};
use crate::support::Server;
use crate::support::webhook_receiver::{Receiver, status};

/// The link to the page.
const NAVIGATION: &str = ".main-nav [data-page=webhooks]";

/// The button that pauses or resumes the target.
const PAUSE: &str = ".queue-target button";

/// Starts a server that sends the events of stored messages.
pub(crate) fn server_with_target(receiver: &Receiver) -> Server {
    let url = receiver.url("/secret events=stored mailboxes=james");
    Server::start(&["--webhook-private", "--webhook-urls", &url])
}

#[test]
fn target_is_paused_and_entries_are_changed() {
    // The first event is refused, and later ones are accepted.
    let receiver = Receiver::responding_with(|_, before| Some(status(if before == 0 { 410 } else { 204 })));
    let server = server_with_target(&receiver);
    let Some(page) = Page::of(&server) else { return };
    server.deliver("james@example.org", &mails::text("<b>Order</b>", "Thank you"));
    page.open("/status");
    page.click(NAVIGATION);
    let states = || page.texts("queue-entry summary > .badge");
    page.until("the failed event", || states() == ["failed"]);
    page.expect_path("/webhooks");
    let target = page.text(".queue-target");
    for expected in [&receiver.url(""), "active", "Events: stored in james", "1 failed"] {
        assert!(target.contains(expected), "{expected}: {target}");
    }
    assert!(!page.text("webhooks-page").contains("secret"), "{}", page.text("webhooks-page"));
    let summary = page.text("queue-entry summary");
    assert!(summary.contains("stored in james to ") && summary.contains("responded 410"), "{summary}");
    page.click("queue-entry summary");
    page.click("queue-entry .outgoing summary");
    page.until("the payload", || page.text("queue-entry pre").contains("\"subject\": \"<b>Order</b>\""));

    // By keyboard: the focus stays on the button, whose label changes.
    page.eval("document.querySelector(arguments[0]).focus()", &json!([PAUSE]));
    page.keys(key::ENTER);
    page.until("the pause", || page.text(".queue-target .badge") == "paused" && page.is_focused(PAUSE));
    page.click("queue-entry [aria-label^=Retry]");
    page.until("the event waits", || states() == ["queued"]);
    page.click("queue-entry [aria-label^=Cancel]");
    page.until("the cancelled event", || states() == ["cancelled"]);
    page.click("queue-entry [aria-label^=Retry]");
    page.until("the event waits", || states() == ["queued"]);
    assert_eq!(receiver.requests().len(), 1, "nothing is sent to a paused target");
    page.click(PAUSE);
    page.until("the delivery", || states() == ["delivered"] && page.text(".queue-target .badge") == "active");
    assert_eq!(receiver.requests().len(), 2);
    page.open("/webhooks?state=failed");
    page.until("the empty list", || page.text("webhooks-page").contains("No event is failed"));
    page.assert_quiet();
}

#[test]
fn page_is_hidden_without_webhooks_and_with_the_monitor() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/status");
    page.find(".status-words li");
    page.expect_count(&format!("{NAVIGATION}:not([hidden])"), 0);
    page.keys("gw");
    page.until("the page", || page.text("webhooks-page").contains("Webhooks are not configured"));
    assert!(!page.requests().iter().any(|url| url.contains("/webhooks/entries")), "{:?}", page.requests());

    let receiver = Receiver::start();
    let hidden = ["--webhook-private", "--webhook-urls", &receiver.url("/"), "--web-monitorvisible=false"];
    let server = Server::start(&hidden);
    let Some(page) = Page::of(&server) else { return };
    server.deliver("james@example.org", &mails::text("Order", "Thank you"));
    receiver.wait_for(1);
    page.open("/webhooks");
    page.until("the note", || page.text("webhooks-page").contains("does not show the events of all mailboxes"));
    page.expect_count("queue-entry", 0);
    assert_eq!(page.text(NAVIGATION), "", "not visible");
    page.assert_quiet();
}
