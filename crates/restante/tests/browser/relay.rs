//! The relay in the web interface: the dialog that releases a message, the entries of a message, and the page of the queue.

use std::net::{SocketAddr, TcpListener};

use restante_testdir::TestDir;
use serde_json::json;

use super::loading::{hold_requests, send_held_requests, wait_for_held_request};
use super::mails;
use super::page::{Page, key};
use crate::support::Server;

/// The button that opens the dialog.
pub(crate) const RELEASE: &str = ".message-tools [title^='Release']";

/// The link to the page of the queue.
const NAVIGATION: &str = ".main-nav [data-page=relay]";

/// The button that cancels all entries.
const CANCEL_ALL: &str = ".queue-tools .button:last-child";

/// The buttons for all entries that are disabled.
const DISABLED: &str = "relay-page [aria-disabled=true]";

/// Refuses the first recipient that it is asked about.
const REFUSE_ONCE: &str = "
    function restante.before.rcpt_to_accepted(session)
      if restante.shared.incr('recipients', 1) == 1 then
        return smtp.deny(550, 'not <b>yet</b>')
      end
    end";

/// Starts a server that can send messages for `example.org` to the SMTP server at this address.
pub(crate) fn relay_to(target: SocketAddr) -> Server {
    let targets = format!("main smtp://{target} allow=*@example.org block=ceo@example.org starttls=never");
    Server::start(&["--relay-targets", &targets, "--relay-private"])
}

/// Starts a server that refuses the first recipient.
pub(crate) fn server_that_refuses_once(dir: &TestDir) -> Server {
    let script = dir.path().join("refuse.lua");
    std::fs::write(&script, REFUSE_ONCE).unwrap();
    Server::start(&["--lua-path", script.to_str().unwrap()])
}

/// Listens at a free port and closes every connection.
fn closing_listener() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    address
}

/// Delivers a message to an allowed recipient and to another one.
fn deliver(server: &Server) {
    let mut connection = server.connect_smtp();
    connection.expect("220");
    connection.command("EHLO client.test", "250");
    connection.command("MAIL FROM:<shop@example.com>", "250");
    connection.command("RCPT TO:<james@example.org>", "250");
    connection.command("RCPT TO:<bob@other.test>", "250");
    connection.command("DATA", "354");
    connection.send([&mails::text("Order", "Thank you")[..], b"\r\n.\r\n"].concat());
    connection.expect("250");
}

/// Releases the newest message of `james`.
pub(crate) fn release(server: &Server) {
    let id = &server.ids("james")[0];
    let url = server.url(&format!("/api/v2/messages/{id}/release"));
    let answer = ureq::post(url).content_type("application/json").send(r#"{"to":["james@example.org"]}"#).unwrap();
    assert_eq!(answer.status(), 202);
}

/// Opens the newest message of `james`, and its dialog after the message is loaded.
fn open_dialog(page: &Page) {
    page.open("/m/james/latest");
    page.find(".message-subject");
    page.click(RELEASE);
    page.find("dialog[open]");
}

fn recipients(page: &Page) -> String {
    let value = page.eval("return document.querySelector('#release-recipients').value", &json!([]));
    value.as_str().unwrap().to_owned()
}

#[test]
fn message_is_released_through_the_dialog() {
    let target = Server::start(&[]);
    let server = relay_to(target.smtp);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server);
    open_dialog(&page);
    assert_eq!(recipients(&page), "james@example.org", "only those that the target allows");
    page.expect_focus("#release-recipients");
    let words = page.text("dialog[open]");
    for expected in ["main", "Allowed: *@example.org", "Blocked: ceo@example.org", "bob@other.test"] {
        assert!(words.contains(expected), "{expected}: {words}");
    }
    // Escape closes the dialog and returns the focus.
    page.keys(key::ESCAPE);
    page.until("the end of the dialog", || page.count("dialog[open]") == 0 && page.is_focused(RELEASE));
    page.expect_count("queue-entry", 0);

    page.keys(key::ENTER);
    page.find("dialog[open]");
    page.fill("#release-recipients", "james@example.org; ann@example.org,\n");
    page.expect_part("dialog[open]", "envelope: shop@example.com");
    page.fill("#release-prefix", "[Staging]");
    // Two clicks send the message once.
    page.eval("const send = document.querySelector('dialog [type=submit]'); send.click(); send.click()", &json!([]));
    page.until("the delivery", || page.texts("message-relay summary > .badge").contains(&"delivered".to_owned()));
    page.expect_count("dialog[open]", 0);
    page.expect_part("queue-entry summary", "james@example.org and 1 other via main");
    assert_eq!((target.ids("james").len(), target.ids("ann").len(), target.ids("bob").len()), (1, 1, 0));
    assert_eq!(target.json("/api/v2/messages/latest")["subject"], "[Staging] Order");
    page.click("queue-entry summary");
    let facts = page.text("queue-entry details");
    assert!(facts.contains("shop@example.com") && facts.contains("ann@example.org"), "{facts}");
    assert_eq!(page.count(".queue-actions button:not([hidden])"), 0, "nothing is left to do");

    // The transcript of the outgoing session is below that of the incoming one, and loaded on demand.
    page.click("#tab-session");
    page.find("#panel-session message-session .transcript-lines li");
    let is_requested = || page.requests().iter().any(|url| url.contains("/relay/entries/"));
    assert!(!is_requested());
    page.click("outgoing-sessions summary");
    page.until("the transcript", || page.text("outgoing-sessions").contains("RCPT TO:<ann@example.org>"));
    assert!(is_requested());
    page.assert_quiet();
}

