//! Tests of the `durable-reference` command.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use restante_testdir::TestDir;
use rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{bench, errors};

/// A running reference. Killed when this value is dropped.
struct Reference {
    child: Child,
    address: String,
}

impl Reference {
    fn start(dir: &TestDir) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_restante-bench"));
        command.args(["durable-reference", "--json", "--listen", "127.0.0.1:0", "--dir"]).arg(dir.path());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let mut line = String::new();
        BufReader::new(child.stderr.take().expect("a pipe")).read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("restante-bench: listening on ").expect("an address").to_owned();
        Self { child, address }
    }

    /// Terminates the reference. Returns what it printed.
    fn stop(mut self) -> Value {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("the process runs");
        let mut text = String::new();
        self.child.stdout.take().expect("a pipe").read_to_string(&mut text).expect("text");
        assert!(self.child.wait().expect("it ends").success());
        serde_json::from_str(&text).expect("one row")
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        // Both fail only if the process has already ended and been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn acknowledged_messages_are_in_the_file_and_have_rows() {
    let dir = TestDir::new();
    let reference = Reference::start(&dir);
    let address = &reference.address;
    for options in ["--pipelined --recipients 2 --mailboxes 4", "--one-per-message --size 40000"] {
        let output = bench(&format!("smtp --smtp {address} --connections 3 --messages 20 {options}"));
        assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    }
    let row = reference.stop();
    assert_eq!(row["messages"], 40);
    assert!(row["per_group"].as_f64() >= Some(1.0) && row["cpu_s_per_1000"].as_f64() >= Some(0.0), "{row}");

    let contents = fs::read(dir.path().join("messages")).expect("a file");
    let database = Connection::open(dir.path().join("messages.db")).expect("a database");
    let mut statement = database.prepare("SELECT mailbox, offset, length FROM messages ORDER BY id").expect("a table");
    let rows =
        statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, usize>(1)?, row.get::<_, usize>(2)?)));
    let rows: Vec<_> = rows.expect("rows").map(|row| row.expect("three columns")).collect();
    assert_eq!(rows.len(), 20 * 2 + 20, "one row per recipient");
    for (mailbox, offset, length) in &rows {
        let message = &contents[*offset..offset + length];
        assert!(mailbox.starts_with("bench-"), "{mailbox}");
        assert!(matches!(length, 1024 | 40_000), "{length}");
        assert!(message.starts_with(b"From: ") && message.ends_with(b"\r\n"), "{}", message.escape_ascii());
    }
    assert_eq!(contents.len(), 20 * 1024 + 20 * 40_000);
}

#[test]
fn existing_store_is_not_overwritten() {
    let dir = TestDir::new();
    fs::write(dir.path().join("messages"), "mail").expect("a file");
    let output = bench(&format!("durable-reference --listen 127.0.0.1:0 --dir {}", dir.path().display()));
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("creating the store: "), "{}", errors(&output));
}
