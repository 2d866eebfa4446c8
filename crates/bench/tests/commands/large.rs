//! A test of the `large` command with the real program, which is built next to `restante-bench`.

use std::path::Path;

use restante_testdir::{TestDir, skip};
use restante_testpg::ReservedPort;

use crate::{bench, errors, rows};

#[test]
fn large_runs_every_step_with_the_real_program() {
    let program = Path::new(env!("CARGO_BIN_EXE_restante-bench")).with_file_name("restante");
    if !program.exists() {
        return skip("the program restante is not built", "REQUIRE_PROGRAM");
    }
    let dir = TestDir::new();
    let (smtp, http) = (ReservedPort::new(), ReservedPort::new());
    let servers = format!("--smtp {} --http http://{}", smtp.address(), http.address());
    let files = format!("--program {} --dir {}", program.display(), dir.path().display());
    let load = "--messages 2000 --mailboxes 40 --expired 500 --operations 5 --settle 1 --connections 5 --words 10";
    let output = bench(&format!("large {files} {servers} {load}"));
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let rows = rows(&output);
    let figure = |step: &str, what: &str| {
        let row = rows.iter().find(|row| row["step"] == step && row["what"] == what);
        row.unwrap_or_else(|| panic!("no {what} of {step}"))["value"].as_f64()
    };
    assert_eq!(figure("fill", "messages"), Some(2000.0));
    assert!(figure("restore", "messages") > Some(2000.0), "with those of the steady stream");
    assert!(figure("expiry", "deleted messages") >= Some(500.0));
    // The retention continues after the expiry. On a slow machine it deletes all messages before the mailboxes are deleted.
    assert!(figure("compaction", "deleted messages").is_some());
    for step in ["restart", "list", "search", "baseline", "back-up"] {
        assert!(rows.iter().any(|row| row["step"] == step && row["value"].is_number()), "{step}");
    }
    for row in &rows {
        assert_eq!(row["goal"].is_null(), row["met"].is_null(), "{row}");
    }
}

#[test]
fn large_refuses_a_directory_that_is_not_empty() {
    let dir = TestDir::new();
    std::fs::write(dir.path().join("file"), "").expect("a file");
    let output = bench(&format!("large --dir {} --smtp 127.0.0.1:1 --http http://127.0.0.1:1", dir.path().display()));
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("is not empty"), "{}", errors(&output));
}