#[test]
fn message_is_deleted_after_its_delivery() {
    let target = Server::start(&[]);
    let server = relay_to(target.smtp);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server);
    open_dialog(&page);
    page.click("#release-delete");
    page.click("dialog [type=submit]");
    page.until("the delivery", || target.ids("james").len() == 1);
    // The deletion is that of the released message, although another list is shown.
    page.click(".sidebar-link");
    page.until("the inbox", || !page.path().starts_with("/m/"));
    page.until("the deletion", || {
        page.texts(".toast").iter().any(|text| text.contains("The released message was deleted"))
    });
    assert_eq!((server.count("james"), server.count("bob")), (0, 1), "the copy in the mailbox is deleted");
}

#[test]
fn dialog_opens_while_the_message_is_loading() {
    let target = Server::start(&[]);
    let server = relay_to(target.smtp);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server);
    hold_requests(&page, "/details");
    page.open("/m/james/latest");
    wait_for_held_request(&page);
    page.click(RELEASE);
    page.find("dialog[open]");
    page.until("the recipients", || recipients(&page) == "james@example.org");
    let sender = page.text(".release-sender");
    assert!(sender.starts_with("From ") && !sender.starts_with("From  "), "{sender:?}");
    page.click("dialog [type=submit]");
    page.until("the end of the dialog", || page.count("dialog[open]") == 0);
    assert_eq!(page.count(".message-subject"), 0, "the message is still loading");
    send_held_requests(&page);
    page.until("the delivery", || page.texts("message-relay summary > .badge") == ["delivered"]);
    assert_eq!(target.ids("james").len(), 1);
    page.assert_quiet();
}

#[test]
fn recipients_that_are_not_allowed_are_reported() {
    let target = Server::start(&[]);
    let server = relay_to(target.smtp);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server);
    open_dialog(&page);
    page.fill("#release-recipients", "");
    page.click("dialog [type=submit]");
    page.until("the error", || page.text("dialog [role=alert]").contains("Enter at least one recipient"));
    page.assert_quiet();
    for address in ["ann@other.test", "CEO@example.org"] {
        page.fill("#release-recipients", address);
        page.until("the hint", || {
            page.text("#release-hints").contains(&format!("Not allowed by this target: {address}"))
        });
        page.click("dialog [type=submit]");
        page.until("the error of the server", || {
            page.text("dialog [role=alert]").to_lowercase().contains(&address.to_lowercase())
        });
        assert_eq!(page.count("dialog .note"), 1, "the refusal is shown once");
    }
    // A separator in quotes is part of the address.
    page.fill("#release-recipients", r#""a;b"@other.test,ann@other.test"#);
    page.until("both addresses", || {
        page.text("#release-hints").contains(r#"Not allowed by this target: "a;b"@other.test, ann@other.test"#)
    });
    page.fill("#release-recipients", "ann@example.org");
    page.until("no hint", || page.count("#release-hints .note") == 0);
    // The dialog stays usable after an error.
    page.click("dialog [type=submit]");
    page.until("the delivery", || page.texts("message-relay summary > .badge") == ["delivered"]);
    assert_eq!(target.ids("ann").len(), 1);
}

#[test]
fn failed_message_is_sent_again() {
    let dir = TestDir::new();
    let target = server_that_refuses_once(&dir);
    let server = relay_to(target.smtp);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server);
    release(&server);
    page.open("/m/james/latest");
    page.until("the failure", || {
        page.texts("message-relay summary > .badge").first().is_some_and(|state| state == "failed")
    });
    // The reply of the server is not interpreted as HTML.
    page.expect_part("queue-entry .queue-reply", "not <b>yet</b>");
    page.click("queue-entry [aria-label^=Retry]");
    page.until("the delivery", || {
        page.texts("message-relay summary > .badge").first().is_some_and(|state| state == "delivered")
    });
    assert_eq!(target.ids("james").len(), 1);
    page.assert_quiet();
}

