//! The first minute: the banner on a terminal, and `--open`.

use std::fs::{self, File, Permissions};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use restante_testdir::TestDir;
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::support::durability::eventually;
use crate::support::{Server, command};

/// Runs the server with a terminal as standard error until `text` appears, and returns what the terminal shows.
fn terminal_output(command: &mut Command, text: &str) -> String {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap();
    let terminal = rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    let mut child = command.stderr(terminal.try_clone().unwrap()).spawn().unwrap();
    let mut controller = File::from(controller);
    let mut shown = Vec::new();
    while !String::from_utf8_lossy(&shown).contains(text) {
        let mut chunk = [0; 4096];
        let count = controller.read(&mut chunk).unwrap();
        shown.extend_from_slice(&chunk[..count]);
        assert!(child.try_wait().unwrap().is_none(), "the server ended: {}", String::from_utf8_lossy(&shown));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    String::from_utf8_lossy(&shown).replace("\r\n", "\n")
}

#[test]
fn terminal_shows_a_banner_with_the_bound_addresses() {
    let mut server = command();
    server.args(["--smtp-addr", "localhost:0", "--web-addr", "0.0.0.0:0", "--web-basepath", "/mail"]);
    let shown = terminal_output(&mut server, "Press Ctrl-C to stop.");
    let port_of = |name: &str| {
        let line = shown.lines().find(|line| line.contains(&format!("{name} listening on tcp4 "))).unwrap();
        line.rsplit_once(':').unwrap().1.to_owned()
    };
    let rows = [
        format!("  Web      http://localhost:{}/mail/\n", port_of("HTTP")),
        format!("  SMTP     localhost:{}\n", port_of("SMTP")),
        format!("  POP3     127.0.0.1:{}\n", port_of("POP3")),
        format!("  IMAP     127.0.0.1:{}\n", port_of("IMAP")),
        "  Storage  memory until the server stops\n".to_owned(),
    ];
    assert!(shown.contains(&rows.concat()), "{shown}");
}

#[test]
fn json_log_and_pipes_have_no_banner() {
    let shown = terminal_output(command().arg("--logjson"), "HTTP listening on");
    assert!(shown.lines().all(|line| line.is_empty() || line.starts_with('{')), "{shown}");

    let mut server = Server::start(&[]);
    server.signal("TERM");
    assert!(server.wait().success());
    assert!(!server.full_log().contains("Ctrl-C"));
}

#[test]
fn open_starts_the_default_browser_with_the_page() {
    let dir = TestDir::new();
    let (program, opened) = (dir.path().join(browser_program()), dir.path().join("opened"));
    fs::write(&program, format!("#!/bin/sh\necho \"$@\" > '{}'\n", opened.display())).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let server = Server::spawn(command().arg("--open").env("PATH", dir.path()));
    let expected = format!("http://{}/\n", server.http);
    eventually("the page is opened", || fs::read_to_string(&opened).is_ok_and(|text| text == expected));
}

#[test]
fn server_works_without_a_browser() {
    let dir = TestDir::new();
    let mut server = Server::spawn(command().arg("--open").env("PATH", dir.path()));
    let warning = server.wait_for_log("cannot open the page");
    assert!(warning.contains(&format!("open http://{}/ in a browser", server.http)), "{warning}");
    assert_eq!(server.count("bob"), 0);

    let socket = format!("unix:{}", dir.path().join("web.sock").display());
    let shown = terminal_output(
        command().args(["--open", "--web-addr", &socket]).env("PATH", dir.path()),
        "--open has no effect: there is no TCP listener",
    );
    assert!(!shown.contains("  Web "), "{shown}");
}

fn browser_program() -> &'static str {
    if cfg!(target_os = "macos") { "open" } else { "xdg-open" }
}
