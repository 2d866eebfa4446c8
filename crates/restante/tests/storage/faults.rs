//! The disk fails at every step of a delivery, once or for a while: nothing is acknowledged that is not kept, nothing
//! that was acknowledged is lost, the server lives, and when the disk works again so does the server, by itself.

use crate::support::Server;
use crate::support::disk::{ANY, Disk, Plan, SPACE};
use crate::support::durability::{Client, Promises, eventually};

const FAULTS: [&str; 4] = ["ENOSPC", "EIO", "SHORT", "EDQUOT"];

/// The letters that a delivery is tried with: one that is written in one go, and one that takes several writes.
const LENGTHS: [usize; 2] = [2000, 200_000];

/// A refusal that makes the sender come again (RFC 5321 section 4.2.1).
fn is_temporary(code: u16) -> bool {
    (400..500).contains(&code)
}

/// After a fault: the process lives, takes the next letter, and everything can be read.
fn goes_on(server: &mut Server, promises: &Promises, name: &str) {
    assert!(server.lives(), "{name}: the server has ended: {}", server.whole_log());
    let mut client = Client::new(server, promises).unwrap();
    let code = client.send(&format!("{name}-again"), &["anna"], 2000).unwrap();
    assert_eq!(code, 250, "{name}: the disk works, the server does not");
    promises.check(server);
}

fn is_ready(server: &Server) -> bool {
    ureq::get(server.url("/readyz")).call().is_ok()
}

fn is_told_by_metrics(server: &Server, line: &str) -> bool {
    String::from_utf8(server.bytes("/metrics")).unwrap().lines().any(|told| told == line)
}

#[test]
fn a_fault_at_any_step_of_a_delivery() {
    for fault in FAULTS {
        let disk = Disk::new(&format!("faults-{fault}"));
        let promises = Promises::default();
        let mut server = disk.faulty(&[]);
        let mut client = Client::new(&server, &promises).unwrap();
        assert_eq!(client.send("first", &["anna", "bert"], 2000).unwrap(), 250);
        let mut refused = 0;
        for length in LENGTHS {
            for at in 1.. {
                let name = format!("{fault}-{length}-{at}");
                disk.plan(Plan::once(fault, at));
                let before = disk.log().len();
                let code = client.send(&name, &["anna", "cleo"], length).unwrap();
                disk.heal();
                assert!(code == 250 || is_temporary(code), "{name}: {code}");
                refused += usize::from(code != 250);
                let done = !disk.log()[before..].iter().any(|line| line == fault);
                goes_on(&mut server, &promises, &name);
                assert_eq!(client.purge("cleo").unwrap(), 200);
                if done {
                    break;
                }
            }
        }
        assert!(refused > 5, "{fault}: only {refused} faults were noticed: {:#?}", disk.log());
        server.kill();
        promises.check(&disk.server(&[]));
    }
}

#[test]
fn a_fault_at_any_step_and_then_the_end_of_the_process() {
    let disk = Disk::new("faults-end");
    let promises = Promises::default();
    for fault in ["EIO", "SHORT"] {
        for at in 1.. {
            let name = format!("{fault}-{at}");
            let mut server = disk.faulty(&[]);
            promises.check(&server);
            let mut client = Client::new(&server, &promises).unwrap();
            disk.wait_until_quiet();
            let before = disk.log().len();
            disk.plan(Plan::once(fault, at));
            let code = client.send(&name, &["anna", "cleo"], 100_000).unwrap();
            disk.heal();
            assert!(code == 250 || is_temporary(code), "{name}: {code}");
            let done = !disk.log()[before..].iter().any(|line| line == fault);
            server.kill();
            if done {
                break;
            }
        }
    }
    promises.check(&disk.server(&[]));
}

