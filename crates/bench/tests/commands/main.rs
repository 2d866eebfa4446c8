//! Tests of the program against a fake server: what it sends, what it reports and its exit code.

mod cluster;
mod database;
mod durable_reference;
mod fake;
mod imap;
mod large;
mod mailpit;
mod monitors;
mod pop3;
mod start;

use std::process::{Command, Output};

use fake::{Behavior, FakeServer};
use serde_json::Value;

/// Runs `restante-bench` with JSON output.
fn bench(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_restante-bench"));
    command.args(arguments.split_whitespace()).arg("--json");
    command.output().expect("the program runs")
}

fn rows(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    let rows = text.lines().map(|line| serde_json::from_str(line).expect("one object per line"));
    rows.collect()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn smtp_reuses_its_connections() {
    let server = FakeServer::start(Behavior::Honest);
    let output = bench(&format!("smtp --smtp {} --connections 3 --messages 50 --size 500,2000", server.smtp));
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let rows = rows(&output);
    assert_eq!(rows.len(), 2, "one row for each size");
    for (row, size) in rows.iter().zip([500, 2000]) {
        assert_eq!((&row["size"], &row["messages"], &row["errors"]), (&size.into(), &50.into(), &0.into()));
        assert!(row["p50_us"].as_u64() <= row["max_us"].as_u64());
    }
    assert_eq!(server.stored("bench-0"), 100);
    assert_eq!(server.sessions(), 2 * 3);
    assert_eq!(server.largest_batch(), 1, "commands wait for each other");
}

#[test]
fn smtp_opens_a_connection_for_each_message() {
    let server = FakeServer::start(Behavior::Honest);
    let output = bench(&format!("smtp --smtp {} --messages 30 --warmup 5 --one-per-message", server.smtp));
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    assert_eq!((server.sessions(), server.messages()), (35, 35));
}

#[test]
fn smtp_pipelines_to_several_recipients_and_mailboxes() {
    let server = FakeServer::start(Behavior::Honest);
    let options = "--messages 40 --pipelined --mailboxes 4 --recipients 2";
    let output = bench(&format!("smtp --smtp {} {options}", server.smtp));
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    for mailbox in ["bench-0", "bench-1", "bench-2", "bench-3"] {
        assert_eq!(server.stored(mailbox), 20);
    }
    assert_eq!(server.largest_batch(), 4, "MAIL, RCPT, RCPT, DATA");
}

#[test]
fn smtp_counts_refusals_and_keeps_the_session() {
    for mode in ["", "--pipelined"] {
        let server = FakeServer::start(Behavior::RefusesEachTenth);
        let output = bench(&format!("smtp --smtp {} --connections 2 --messages 50 {mode}", server.smtp));
        assert_eq!(output.status.code(), Some(1));
        let row = &rows(&output)[0];
        assert_eq!((&row["messages"], &row["errors"]), (&45.into(), &5.into()));
        assert!(errors(&output).contains("refused: 451 4.3.0 not today"), "{}", errors(&output));
        assert_eq!((server.stored("bench-0"), server.sessions()), (45, 2));
    }
}

#[test]
fn smtp_reconnects_after_a_lost_connection() {
    let server = FakeServer::start(Behavior::DropsEachTenth);
    let output = bench(&format!("smtp --smtp {} --connections 1 --messages 50", server.smtp));
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(rows(&output)[0]["errors"], 5);
    assert_eq!(server.stored("bench-0"), 45);
}

#[test]
fn smtp_measures_a_process() {
    let server = FakeServer::start(Behavior::Honest);
    let output = bench(&format!("smtp --smtp {} --messages 20 --pid {}", server.smtp, std::process::id()));
    let row = &rows(&output)[0];
    assert!(row["rss_peak_mib"].as_f64() > Some(0.0) && row["cpu_s_per_1000"].as_f64() >= Some(0.0), "{row}");
}

#[test]
fn smtp_fails_fast_if_connections_are_refused() {
    let output = bench("smtp --smtp 127.0.0.1:1 --messages 1000");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(rows(&output)[0]["messages"], 0);
    assert!(errors(&output).contains("connecting"), "{}", errors(&output));
}

#[test]
fn http_fills_the_mailbox_and_reads_it() {
    let server = FakeServer::start(Behavior::Honest);
    for (what, kind) in [("list", "text"), ("get", "multipart"), ("source", "text"), ("latest", "text")] {
        let servers = format!("--smtp {} --http http://{}", server.smtp, server.http);
        let fill = format!("--messages 50 --size 3000 --kind {kind}");
        let output = bench(&format!("http {servers} {fill} --what {what} --connections 2 --seconds 0"));
        assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
        let row = &rows(&output)[0];
        assert_eq!((&row["what"], &row["stored"], &row["errors"]), (&what.into(), &50.into(), &0.into()));
        if what != "list" {
            assert_eq!(row["bytes_per_body"], 3000);
        }
    }
}

#[test]
fn http_spreads_over_mailboxes_and_sends_each_request_once() {
    let server = FakeServer::start(Behavior::Honest);
    let servers = format!("--smtp {} --http http://{}", server.smtp, server.http);
    for (what, requests) in [("list", 5), ("latest", 5), ("get", 23), ("source", 23)] {
        let output = bench(&format!("http {servers} --messages 23 --mailboxes 5 --what {what} --connections 3 --once"));
        assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
        let row = &rows(&output)[0];
        assert_eq!((&row["mailboxes"], &row["stored"]), (&5.into(), &23.into()));
        assert_eq!((&row["requests"], &row["errors"]), (&requests.into(), &0.into()), "{what}");
    }
    assert_eq!(server.stored("bench-4"), 4);
}

#[test]
fn http_waits_for_a_restart() {
    let server = FakeServer::start(Behavior::Honest);
    let servers = format!("--smtp {} --http http://{}", server.smtp, server.http);
    // The standard input of a test is empty, which counts as a line.
    let output = bench(&format!("http {servers} --messages 3 --what get --once --pause"));
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    assert!(errors(&output).contains("3 messages were found; press Enter to begin"), "{}", errors(&output));
}

#[test]
fn http_reports_an_empty_mailbox() {
    let server = FakeServer::start(Behavior::Honest);
    let output = bench(&format!("http --http http://{} --what get --mailbox nobody", server.http));
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("is empty"), "{}", errors(&output));
}

