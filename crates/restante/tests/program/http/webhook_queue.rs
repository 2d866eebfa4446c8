//! The queue of webhooks in the real program: targets that are paused, entries that are retried and cancelled, restarts, and several
//! nodes with one PostgreSQL.

use restante_testpg::Postgres;
use serde_json::{Value, json};

use super::webhooks::{send, stop};
use crate::support::Server;
use crate::support::disk::Disk;
use crate::support::durability::eventually;
use crate::support::webhook_receiver::{Receiver, WebhookRequest, status};

/// Sends a change, and returns the response.
fn change(server: &Server, name: &str, body: &Value) -> Value {
    let url = server.url(&format!("/api/v2/webhooks/{name}"));
    let mut response = ureq::post(url).content_type("application/json").send(body.to_string()).unwrap();
    serde_json::from_str(&response.body_mut().read_to_string().unwrap()).unwrap()
}

/// Returns the entries, the oldest first: the state and the number of attempts.
fn entries(server: &Server) -> Vec<(String, u64)> {
    let list = server.json("/api/v2/webhooks/entries");
    let entry = |entry: &Value| (entry["state"].as_str().unwrap().to_owned(), entry["attempts"].as_u64().unwrap());
    list["entries"].as_array().unwrap().iter().rev().map(entry).collect()
}

fn target_states(server: &Server) -> Vec<Value> {
    let targets = server.json("/api/v2/webhooks");
    targets["targets"].as_array().unwrap().iter().map(|target| target["state"].clone()).collect()
}

fn subjects(receiver: &Receiver) -> Vec<String> {
    receiver.requests().iter().map(|request| request.subject().to_owned()).collect()
}

#[test]
fn paused_target_is_sent_nothing_also_after_a_restart() {
    let disk = Disk::new("webhooks-paused");
    let (paused, other) = (Receiver::start(), Receiver::start());
    let urls = [&paused, &other].map(|receiver| receiver.url("/ events=stored")).join(",");
    let arguments = ["--webhook-private", "--webhook-urls", &urls];
    let mut server = disk.server(&arguments);
    let name = server.json("/api/v2/webhooks")["targets"][0]["name"].clone();
    assert_eq!(change(&server, "pause", &json!({ "target": name })), json!({ "paused": 1 }));
    send(&server, "james", "one");
    other.wait_for(1);
    stop(&mut server);

    let server = disk.server(&arguments);
    assert_eq!(target_states(&server), ["paused", "active"]);
    send(&server, "james", "two");
    other.wait_for(2);
    // A retry does not end the pause.
    assert_eq!(change(&server, "retry", &json!({ "all": true })), json!({ "retried": 2 }));
    send(&server, "james", "three");
    other.wait_for(3);
    assert_eq!(subjects(&paused), [""; 0]);
    assert_eq!(change(&server, "resume", &json!({ "target": name })), json!({ "resumed": 1 }));
    paused.wait_for(3);
    eventually("events still wait", || entries(&server) == vec![("delivered".to_owned(), 1); 6]);
    let mut sent = subjects(&paused);
    sent.sort();
    assert_eq!(sent, ["one", "three", "two"]);
}

#[test]
fn start_that_fails_keeps_the_events_although_no_webhook_is_configured() {
    let disk = Disk::new("webhooks-failed-start");
    let receiver = Receiver::stopped(|_, _| Some(status(204)));
    let urls = receiver.url("/ events=stored");
    let arguments = ["--webhook-private", "--webhook-urls", &urls];
    let mut server = disk.server(&arguments);
    send(&server, "james", "x");
    stop(&mut server);

    let other = Server::start(&[]);
    let occupied = other.http.to_string();
    let failed = Server::try_spawn(disk.command().args(["--web-addr", &occupied]));
    assert!(failed.is_err_and(|(_, log)| log.contains("Address already in use")));

    receiver.listen();
    let mut server = disk.server(&arguments);
    receiver.wait_for(1);
    stop(&mut server);

    // A start without webhooks cancels what waits.
    let mut server = disk.server(&["--webhook-private", "--webhook-urls", "http://127.0.0.1:1/"]);
    send(&server, "james", "x");
    stop(&mut server);
    let mut server = disk.server(&[]);
    assert!(stop(&mut server).contains("dropped events for webhooks that are no longer configured"));
}

