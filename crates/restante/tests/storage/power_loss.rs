//! The power goes at every step of what the server does: everything that was acknowledged is there after the next start,
//! whole, and nothing is listed that cannot be read. The same for a process that is killed at a step, or in the middle
//! of a write. `RESTANTE_POWER_ROUNDS` asks for every step, and says how often the power goes under load;
//! `RESTANTE_POWER_SEED` repeats a run.

use std::io;
use std::process::Output;

use crate::support::disk::{Disk, Plan, STRICT};
use crate::support::durability::{Client, Promises, eventually};
use crate::support::random::{Random, setting};
use crate::support::{Server, command};

const ROUNDS: u64 = 10;
const RELAXED: [&str; 2] = ["--storage-durability", "relaxed"];

/// From the first start on: letters, a mark, a deletion and a purge.
fn first_letters(server: &Server, promises: &Promises) -> io::Result<()> {
    let mut client = Client::new(server, promises)?;
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

/// Leaves a segment that is no longer written to: after a sync that failed, the next letter goes to a new one.
fn change_segment(disk: &Disk, server: &Server, promises: &Promises) {
    let mut client = Client::new(server, promises).unwrap();
    for number in 0..6 {
        assert_eq!(client.send(&format!("old-{number}"), &["anna", "bert"], 5000).unwrap(), 250);
    }
    disk.wait_until_quiet();
    disk.plan(Plan { kinds: "s", ..Plan::once("EIO", 1) });
    assert_eq!(client.send("failed", &["cleo"], 5000).unwrap(), 451);
    disk.heal();
    assert_eq!(client.send("new", &["cleo"], 5000).unwrap(), 250);
    assert!(disk.segments().contains(&"0000000002.seg".to_owned()));
}

/// Most of the old segment goes: the rest of it is written again to the new one, and its file is removed.
fn sweep_segment(server: &Server, promises: &Promises) -> io::Result<()> {
    let mut client = Client::new(server, promises)?;
    client.purge("bert")?;
    for (id, subject) in client.list("anna")?.iter().skip(1) {
        client.delete("anna", *id, subject)?;
    }
    client.send("during", &["bert"], 2000)?;
    client.send("last", &["cleo"], 1000)?;
    Ok(())
}

/// What is done before the end is planned.
type Preparation = fn(&Disk, &Server, &Promises);
/// What is done until the end, whenever that comes.
type Script = fn(&Server, &Promises) -> io::Result<()>;

/// Works on an empty directory again and again, and ends some steps later each time. `seed` says which unsynced writes
/// survive.
fn at_every_step(
    name: &str,
    fault: &'static str,
    (first, stride): (usize, usize),
    seed: fn(usize) -> u64,
    before: Option<Preparation>,
    script: Script,
) {
    for at in (first..).step_by(stride) {
        let disk = Disk::new(name);
        let promises = Promises::default();
        let end = Plan { seed: seed(at), ..Plan::once(fault, at) };
        if before.is_none() {
            disk.plan(end);
        }
        let server = disk.try_faulty(&[]);
        let done = server.is_ok_and(|mut server| {
            if let Some(before) = before {
                before(&disk, &server, &promises);
                disk.plan(end);
            }
            let done = script(&server, &promises).is_ok() && server.lives();
            // When it is not done, it has ended, and this changes nothing.
            server.kill();
            done
        });
        assert!(done || disk.suffered(fault), "{name} at {at}: the server ended by itself");
        println!("{name} at {at}");
        let server = disk.server(&[]);
        promises.check(&server);
        let mut client = Client::new(&server, &promises).unwrap();
        assert_eq!(client.send("after", &["anna", "bert"], 1000).unwrap(), 250);
        promises.check(&server);
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

/// One step of three, others in each run.
fn some() -> (usize, usize) {
    match setting("RESTANTE_POWER_ROUNDS") {
        Some(_) => ALL,
        None => (1 + Random::seeded_by("RESTANTE_POWER_SEED").below(3), 3),
    }
}

#[test]
fn the_power_goes_at_any_step() {
    at_every_step("power-strict", "POWER", ALL, strict, None, first_letters);
}

#[test]
fn the_power_goes_at_any_step_and_some_writes_survive() {
    at_every_step("power-mixed", "POWER", some(), mixed, None, first_letters);
}

#[test]
fn the_process_is_killed_within_any_write() {
    at_every_step("power-torn", "TORN", some(), strict, None, first_letters);
}

#[test]
fn the_power_goes_while_a_segment_is_written_again() {
    at_every_step("power-sweep", "POWER", some(), strict, Some(change_segment), sweep_segment);
}

#[test]
fn the_power_goes_while_a_segment_is_written_again_and_some_writes_survive() {
    at_every_step("power-sweep-mixed", "POWER", some(), mixed, Some(change_segment), sweep_segment);
}

/// Linux forgets what it could not write: the next sync says that all is well, and it is not.
#[test]
fn the_power_goes_after_a_sync_that_failed() {
    for at in 1.. {
        let disk = Disk::new("power-sync");
        let promises = Promises::default();
        let mut server = disk.faulty(&[]);
        let mut client = Client::new(&server, &promises).unwrap();
        assert_eq!(client.send("before", &["anna", "bert"], 3000).unwrap(), 250);
        disk.wait_until_quiet();
        disk.plan(Plan { kinds: "s", ..Plan::once("EIO", at) });
        let code = client.send("failed", &["anna", "bert"], 3000).unwrap();
        disk.heal();
        for number in 0..3 {
            assert_eq!(client.send(&format!("again-{number}"), &["anna", "bert"], 3000).unwrap(), 250);
        }
        let suffered = disk.suffered("EIO");
        disk.plan(Plan::once("POWER", 1));
        client.send("last", &["anna"], 3000).unwrap_err();
        server.wait();
        promises.check(&disk.server(&[]));
        if !suffered {
            assert_eq!(code, 250);
            assert!(at > 2);
            return;
        }
    }
}

/// The space of a large letter comes back at once, in the middle of a segment that others need. That it is a hole now may
/// reach the disk before what was written about it does; the segment must not be stuck because of that.
#[test]
fn the_power_goes_after_a_large_letter_went() {
    let disk = Disk::new("power-large");
    let promises = Promises::default();
    let mut server = disk.faulty(&[]);
    let mut client = Client::new(&server, &promises).unwrap();
    assert_eq!(client.send("kept", &["anna"], 3000).unwrap(), 250);
    assert_eq!(client.send("large", &["bert"], 500_000).unwrap(), 250);
    assert_eq!(client.send("also", &["bert"], 3000).unwrap(), 250);
    assert_eq!(client.purge("bert").unwrap(), 200);
    disk.wait_until_quiet();
    disk.plan(Plan::once("POWER", 1));
    client.send("last", &["anna"], 3000).unwrap_err();
    server.wait();
    disk.heal();

    let server = disk.faulty(&[]);
    promises.check(&server);
    disk.wait_until_quiet();
    change_segment(&disk, &server, &promises);
    // Most of the first segment is not in use: the rest is written again, and its file goes.
    eventually("a segment is stuck", || disk.segments() == ["0000000002.seg"]);
    promises.check(&server);
}

#[test]
fn directories_that_were_made_survive() {
    let disk = Disk::with_data("power-nested", "some/where/deep");
    let promises = Promises::default();
    let mut server = disk.faulty(&[]);
    let mut client = Client::new(&server, &promises).unwrap();
    assert_eq!(client.send("first", &["anna"], 3000).unwrap(), 250);
    disk.plan(Plan::once("POWER", 1));
    client.send("last", &["anna"], 3000).unwrap_err();
    server.wait();
    promises.check(&disk.server(&[]));
}

#[test]
fn the_power_goes_under_load() {
    let disk = Disk::new("power-load");
    let promises = Promises::default();
    let mut random = Random::seeded_by("RESTANTE_POWER_SEED");
    for round in 0..setting("RESTANTE_POWER_ROUNDS").unwrap_or(ROUNDS) {
        power_goes_under_load(&disk, &promises, &mut random, round, &[]);
        promises.check(&disk.server(&[]));
    }
}

/// Without syncs the last letters may be lost. The server must start, must show nothing wrong, must tell what its books
/// named and the disk does not have, and must go on.
#[test]
fn without_syncs_the_store_is_sound_after_the_power_went() {
    let mut random = Random::seeded_by("RESTANTE_POWER_SEED");
    let mut all_lost = 0;
    for round in 0..setting("RESTANTE_POWER_ROUNDS").unwrap_or(ROUNDS) {
        let disk = Disk::new("power-relaxed");
        let promises = Promises::default();
        power_goes_under_load(&disk, &promises, &mut random, round, &RELAXED);
        let missing = unreadable(&disk);
        let mut server = disk.server(&RELAXED);
        let kept = promises.kept();
        // What is lost is taken off the lists in the background.
        eventually("letters are listed that cannot be read", || promises.damage(&server).unreadable == 0);
        let lost = promises.damage(&server).lost;
        println!("round {round}: of {kept} copies {lost} are lost, and {missing} were listed");
        all_lost += lost;
        let mut client = Client::new(&server, &promises).unwrap();
        assert_eq!(client.send("after", &["anna", "new"], 1000).unwrap(), 250);
        assert_eq!(client.purge("anna").unwrap(), 200);
        server.kill();
        let told: Vec<String> = server.whole_log().lines().filter_map(losses).collect();
        assert_eq!(told, if missing > 0 { vec![missing.to_string()] } else { Vec::new() });
    }
    assert!(all_lost > 0, "the power has taken nothing, so nothing was tested");
}

/// How many messages are listed in a directory that nobody serves, but cannot be read.
fn unreadable(disk: &Disk) -> usize {
    let mut export = command();
    let Output { status, stderr, .. } = export.args(["export", "-", "--data"]).arg(disk.data()).output().unwrap();
    let told = String::from_utf8(stderr).unwrap();
    let named = told.lines().filter(|line| line.starts_with("restante: message ")).count();
    let more = told.lines().find_map(|line| line.strip_prefix("restante: and ")?.strip_suffix(" more"));
    let count = named + more.map_or(0, |more| more.replace(',', "").parse::<usize>().unwrap());
    assert_eq!(status.code(), Some(i32::from(count > 0)), "{told}");
    count
}

/// What a line of the log says about messages that are lost.
fn losses(line: &str) -> Option<String> {
    let (before, _) = line.split_once(" messages are lost")?;
    before.rsplit(' ').next().map(str::to_owned)
}

/// Several senders and one who deletes, until the power goes at some step.
fn power_goes_under_load(disk: &Disk, promises: &Promises, random: &mut Random, round: u64, arguments: &[&str]) {
    let server = disk.faulty(arguments);
    let seed = if round.is_multiple_of(3) { STRICT } else { random.0 };
    let clients: Vec<_> = (0..4).map(|_| Client::new(&server, promises).unwrap()).collect();
    let deleter = Client::new(&server, promises).unwrap();
    disk.plan(Plan { seed, ..Plan::once("POWER", 1 + random.below(2500)) });
    std::thread::scope(|scope| {
        for (sender, mut client) in clients.into_iter().enumerate() {
            let mut random = random.fork();
            scope.spawn(move || {
                for number in 0.. {
                    let mailboxes = ["anna", "bert", "cleo", "dirk"];
                    let some = &mailboxes[random.below(4)..];
                    if client.send(&format!("{round}-{sender}-{number}"), some, 100 << random.below(10)).is_err() {
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
    disk.heal();
    assert!(disk.suffered("POWER"), "the server ended by itself");
}
