//! How a page is loaded: the number of requests, the error if its script is missing, fails or takes too long, and what is shown
//! until a message is loaded.

use std::time::Duration;

use serde_json::json;

use super::page::{DisplayMode, Page, pause_timers_above};
use super::proxy::{self, ScriptRequest};
use super::sample_mail;
use crate::support::Server;

/// The limit for the requests of the first view of the inbox, with those to the API and for the icon.
const MAX_REQUESTS: usize = 10;

/// Waits for the error, and checks that it replaces the text about loading.
#[track_caller]
fn expect_error(page: &Page) {
    page.until("the error", || page.texts(".load-error:not([hidden]) h1") == ["The page could not be loaded."]);
    page.expect_texts(".load-error button", &["Reload"]);
    assert_eq!(page.count(".loading:not([hidden])"), 0, "both texts are shown");
}

/// Holds the requests of a page whose paths end with this text, until [`send_held_requests`].
pub(crate) fn hold_requests(page: &Page, end: &str) {
    let hold = "
        const send = window.fetch;
        const resumed = new Promise(done => window.sendHeldRequests = done);
        window.heldRequests = 0;
        window.fetch = (path, options) => {
            if (!path.endsWith(END)) return send(path, options);
            window.heldRequests += 1;
            return resumed.then(() => send(path, options));
        }";
    page.run_first(&hold.replace("END", &json!(end).to_string()));
}

/// Waits until the page has sent a request that is held.
#[track_caller]
pub(crate) fn wait_for_held_request(page: &Page) {
    page.until("a request that is held", || page.eval("return window.heldRequests > 0", &json!([])) == true);
}

/// Sends the held requests, and no longer holds new ones.
pub(crate) fn send_held_requests(page: &Page) {
    page.eval("window.sendHeldRequests()", &json!([]));
}

/// Pauses the timers of more than a second, until they are run. They load data again.
fn pause_reloads(page: &Page) {
    page.run_first(&pause_timers_above(1000));
}

#[test]
fn first_view_needs_few_requests() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    sample_mail::set_up(&server);
    pause_reloads(&page);
    // Only scripts in the document have an element. The bundle is a module.
    let record = "
        const original = fetch;
        window.requestsOfDocument = [];
        window.fetch = (url, options) => {
            if (document.currentScript) requestsOfDocument.push(String(url));
            return original(url, options);
        };";
    page.run_first(record);
    page.open("/");
    page.find(".message-row");
    let count = || page.requests().len();
    page.until("the end of the requests", || {
        let before = count();
        std::thread::sleep(Duration::from_millis(500));
        count() == before
    });
    let requests = page.requests();
    assert!(requests.iter().any(|url| url.ends_with("/dist/app.js")), "{requests:#?}");
    let mut paths: Vec<&String> = requests.iter().filter(|url| url.contains("/api/v2/")).collect();
    paths.sort_unstable();
    assert!(paths.windows(2).all(|pair| pair[0] != pair[1]), "a request was sent twice: {requests:#?}");
    assert!(requests.len() <= MAX_REQUESTS, "{} requests: {requests:#?}", requests.len());
    let is_early = "return requestsOfDocument.some(url => url.includes('/api/v2/messages?'))";
    assert_eq!(page.eval(is_early, &json!([])), true, "the list waits for the bundle");
    page.assert_quiet();
}

#[test]
fn changes_before_the_subscription_are_loaded_later() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    for subject in ["Kept", "Deleted"] {
        server.deliver("james@x.org", &super::mails::text(subject, "Hello"));
    }
    pause_reloads(&page);
    page.run_first("window.WebSocket = class extends WebSocket { set onmessage(_) {} }");
    page.open("/m/james");
    page.until("the messages", || page.texts(".row-subject") == ["Deleted", "Kept"]);
    let newest = server.ids("james").pop().unwrap();
    ureq::delete(server.url(&format!("/api/v1/mailbox/james/{newest}"))).call().unwrap();
    server.deliver("james@x.org", &super::mails::text("New", "Hello"));
    page.until("the present list", || {
        page.run_paused_timers();
        page.texts(".row-subject") == ["New", "Kept"]
    });
}

#[test]
fn blocked_script_shows_an_error_until_it_can_be_loaded() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    server.deliver("james@x.org", &super::mails::text("Hello", "Hello"));
    page.command("Network.enable", &json!({}));
    page.command("Network.setBlockedURLs", &json!({ "urls": ["*/dist/app.js"] }));
    for path in ["/status", "/m/james"] {
        page.open(path);
        expect_error(&page);
    }
    page.command("Network.setBlockedURLs", &json!({ "urls": [] }));
    page.click(".load-error button");
    page.find(".message-row");
    page.expect_path("/m/james");
    page.expect_count(".load-error", 0);
    let errors: Vec<String> =
        page.console().into_iter().filter(|line| !line.contains("ERR_BLOCKED_BY_CLIENT")).collect();
    assert_eq!(errors, [""; 0], "also none about the content security policy");
}

#[test]
fn missing_script_shows_an_error() {
    let server = Server::start(&[]);
    let proxy = proxy::start_with("", server.http, ScriptRequest::Refuse);
    let Some(page) = Page::at(proxy) else { return };
    page.open("/status");
    expect_error(&page);
}

#[test]
fn script_that_throws_shows_an_error() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.run_first("customElements.define = () => { throw new Error('not supported') }");
    page.open("/status");
    expect_error(&page);
}

#[test]
fn script_that_takes_too_long_shows_an_error() {
    let server = Server::start(&[]);
    let proxy = proxy::start_with("", server.http, ScriptRequest::Ignore);
    let Some(page) = Page::without_waiting_at(proxy) else { return };
    page.run_first(&pause_timers_above(5000));
    page.open("/status");
    page.until("the page", || page.texts(".loading") == ["Loading…"]);
    assert_eq!(page.count(".load-error[hidden]"), 1, "the error is shown too early");
    page.run_paused_timers();
    expect_error(&page);
}

#[test]
fn errors_of_a_running_page_keep_the_page() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/status");
    page.find("status-page h1");
    let failing = "return new Promise(done => { addEventListener('error', done, { once: true }); setTimeout(() => { throw new Error('x') }) }).then(() => null)";
    page.eval(failing, &json!([]));
    page.expect_count(".load-error", 0);
    page.expect_count("status-page h1", 1);
}

#[test]
fn no_hint_is_shown_while_a_message_is_loading() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    hold_requests(&page, "/details");
    for (display, heading) in [(DisplayMode::Light, "h2"), (DisplayMode::Phone, "h1")] {
        page.set_display_mode(display);
        page.open("/m/james/1");
        wait_for_held_request(&page);
        assert_eq!(page.texts("message-view"), [""], "{display:?}");
        send_held_requests(&page);
        let hint = || page.texts(&format!("message-view {heading}"));
        page.until("the hint", || hint() == ["This message does not exist"]);
    }
}
