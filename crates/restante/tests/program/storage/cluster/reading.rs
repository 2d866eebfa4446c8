//! Every change is at once visible at all other nodes: messages are sent to one node and read from the next.

use std::thread;

use serde_json::{Value, json};

use super::messages::{RetryingSender, SentMessages};
use super::nodes::{Cluster, Node};
use crate::support::rest::Reader;

const MESSAGES: usize = 200;

#[test]
fn changes_are_at_once_visible_at_every_other_node() {
    let Some(cluster) = Cluster::start(3, &[]) else { return };
    thread::scope(|scope| {
        for index in 0..cluster.nodes.len() {
            let (cluster, mailbox) = (&cluster, format!("mailbox-{index}"));
            scope.spawn(move || write_and_read(cluster, index, &mailbox));
        }
    });
}

/// Sends by SMTP and HTTP, deletes and marks, at one node after the other, and reads from the others.
fn write_and_read(cluster: &Cluster, index: usize, mailbox: &str) {
    let messages = SentMessages::default();
    let readers: Vec<Reader> = cluster.nodes.iter().map(Node::reader).collect();
    let mut senders: Vec<RetryingSender<'_>> =
        cluster.nodes.iter().map(|node| RetryingSender::new(&messages, node.smtp)).collect();
    let mut ids: Vec<String> = Vec::new();
    for number in 0..MESSAGES {
        let [writer, one, other] = [0, 1, 2].map(|step| (index + number + step) % 3);
        let subject = format!("{mailbox} {number}");
        if number % 4 == 0 {
            inject(&cluster.nodes[writer], mailbox, &subject);
        } else {
            senders[writer].send(&subject, &[mailbox], 100);
        }
        let id = find(&readers[one], &readers[other], mailbox, &subject, ids.last());
        ids.push(id.clone());
        let path = format!("{mailbox}/{id}");
        match number % 5 {
            0 => {
                assert_eq!(readers[writer].request("DELETE", &path).unwrap().0, 200);
                for reader in &readers {
                    assert_eq!(reader.request("GET", &path).unwrap().0, 404, "{subject}");
                }
                ids.pop();
            }
            1 => {
                assert_eq!(readers[writer].request("PATCH", &path).unwrap().0, 200);
                assert_eq!(json_of(readers[one].request("GET", &path).unwrap())["seen"], true, "{subject}");
            }
            _ => {}
        }
        if number % 20 == 0 {
            assert!(readers.iter().all(|reader| listed(reader, mailbox) == ids), "{subject}");
        }
    }
    assert_eq!(readers[index].request("DELETE", mailbox).unwrap().0, 200);
    assert!(readers.iter().all(|reader| listed(reader, mailbox).is_empty()));
}

/// Injects a message by HTTP.
fn inject(node: &Node, mailbox: &str, subject: &str) {
    let mail = json!({"from": "ann@x.org", "subject": subject, "text": "Hello."}).to_string();
    let request = ureq::post(format!("http://{}/api/v2/mailbox/{mailbox}", node.http));
    let response = request.header("Content-Type", "application/json").send(mail).unwrap();
    assert_eq!(response.status(), 201);
}

/// Reads the newest message from two nodes in every possible way. Returns its id.
fn find(one: &Reader, other: &Reader, mailbox: &str, subject: &str, last: Option<&String>) -> String {
    let latest = json_of(one.request("GET", &format!("{mailbox}/latest")).unwrap());
    assert_eq!(latest["subject"], subject);
    let id = latest["id"].as_str().unwrap().to_owned();
    assert_eq!(json_of(other.request("GET", &format!("{mailbox}/{id}")).unwrap())["subject"], subject);
    let after = last.map(|last| format!("&after={last}")).unwrap_or_default();
    let response = json_of(other.get(&format!("v2/mailbox/{mailbox}/wait?timeout=0s{after}")).unwrap());
    assert_eq!(response["messages"].as_array().unwrap().last().unwrap()["id"], id.as_str(), "{subject}");
    assert_eq!(listed(one, mailbox).last(), Some(&id), "{subject}");
    id
}

fn listed(reader: &Reader, mailbox: &str) -> Vec<String> {
    let list = reader.list(mailbox).unwrap();
    list.iter().map(|summary| summary["id"].as_str().unwrap().to_owned()).collect()
}

fn json_of((status, text): (u16, Vec<u8>)) -> Value {
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&text));
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn five_nodes_start_at_the_same_time() {
    let Some(cluster) = Cluster::start(5, &[]) else { return };
    cluster.until_ready();
    let messages = SentMessages::default();
    for (index, node) in cluster.nodes.iter().enumerate() {
        RetryingSender::new(&messages, node.smtp).send(&index.to_string(), &["bob"], 100);
    }
    for node in &cluster.nodes {
        let subjects: Vec<_> =
            node.reader().list("bob").unwrap().iter().map(|summary| summary["subject"].clone()).collect();
        assert_eq!(subjects, ["0", "1", "2", "3", "4"]);
    }
}
