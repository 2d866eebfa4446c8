//! Simulates a power loss at every step of the server: all acknowledged messages are intact after the next start, and every listed
//! message can be read. Also tests a process that is killed in the middle of a write. `RESTANTE_POWER_ROUNDS` enables every step and
//! sets the number of power losses under load. `RESTANTE_POWER_SEED` repeats a run.

use std::io;
use std::process::Output;

use crate::support::disk::{Disk, Plan, STRICT};
use crate::support::durability::{Client, ExpectedState, eventually};
use crate::support::random::{Random, setting};
use crate::support::{Server, command};

const ROUNDS: u64 = 10;
const RELAXED: [&str; 2] = ["--storage-durability", "relaxed"];

/// Uses a new server: sends messages, marks one, deletes one, purges a mailbox.
fn use_new_server(server: &Server, state: &ExpectedState) -> io::Result<()> {
    let mut client = Client::new(server, state)?;
    client.send("one", &["anna"], 500)?;
    client.send("many", &["anna", "bert", "cleo"], 3000)?;
    client.send("large", &["bert"], 150_000)?;
    let (id, subject) = client.list("anna")?.remove(0);
    client.mark("anna", id, &subject)?;
    client.delete("anna", id, &subject)?;
    client.purge("bert")?;
    client.send("last", &["cleo"], 1000)?;
    Ok(())
}

/// Creates a segment that is no longer written to: after a failed sync, the next message goes to a new segment.
fn start_second_segment(disk: &Disk, server: &Server, state: &ExpectedState) {
    let mut client = Client::new(server, state).unwrap();
    for number in 0..6 {
        assert_eq!(client.send(&format!("old-{number}"), &["anna", "bert"], 5000).unwrap(), 250);
    }
    disk.wait_until_quiet();
    disk.plan(Plan { kinds: "s", ..Plan::once("EIO", 1) });
    assert_eq!(client.send("failed", &["cleo"], 5000).unwrap(), 451);
    disk.clear_faults();
    assert_eq!(client.send("new", &["cleo"], 5000).unwrap(), 250);
    assert!(disk.segments().contains(&"0000000002.seg".to_owned()));
}

/// Deletes most of the old segment: the rest is copied to the new one, and the file is removed.
fn compact_segment(server: &Server, state: &ExpectedState) -> io::Result<()> {
    let mut client = Client::new(server, state)?;
    client.purge("bert")?;
    for (id, subject) in client.list("anna")?.iter().skip(1) {
        client.delete("anna", *id, subject)?;
    }
    client.send("during", &["bert"], 2000)?;
    client.send("last", &["cleo"], 1000)?;
    Ok(())
}

/// What is done before the fault is planned.
type Preparation = fn(&Disk, &Server, &ExpectedState);
/// What is done until the fault occurs.
type Script = fn(&Server, &ExpectedState) -> io::Result<()>;

/// Runs a script on an empty directory repeatedly, with a fault some steps later each time. `seed` selects the unsynced writes that
/// survive.
fn fail_at_every_step(
    name: &str,
    fault: &'static str,
    (first, stride): (usize, usize),
    seed: fn(usize) -> u64,
    before: Option<Preparation>,
    script: Script,
) {
    for at in (first..).step_by(stride) {
        let disk = Disk::new(name);
        let state = ExpectedState::default();
        let fault_plan = Plan { seed: seed(at), ..Plan::once(fault, at) };
        if before.is_none() {
            disk.plan(fault_plan);
        }
        let server = disk.try_server_with_faults(&[]);
        let done = server.is_ok_and(|mut server| {
            if let Some(before) = before {
                before(&disk, &server, &state);
                disk.plan(fault_plan);
            }
            let done = script(&server, &state).is_ok() && server.is_running();
            // If the script did not complete, the process has already exited.
            server.kill();
            done
        });
        assert!(done || disk.has_fault_occurred(fault), "{name} at {at}: the server exited without a fault");
        println!("{name} at {at}");
        let server = disk.server(&[]);
        state.check(&server);
        let mut client = Client::new(&server, &state).unwrap();
        assert_eq!(client.send("after", &["anna", "bert"], 1000).unwrap(), 250);
        state.check(&server);
        if done {
            assert!(at > 30, "{name} took {at} steps: {:#?}", disk.log());
            return;
        }
    }
}

fn strict(_: usize) -> u64 {
    STRICT
}

fn mixed(at: usize) -> u64 {
    0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(at as u64)
}

/// Every step.
const ALL: (usize, usize) = (1, 1);

/// Every third step, with a random start.
fn every_third_step() -> (usize, usize) {
    match setting("RESTANTE_POWER_ROUNDS") {
        Some(_) => ALL,
        None => (1 + Random::seeded_by("RESTANTE_POWER_SEED").below(3), 3),
    }
}

