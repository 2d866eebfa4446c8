//! Tests a disk that is really full: a small file system in a mount namespace of the server. If the system does not allow mounting
//! one, the test is skipped, or fails if `REQUIRE_FULL_DISK` is set. A preloaded library cannot replace it: the server asks the
//! kernel directly for the free space. `faults.rs` tests the same refusals with injected errors.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use restante_testdir::{TestDir, skip};

use crate::support::{Server, TEST_TIMEOUT, command};

/// The options of `unshare` that may allow mounting a file system: for any user, and for root in a container without user
/// namespaces.
const NAMESPACES: [&[&str]; 2] = [&["--user", "--map-root-user", "--mount"], &["--mount"]];

/// Returns a command that runs a program in new namespaces, with a file system of 12 MiB at the mount point.
fn command_on_small_disk(namespaces: &[&str], mount_point: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(namespaces).args(["sh", "-c", "mount -t tmpfs -o size=12m tmpfs \"$0\" && exec \"$@\"", mount_point]);
    command
}

/// Returns whether this machine allows mounting a file system in these namespaces.
fn can_mount(namespaces: &[&str], mount_point: &str) -> bool {
    let mut command = command_on_small_disk(namespaces, mount_point);
    command.arg("true").stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Starts a server whose data directory has 12 MiB.
fn server_on_a_small_disk(namespaces: &[&str], mount_point: &str) -> Server {
    let server = command();
    let mut command = command_on_small_disk(namespaces, mount_point);
    command.arg(server.get_program()).args(server.get_args());
    for (name, _) in server.get_envs() {
        command.env_remove(name);
    }
    command.args(["--storage-mailboxmsgcap", "0", "--data", &format!("{mount_point}/data")]);
    Server::spawn(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()))
}

/// Sends a message of 20 KB, and returns the code of the reply.
fn send(server: &Server, to: &str) -> String {
    let mut connection = server.connect_smtp();
    connection.start_message(to);
    connection.command("DATA", "354");
    connection.send("Subject: x\r\n\r\n".to_owned() + &"0123456789\r\n".repeat(1700) + ".\r\n");
    let reply = connection.line().expect("a reply");
    reply[..3].to_owned()
}

/// Returns the size of the transcripts of sessions on the disk that only the server sees.
fn session_bytes(server: &Server, mount_point: &str) -> u64 {
    let data = format!("/proc/{}/root{mount_point}/data", server.pid());
    ["sessions.db", "sessions.db-wal"].iter().map(|file| fs::metadata(format!("{data}/{file}")).unwrap().len()).sum()
}

fn status(server: &Server, method: &str, path: &str) -> u16 {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let response = match method {
        "DELETE" => agent.delete(server.url(path)).call(),
        _ => agent.get(server.url(path)).call(),
    };
    response.expect("a response").status().as_u16()
}

/// Sends messages until the disk is full, even after the server has tried to free space. Returns the number of stored messages.
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
fn deleting_frees_space_on_a_full_disk() {
    let dir = TestDir::new();
    let mount_point = dir.path().to_str().unwrap();
    let Some(namespaces) = NAMESPACES.into_iter().find(|namespaces| can_mount(namespaces, mount_point)) else {
        return skip("unshare cannot mount a file system in a namespace", "REQUIRE_FULL_DISK");
    };
    let server = server_on_a_small_disk(namespaces, mount_point);
    for round in 0..3 {
        let stored = fill(&server);
        assert!((200..2000).contains(&stored), "round {round}: {stored}");
        assert_eq!(status(&server, "GET", "/readyz"), 503);
        assert!(
            session_bytes(&server, mount_point) < 200_000,
            "round {round}: transcripts use the space for deletions"
        );
        assert_eq!(status(&server, "GET", "/api/v1/mailbox/box0/latest"), 200);
        for number in 0..10 {
            assert_eq!(status(&server, "DELETE", &format!("/api/v1/mailbox/box{number}")), 200);
        }
        // Files are removed shortly after the response.
        let deadline = Instant::now() + TEST_TIMEOUT;
        while status(&server, "GET", "/readyz") != 200 {
            assert!(Instant::now() < deadline, "round {round}: the space is not freed");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(send(&server, "ann@example.org"), "250");
    }
}
