//! A disk that really is full: a small file system of our own, in a name space that only the server sees. Where the system
//! does not allow that, the test says so and does nothing; `faults.rs` plays the same with made-up errors.

#![cfg(target_os = "linux")]

mod support;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use support::{LONG, Server, command};

/// A server whose data directory has 12 MiB.
fn server_on_a_small_disk(mount_point: &str) -> Server {
    let server = command();
    let mut command = in_a_name_space(&["sh", "-c", "mount -t tmpfs -o size=12m tmpfs \"$0\" && exec \"$@\""]);
    command.arg(mount_point).arg(server.get_program()).args(server.get_args());
    for (name, _) in server.get_envs() {
        command.env_remove(name);
    }
    command.args(["--storage-mailboxmsgcap", "0", "--data", &format!("{mount_point}/data")]);
    Server::spawn(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()))
}

fn in_a_name_space(program: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount"]).args(program);
    command
}

/// Sends a message of 20 KB, and returns the code that it gets.
fn send(server: &Server, to: &str) -> String {
    let mut talk = server.talk();
    talk.open_mail(to);
    talk.say("DATA", "354");
    talk.send("Subject: x\r\n\r\n".to_owned() + &"0123456789\r\n".repeat(1700) + ".\r\n");
    let answer = talk.line().expect("an answer");
    answer[..3].to_owned()
}

fn status(server: &Server, method: &str, path: &str) -> u16 {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let answer = match method {
        "DELETE" => agent.delete(server.url(path)).call(),
        _ => agent.get(server.url(path)).call(),
    };
    answer.expect("an answer").status().as_u16()
}

/// Sends until there is no room, also not after the server has tried to make some.
fn fill(server: &Server) -> usize {
    let (mut stored, mut refused) = (0, 0);
    while refused < 5 && stored < 2000 {
        match send(server, &format!("box{}@example.org", stored % 10)).as_str() {
            "250" => (stored, refused) = (stored + 1, 0),
            "452" => refused += 1,
            other => panic!("{other}"),
        }
    }
    stored
}

#[test]
fn deleting_makes_room_on_a_full_disk() {
    let allowed = in_a_name_space(&["true"]).stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if !allowed {
        eprintln!("skipped: no name spaces here");
        return;
    }
    let mount_point = std::env::temp_dir().join(format!("restante-full-{}", std::process::id()));
    std::fs::create_dir_all(&mount_point).unwrap();
    let server = server_on_a_small_disk(mount_point.to_str().unwrap());
    for round in 0..3 {
        let stored = fill(&server);
        assert!((200..2000).contains(&stored), "round {round}: {stored}");
        assert_eq!(status(&server, "GET", "/readyz"), 503);
        assert_eq!(status(&server, "GET", "/api/v1/mailbox/box0/latest"), 200);
        for number in 0..10 {
            assert_eq!(status(&server, "DELETE", &format!("/api/v1/mailbox/box{number}")), 200);
        }
        // Files go a moment after the answer.
        let deadline = Instant::now() + LONG;
        while status(&server, "GET", "/readyz") != 200 {
            assert!(Instant::now() < deadline, "round {round}: the room does not come back");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(send(&server, "ann@example.org"), "250");
    }
    drop(server);
    let _ = std::fs::remove_dir_all(&mount_point);
}
