//! The commands `release` and `relay`.

use super::{restante, run, run_successfully};
use crate::support::Server;

/// Starts a server with the relay target `other`, for recipients at `example.org`.
fn server_with_target(address: &str) -> Server {
    let target = format!("other smtp://{address} starttls=never allow=*@example.org");
    Server::start(&["--relay-private", "--relay-targets", &target])
}

#[test]
fn releases_a_message_to_another_server() {
    let target = Server::start(&[]);
    let server = server_with_target(&target.smtp.to_string());
    server.deliver("ann@example.org", b"Subject: Hello\r\n\r\nHi\r\n");
    let message = server.ids("ann").pop().unwrap();

    let entry = run_successfully(&server, &["release", "latest", "--wait", "--timeout", "2m"]);
    let columns: Vec<&str> = entry.trim_end().split('\t').collect();
    assert_eq!([columns[0], columns[2], columns[3]], ["1", "delivered", "other"], "{entry}");
    assert_eq!([columns[4], columns[5], columns[6]], [message.as_str(), "ann@example.org", "1"], "{entry}");
    assert_eq!(target.count("ann"), 1);
    let (code, out, stderr) = run(restante(&server).args(["release", &message, "--to", "eve@evil.test"]));
    assert_eq!((code, out.as_str()), (4, ""), "{stderr}");
    assert!(stderr.contains("does not allow these recipients: eve@evil.test"), "{stderr}");
    let (code, _, stderr) = run(restante(&server).args(["release", &message, "--target", "none"]));
    assert_eq!((code, stderr.as_str()), (2, "restante: There is no relay target \"none\".\n"));

    let bob =
        ["release", &message, "--to", "bob@example.org", "--target", "other", "--wait", "--timeout", "2m", "--json"];
    let document: serde_json::Value = serde_json::from_str(&run_successfully(&server, &bob)).unwrap();
    assert_eq!((&document["state"], &document["origin"]), (&"delivered".into(), &"release".into()));
    assert_eq!(target.count("bob"), 1);
    let list = run_successfully(&server, &["relay", "list", "--state", "delivered", "--message", &message]);
    assert_eq!(list.lines().map(|line| line.split('\t').next().unwrap()).collect::<Vec<_>>(), ["1", "2"]);
    let shown = run_successfully(&server, &["relay", "show", "1"]);
    for expected in ["State: delivered\n", "C: RCPT TO:<ann@example.org>", "S: 220 "] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    let targets = run_successfully(&server, &["relay", "targets"]);
    assert_eq!(targets, format!("other\t{}\tready\t0\t0\t2\t0\t0\t*@example.org\n", target.smtp));
}

#[test]
fn entries_are_cancelled_and_retried() {
    // Nothing listens on this port.
    let server = server_with_target("127.0.0.1:1");
    server.deliver("ann@example.org", b"Subject: Hello\r\n\r\nHi\r\n");
    let (code, out, stderr) = run(restante(&server).args(["release", "latest", "--wait", "--timeout", "0"]));
    assert_eq!(code, 1, "{out} {stderr}");
    assert!(stderr.contains("The message was not sent in time, and is still in the queue"), "{stderr}");
    assert!(out.starts_with("1\t"), "{out}");

    assert_eq!(run_successfully(&server, &["relay", "cancel", "1", "--json"]), "{\"cancelled\":1}\n");
    let (code, _, stderr) = run(restante(&server).args(["relay", "cancel", "1"]));
    assert_eq!((code, stderr.as_str()), (1, "restante: One of the entries does not exist, or does not wait.\n"));
    assert!(run_successfully(&server, &["relay", "list", "--state", "cancelled"]).starts_with("1\t"));
    assert_eq!(run_successfully(&server, &["relay", "retry", "--all", "--json"]), "{\"retried\":1}\n");
    assert_eq!(run_successfully(&server, &["relay", "cancel", "--target", "other"]), "");
    assert_eq!(run(restante(&server).args(["relay", "retry", "--target", "none"])).0, 1);
    let (code, _, stderr) = run(restante(&server).args(["relay", "show", "7"]));
    assert_eq!(code, 1, "{stderr}");
}

#[test]
fn server_without_targets_releases_nothing() {
    let server = Server::start(&[]);
    server.deliver("ann@example.org", b"Subject: Hello\r\n\r\nHi\r\n");
    let (code, _, stderr) = run(restante(&server).args(["release", "latest"]));
    assert_eq!((code, stderr.as_str()), (2, "restante: No relay target is configured: set relay.targets.\n"));
    assert_eq!(run(restante(&server).args(["relay", "targets"])).0, 1);
    assert_eq!(run(restante(&server).args(["relay", "list"])).0, 1);
}