#[test]
fn growth_measures_at_each_step() {
    let server = FakeServer::start(Behavior::Honest);
    let options = format!("--steps 20,200 --mailboxes 10 --operations 15 --pid {}", std::process::id());
    let output = bench(&format!("growth --smtp {} --http http://{} {options}", server.smtp, server.http));
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let rows = rows(&output);
    assert_eq!((&rows[0]["stored"], &rows[1]["stored"]), (&20.into(), &200.into()));
    for operation in ["append", "get", "latest", "delete"] {
        let (median, worst) = (&rows[1][format!("{operation}_p50_us")], &rows[1][format!("{operation}_p99_us")]);
        assert!(median.as_u64() > Some(0) && median.as_u64() <= worst.as_u64(), "{operation}: {median} {worst}");
    }
    let stored: usize = (0..10).map(|n| server.stored(&format!("growth-{n}"))).sum();
    assert_eq!(stored, 200, "as many are deleted as appended");
}

#[test]
fn growth_reports_missing_messages() {
    let server = FakeServer::start(Behavior::LosesEachTenth);
    let options = "--steps 400 --mailboxes 10 --operations 10";
    let output = bench(&format!("growth --smtp {} --http http://{} {options}", server.smtp, server.http));
    assert_eq!(output.status.code(), Some(1));
    let message = "10 mailboxes hold 369 of 410 messages";
    assert!(errors(&output).contains(message), "{}", errors(&output));
}

#[test]
fn expiry_reports_three_phases() {
    let server = FakeServer::start(Behavior::EmptiesAtSixthList);
    let options = "--messages 40 --mailboxes 8 --rate 100 --connections 2 --settle 0 --after 1 --patience 60";
    let output = bench(&format!("expiry --smtp {} --http http://{} {options}", server.smtp, server.http));
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let rows = rows(&output);
    let phases: Vec<_> = rows.iter().map(|row| row["phase"].as_str().unwrap()).collect();
    assert_eq!(phases, ["before", "during", "after"]);
    for row in &rows {
        assert!(row["messages"].as_u64() > Some(5) && row["errors"] == 0, "{row}");
        assert!(row["p50_us"].as_u64() <= row["p99_us"].as_u64() && row["p99_ratio"].as_f64() > Some(0.0), "{row}");
    }
}

#[test]
fn expiry_times_out_if_nothing_expires() {
    let server = FakeServer::start(Behavior::Honest);
    let options = "--messages 8 --mailboxes 8 --settle 0 --patience 1";
    let output = bench(&format!("expiry --smtp {} --http http://{} {options}", server.smtp, server.http));
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("4 of 4 messages have not expired"), "{}", errors(&output));
}

#[test]
fn lost_reports_missing_and_repeated_messages() {
    for (behavior, code, lost, doubled, refused) in [
        (Behavior::Honest, 0, 0, 0, 0),
        (Behavior::LosesEachTenth, 1, 10, 0, 0),
        (Behavior::DoublesEachTenth, 1, 0, 10, 0),
        (Behavior::RefusesEachTenth, 0, 0, 0, 10),
    ] {
        let server = FakeServer::start(behavior);
        let options = "--connections 5 --messages 20 --settle 0";
        let output = bench(&format!("lost --smtp {} --http http://{} {options}", server.smtp, server.http));
        assert_eq!(output.status.code(), Some(code), "{}", errors(&output));
        let row = &rows(&output)[0];
        assert_eq!((&row["sent"], &row["lost"], &row["doubled"]), (&100.into(), &lost.into(), &doubled.into()));
        assert_eq!(row["errors"], refused);
        let is_printed = errors(&output).contains("errors; first error: refused: ");
        assert_eq!(is_printed, refused > 0, "{}", errors(&output));
    }
}

#[test]
fn start_reports_a_server_that_ends_at_once() {
    let output = bench("start --command false --smtp 127.0.0.1:1");
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("ended before its greeting"), "{}", errors(&output));
}
