//! Tests of the `imap` and `imap-fill` commands against the fake server.

use restante_testdir::TestDir;

use crate::fake::{Behavior, FakeServer};
use crate::{bench, errors, rows};

#[test]
fn imap_measures_each_step() {
    let server = FakeServer::start(Behavior::Honest);
    let output = bench(&format!("imap-fill --smtp {} --messages 16", server.smtp));
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    assert_eq!((server.stored("bench"), server.largest_batch()), (16, 3));
    let options = format!("--repeats 2 --bodies 5 --appends 20 --sessions 30 --settle 0 --pid {}", std::process::id());
    for _ in 0..2 {
        let output = bench(&format!("imap --imap {} {options}", server.imap));
        assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
        let rows = rows(&output);
        let steps: Vec<_> =
            rows.iter().filter_map(|row| Some((row["step"].as_str()?, row["count"].as_u64()?))).collect();
        let mut expected = Vec::new();
        for (step, count) in [
            ("select", 16),
            ("session", 16),
            ("flags", 16),
            ("envelope", 16),
            ("body", 5),
            ("subject", 2),
            ("from", 2),
            ("text", 2),
            ("append", 20),
        ] {
            expected.extend([(step, count), (step, count)]);
        }
        assert_eq!(steps, expected);
        let idle = rows.last().unwrap();
        assert_eq!((&idle["step"], &idle["sessions"]), (&"idle".into(), &30.into()));
        assert!(idle["exists_all_ms"].as_f64().is_some() && idle["kib_per_session"].as_f64().is_some(), "{idle}");
        assert_eq!((server.stored("bench-append"), server.stored("bench-idle")), (20, 15), "emptied first");
    }
}

#[test]
fn imap_continues_after_a_refusal() {
    let server = FakeServer::start(Behavior::RefusesEachTenth);
    let output = bench(&format!("imap --imap {} --what text,flags --repeats 1", server.imap));
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(rows(&output).len(), 2, "both rows of flags");
    assert!(errors(&output).contains("text: refused: 3 NO not today"), "{}", errors(&output));
}

#[test]
fn imap_reports_missing_messages() {
    let server = FakeServer::start(Behavior::LosesEachTenth);
    bench(&format!("smtp --smtp {} --messages 9", server.smtp));
    let output = bench(&format!("imap --imap {} --user bench-0 --what flags", server.imap));
    assert_eq!(output.status.code(), Some(1));
    assert!(errors(&output).contains("flags: 8 messages instead of 9"), "{}", errors(&output));
}

#[test]
fn imap_fill_writes_a_maildir() {
    let dir = TestDir::new();
    let maildir = dir.path().join("mail");
    for (code, text) in [(0, ""), (2, "cur has mails")] {
        let output = bench(&format!("imap-fill --messages 20 --maildir {}", maildir.display()));
        assert_eq!(output.status.code(), Some(code));
        assert!(errors(&output).contains(text), "{}", errors(&output));
    }
    let mut sizes = 0;
    for entry in std::fs::read_dir(maildir.join("cur")).unwrap() {
        let entry = entry.unwrap();
        let size = format!(",S={},", entry.metadata().unwrap().len());
        sizes += usize::from(entry.file_name().to_str().unwrap().contains(&size));
    }
    assert_eq!(sizes, 20);
}
