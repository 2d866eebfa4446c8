//! Tests of the `monitors` command against the fake server.

use serde_json::Value;

use crate::fake::{Behavior, FakeServer};
use crate::{bench, errors, rows};

/// Runs the command. Returns the exit code, the rows and the errors.
fn monitors(server: &FakeServer, options: &str) -> (Option<i32>, Vec<Value>, String) {
    let servers = format!("--smtp {} --http http://{}", server.smtp, server.http);
    let output = bench(&format!("monitors {servers} --connections 3 --warmup 5 {options}"));
    (output.status.code(), rows(&output), errors(&output))
}

#[test]
fn reading_monitors_get_every_event() {
    for protocol in ["v1", "v2", "sse"] {
        let server = FakeServer::start(Behavior::Honest);
        let options = format!("--monitors 5 --stalled 0 --messages 30 --rounds 2 --protocol {protocol}");
        let (code, rows, errors_text) = monitors(&server, &options);
        assert_eq!(code, Some(0), "{errors_text}");
        assert_eq!(server.messages(), 5 + 4 * 30);

        let passes: Vec<_> = rows[..4].iter().map(|row| (row["round"].as_u64(), row["monitors"].as_u64())).collect();
        let expected = [(1, 0), (1, 5), (2, 5), (2, 0)];
        assert_eq!(passes, expected.map(|(round, monitors)| (Some(round), Some(monitors))));
        for row in &rows[4..6] {
            assert_eq!((&row["events_min"], &row["events_max"]), (&30.into(), &30.into()), "{row}");
            for name in ["missed", "lost", "doubled", "lagged", "dropped", "reconnected", "stalled_dropped"] {
                assert_eq!(row[name], 0, "{name} in {row}");
            }
        }
        let compared: Vec<_> = rows[6..].iter().map(|row| row["median"].as_str().unwrap()).collect();
        assert_eq!(compared, ["per_s", "p50_us", "p99_us"]);
        assert!(rows[6]["ratio"].as_f64() > Some(0.0), "{}", rows[6]);
        assert!(protocol == "sse" || server.pongs() >= 2 * 5, "pings are answered");
    }
}

#[test]
fn monitor_of_one_mailbox_gets_its_own_events() {
    let server = FakeServer::start(Behavior::Honest);
    let options = "--monitors 4 --stalled 2 --messages 42 --rounds 1 --topic mailbox --rate 1000";
    let (code, rows, errors_text) = monitors(&server, &format!("{options} --pid {}", std::process::id()));
    assert_eq!(code, Some(0), "{errors_text}");
    assert!(rows[1]["rss_peak_mib"].as_f64() >= rows[1]["rss_after_mib"].as_f64(), "{}", rows[1]);
    let row = &rows[2];
    assert_eq!((&row["events_min"], &row["events_max"]), (&10.into(), &11.into()), "{row}");
    assert_eq!((&row["missed"], &row["lost"]), (&0.into(), &0.into()), "{row}");
    assert_eq!(row["stalled_dropped"], 0, "{row}");
    assert!(row["event_p50_us"].as_u64() <= row["event_max_us"].as_u64());
}

#[test]
fn lagging_monitor_reconnects() {
    // Only an event stream can be resumed; a WebSocket gets the last few messages.
    for (protocol, missed) in [("sse", false), ("v2", true)] {
        let server = FakeServer::start(Behavior::DisconnectsMonitors);
        let (code, rows, errors_text) =
            monitors(&server, &format!("--monitors 3 --stalled 2 --messages 50 --rounds 1 --protocol {protocol}"));
        assert_eq!(code, Some(0), "{errors_text}");
        let row = &rows[2];
        assert!(row["lagged"].as_u64() >= Some(3) && row["reconnected"].as_u64() >= Some(3), "{row}");
        assert_eq!((&row["lost"], &row["dropped"]), (&0.into(), &0.into()), "{row}");
        assert_eq!(row["missed"].as_u64() > Some(0), missed, "{row}");
        assert_eq!(row["stalled_dropped"], 2, "{row}");
    }
}

#[test]
fn lost_events_are_reported() {
    let server = FakeServer::start(Behavior::OmitsEachTenthEvent);
    let (code, rows, errors_text) = monitors(&server, "--monitors 3 --stalled 0 --messages 20 --rounds 1");
    assert_eq!(code, Some(1));
    assert_eq!((&rows[2]["lost"], &rows[2]["missed"]), (&6.into(), &0.into()), "{}", rows[2]);
    assert!(errors_text.contains("6 events were not sent to monitors that stayed connected"), "{errors_text}");
}

#[test]
fn repeated_events_are_reported() {
    let server = FakeServer::start(Behavior::RepeatsEachTenthEvent);
    let (code, rows, errors_text) = monitors(&server, "--monitors 3 --stalled 0 --messages 20 --rounds 1");
    assert_eq!(code, Some(1));
    assert_eq!((&rows[2]["lost"], &rows[2]["doubled"]), (&0.into(), &6.into()), "{}", rows[2]);
    assert!(errors_text.contains("6 events were sent twice to monitors that stayed connected"), "{errors_text}");
}

#[test]
fn a_server_without_monitors_is_an_error() {
    let server = FakeServer::start(Behavior::Honest);
    let servers = format!("--smtp {} --http http://{}/elsewhere", server.smtp, server.http);
    let output = bench(&format!("monitors {servers} --monitors 1 --messages 1"));
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("refused: HTTP/1.1 405 Method Not Allowed"), "{}", errors(&output));
}
