//! A script written for Inbucket that uses everything such scripts use. It runs unchanged.

use serde_json::json;

use super::folder::{Folder, subjects};

use crate::support::Server;

const SCRIPT: &str = include_str!("inbucket.lua");

#[test]
fn inbucket_script_runs_unchanged() {
    let folder = Folder::empty("inbucket");
    folder.write("inbucket.lua", SCRIPT);
    let settings = [("INBUCKET_SMTP_DEFAULTACCEPT", "false"), ("INBUCKET_SMTP_ACCEPTDOMAINS", "good.test")];
    let mut server = Server::spawn(folder.command().envs(settings));
    server.wait_for_log(
        "script inbucket.lua: before.mail_from_accepted, before.rcpt_to_accepted, before.message_stored, \
         after.message_stored, after.message_deleted",
    );

    let mut connection = server.connect_smtp();
    connection.expect("220");
    connection.command("EHLO client.test", "250");
    connection.command("MAIL FROM:<eve@SPAM.test>", "550 Mail denied by policy");
    server.wait_for_log("Sender refused script=inbucket.lua remote=127.0.0.1 sender=eve@SPAM.test");
    connection.command("MAIL FROM:<>", "250");
    connection.command("RSET", "250");
    connection.command("MAIL FROM:<ann@x.org>", "250");
    connection.command("RCPT TO:<nobody@staging.test>", "550 No such user");
    connection.command("RCPT TO:<bob@bad.test>", "550");
    connection.command("RCPT TO:<carl@good.test>", "250");
    connection.command("RCPT TO:<team@staging.test>", "250");
    connection.command("DATA", "354");
    connection.command("From: Ann <ann@x.org>\r\nSubject: lunch\r\n\r\nNow\r\n.", "250");
    for mailbox in ["alice", "bob", "carl"] {
        let summary = &server.json(&format!("/api/v1/mailbox/{mailbox}"))[0];
        assert_eq!(summary["subject"], "[team] lunch");
        assert_eq!(summary["from"], "Team <ann@x.org>");
        assert_eq!(summary["to"], json!(["Everyone <team@staging.test>"]));
    }
    assert_eq!(subjects(&server, "team"), [] as [&str; 0]);

    server.deliver("dora@staging.test", format!("Subject: large\r\n\r\n{}\r\n", "x".repeat(2000)).as_bytes());
    server.wait_for_log("Too large script=inbucket.lua");
    assert_eq!(server.count("dora"), 0);

    assert_eq!(ureq::delete(server.url("/api/v1/mailbox/carl")).call().unwrap().status(), 200);
    let events = folder.lines("events.json", 4);
    let events: Vec<serde_json::Value> = events.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut stored: Vec<&str> = events
        .iter()
        .filter(|event| event["event"] == "stored")
        .map(|event| event["mailbox"].as_str().unwrap())
        .collect();
    stored.sort_unstable();
    assert_eq!(stored, ["alice", "bob", "carl"]);
    let deleted = events.iter().find(|event| event["event"] == "deleted").unwrap();
    assert_eq!(deleted["mailbox"], "carl");
    let first = events.iter().find(|event| event["mailbox"] == "alice").unwrap();
    assert_eq!(first["from"], json!({"name": "Team", "address": "ann@x.org"}));
    assert_eq!((&first["to"], &first["subject"]), (&json!("team@staging.test"), &json!("[team] lunch")));
    assert!(first["date"].as_str().is_some_and(|year| year >= "2026"), "{first}");
}
