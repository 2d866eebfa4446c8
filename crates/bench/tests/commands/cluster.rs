//! Tests of the `cluster` command against the fake server, which acts as all nodes: every monitor gets all events.

use serde_json::Value;

use crate::fake::{Behavior, FakeServer};
use crate::{bench, errors, rows};

/// Runs the command with two nodes. Returns the exit code, the rows and the errors.
fn cluster(server: &FakeServer, options: &str) -> (Option<i32>, Vec<Value>, String) {
    let FakeServer { smtp, http, .. } = server;
    let servers = format!("--smtp {smtp} --http http://{http} --http http://{http}/");
    let output = bench(&format!("cluster {servers} --connections 3 --warmup 5 --mailboxes 4 {options}"));
    (output.status.code(), rows(&output), errors(&output))
}

#[test]
fn every_node_gets_every_event() {
    for protocol in ["v1", "v2", "sse"] {
        let server = FakeServer::start(Behavior::Honest);
        let options = format!("--messages 30 --rounds 2 --monitors 2 --rate 1000 --protocol {protocol}");
        let (code, rows, errors_text) = cluster(&server, &options);
        assert_eq!(code, Some(0), "{errors_text}");
        assert_eq!((server.messages(), rows.len()), (5 + 2 * 30, 2 + 4));
        for (round, row) in (1..).zip(&rows[..2]) {
            assert_eq!((&row["round"], &row["monitors"]), (&round.into(), &4.into()), "{row}");
            assert_eq!((&row["messages"], &row["errors"]), (&30.into(), &0.into()), "{row}");
        }
        let nodes: Vec<_> = rows[2..].iter().map(|row| (row["round"].as_u64(), row["node"].as_str())).collect();
        let (first, second) = (format!("http://{}", server.http), format!("http://{}/", server.http));
        let expected = [(1, &first), (1, &second), (2, &first), (2, &second)];
        assert_eq!(nodes, expected.map(|(round, url)| (Some(round), Some(url.as_str()))));
        for row in &rows[2..] {
            assert_eq!(row["events"], 2 * 30, "{row}");
            for name in ["missed", "lost", "doubled", "lagged", "dropped"] {
                assert_eq!(row[name], 0, "{name} in {row}");
            }
            assert!(row["p50_us"].as_u64() <= row["p99.9_us"].as_u64() && row["max_us"].is_u64(), "{row}");
        }
    }
}

#[test]
fn lost_and_repeated_events_are_reported() {
    for (behavior, lost, doubled) in [(Behavior::OmitsEachTenthEvent, 3, 0), (Behavior::RepeatsEachTenthEvent, 0, 3)] {
        let server = FakeServer::start(behavior);
        let (code, rows, errors_text) = cluster(&server, "--messages 30 --rounds 1");
        assert_eq!(code, Some(1), "{errors_text}");
        for row in &rows[1..] {
            assert_eq!((&row["lost"], &row["doubled"]), (&lost.into(), &doubled.into()), "{row}");
        }
    }
}

#[test]
fn unreachable_node_is_an_error() {
    let server = FakeServer::start(Behavior::Honest);
    let output = bench(&format!("cluster --smtp {} --http http://127.0.0.1:1 --messages 1 --warmup 0", server.smtp));
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("http://127.0.0.1:1: connecting: "), "{}", errors(&output));
}
