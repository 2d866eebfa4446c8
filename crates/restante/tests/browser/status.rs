//! What home and the status page tell, and notices on the desktop.

use std::fs;

use restante_testdir::TestDir;
use serde_json::json;

use super::mails;
use super::page::Page;
use crate::support::Server;

#[test]
fn home_greets_remembers_and_says_how_to_send() {
    let dir = TestDir::new();
    let file = dir.path().join("greeting.html");
    let hostile = "<script>window.acted = 1</script><img src=data:, onerror='window.acted = 1'>";
    fs::write(&file, format!("<p>Hello team</p>{hostile}")).unwrap();
    let server = Server::start(&[&format!("--web-greetingfile={}", file.display())]);
    let Some(page) = Page::of(&server) else { return };
    server.deliver("james@x.org", &mails::text("Hello", "Hello"));

    page.open("/");
    page.until("the greeting", || page.text(".greeting") == "Hello team");
    assert!(page.eval("return window.acted ?? null", &json!([])).is_null(), "a greeting runs nothing");

    let port = server.smtp.port();
    page.until("the port", || page.text("send-here pre").contains(&format!("--port {port}")));
    let choose = "const tools = document.querySelector('send-here select');
        tools.value = 'django';
        tools.dispatchEvent(new Event('change', { bubbles: true }));";
    page.eval(choose, &json!([]));
    page.until("another tool", || page.text("send-here pre").contains(&format!("EMAIL_PORT = {port}")));
    page.click("send-here .snippet-head button");
    page.until("the copy", || page.text("send-here .snippet-head button") == "Copied");

    page.fill("#open-mailbox", "James+shop@x.org\n");
    page.until("the name of the mailbox", || page.path() == "/m/james");
    page.click(".brand");
    page.until("the mailbox among those opened lately", || page.texts(".chip a") == ["james"]);
    page.click(".chip a");
    page.until("the mailbox", || page.texts(".message-row").len() == 1);
    page.click(".brand");
    page.click(".chip-forget");
    page.until("that it is forgotten", || page.count(".chip") == 0);
}

#[test]
fn the_status_is_told_in_words_figures_and_charts() {
    let webhooks = "--webhook-urls=http://a.test events=deleted,http://b.test events=deleted";
    let server = Server::start(&["--smtp-rejectdomains=evil.example", "--storage-mailboxmsgcap=7", webhooks]);
    let Some(page) = Page::of(&server) else { return };
    for subject in ["One", "Two", "Three"] {
        server.deliver("james@x.org", &mails::text(subject, "Hello"));
    }
    page.open("/status");
    page.until("the words", || page.text(".status-words").contains("evil.example"));
    for words in ["at most 7 messages per mailbox", "2 webhooks are called when a message"] {
        assert!(page.text(".status-words").contains(words), "{}", page.text(".status-words"));
    }
    let figure = |label: &str| page.texts(".figure").into_iter().find(|figure| figure.starts_with(label));
    page.until("the figures", || figure("Stored messages").is_some_and(|figure| figure.ends_with("\n3")));
    let said = |chart: usize| {
        let script = "return document.querySelectorAll('.chart-plot')[arguments[0]].ariaLabel";
        page.eval(script, &json!([chart])).as_str().unwrap_or_default().to_owned()
    };
    for (chart, label) in ["Messages per minute", "Stored messages"].into_iter().enumerate() {
        assert_eq!(said(chart), format!("{label} in the last hour: 3 messages now, maximum 3 messages."));
    }
    assert!(page.count(".chart-plot g > *") >= 3, "all charts are drawn");
    server.deliver("james@x.org", &mails::text("Four", "Hello"));
    page.until("the next figures", || said(0).contains("4 messages now"));
    page.assert_quiet();
}

/// The desktop is played by the page itself: a headless browser has none.
#[test]
fn mail_is_told_on_the_desktop_when_that_was_asked_for() {
    const DESKTOP: &str = "window.told = [];
        document.hasFocus = () => false;
        window.Notification = class {
            static permission = 'default';
            static async requestPermission() { return (Notification.permission = 'granted'); }
            constructor(title, { body }) { told.push([title, body]); }
            close() {}
        };";
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/m/james");
    page.find("mailbox-page h1");
    page.eval(DESKTOP, &json!([]));
    let told = || page.eval("return told", &json!([]));
    server.deliver("james@x.org", &mails::text("Before", "Hello"));
    page.until("the arrival", || page.texts(".message-row").len() == 1);
    assert_eq!(told(), json!([]), "nobody asked for it");

    page.click("mailbox-head [aria-label^='Desktop notifications']");
    page.until("the bell", || {
        page.attribute("mailbox-head [aria-label^='Desktop notifications']", "aria-pressed").as_deref() == Some("true")
    });
    server.deliver("james@x.org", &mails::text("After", "Hello"));
    page.until("the notice", || told()[0][1] == "After");
    page.assert_quiet();
}
