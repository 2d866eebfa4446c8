//! Injects disk faults at every step of a delivery, once or for a while: only stored messages are acknowledged, no acknowledged message
//! is lost, the server keeps running, and it recovers without a restart when the disk works again.

use crate::support::Server;
use crate::support::disk::{ANY, Disk, Plan, SPACE};
use crate::support::durability::{Client, ExpectedState, eventually};

const FAULTS: [&str; 4] = ["ENOSPC", "EIO", "SHORT", "EDQUOT"];

/// The lengths of the test messages: one is written in one step, the other in several.
const LENGTHS: [usize; 2] = [2000, 200_000];

/// Returns whether the sender retries after this code (RFC 5321 section 4.2.1).
fn is_temporary(code: u16) -> bool {
    (400..500).contains(&code)
}

/// Checks the state after a fault: the process runs, accepts the next message, and all messages can be read.
fn assert_works(server: &mut Server, state: &ExpectedState, name: &str) {
    assert!(server.is_running(), "{name}: the server has exited: {}", server.full_log());
    let mut client = Client::new(server, state).unwrap();
    let code = client.send(&format!("{name}-again"), &["anna"], 2000).unwrap();
    assert_eq!(code, 250, "{name}: the server does not recover");
    state.check(server);
}

fn is_ready(server: &Server) -> bool {
    ureq::get(server.url("/readyz")).call().is_ok()
}

fn has_metric(server: &Server, line: &str) -> bool {
    String::from_utf8(server.bytes("/metrics")).unwrap().lines().any(|metric| metric == line)
}

#[test]
fn survives_a_fault_at_any_step_of_a_delivery() {
    for fault in FAULTS {
        let disk = Disk::new(&format!("faults-{fault}"));
        let state = ExpectedState::default();
        let mut server = disk.server_with_faults(&[]);
        let mut client = Client::new(&server, &state).unwrap();
        assert_eq!(client.send("first", &["anna", "bert"], 2000).unwrap(), 250);
        let mut refused = 0;
        for length in LENGTHS {
            for at in 1.. {
                let name = format!("{fault}-{length}-{at}");
                disk.plan(Plan::once(fault, at));
                let before = disk.log().len();
                let code = client.send(&name, &["anna", "cleo"], length).unwrap();
                disk.clear_faults();
                assert!(code == 250 || is_temporary(code), "{name}: {code}");
                refused += usize::from(code != 250);
                let done = !disk.log()[before..].iter().any(|line| line == fault);
                assert_works(&mut server, &state, &name);
                assert_eq!(client.purge("cleo").unwrap(), 200);
                if done {
                    break;
                }
            }
        }
        assert!(refused > 2, "{fault}: only {refused} deliveries were refused: {:#?}", disk.log());
        server.kill();
        state.check(&disk.server(&[]));
    }
}

#[test]
fn survives_a_fault_at_any_step_followed_by_sigkill() {
    let disk = Disk::new("faults-end");
    let state = ExpectedState::default();
    for fault in ["EIO", "SHORT"] {
        for at in 1.. {
            let name = format!("{fault}-{at}");
            let mut server = disk.server_with_faults(&[]);
            state.check(&server);
            let mut client = Client::new(&server, &state).unwrap();
            disk.wait_until_quiet();
            let before = disk.log().len();
            disk.plan(Plan::once(fault, at));
            let code = client.send(&name, &["anna", "cleo"], 100_000).unwrap();
            disk.clear_faults();
            assert!(code == 250 || is_temporary(code), "{name}: {code}");
            let done = !disk.log()[before..].iter().any(|line| line == fault);
            server.kill();
            if done {
                break;
            }
        }
    }
    state.check(&disk.server(&[]));
}

/// A commit whose sync failed may still be found at the next start. The data that it refers to must not have been removed.
#[test]
fn failed_commit_found_at_the_next_start_has_its_data() {
    // The next message fails: either no new segment can be created, or nothing can be written to it.
    for next in ["c", "g"] {
        for at in 1.. {
            let disk = Disk::new("faults-revived");
            let state = ExpectedState::default();
            let mut server = disk.server_with_faults(&[]);
            let mut client = Client::new(&server, &state).unwrap();
            // An open reader prevents SQLite from checkpointing the WAL when the writer closes the database.
            assert!(client.list("anna").unwrap().is_empty());
            disk.wait_until_quiet();
            disk.plan(Plan { kinds: "s", ..Plan::once("EIO", at) });
            let code = client.send("failed", &["anna"], 2000).unwrap();
            if !disk.has_fault_occurred("EIO") {
                assert_eq!(code, 250);
                assert!(at > 1, "a delivery has no sync");
                break;
            }
            assert!(is_temporary(code), "{code}: {:#?}", disk.log());
            disk.plan(Plan::lasting("ENOSPC", next));
            let code = client.send("refused", &["anna"], 2000).unwrap();
            assert!(is_temporary(code) || code == 250, "{code}");
            server.kill();
            disk.clear_faults();
            state.check(&disk.server(&[]));
        }
    }
}

