//! What was said when mail came, as the page tells it: with a message, and on the page of all sessions.

use super::mails;
use super::page::Page;
use crate::support::Server;

/// A mail that asks to be told of its delivery (RFC 3461).
fn deliver_with_parameters(server: &Server) {
    let mut talk = server.talk();
    talk.expect("220");
    talk.say("EHLO client.test", "250");
    talk.say("MAIL FROM:<ann@x.org> RET=HDRS ENVID=QQ314159", "250");
    talk.say("RCPT TO:<james@x.org> NOTIFY=SUCCESS,FAILURE", "250");
    let mail = mails::text("Hello", "Hello");
    talk.send([format!("BDAT {} LAST\r\n", mail.len()).as_bytes(), &mail].concat());
    talk.expect("250");
    talk.say("QUIT", "221");
}

/// A mail that nobody takes.
fn be_refused(server: &Server) {
    let mut talk = server.talk();
    talk.expect("220");
    talk.say("EHLO refused.test", "250");
    talk.say("VRFY <img src=x onerror=alert(1)>", "252");
    talk.say("MAIL FROM:<ann@x.org>", "250");
    talk.say("RCPT TO:<james@evil.test>", "550");
    talk.say("QUIT", "221");
}

#[test]
fn a_message_tells_how_it_came() {
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
    let said = page.texts("#panel-session .transcript-lines li");
    let is_said = |by: &str, words: &str| {
        said.iter().any(|line| line.split_whitespace().any(|word| word == by) && line.contains(words))
    };
    assert!(is_said("C", "EHLO client.test") && is_said("S", "220 "), "{said:#?}");
    assert!(page.text("#panel-session .transcript-time").starts_with("+0."), "{said:#?}");
    // The mail itself is not in it, but there is a way to the rest.
    assert!(!said.iter().any(|line| line.contains("Subject:")), "{said:#?}");
    page.click("#panel-session .panel-end a");
    page.until("the whole session", || page.text("sessions-page .transcript-lines").contains("QUIT"));
    page.click(".sessions-head a");
    page.until("all sessions", || page.path() == "/sessions");
    page.assert_quiet();
}

#[test]
fn sessions_are_listed_and_told() {
    let server = Server::start(&["--smtp-rejectdomains=evil.test"]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/status");
    page.click(".status-head a");
    page.until("nobody", || page.text("sessions-page").contains("No sessions yet"));
    deliver_with_parameters(&server);
    be_refused(&server);
    let rows = || page.texts(".session > summary");
    page.click(".sessions-head button");
    page.until("both", || rows().len() == 2);
    assert!(rows()[0].contains("1 refused") && !rows()[1].contains("refused\n"), "{:#?}", rows());
    assert!(rows()[1].contains("ann@x.org → james@x.org"), "{:#?}", rows());
    page.click(".sessions-choice input");
    page.until("one of them", || rows().len() == 1);
    assert_eq!(page.path(), "/sessions?refused=true");
    page.click(".session > summary");
    page.until("what was said", || page.text(".transcript-lines").contains("RCPT TO:<james@evil.test>"));
    assert!(page.text(".transcript-lines .refusal").contains("550"), "{}", page.text(".transcript-lines"));
    // Whatever a client says stays a text.
    assert!(page.text(".transcript-lines").contains("VRFY <img src=x onerror=alert(1)>"), "{}", page.text(".transcript-lines"));
    page.reload();
    page.until("one of them", || rows().len() == 1);
    page.assert_quiet();
}
