//! Whatever one node has answered, every other node knows at once: what is sent to one is read from the next.

use std::thread;

use serde_json::{Value, json};

use super::messages::{Letters, Postman};
use super::nodes::{Cluster, Node};
use crate::support::rest::Reader;

const LETTERS: usize = 200;

#[test]
fn what_one_node_has_taken_every_other_one_has() {
    let Some(cluster) = Cluster::start(3, &[]) else { return };
    thread::scope(|scope| {
        for place in 0..cluster.nodes.len() {
            let (cluster, mailbox) = (&cluster, format!("mailbox-{place}"));
            scope.spawn(move || write_and_read(cluster, place, &mailbox));
        }
    });
}

/// Sends by SMTP and HTTP, deletes and marks, at one node after the other; the others are asked.
fn write_and_read(cluster: &Cluster, place: usize, mailbox: &str) {
    let letters = Letters::default();
    let readers: Vec<Reader> = cluster.nodes.iter().map(Node::reader).collect();
    let mut postmen: Vec<Postman<'_>> = cluster.nodes.iter().map(|node| Postman::new(&letters, node.smtp)).collect();
    let mut ids: Vec<String> = Vec::new();
    for number in 0..LETTERS {
        let [writer, one, other] = [0, 1, 2].map(|step| (place + number + step) % 3);
        let subject = format!("{mailbox} {number}");
        if number % 4 == 0 {
            hand_in(&cluster.nodes[writer], mailbox, &subject);
        } else {
            postmen[writer].send(&subject, &[mailbox], 100);
        }
        let id = find(&readers[one], &readers[other], mailbox, &subject, ids.last());
        ids.push(id.clone());
        let path = format!("{mailbox}/{id}");
        match number % 5 {
            0 => {
                assert_eq!(readers[writer].ask("DELETE", &path).unwrap().0, 200);
                for reader in &readers {
                    assert_eq!(reader.ask("GET", &path).unwrap().0, 404, "{subject}");
                }
                ids.pop();
            }
            1 => {
                assert_eq!(readers[writer].ask("PATCH", &path).unwrap().0, 200);
                assert_eq!(json_of(readers[one].ask("GET", &path).unwrap())["seen"], true, "{subject}");
            }
            _ => {}
        }
        if number % 20 == 0 {
            assert!(readers.iter().all(|reader| listed(reader, mailbox) == ids), "{subject}");
        }
    }
    assert_eq!(readers[place].ask("DELETE", mailbox).unwrap().0, 200);
    assert!(readers.iter().all(|reader| listed(reader, mailbox).is_empty()));
}

/// Hands a mail in by HTTP.
fn hand_in(node: &Node, mailbox: &str, subject: &str) {
    let mail = json!({"from": "ann@x.org", "subject": subject, "text": "Hello."}).to_string();
    let request = ureq::post(format!("http://{}/api/v2/mailbox/{mailbox}", node.http));
    let answer = request.header("Content-Type", "application/json").send(mail).unwrap();
    assert_eq!(answer.status(), 201);
}

/// Asks two nodes for the newest message in every way there is; its id.
fn find(one: &Reader, other: &Reader, mailbox: &str, subject: &str, last: Option<&String>) -> String {
    let latest = json_of(one.ask("GET", &format!("{mailbox}/latest")).unwrap());
    assert_eq!(latest["subject"], subject);
    let id = latest["id"].as_str().unwrap().to_owned();
    assert_eq!(json_of(other.ask("GET", &format!("{mailbox}/{id}")).unwrap())["subject"], subject);
    let after = last.map(|last| format!("&after={last}")).unwrap_or_default();
    let waited = json_of(other.get(&format!("v2/mailbox/{mailbox}/wait?timeout=0s{after}")).unwrap());
    assert_eq!(waited["messages"].as_array().unwrap().last().unwrap()["id"], id.as_str(), "{subject}");
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
fn five_nodes_start_at_the_same_moment() {
    let Some(cluster) = Cluster::start(5, &[]) else { return };
    cluster.until_ready();
    let letters = Letters::default();
    for (place, node) in cluster.nodes.iter().enumerate() {
        Postman::new(&letters, node.smtp).send(&place.to_string(), &["bob"], 100);
    }
    for node in &cluster.nodes {
        let subjects: Vec<_> = node.reader().list("bob").unwrap().iter().map(|of| of["subject"].clone()).collect();
        assert_eq!(subjects, ["0", "1", "2", "3", "4"]);
    }
}