/// A commit whose sync fails may still be found by the next start; what it names must not have been tidied away.
#[test]
fn a_failed_commit_that_the_next_start_finds_names_nothing_that_is_gone() {
    // The letter after it gets no new segment if it needs one, or nothing can be written to it.
    for next in ["c", "g"] {
        for at in 1.. {
            let disk = Disk::new("faults-revived");
            let promises = Promises::default();
            let mut server = disk.faulty(&[]);
            let mut client = Client::new(&server, &promises).unwrap();
            // With a reader at the database, its log is not put in order when the writer lets go of it.
            assert!(client.list("anna").unwrap().is_empty());
            disk.wait_until_quiet();
            disk.plan(Plan { kinds: "s", ..Plan::once("EIO", at) });
            let code = client.send("failed", &["anna"], 2000).unwrap();
            if !disk.suffered("EIO") {
                assert_eq!(code, 250);
                assert!(at > 3, "a commit takes {} syncs", at - 1);
                break;
            }
            assert!(is_temporary(code), "{code}: {:#?}", disk.log());
            disk.plan(Plan::lasting("ENOSPC", next));
            let code = client.send("refused", &["anna"], 2000).unwrap();
            assert!(is_temporary(code) || code == 250, "{code}");
            server.kill();
            disk.heal();
            promises.check(&disk.server(&[]));
        }
    }
}

#[test]
fn a_fault_among_many_deliveries_at_once() {
    let disk = Disk::new("faults-many");
    let promises = Promises::default();
    let mut server = disk.faulty(&[]);
    for (round, fault) in FAULTS.into_iter().cycle().enumerate().take(16) {
        disk.plan(Plan::once(fault, 1 + round * 3));
        std::thread::scope(|scope| {
            for sender in 0..6 {
                let mut client = Client::new(&server, &promises).unwrap();
                scope.spawn(move || {
                    for number in 0..3 {
                        let subject = format!("{round}-{sender}-{number}");
                        let code = client.send(&subject, &["anna", "bert"], 3000 << sender).unwrap();
                        assert!(code == 250 || is_temporary(code), "{subject}: {code}");
                    }
                });
            }
        });
        disk.heal();
        goes_on(&mut server, &promises, &format!("{round}"));
        let client = Client::new(&server, &promises).unwrap();
        assert_eq!(client.purge(["anna", "bert"][round % 2]).unwrap(), 200);
    }
    for fault in FAULTS {
        assert!(disk.suffered(fault));
    }
    server.kill();
    promises.check(&disk.server(&[]));
}

#[test]
fn a_fault_at_any_step_of_a_deletion() {
    let disk = Disk::new("faults-delete");
    let promises = Promises::default();
    let mut server = disk.faulty(&[]);
    let mut client = Client::new(&server, &promises).unwrap();
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
            disk.heal();
            assert!(statuses.iter().all(|status| [200, 503].contains(status)), "{name}: {statuses:?}");
            goes_on(&mut server, &promises, &name);
            if !disk.log()[before..].iter().any(|line| line == fault) {
                assert_eq!(statuses, [200; 3]);
                break;
            }
        }
    }
    server.kill();
    promises.check(&disk.server(&[]));
}

#[test]
fn a_disk_that_is_full_for_a_while() {
    for kinds in [SPACE, "wgc"] {
        let disk = Disk::new(&format!("faults-full-{kinds}"));
        let promises = Promises::default();
        let mut server = disk.faulty(&[]);
        let mut client = Client::new(&server, &promises).unwrap();
        for number in 0..10 {
            assert_eq!(client.send(&format!("before-{number}"), &["anna", "bert"], 30_000).unwrap(), 250);
        }
        disk.plan(Plan::lasting("ENOSPC", kinds));
        for number in 0..10 {
            let code = client.send(&format!("meanwhile-{number}"), &["anna", "bert"], 30_000).unwrap();
            assert_eq!(code, 452);
            promises.check(&server);
        }
        let (id, subject) = client.list("bert").unwrap().remove(0);
        assert!([200, 503].contains(&client.delete("bert", id, &subject).unwrap()));
        let (id, subject) = client.list("anna").unwrap().remove(0);
        assert!([200, 503].contains(&client.mark("anna", id, &subject).unwrap()));
        promises.check(&server);
        disk.heal();
        goes_on(&mut server, &promises, "after");
        assert_eq!(client.send("after", &["anna", "bert"], 30_000).unwrap(), 250);
        server.kill();
        let server = disk.server(&[]);
        promises.check(&server);
        eventually("segments of failed attempts remain", || disk.segments().len() <= 2);
    }
}

