//! Session transcripts in the web interface: of a message, and on the page of all sessions.

use serde_json::json;

use super::mails;
use super::page::{Page, is_near};
use crate::support::Server;

/// Delivers a message with parameters for delivery notifications (RFC 3461).
fn deliver_with_parameters(server: &Server) {
    let mut connection = server.connect_smtp();
    connection.expect("220");
    connection.command("EHLO client.test", "250");
    connection.command("MAIL FROM:<ann@x.org> RET=HDRS ENVID=QQ314159", "250");
    connection.command("RCPT TO:<james@x.org> NOTIFY=SUCCESS,FAILURE", "250");
    let mail = mails::text("Hello", "Hello");
    connection.send([format!("BDAT {} LAST\r\n", mail.len()).as_bytes(), &mail].concat());
    connection.expect("250");
    connection.command("QUIT", "221");
}

/// Sends a message that is refused.
fn send_refused(server: &Server) {
    let mut connection = server.connect_smtp();
    connection.expect("220");
    connection.command("EHLO refused.test", "250");
    connection.command("VRFY <img src=x onerror=alert(1)>", "252");
    connection.command("MAIL FROM:<ann@x.org>", "250");
    connection.command("RCPT TO:<james@evil.test>", "550");
    connection.command("QUIT", "221");
}

#[test]
fn message_shows_its_session() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    deliver_with_parameters(&server);
    page.open("/m/james/latest");
    page.click("#tab-session");
    page.find("#panel-session .transcript-lines li");
    let facts = page.text("#panel-session .session-facts");
    for words in ["127.0.0.1", "client.test", "SMTP"] {
        assert!(facts.contains(words), "{words}: {facts}");
    }
    let mail = page.text("#panel-session .session-mail");
    for words in ["ann@x.org", "james@x.org", "RET=HDRS ENVID=QQ314159", "NOTIFY=SUCCESS,FAILURE", "stored"] {
        assert!(mail.contains(words), "{words}: {mail}");
    }
    let transcript = page.texts("#panel-session .transcript-lines li");
    let has_line = |by: &str, words: &str| {
        transcript.iter().any(|line| line.split_whitespace().any(|word| word == by) && line.contains(words))
    };
    assert!(has_line("C", "EHLO client.test") && has_line("S", "220 "), "{transcript:#?}");
    assert!(page.text("#panel-session .transcript-time").starts_with("+0."), "{transcript:#?}");
    // The content is not part of the transcript, but there is a link to the whole session.
    assert!(!transcript.iter().any(|line| line.contains("Subject:")), "{transcript:#?}");
    page.click("#panel-session .panel-end a");
    page.until("the whole session", || page.text("sessions-page .transcript-lines").contains("QUIT"));
    page.click(".page-head a");
    page.until("all sessions", || page.path() == "/sessions");
    page.assert_quiet();
}

#[test]
fn all_messages_of_a_session_are_counted() {
    // The transcript of the first messages is evicted.
    let server = Server::start(&["--smtp-transcriptkb", "64"]);
    let Some(page) = Page::of(&server) else { return };
    let mut connection = server.connect_smtp();
    connection.expect("220");
    connection.command("EHLO client.test", "250");
    for _ in 0..150 {
        connection.command("MAIL FROM:<ann@x.org>", "250");
        connection.command("RCPT TO:<james@x.org>", "250");
        connection.send("BDAT 2 LAST\r\n\r\n");
        connection.expect("250");
    }
    connection.command("QUIT", "221");
    page.open("/sessions");
    page.until("the session", || page.text("sessions-page").contains("150 messages"));
    page.click(".session > summary");
    page.until("the note", || page.text(".session-missing").contains("messages, is no longer stored"));
    page.assert_quiet();
}

#[test]
fn sessions_are_listed_with_transcripts() {
    let server = Server::start(&["--smtp-rejectdomains=evil.test"]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/status");
    page.click("[data-page=sessions]");
    page.until("no sessions", || page.text("sessions-page").contains("No sessions yet"));
    // The list updates itself, and an expanded transcript stays.
    deliver_with_parameters(&server);
    let rows = || page.texts(".session > summary");
    page.until("the first", || rows().len() == 1);
    page.click(".session > summary");
    page.until("its transcript", || page.text(".transcript-lines").contains("EHLO client.test"));
    send_refused(&server);
    page.until("both", || rows().len() == 2);
    page.expect_focus("li + li .session[open] > summary");
    page.click("li + li .session > summary");
    for part in ["client", "about", "marks"] {
        let script = "return [...document.querySelectorAll(arguments[0])].map(e => e.getBoundingClientRect().left)";
        let starts = page.measure(script, &json!([format!(".session-{part}")]));
        let starts: Vec<f64> = serde_json::from_value(starts).unwrap();
        assert!(starts.len() == 2 && is_near(starts[0], starts[1]), "the columns of .session-{part}: {starts:?}");
    }
    assert!(rows()[0].contains("1 refused") && !rows()[1].contains("refused\n"), "{:#?}", rows());
    assert!(rows()[1].contains("ann@x.org → james@x.org"), "{:#?}", rows());
    page.click(".sessions-choice input");
    page.until("the filtered session", || rows().len() == 1);
    page.expect_path("/sessions?refused=true");
    page.click(".session > summary");
    page.until("the transcript", || page.text(".transcript-lines").contains("RCPT TO:<james@evil.test>"));
    page.expect_part(".transcript-lines .refusal", "550");
    // Input of clients is not interpreted as HTML.
    assert!(
        page.text(".transcript-lines").contains("VRFY <img src=x onerror=alert(1)>"),
        "{}",
        page.text(".transcript-lines")
    );
    page.reload();
    page.until("the filtered session", || rows().len() == 1);
    page.assert_quiet();
}

#[test]
fn older_sessions_are_loaded_while_the_list_updates_itself() {
    const SESSIONS: usize = 60;
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    for _ in 0..SESSIONS {
        let mut connection = server.connect_smtp();
        connection.expect("220");
        connection.command("QUIT", "221");
    }
    page.open("/sessions");
    page.find(".session");
    // Longer than the interval of the updates.
    let delay = "
        const send = window.fetch;
        window.fetch = async (path, options) => {
            if (path.includes('before=')) await new Promise(done => setTimeout(done, 3000));
            return send(path, options);
        }";
    page.eval(delay, &json!([]));
    page.click(".page-more button");
    page.until("all sessions", || page.count(".session") == SESSIONS);
    page.assert_quiet();
}