#[test]
fn survives_power_loss_at_any_step() {
    fail_at_every_step("power-strict", "POWER", ALL, strict, None, use_new_server);
}

#[test]
fn survives_power_loss_with_partial_writes() {
    fail_at_every_step("power-mixed", "POWER", every_third_step(), mixed, None, use_new_server);
}

#[test]
fn survives_sigkill_within_any_write() {
    fail_at_every_step("power-torn", "TORN", every_third_step(), strict, None, use_new_server);
}

#[test]
fn survives_power_loss_during_compaction() {
    fail_at_every_step("power-sweep", "POWER", every_third_step(), strict, Some(start_second_segment), compact_segment);
}

#[test]
fn survives_power_loss_with_partial_writes_during_compaction() {
    fail_at_every_step(
        "power-sweep-mixed",
        "POWER",
        every_third_step(),
        mixed,
        Some(start_second_segment),
        compact_segment,
    );
}

/// Linux drops pages that it could not write: the next sync succeeds although data is missing.
#[test]
fn survives_power_loss_after_a_failed_sync() {
    for at in 1.. {
        let disk = Disk::new("power-sync");
        let state = ExpectedState::default();
        let mut server = disk.server_with_faults(&[]);
        let mut client = Client::new(&server, &state).unwrap();
        assert_eq!(client.send("before", &["anna", "bert"], 3000).unwrap(), 250);
        disk.wait_until_quiet();
        disk.plan(Plan { kinds: "s", ..Plan::once("EIO", at) });
        let code = client.send("failed", &["anna", "bert"], 3000).unwrap();
        disk.clear_faults();
        for number in 0..3 {
            assert_eq!(client.send(&format!("again-{number}"), &["anna", "bert"], 3000).unwrap(), 250);
        }
        let has_failed = disk.has_fault_occurred("EIO");
        disk.plan(Plan::once("POWER", 1));
        client.send("last", &["anna"], 3000).unwrap_err();
        server.wait();
        state.check(&disk.server(&[]));
        if !has_failed {
            assert_eq!(code, 250);
            assert!(at > 1);
            return;
        }
    }
}

/// A deletion whose sync failed may be lost, but not those that are acknowledged after it.
#[test]
fn acknowledged_deletions_survive_power_loss_after_a_failed_sync() {
    for at in 1.. {
        let disk = Disk::new("power-delete");
        let state = ExpectedState::default();
        let mut server = disk.server_with_faults(&[]);
        let mut client = Client::new(&server, &state).unwrap();
        for number in 0..4 {
            assert_eq!(client.send(&format!("old-{number}"), &["anna"], 3000).unwrap(), 250);
        }
        let listed = client.list("anna").unwrap();
        disk.wait_until_quiet();
        disk.plan(Plan { kinds: "s", ..Plan::once("EIO", at) });
        let first = client.delete("anna", listed[0].0, &listed[0].1).unwrap();
        disk.clear_faults();
        let has_failed = disk.has_fault_occurred("EIO");
        for (id, subject) in &listed[1..3] {
            assert_eq!(client.delete("anna", *id, subject).unwrap(), 200);
        }
        disk.plan(Plan::once("POWER", 1));
        client.send("last", &["anna"], 3000).unwrap_err();
        server.wait();
        state.check(&disk.server(&[]));
        if !has_failed {
            assert_eq!(first, 200);
            assert!(at > 1, "a deletion has no sync");
            return;
        }
        assert_eq!(first, 503);
    }
}

/// The space of a large message is freed at once by punching a hole into its segment. The hole may reach the disk before the
/// database does. The segment must still be compacted.
#[test]
fn compacts_segment_after_power_loss_with_freed_record() {
    let disk = Disk::new("power-large");
    let state = ExpectedState::default();
    let mut server = disk.server_with_faults(&[]);
    let mut client = Client::new(&server, &state).unwrap();
    assert_eq!(client.send("kept", &["anna"], 3000).unwrap(), 250);
    assert_eq!(client.send("large", &["bert"], 500_000).unwrap(), 250);
    assert_eq!(client.send("also", &["bert"], 3000).unwrap(), 250);
    assert_eq!(client.purge("bert").unwrap(), 200);
    disk.wait_until_quiet();
    disk.plan(Plan::once("POWER", 1));
    client.send("last", &["anna"], 3000).unwrap_err();
    server.wait();
    disk.clear_faults();

    let server = disk.server_with_faults(&[]);
    state.check(&server);
    disk.wait_until_quiet();
    start_second_segment(&disk, &server, &state);
    // Most of the first segment is unused: the rest is copied, and its file is removed.
    eventually("a segment is not compacted", || disk.segments() == ["0000000002.seg"]);
    state.check(&server);
}