#[test]
fn a_disk_that_fails_for_a_while() {
    let disk = Disk::new("faults-broken");
    let promises = Promises::default();
    let mut server = disk.faulty(&[]);
    let mut client = Client::new(&server, &promises).unwrap();
    assert_eq!(client.send("before", &["anna", "bert"], 30_000).unwrap(), 250);
    for kinds in [ANY, "s", "w", "g"] {
        disk.plan(Plan::lasting("EIO", kinds));
        for number in 0..5 {
            let code = client.send(&format!("{kinds}-{number}"), &["anna", "bert"], 30_000).unwrap();
            // A commit may need no step of this kind.
            assert!(is_temporary(code) || kinds == "w" && code == 250, "{kinds}: {code}");
            promises.check(&server);
        }
        disk.heal();
        goes_on(&mut server, &promises, kinds);
    }
    server.kill();
    promises.check(&disk.server(&[]));
}

/// A sync that does not return refuses nothing, because it may return at any moment; but the server is not ready.
#[test]
fn a_disk_that_does_not_answer_for_a_while() {
    let disk = Disk::new("faults-stuck");
    let promises = Promises::default();
    let mut server = disk.faulty(&[]);
    let mut client = Client::new(&server, &promises).unwrap();
    assert_eq!(client.send("before", &["anna"], 2000).unwrap(), 250);
    assert!(is_ready(&server));
    disk.plan(Plan::lasting("HANG", "s"));
    std::thread::scope(|scope| {
        let delivery = scope.spawn(|| client.send("meanwhile", &["anna"], 2000).unwrap());
        let is_told = || !is_ready(&server) && is_told_by_metrics(&server, "restante_store_up 0");
        eventually("nobody is told that the disk is stuck", is_told);
        // Reading goes on.
        assert_eq!(server.count("anna"), 1);
        assert!(!delivery.is_finished());
        disk.heal();
        assert_eq!(delivery.join().unwrap(), 250);
    });
    server.logged("the disk has not answered for ");
    let is_well = || is_ready(&server) && is_told_by_metrics(&server, "restante_store_up 1");
    eventually("the server does not become ready again", is_well);
    goes_on(&mut server, &promises, "after");
}

#[test]
fn a_disk_that_does_not_answer_does_not_keep_the_server_from_ending() {
    let disk = Disk::new("faults-stuck-end");
    let promises = Promises::default();
    let mut server = disk.faulty(&["--smtp-transcriptkb", "8192"]);
    let mut client = Client::new(&server, &promises).unwrap();
    assert_eq!(client.send("before", &["anna"], 2000).unwrap(), 250);
    disk.plan(Plan::lasting("HANG", "s"));
    std::thread::scope(|scope| {
        let delivery = scope.spawn(|| client.send("meanwhile", &["anna"], 2000));
        eventually("no sync hangs", || disk.suffered("HANG"));
        server.signal("TERM");
        server.logged("shutting down");
        // The session waits for the disk; nobody has to wait for the session.
        server.signal("TERM");
        assert!(server.wait().success());
        assert!(delivery.join().unwrap().is_err());
    });
    let log = server.whole_log();
    assert!(log.contains("the disk did not let the store close within 5 s"), "{log}");
    disk.heal();
    promises.check(&disk.server(&[]));
}

/// The first start makes the directory, the database and its tables.
#[test]
fn a_fault_at_any_step_of_the_first_start() {
    for fault in ["ENOSPC", "EIO"] {
        let mut refused = 0;
        for at in 1.. {
            let disk = Disk::new(&format!("faults-start-{fault}"));
            let promises = Promises::default();
            disk.plan(Plan::once(fault, at));
            let started = disk.try_faulty(&[]);
            disk.wait_until_quiet();
            disk.heal();
            let suffered = disk.suffered(fault);
            match started {
                Ok(mut server) => goes_on(&mut server, &promises, "start"),
                Err((status, log)) => {
                    refused += 1;
                    // Not the code of settings that are wrong: whoever supervises the server may try again.
                    assert_eq!(status.code(), Some(1), "{fault} at {at}: {log}");
                    assert!(log.contains("data directory") || log.contains("database"), "{fault} at {at}: {log}");
                    assert!(!log.contains("panicked"), "{fault} at {at}: {log}");
                }
            }
            goes_on(&mut disk.server(&[]), &promises, "next");
            if !suffered {
                break;
            }
        }
        assert!(refused > 20, "{fault}: only {refused} faults were noticed");
    }
}