#[test]
fn survives_a_fault_during_concurrent_deliveries() {
    let disk = Disk::new("faults-many");
    let state = ExpectedState::default();
    let mut server = disk.server_with_faults(&[]);
    for (round, fault) in FAULTS.into_iter().cycle().enumerate().take(16) {
        disk.plan(Plan::once(fault, 1 + round * 3));
        std::thread::scope(|scope| {
            for sender in 0..6 {
                let mut client = Client::new(&server, &state).unwrap();
                scope.spawn(move || {
                    for number in 0..3 {
                        let subject = format!("{round}-{sender}-{number}");
                        let code = client.send(&subject, &["anna", "bert"], 3000 << sender).unwrap();
                        assert!(code == 250 || is_temporary(code), "{subject}: {code}");
                    }
                });
            }
        });
        disk.clear_faults();
        assert_works(&mut server, &state, &format!("{round}"));
        let client = Client::new(&server, &state).unwrap();
        assert_eq!(client.purge(["anna", "bert"][round % 2]).unwrap(), 200);
    }
    for fault in FAULTS {
        assert!(disk.has_fault_occurred(fault));
    }
    server.kill();
    state.check(&disk.server(&[]));
}

#[test]
fn survives_a_fault_at_any_step_of_a_deletion() {
    let disk = Disk::new("faults-delete");
    let state = ExpectedState::default();
    let mut server = disk.server_with_faults(&[]);
    let mut client = Client::new(&server, &state).unwrap();
    for fault in ["ENOSPC", "EIO"] {
        for at in 1.. {
            let name = format!("{fault}-{at}");
            assert_eq!(client.send(&name, &["anna", "bert"], 2000).unwrap(), 250);
            let (id, subject) = client.list("anna").unwrap().pop().unwrap();
            disk.plan(Plan::once(fault, at));
            let before = disk.log().len();
            let statuses = [
                client.mark("anna", id, &subject).unwrap(),
                client.delete("anna", id, &subject).unwrap(),
                client.purge("bert").unwrap(),
            ];
            disk.clear_faults();
            assert!(statuses.iter().all(|status| [200, 503].contains(status)), "{name}: {statuses:?}");
            assert_works(&mut server, &state, &name);
            if !disk.log()[before..].iter().any(|line| line == fault) {
                assert_eq!(statuses, [200; 3]);
                break;
            }
        }
    }
    server.kill();
    state.check(&disk.server(&[]));
}

#[test]
fn recovers_after_a_full_disk() {
    for kinds in [SPACE, "wgc"] {
        let disk = Disk::new(&format!("faults-full-{kinds}"));
        let state = ExpectedState::default();
        let mut server = disk.server_with_faults(&[]);
        let mut client = Client::new(&server, &state).unwrap();
        for number in 0..10 {
            assert_eq!(client.send(&format!("before-{number}"), &["anna", "bert"], 30_000).unwrap(), 250);
        }
        // The server keeps enough space free for the commit of messages that it has acknowledged.
        disk.wait_until_quiet();
        disk.plan(Plan::lasting("ENOSPC", kinds));
        for number in 0..10 {
            let code = client.send(&format!("meanwhile-{number}"), &["anna", "bert"], 30_000).unwrap();
            assert_eq!(code, 452);
            state.check(&server);
        }
        let (id, subject) = client.list("bert").unwrap().remove(0);
        assert!([200, 503].contains(&client.delete("bert", id, &subject).unwrap()));
        let (id, subject) = client.list("anna").unwrap().remove(0);
        assert!([200, 503].contains(&client.mark("anna", id, &subject).unwrap()));
        state.check(&server);
        disk.clear_faults();
        assert_works(&mut server, &state, "after");
        assert_eq!(client.send("after", &["anna", "bert"], 30_000).unwrap(), 250);
        server.kill();
        let server = disk.server(&[]);
        state.check(&server);
        eventually("segments of failed attempts remain", || disk.segments().len() <= 2);
    }
}