#[test]
fn created_directories_survive_power_loss() {
    let disk = Disk::with_data("power-nested", "some/where/deep");
    let state = ExpectedState::default();
    let mut server = disk.server_with_faults(&[]);
    let mut client = Client::new(&server, &state).unwrap();
    assert_eq!(client.send("first", &["anna"], 3000).unwrap(), 250);
    disk.plan(Plan::once("POWER", 1));
    client.send("last", &["anna"], 3000).unwrap_err();
    server.wait();
    state.check(&disk.server(&[]));
}

#[test]
fn survives_power_loss_under_load() {
    let disk = Disk::new("power-load");
    let state = ExpectedState::default();
    let mut random = Random::seeded_by("RESTANTE_POWER_SEED");
    for round in 0..setting("RESTANTE_POWER_ROUNDS").unwrap_or(ROUNDS) {
        lose_power_under_load(&disk, &state, &mut random, round, &[]);
        state.check(&disk.server(&[]));
    }
}

/// With relaxed durability the last messages may be lost. The server must start, must show no wrong content, must log the number of
/// lost messages that the database lists, and must continue to work.
#[test]
fn store_is_consistent_after_power_loss_with_relaxed_durability() {
    let mut random = Random::seeded_by("RESTANTE_POWER_SEED");
    let mut all_lost = 0;
    for round in 0..setting("RESTANTE_POWER_ROUNDS").unwrap_or(ROUNDS) {
        let disk = Disk::new("power-relaxed");
        let state = ExpectedState::default();
        lose_power_under_load(&disk, &state, &mut random, round, &RELAXED);
        let missing = unreadable(&disk);
        let mut server = disk.server(&RELAXED);
        let stored = state.stored_count();
        // Lost messages are removed from the lists in the background.
        eventually("unreadable messages are still listed", || state.damage(&server).unreadable == 0);
        let lost = state.damage(&server).lost;
        println!("round {round}: {lost} of {stored} copies are lost, {missing} of them were listed");
        all_lost += lost;
        let mut client = Client::new(&server, &state).unwrap();
        assert_eq!(client.send("after", &["anna", "new"], 1000).unwrap(), 250);
        assert_eq!(client.purge("anna").unwrap(), 200);
        server.kill();
        let logged: Vec<String> = server.full_log().lines().filter_map(losses).collect();
        assert_eq!(logged, if missing > 0 { vec![missing.to_string()] } else { Vec::new() });
    }
    assert!(all_lost > 0, "no message was lost, so nothing was tested");
}

/// Returns the number of messages in a directory without a server that are listed but cannot be read.
fn unreadable(disk: &Disk) -> usize {
    let mut export = command();
    let Output { status, stderr, .. } = export.args(["export", "-", "--data"]).arg(disk.data()).output().unwrap();
    let output = String::from_utf8(stderr).unwrap();
    let named = output.lines().filter(|line| line.starts_with("restante: message ")).count();
    let more = output.lines().find_map(|line| line.strip_prefix("restante: and ")?.strip_suffix(" more"));
    let count = named + more.map_or(0, |more| more.replace(',', "").parse::<usize>().unwrap());
    assert_eq!(status.code(), Some(i32::from(count > 0)), "{output}");
    count
}

/// Returns the number of lost messages in a log line.
fn losses(line: &str) -> Option<String> {
    let (before, _) = line.split_once(" messages are lost")?;
    before.rsplit(' ').next().map(str::to_owned)
}

/// Sends and deletes messages concurrently until the planned power loss.
fn lose_power_under_load(disk: &Disk, state: &ExpectedState, random: &mut Random, round: u64, arguments: &[&str]) {
    let server = disk.server_with_faults(arguments);
    let seed = if round.is_multiple_of(3) { STRICT } else { random.0 };
    let clients: Vec<_> = (0..4).map(|_| Client::new(&server, state).unwrap()).collect();
    let deleter = Client::new(&server, state).unwrap();
    disk.plan(Plan { seed, ..Plan::once("POWER", 1 + random.below(2500)) });
    std::thread::scope(|scope| {
        for (sender, mut client) in clients.into_iter().enumerate() {
            let mut random = random.fork();
            scope.spawn(move || {
                for number in 0.. {
                    let mailboxes = ["anna", "bert", "cleo", "dirk"];
                    let recipients = &mailboxes[random.below(4)..];
                    if client.send(&format!("{round}-{sender}-{number}"), recipients, 100 << random.below(10)).is_err()
                    {
                        break;
                    }
                }
            });
        }
        scope.spawn(move || -> io::Result<()> {
            loop {
                for mailbox in ["anna", "bert", "cleo", "dirk"] {
                    for (id, subject) in deleter.list(mailbox)?.iter().rev().skip(3) {
                        deleter.delete(mailbox, *id, subject)?;
                    }
                }
            }
        });
    });
    disk.clear_faults();
    assert!(disk.has_fault_occurred("POWER"), "the server exited without a fault");
}
