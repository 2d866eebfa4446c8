//! Tests of the `monitors` command against the fake server.

use serde_json::Value;

use crate::fake::{Behavior, FakeServer};
use crate::{bench, errors, rows};

/// Runs the command. Returns the exit code, the rows and the errors.
fn monitors(fake: &FakeServer, options: &str) -> (Option<i32>, Vec<Value>, String) {
    let servers = format!("--smtp {} --http http://{}", fake.smtp, fake.http);
    let output = bench(&format!("monitors {servers} --connections 3 --warmup 5 {options}"));
    (output.status.code(), rows(&output), errors(&output))
}

#[test]
fn every_reading_monitor_hears_of_every_message() {
    for protocol in ["v1", "v2", "sse"] {
        let fake = FakeServer::start(Behavior::Honest);
        let options = format!("--monitors 5 --stalled 0 --messages 30 --rounds 2 --protocol {protocol}");
        let (code, rows, complaints) = monitors(&fake, &options);
        assert_eq!(code, Some(0), "{complaints}");
        assert_eq!(fake.messages(), 5 + 4 * 30);

        let turns: Vec<_> = rows[..4].iter().map(|row| (row["round"].as_u64(), row["monitors"].as_u64())).collect();
        let expected = [(1, 0), (1, 5), (2, 5), (2, 0)];
        assert_eq!(turns, expected.map(|(round, monitors)| (Some(round), Some(monitors))));
        for crowd in &rows[4..6] {
            assert_eq!((&crowd["events_min"], &crowd["events_max"]), (&30.into(), &30.into()), "{crowd}");
            for figure in ["missed", "lost", "doubled", "lagged", "dropped", "reconnected", "stalled_dropped"] {
                assert_eq!(crowd[figure], 0, "{figure} in {crowd}");
            }
        }
        let compared: Vec<_> = rows[6..].iter().map(|row| row["median"].as_str().unwrap()).collect();
        assert_eq!(compared, ["per_s", "p50_us", "p99_us"]);
        assert!(rows[6]["ratio"].as_f64() > Some(0.0), "{}", rows[6]);
        assert!(protocol == "sse" || fake.pongs() >= 2 * 5, "pings are answered");
    }
}

#[test]
fn a_monitor_of_one_mailbox_hears_of_its_own() {
    let fake = FakeServer::start(Behavior::Honest);
    let options = "--monitors 4 --stalled 2 --messages 42 --rounds 1 --topic mailbox --rate 1000";
    let (code, rows, complaints) = monitors(&fake, &format!("{options} --pid {}", std::process::id()));
    assert_eq!(code, Some(0), "{complaints}");
    assert!(rows[1]["rss_peak_mib"].as_f64() >= rows[1]["rss_after_mib"].as_f64(), "{}", rows[1]);
    let crowd = &rows[2];
    assert_eq!((&crowd["events_min"], &crowd["events_max"]), (&10.into(), &11.into()), "{crowd}");
    assert_eq!((&crowd["missed"], &crowd["lost"]), (&0.into(), &0.into()), "{crowd}");
    assert_eq!(crowd["stalled_dropped"], 0, "{crowd}");
    assert!(crowd["event_p50_us"].as_u64() <= crowd["event_max_us"].as_u64());
}

#[test]
fn a_monitor_that_lagged_comes_back() {
    // Only an event stream can be resumed; a WebSocket gets the last few messages.
    for (protocol, missed) in [("sse", false), ("v2", true)] {
        let fake = FakeServer::start(Behavior::DisconnectsMonitors);
        let (code, rows, complaints) =
            monitors(&fake, &format!("--monitors 3 --stalled 2 --messages 50 --rounds 1 --protocol {protocol}"));
        assert_eq!(code, Some(0), "{complaints}");
        let crowd = &rows[2];
        assert!(crowd["lagged"].as_u64() >= Some(3) && crowd["reconnected"].as_u64() >= Some(3), "{crowd}");
        assert_eq!((&crowd["lost"], &crowd["dropped"]), (&0.into(), &0.into()), "{crowd}");
        assert_eq!(crowd["missed"].as_u64() > Some(0), missed, "{crowd}");
        assert_eq!(crowd["stalled_dropped"], 2, "{crowd}");
    }
}

#[test]
fn events_that_do_not_come_are_noticed() {
    let fake = FakeServer::start(Behavior::OmitsEachTenthEvent);
    let (code, rows, complaints) = monitors(&fake, "--monitors 3 --stalled 0 --messages 20 --rounds 1");
    assert_eq!(code, Some(1));
    assert_eq!((&rows[2]["lost"], &rows[2]["missed"]), (&6.into(), &0.into()), "{}", rows[2]);
    assert!(complaints.contains("6 events did not come to monitors that were not cut off"), "{complaints}");
}

#[test]
fn events_that_come_twice_are_noticed() {
    let fake = FakeServer::start(Behavior::RepeatsEachTenthEvent);
    let (code, rows, complaints) = monitors(&fake, "--monitors 3 --stalled 0 --messages 20 --rounds 1");
    assert_eq!(code, Some(1));
    assert_eq!((&rows[2]["lost"], &rows[2]["doubled"]), (&0.into(), &6.into()), "{}", rows[2]);
    assert!(complaints.contains("6 events came twice to monitors that were not cut off"), "{complaints}");
}

#[test]
fn a_server_without_monitors_is_an_error() {
    let fake = FakeServer::start(Behavior::Honest);
    let servers = format!("--smtp {} --http http://{}/elsewhere", fake.smtp, fake.http);
    let output = bench(&format!("monitors {servers} --monitors 1 --messages 1"));
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("refused: HTTP/1.1 405 Method Not Allowed"), "{}", errors(&output));
}