#[test]
fn recovers_after_a_failing_disk() {
    let disk = Disk::new("faults-broken");
    let state = ExpectedState::default();
    let mut server = disk.server_with_faults(&[]);
    let mut client = Client::new(&server, &state).unwrap();
    assert_eq!(client.send("before", &["anna", "bert"], 30_000).unwrap(), 250);
    for kinds in [ANY, "s", "w", "g"] {
        disk.wait_until_quiet();
        disk.plan(Plan::lasting("EIO", kinds));
        for number in 0..5 {
            let code = client.send(&format!("{kinds}-{number}"), &["anna", "bert"], 30_000).unwrap();
            // A delivery may not need a step of this kind, but the commit that follows it does.
            assert!(is_temporary(code) || kinds == "w" && code == 250, "{kinds}: {code}");
            // An acknowledged message that cannot be committed must not look like one that has not arrived.
            if client.list("anna").is_ok() {
                state.check(&server);
            } else {
                assert_eq!(kinds, "w");
            }
        }
        disk.clear_faults();
        assert_works(&mut server, &state, kinds);
    }
    server.kill();
    state.check(&disk.server(&[]));
}

/// A hanging sync does not cause a refusal, because it can complete at any time; but the server is not ready.
#[test]
fn hanging_disk_makes_the_server_not_ready() {
    let disk = Disk::new("faults-stuck");
    let state = ExpectedState::default();
    let mut server = disk.server_with_faults(&[]);
    let mut client = Client::new(&server, &state).unwrap();
    assert_eq!(client.send("before", &["anna"], 2000).unwrap(), 250);
    assert!(is_ready(&server));
    disk.plan(Plan::lasting("HANG", "s"));
    std::thread::scope(|scope| {
        let delivery = scope.spawn(|| client.send("meanwhile", &["anna"], 2000).unwrap());
        let is_reported = || !is_ready(&server) && has_metric(&server, "restante_store_up 0");
        eventually("the hanging disk is not reported", is_reported);
        // Reads still work.
        assert_eq!(server.count("anna"), 1);
        assert!(!delivery.is_finished());
        disk.clear_faults();
        assert_eq!(delivery.join().unwrap(), 250);
    });
    server.wait_for_log("the disk has not responded for ");
    let is_recovered = || is_ready(&server) && has_metric(&server, "restante_store_up 1");
    eventually("the server does not become ready again", is_recovered);
    assert_works(&mut server, &state, "after");
}

#[test]
fn hanging_disk_does_not_block_shutdown() {
    let disk = Disk::new("faults-stuck-end");
    let state = ExpectedState::default();
    let mut server = disk.server_with_faults(&["--smtp-transcriptkb", "8192"]);
    let mut client = Client::new(&server, &state).unwrap();
    assert_eq!(client.send("before", &["anna"], 2000).unwrap(), 250);
    disk.plan(Plan::lasting("HANG", "s"));
    std::thread::scope(|scope| {
        let delivery = scope.spawn(|| client.send("meanwhile", &["anna"], 2000));
        eventually("no sync hangs", || disk.has_fault_occurred("HANG"));
        server.signal("TERM");
        server.wait_for_log("shutting down");
        // The session waits for the disk. The second signal closes it.
        eventually("the second signal has an effect", || {
            server.signal("TERM");
            server.has_logged("second signal received")
        });
        assert!(server.wait().success());
        assert!(delivery.join().unwrap().is_err());
    });
    let log = server.full_log();
    assert!(log.contains("the disk did not respond within 5 s while the store was closing"), "{log}");
    disk.clear_faults();
    state.check(&disk.server(&[]));
}

/// The first start creates the directory, the database and its tables.
#[test]
fn survives_a_fault_at_any_step_of_the_first_start() {
    for fault in ["ENOSPC", "EIO"] {
        let mut refused = 0;
        for at in 1.. {
            let disk = Disk::new(&format!("faults-start-{fault}"));
            let state = ExpectedState::default();
            disk.plan(Plan::once(fault, at));
            let started = disk.try_server_with_faults(&[]);
            disk.wait_until_quiet();
            disk.clear_faults();
            let has_failed = disk.has_fault_occurred(fault);
            match started {
                Ok(mut server) => assert_works(&mut server, &state, "start"),
                Err((status, log)) => {
                    refused += 1;
                    // Not the exit code of a configuration error, so a supervisor may retry.
                    assert_eq!(status.code(), Some(1), "{fault} at {at}: {log}");
                    assert!(log.contains("data directory") || log.contains("database"), "{fault} at {at}: {log}");
                    assert!(!log.contains("panicked"), "{fault} at {at}: {log}");
                }
            }
            assert_works(&mut disk.server(&[]), &state, "next");
            if !has_failed {
                break;
            }
        }
        assert!(refused > 20, "{fault}: only {refused} deliveries were refused");
    }
}
