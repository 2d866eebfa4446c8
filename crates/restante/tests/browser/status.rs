//! The page that shows how to send mail, the status page, and desktop notifications.

use std::fs;

use restante_testdir::TestDir;
use serde_json::json;

use super::mails;
use super::page::{Page, key};
use crate::support::Server;

#[test]
fn send_page_shows_greeting_snippets_and_recent_mailboxes() {
    let dir = TestDir::new();
    let file = dir.path().join("greeting.html");
    let hostile = "<script>window.acted = 1</script><img src=data:, onerror='window.acted = 1'>";
    fs::write(&file, format!("<p>Hello team</p>{hostile}")).unwrap();
    let server = Server::start(&[&format!("--web-greetingfile={}", file.display())]);
    let Some(page) = Page::of(&server) else { return };
    server.deliver("james@x.org", &mails::text("Hello", "Hello"));

    page.open("/send");
    page.until("the greeting", || page.text(".greeting") == "Hello team");
    assert!(page.eval("return window.acted ?? null", &json!([])).is_null(), "a script of the greeting ran");

    let port = server.smtp.port();
    page.until("the port", || page.text("send-here pre").contains(&format!("--port {port}")));
    let choose = "const tools = document.querySelector('send-here select');
        tools.value = 'django';
        tools.dispatchEvent(new Event('change', { bubbles: true }));";
    page.eval(choose, &json!([]));
    page.until("another tool", || page.text("send-here pre").contains(&format!("EMAIL_PORT = {port}")));
    page.record_texts("send-here .snippet-head button");
    page.click("send-here .snippet-head button");
    page.until("the copy", || page.recorded_texts().contains(&"Copied".to_owned()));

    page.fill("#open-mailbox", "James+shop@x.org\n");
    page.until("the name of the mailbox", || page.path() == "/m/james");
    page.click("[data-page=send]");
    page.until("the recent mailbox", || page.texts("open-mailbox .chip a") == ["james"]);
    page.click("open-mailbox .chip a");
    page.until("the mailbox", || page.texts(".message-row").len() == 1);
    page.click("[data-page=send]");
    page.click(".chip-forget");
    page.until("its removal", || page.count("open-mailbox .chip") == 0);

    page.expect_part(".snippet-hints", "Messages expire after 24 hours.");

    // The toast of a composed message leads to it.
    page.click("get-started .compose");
    page.click("dialog [type=submit]");
    page.until("the toast", || page.text(".toast").contains("stored in the mailbox test"));
    page.click(".toast .button");
    page.until("the message", || page.text(".message-subject") == "Test message");
}

#[test]
fn status_page_shows_configuration_counters_and_charts() {
    let webhooks = "--webhook-urls=http://a.test events=deleted,http://b.test events=deleted";
    let server = Server::start(&["--smtp-rejectdomains=evil.example", "--storage-mailboxmsgcap=7", webhooks]);
    let Some(page) = Page::of(&server) else { return };
    for subject in ["One", "Two", "Three"] {
        server.deliver("james@x.org", &mails::text(subject, "Hello"));
    }
    page.open("/status");
    page.until("the configuration", || page.text(".status-words").contains("evil.example"));
    for words in ["Stores at most 7 messages per mailbox.", "2 webhooks are called when a message"] {
        assert!(page.text(".status-words").contains(words), "{}", page.text(".status-words"));
    }
    let figure = |label: &str| page.texts(".figure").into_iter().find(|figure| figure.starts_with(label));
    page.until("the counters", || figure("Stored messages").is_some_and(|figure| figure.ends_with("\n3")));
    let chart_label = |chart: usize| {
        let script = "return document.querySelectorAll('.chart-plot')[arguments[0]].ariaLabel";
        page.eval(script, &json!([chart])).as_str().unwrap_or_default().to_owned()
    };
    for (chart, label) in ["Messages per minute", "Stored messages"].into_iter().enumerate() {
        assert_eq!(chart_label(chart), format!("{label} in the last hour: 3 messages now, maximum 3 messages."));
    }
    assert!(page.count(".chart-plot g > *") >= 3, "a chart is not drawn");
    server.deliver("james@x.org", &mails::text("Four", "Hello"));
    page.until("the next counters", || chart_label(0).contains("4 messages now"));
    page.assert_quiet();
}

/// The page itself simulates the desktop, because a headless browser has none.
#[test]
fn desktop_notifications_must_be_enabled() {
    const DESKTOP: &str = "window.notifications = [];
        document.hasFocus = () => false;
        window.Notification = class {
            static permission = 'default';
            static async requestPermission() { return (Notification.permission = 'granted'); }
            constructor(title, { body }) { notifications.push([title, body]); }
            close() {}
        };";
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/m/james");
    page.find("list-head h1");
    page.eval(DESKTOP, &json!([]));
    let notifications = || page.eval("return notifications", &json!([]));
    server.deliver("james@x.org", &mails::text("Before", "Hello"));
    page.until("the arrival", || page.texts(".message-row").len() == 1);
    assert_eq!(notifications(), json!([]), "a notification without permission");

    page.click("list-head [aria-haspopup=menu]");
    page.expect_text("list-head .menu-item", "Turn on desktop notifications");
    page.click("list-head .menu-item");
    page.until("the permission", || page.eval("return Notification.permission", &json!([])) == "granted");
    page.click("list-head [aria-haspopup=menu]");
    page.expect_text("list-head .menu-item", "Turn off desktop notifications");
    page.keys(key::ESCAPE);
    server.deliver("james@x.org", &mails::text("After", "Hello"));
    page.until("the notification", || notifications()[0][1] == "After");
    page.assert_quiet();
}