#[test]
fn failed_and_cancelled_events_are_retried() {
    let receiver = Receiver::responding_with(|_, before| Some(status(if before == 0 { 410 } else { 204 })));
    let server = Server::start(&["--webhook-private", "--webhook-urls", &receiver.url("/")]);
    send(&server, "james", "x");
    eventually("the event does not fail", || entries(&server) == [("failed".to_owned(), 1)]);
    let entry = server.json("/api/v2/webhooks/entries/1");
    assert_eq!(entry["last-reply"], "the target responded 410 Gone");
    assert_eq!(entry["payload"], receiver.requests()[0].text);
    assert_eq!(entry["webhook-id"], receiver.requests()[0].webhook_id());
    change(&server, "pause", &json!({ "all": true }));
    for (name, state) in [("retry", "queued"), ("cancel", "cancelled"), ("retry", "queued")] {
        change(&server, name, &json!({ "ids": ["1"] }));
        assert_eq!(entries(&server), [(state.to_owned(), 1)], "{name}");
    }
    assert_eq!(receiver.requests().len(), 1);
    change(&server, "resume", &json!({ "all": true }));
    eventually("the event is not delivered", || entries(&server) == [("delivered".to_owned(), 2)]);
    let ids: Vec<String> = receiver.requests().iter().map(|request| request.webhook_id().to_owned()).collect();
    assert_eq!(ids[0], ids[1], "an event keeps its id");
}

/// The entries of a killed node are due after 30 seconds, and its last messages are looked for after that, so this takes a minute.
#[test]
fn events_of_a_killed_node_are_sent_by_another_one() {
    let Some(postgres) = Postgres::start() else { return };
    let receiver = Receiver::stopped(|_, _| Some(status(204)));
    let (storage, urls) = (postgres.url(), receiver.url("/ events=stored"));
    let start = || Server::start(&["--storage-url", &storage, "--webhook-private", "--webhook-urls", &urls]);
    let (mut killed, other) = (start(), start());
    let mut sent = Vec::new();
    for (number, server) in [&killed, &other].into_iter().cycle().take(10).enumerate() {
        let subject = format!("message {number}");
        send(server, "james", &subject);
        sent.push(subject);
    }
    // The last messages may not be in the queue yet when the node is killed.
    killed.kill();
    // The entries are shared.
    eventually("an event is not in the queue", || entries(&other).len() == sent.len());
    receiver.listen();
    eventually("events still wait", || entries(&other).iter().all(|(state, _)| state == "delivered"));
    let mut events: Vec<String> = receiver.requests().iter().map(WebhookRequest::short).collect();
    events.sort();
    events.dedup();
    assert_eq!(events, sent.iter().map(|subject| format!("POST / message-stored james {subject}")).collect::<Vec<_>>());
}

#[test]
fn pause_applies_to_all_nodes() {
    let Some(postgres) = Postgres::start() else { return };
    let receiver = Receiver::start();
    let (storage, urls) = (postgres.url(), receiver.url("/ events=stored"));
    let start = || Server::start(&["--storage-url", &storage, "--webhook-private", "--webhook-urls", &urls]);
    let nodes = [start(), start()];
    change(&nodes[0], "pause", &json!({ "all": true }));
    assert_eq!(nodes.each_ref().map(target_states), [["paused"], ["paused"]]);
    for node in &nodes {
        send(node, "james", "x");
    }
    eventually("an event is not in the queue", || entries(&nodes[0]) == vec![("queued".to_owned(), 0); 2]);
    assert_eq!(entries(&nodes[1]), entries(&nodes[0]));
    change(&nodes[1], "cancel", &json!({ "ids": ["1"] }));
    assert_eq!(change(&nodes[1], "resume", &json!({ "all": true })), json!({ "resumed": 1 }));
    eventually("an event is not sent", || receiver.requests().len() == 1);
    eventually("the result is not recorded", || entries(&nodes[0])[1] == ("delivered".to_owned(), 1));
    assert_eq!(entries(&nodes[0])[0], ("cancelled".to_owned(), 0));
}
