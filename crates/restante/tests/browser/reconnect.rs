//! A server that ends and comes back, or cannot be reached for a while: pages say so, and catch up by themselves.

use std::net::TcpListener;
use std::path::PathBuf;

use restante_testdir::TestDir;
use restante_testpg::ReservedPort;
use serde_json::json;

use super::large_mailboxes::deliver_many;
use super::mails;
use super::page::Page;
use crate::support::{Server, command};

/// A data directory, and the ports that its servers listen on one after the other.
struct Data {
    dir: TestDir,
    web: ReservedPort,
    smtp: ReservedPort,
}

impl Data {
    fn new() -> Self {
        Self { dir: TestDir::new(), web: ReservedPort::new(), smtp: ReservedPort::new() }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Starts a server with this data. There must be no other at the moment.
    fn server(&self) -> Server {
        let [web, smtp] = [&self.web, &self.smtp].map(|port| port.address().to_string());
        Server::spawn(command().args(["--web-addr", &web, "--smtp-addr", &smtp, "--data"]).arg(self.path()))
    }

    /// Starts a server with this data where pages do not look for it.
    fn server_elsewhere(&self) -> Server {
        Server::spawn(command().arg("--data").arg(self.path()))
    }
}

fn deliver(server: &Server, subject: &str) {
    server.deliver("james@x.org", &mails::text(subject, "Hello"));
}

/// The server ends and comes back, with one message more than before.
fn restart(data: &Data, mut server: Server, page: &Page) -> Server {
    server.kill();
    page.until("the sign", || page.texts(".connection:not([hidden])") == ["Connection lost. Reconnecting…"]);
    let server = data.server();
    deliver(&server, "Meanwhile");
    page.until("the end of the sign", || page.count(".connection[hidden]") == 1);
    server
}

#[test]
fn a_mailbox_catches_up() {
    let data = Data::new();
    let server = data.server();
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "Before");
    page.open("/m/james/latest");
    page.until("the message", || page.text(".message-subject") == "Before");
    // The page marks the message as seen in a request of its own, which must arrive before the server is killed.
    page.until("the mark", || server.json("/api/v1/mailbox/james")[0]["seen"] == true);
    let server = restart(&data, server, &page);
    page.until("what was missed", || page.texts(".row-subject") == ["Meanwhile", "Before"]);
    assert_eq!(page.text(".message-subject"), "Before", "what is read stays");
    deliver(&server, "After");
    page.until("what comes", || page.texts(".row-subject") == ["After", "Meanwhile", "Before"]);
    assert_eq!(page.text(".mailbox-counts"), "3 messages, 2 unread");
}

#[test]
fn what_was_missed_is_told_to_who_reads_further_down() {
    let data = Data::new();
    let mut server = data.server();
    let Some(page) = Page::of(&server) else { return };
    deliver_many(&server, 60);
    page.open("/m/james");
    page.until("all of them", || page.text(".mailbox-counts").starts_with("60 messages"));
    page.eval("document.querySelector('.virtual-port').scrollTop = 600", &json!([]));
    server.kill();
    page.until("the sign", || page.count(".connection:not([hidden])") == 1);
    // Where the page does not look for it.
    let mut elsewhere = data.server_elsewhere();
    deliver(&elsewhere, "Missed");
    deliver(&elsewhere, "Missed too");
    elsewhere.kill();
    let _server = data.server();
    page.until("the word of it", || page.text(".virtual-pill") == "2 new");
    page.click(".virtual-pill");
    page.until("the top", || page.texts(".row-subject").starts_with(&["Missed too".into(), "Missed".into()]));
}

#[test]
fn a_message_that_could_not_be_loaded_is_shown_in_the_end() {
    let data = Data::new();
    let mut server = data.server();
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "Wanted");
    page.open("/m/james");
    page.until("its row", || page.texts(".row-subject") == ["Wanted"]);
    server.kill();
    page.click(".message-row");
    page.until("the word of it", || page.text("message-view").contains("The message could not be loaded"));
    let server = data.server();
    page.until("the message", || page.text(".message-subject") == "Wanted");
    page.until("the mark", || server.json("/api/v1/mailbox/james")[0]["seen"] == true);
}

#[test]
fn home_tells_where_mail_is_taken_now() {
    let data = Data::new();
    let mut server = data.server();
    let Some(page) = Page::of(&server) else { return };
    page.open("/");
    let names = |port: u16| page.text("send-here").contains(&port.to_string());
    page.until("the port", || names(server.smtp.port()));
    server.kill();
    // Somebody else has taken the port by the time that the server is back.
    let _taken = TcpListener::bind(server.smtp).unwrap();
    let mut command = command();
    command.arg("--data").arg(data.path()).args(["--web-addr", &server.http.to_string()]);
    let back = Server::spawn(&mut command);
    page.until("the other port", || names(back.smtp.port()));
    assert!(!names(server.smtp.port()), "the port before is forgotten");
}

#[test]
fn the_monitor_catches_up() {
    let data = Data::new();
    let server = data.server();
    let Some(page) = Page::of(&server) else { return };
    page.open("/monitor");
    page.until("the beginning", || page.text(".monitor-state") == "Live");
    deliver(&server, "Before");
    page.until("the arrival", || page.texts(".arrival-link") == ["Before"]);
    let server = restart(&data, server, &page);
    page.until("what was missed", || page.texts(".arrival-link").first().is_some_and(|row| row == "Meanwhile"));
    deliver(&server, "After");
    page.until("what comes", || page.texts(".arrival-link") == ["After", "Meanwhile", "Before"]);
}

#[test]
fn other_pages_say_so_and_recover() {
    let data = Data::new();
    let server = data.server();
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "Before");
    page.open("/");
    page.until("the mailbox", || page.text(".mailboxes").contains("1 message"));
    let server = restart(&data, server, &page);
    page.until("the numbers", || page.text(".mailboxes").contains("2 messages"));
    page.click("[data-page=status]");
    page.until("the figures", || page.text(".figures").contains("Stored messages\n2"));
    let mut server = server;
    server.kill();
    page.until("the word of it", || page.text("status-page").contains("The server does not respond."));
    let _server = data.server();
    page.until("the end of it", || page.text(".status-note").is_empty() && page.count("status-page.stale") == 0);
}

#[test]
fn a_page_that_was_left_listens_again_on_the_way_back() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let listeners = || server.json("/debug/vars")["http"]["WebSocketConnectsCurrent"].clone();
    page.open("/m/james");
    page.until("a listener", || listeners() == 1);
    page.open("/status");
    page.find("status-page h1");
    page.until("nobody", || listeners() == 0);
    deliver(&server, "Meanwhile");
    page.back();
    page.until("what was missed", || page.texts(".row-subject") == ["Meanwhile"]);
    page.until("one listener", || listeners() == 1);
    deliver(&server, "After");
    page.until("what comes", || page.texts(".row-subject") == ["After", "Meanwhile"]);
    assert_eq!(page.count(".connection:not([hidden])"), 0);
    page.assert_quiet();
}
