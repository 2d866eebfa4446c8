//! Pages while the server restarts or is unreachable: they show it, and update afterwards.

use std::net::TcpListener;
use std::path::PathBuf;

use restante_testdir::TestDir;
use restante_testpg::ReservedPort;
use serde_json::json;

use super::large_mailboxes::deliver_many;
use super::mails;
use super::page::Page;
use crate::support::{Server, command};

/// A data directory, and the ports of the servers that use it one after the other.
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

    /// Starts a server with this data. No other server may be running on it.
    fn server(&self) -> Server {
        let [web, smtp] = [&self.web, &self.smtp].map(|port| port.address().to_string());
        Server::spawn(command().args(["--web-addr", &web, "--smtp-addr", &smtp, "--data"]).arg(self.path()))
    }

    /// Starts a server with this data on other ports, where pages do not find it.
    fn server_elsewhere(&self) -> Server {
        Server::spawn(command().arg("--data").arg(self.path()))
    }
}

fn deliver(server: &Server, subject: &str) {
    server.deliver("james@x.org", &mails::text(subject, "Hello"));
}

/// Restarts the server with one more message.
fn restart(data: &Data, mut server: Server, page: &Page) -> Server {
    server.kill();
    page.until("the connection message", || {
        page.texts(".connection:not([hidden])") == ["Connection lost. Reconnecting…"]
    });
    let server = data.server();
    deliver(&server, "Meanwhile");
    page.until("the end of the connection message", || page.count(".connection[hidden]") == 1);
    server
}

#[test]
fn mailbox_updates_after_a_restart() {
    let data = Data::new();
    let server = data.server();
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "Before");
    page.open("/m/james/latest");
    page.until("the message", || page.text(".message-subject") == "Before");
    // The page marks the message as seen by a separate request, which must arrive before the server is killed.
    page.until("the read state", || server.json("/api/v1/mailbox/james")[0]["seen"] == true);
    let server = restart(&data, server, &page);
    page.until("the missed message", || page.texts(".row-subject") == ["Meanwhile", "Before"]);
    assert_eq!(page.text(".message-subject"), "Before", "the open message changed");
    deliver(&server, "After");
    page.until("the new message", || page.texts(".row-subject") == ["After", "Meanwhile", "Before"]);
    page.expect_texts(".list-facts .number", &["3 messages", "2 unread"]);
}

#[test]
fn missed_messages_are_indicated_below_the_top() {
    let data = Data::new();
    let mut server = data.server();
    let Some(page) = Page::of(&server) else { return };
    deliver_many(&server, 60);
    page.open("/m/james");
    page.until("all of them", || page.text(".list-total").starts_with("60 messages"));
    // The counts are shown before the rows have a height, and a list without a height does not scroll.
    let scroll = "const port = document.querySelector('.virtual-port'); port.scrollTop = 600; return port.scrollTop";
    page.until("the scroll position", || page.eval(scroll, &json!([])) == 600);
    server.kill();
    page.until("the connection message", || page.count(".connection:not([hidden])") == 1);
    // On ports where the page does not find it.
    let mut elsewhere = data.server_elsewhere();
    deliver(&elsewhere, "Missed");
    deliver(&elsewhere, "Missed too");
    elsewhere.kill();
    let _server = data.server();
    page.until("the number of new messages", || page.text(".virtual-pill") == "2 new");
    page.click(".virtual-pill");
    page.until("the top", || page.texts(".row-subject").starts_with(&["Missed too".into(), "Missed".into()]));
}

#[test]
fn failed_message_is_loaded_after_a_reconnect() {
    let data = Data::new();
    let mut server = data.server();
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "Wanted");
    page.open("/m/james");
    page.until("its row", || page.texts(".row-subject") == ["Wanted"]);
    server.kill();
    page.click(".message-row");
    page.until("the error", || page.text("message-view").contains("The message could not be loaded"));
    let server = data.server();
    page.until("the message", || page.text(".message-subject") == "Wanted");
    page.until("the read state", || server.json("/api/v1/mailbox/james")[0]["seen"] == true);
}

#[test]
fn empty_inbox_shows_the_current_smtp_port() {
    let data = Data::new();
    let mut server = data.server();
    let Some(page) = Page::of(&server) else { return };
    page.open("/");
    let names = |port: u16| page.text("send-here").contains(&port.to_string());
    page.until("the port", || names(server.smtp.port()));
    server.kill();
    // The restarted server has another port.
    let _taken = TcpListener::bind(server.smtp).unwrap();
    let mut command = command();
    command.arg("--data").arg(data.path()).args(["--web-addr", &server.http.to_string()]);
    let back = Server::spawn(&mut command);
    page.until("the other port", || names(back.smtp.port()));
    assert!(!names(server.smtp.port()), "the old port is still shown");
}

#[test]
fn inbox_updates_after_a_restart() {
    let data = Data::new();
    let server = data.server();
    let Some(page) = Page::of(&server) else { return };
    page.open("/");
    page.find("send-here");
    deliver(&server, "Before");
    page.until("the arrival", || page.texts(".row-subject") == ["Before"]);
    let server = restart(&data, server, &page);
    page.until("the missed message", || page.texts(".row-subject").first().is_some_and(|row| row == "Meanwhile"));
    deliver(&server, "After");
    page.until("the new message", || page.texts(".row-subject") == ["After", "Meanwhile", "Before"]);
}

#[test]
fn sidebar_and_status_update_after_a_restart() {
    let data = Data::new();
    let server = data.server();
    let Some(page) = Page::of(&server) else { return };
    deliver(&server, "Before");
    page.open("/");
    page.until("the mailbox", || page.text(".sidebar-mailboxes .sidebar-count") == "1");
    let server = restart(&data, server, &page);
    page.until("the counts", || page.text(".sidebar-mailboxes .sidebar-count") == "2");
    page.click("[data-page=status]");
    page.until("the counters", || page.text(".figures").contains("Stored messages\n2"));
    let mut server = server;
    server.kill();
    page.until("the error", || page.text("status-page").contains("The server does not respond."));
    let _server = data.server();
    page.until("the recovery", || page.text(".status-note").is_empty() && page.count("status-page.stale") == 0);
}

#[test]
fn page_reconnects_when_the_user_navigates_back() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    let subscribers = || server.json("/debug/vars")["http"]["WebSocketConnectsCurrent"].clone();
    // One for the mailbox, and one for the sidebar.
    page.open("/m/james");
    page.until("the subscribers", || subscribers() == 2);
    page.open("/status");
    page.find("status-page h1");
    page.until("no subscriber", || subscribers() == 0);
    deliver(&server, "Meanwhile");
    page.back();
    page.until("the missed message", || page.texts(".row-subject") == ["Meanwhile"]);
    page.until("the subscribers", || subscribers() == 2);
    deliver(&server, "After");
    page.until("the new message", || page.texts(".row-subject") == ["After", "Meanwhile"]);
    page.expect_count(".connection:not([hidden])", 0);
    page.assert_quiet();
}
