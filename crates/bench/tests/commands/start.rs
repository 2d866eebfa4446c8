//! Tests of the `start` command against a real process: this program, which runs as a server with the test [`serves`].

use std::env;
use std::io::Write;
use std::net::TcpListener;
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use restante_testpg::ReservedPort;
use serde_json::Value;

/// The variable with the address and the greeting of the server.
const SERVER: &str = "START_TEST_SERVER";

/// The server that the tests below start. Prints the pattern, greets every client and never ends by itself. Run by hand, it ends at once.
#[test]
#[ignore = "is a part of other tests"]
fn serves() {
    let Ok(server) = env::var(SERVER) else { return };
    let (address, greeting) = server.split_once(' ').unwrap();
    // Long enough to be visible in the measured times.
    thread::sleep(Duration::from_millis(20));
    let listener = TcpListener::bind(address).unwrap();
    println!("an unrelated line");
    eprintln!("SMTP listening on tcp4 {address}");
    for stream in listener.incoming() {
        // The client may have disconnected.
        let _ = stream.unwrap().write_all(format!("{greeting} ready\r\n").as_bytes());
    }
}

#[test]
fn starts_measures_and_stops_a_server() {
    let port = ReservedPort::new();
    let address = port.address().to_string();
    let output = bench(&address, "220", &["--runs", "2", "--smtp-pattern", "listening on tcp4"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 2);
    for row in rows {
        for name in ["greeted_ms", "announced_ms"] {
            assert!(row[name].as_f64() > Some(20.0), "{name} in {row}");
        }
        let (resident, anonymous) = (row["idle_rss_mib"].as_f64(), row["idle_anonymous_mib"].as_f64());
        assert!(anonymous > Some(0.0) && anonymous < resident, "{row}");
    }
    assert!(TcpListener::bind(&address).is_ok(), "nothing is left running");
}

#[test]
fn server_without_greeting_is_an_error() {
    let port = ReservedPort::new();
    let address = port.address().to_string();
    let output = bench(&address, "554", &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("refused: 554"), "{output:?}");
    assert!(TcpListener::bind(&address).is_ok(), "nothing is left running");
}

fn bench(address: &str, greeting: &str, options: &[&str]) -> Output {
    let this = env::current_exe().unwrap();
    let server = format!("{} --exact start::serves --ignored --nocapture", this.display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_restante-bench"));
    command
        .args(["start", "--json", "--smtp", address, "--command", &server])
        .args(options)
        .env(SERVER, format!("{address} {greeting}"));
    command.output().unwrap()
}