#[test]
fn newest_entries_are_shown_above_the_body() {
    const TOGGLE: &str = ".message-relay > .button";
    let server = relay_to(closing_listener());
    let Some(page) = Page::of(&server) else { return };
    deliver(&server);
    (0..3).for_each(|_| release(&server));
    page.open("/m/james/latest");
    let entries = || page.texts("message-relay .queue-to");
    page.until("all entries", || entries().len() == 3);
    assert_eq!(page.text(TOGGLE), "", "hidden");
    page.click(RELEASE);
    page.fill("#release-recipients", "ann@example.org");
    page.click("dialog [type=submit]");
    page.until("the newest entries", || entries().first().is_some_and(|first| first.starts_with("ann@example.org")));
    assert_eq!((entries().len(), page.text(TOGGLE)), (3, "Show all 4".to_owned()));
    page.expect_attribute(TOGGLE, "aria-expanded", "false");
    page.click(TOGGLE);
    page.until("all entries", || entries().len() == 4 && page.text(TOGGLE) == "Show fewer");
    page.expect_attribute(TOGGLE, "aria-expanded", "true");
    page.expect_focus(TOGGLE);
    page.keys(key::ENTER);
    page.until("the newest entries", || entries().len() == 3 && page.is_focused(TOGGLE));
    page.assert_quiet();
}

#[test]
fn queue_is_shown_and_changed() {
    let server = relay_to(closing_listener());
    let Some(page) = Page::of(&server) else { return };
    deliver(&server);
    page.open("/status");
    page.until("the link", || page.text(NAVIGATION) == "Relay");
    page.click(NAVIGATION);
    page.until("the empty queue", || page.text("relay-page").contains("Nothing was sent yet"));
    page.expect_path("/relay");
    page.expect_attribute(NAVIGATION, "aria-current", "page");
    page.expect_texts(DISABLED, &["Retry all", "Cancel all"]);
    // The page updates itself.
    release(&server);
    release(&server);
    let states = || page.texts("queue-entry summary > .badge");
    page.until("both entries", || states().len() == 2);
    page.until("the pause", || page.text(".queue-target").contains("paused") && page.count(".queue-error") == 1);

    page.until("the end of the first attempts", || page.texts(DISABLED).is_empty());
    page.click(CANCEL_ALL);
    page.find("dialog[open]");
    page.expect_texts("dialog .button", &["Keep", "Cancel all"]);
    page.keys(key::ESCAPE);
    page.until("the end of the dialog", || page.count("dialog[open]") == 0);
    assert!(!states().contains(&"cancelled".to_owned()), "{:?}", states());
    page.click(CANCEL_ALL);
    page.click("dialog [value=yes]");
    page.until("the cancellation", || states() == ["cancelled", "cancelled"]);
    page.until("the counts", || page.text(".queue-target").contains("2 cancelled"));
    page.until("nothing to cancel", || page.texts(DISABLED) == ["Cancel all"]);
    // The button keeps the focus, and does nothing.
    page.expect_focus(CANCEL_ALL);
    page.keys(key::ENTER);
    page.expect_count("dialog[open]", 0);

    page.click("queue-entry [aria-label^=Retry]");
    page.until("one more attempt", || states()[0] != "cancelled");
    page.eval(
        "const select = document.querySelector('relay-page select');
        select.value = 'cancelled';
        select.dispatchEvent(new Event('change'))",
        &json!([]),
    );
    page.until("the filtered list", || states() == ["cancelled"]);
    page.expect_path("/relay?state=cancelled");
    page.reload();
    page.until("the filtered list", || states() == ["cancelled"]);
    page.click("queue-entry summary");
    page.click("queue-entry details p a");
    page.until("the message", || page.text(".message-subject") == "Order");
    page.until("its entries", || page.count("message-relay queue-entry") == 2);
    page.assert_quiet();
}

#[test]
fn nothing_is_released_without_targets() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server);
    page.open("/m/james/latest");
    page.until("the message", || page.text(".message-subject") == "Order");
    page.expect_count(&format!("{RELEASE}:not([hidden])"), 0);
    page.open("/status");
    page.find(".status-words li");
    page.expect_count(&format!("{NAVIGATION}:not([hidden])"), 0);
    page.keys("gr");
    page.until("the page", || page.text("relay-page").contains("The relay is not configured"));
    assert!(!page.requests().iter().any(|url| url.contains("/relay/entries")), "{:?}", page.requests());
    page.assert_quiet();
}

#[test]
fn queue_is_hidden_with_the_monitor() {
    let target = Server::start(&[]);
    let targets = format!("main smtp://{} allow=* starttls=never", target.smtp);
    let server = Server::start(&["--relay-targets", &targets, "--relay-private", "--web-monitorvisible=false"]);
    let Some(page) = Page::of(&server) else { return };
    deliver(&server);
    release(&server);
    page.open("/relay");
    page.until("the note", || page.text("relay-page").contains("does not show the messages of all mailboxes"));
    page.expect_count("queue-entry", 0);
    assert_eq!(page.text(NAVIGATION), "", "not visible");
    // A message still shows its own entries.
    page.open("/m/james/latest");
    page.until("the delivery", || page.texts("message-relay summary > .badge") == ["delivered"]);
    page.assert_quiet();
}
