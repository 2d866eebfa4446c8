//! The command `webhook`.

use super::{restante, run, run_successfully};
use crate::support::Server;
use crate::support::durability::eventually;
use crate::support::webhook_receiver::{Receiver, status};

#[test]
fn shows_and_changes_targets_and_entries() {
    let receiver = Receiver::responding_with(|_, before| Some(status(if before == 0 { 410 } else { 204 })));
    let url = receiver.url("/secret events=stored mailboxes=ann|qa");
    let server = Server::start(&["--webhook-private", "--webhook-urls", &url]);
    server.deliver("ann@example.org", b"Subject: Hello\r\n\r\nHi\r\n");
    let message = server.ids("ann").pop().unwrap();
    let state = || {
        let (_, list, _) = run(restante(&server).args(["webhook", "list"]));
        list.split('\t').nth(2).map(ToOwned::to_owned)
    };
    eventually("the event does not fail", || state().as_deref() == Some("failed"));

    let targets = run_successfully(&server, &["webhook", "targets"]);
    let name = targets.split('\t').next().unwrap();
    let address = receiver.url("");
    assert_eq!(targets, format!("{name}\t{address}\tactive\t0\t0\t0\t1\t0\tevents=stored mailboxes=ann|qa\n"));
    let list = run_successfully(&server, &["webhook", "list", "--state", "failed", "--message", &message]);
    let columns: Vec<&str> = list.trim_end().split('\t').collect();
    assert_eq!([columns[0], columns[3], columns[4], columns[5]], ["1", name, "stored", &message], "{list}");
    assert_eq!(columns[6..], ["ann", "1", "the target responded 410 Gone"], "{list}");
    let shown = run_successfully(&server, &["webhook", "show", "1"]);
    assert!(shown.contains("Webhook id: stored-") && shown.contains("Hello") && !shown.contains("secret"), "{shown}");

    assert_eq!(run_successfully(&server, &["webhook", "pause", "--target", name, "--json"]), "{\"paused\":1}\n");
    assert_eq!(run_successfully(&server, &["webhook", "retry", "1"]), "");
    assert_eq!(state().as_deref(), Some("queued"));
    assert_eq!(run_successfully(&server, &["webhook", "cancel", "--all", "--json"]), "{\"cancelled\":1}\n");
    assert_eq!(run_successfully(&server, &["webhook", "retry", "--target", name]), "");
    assert_eq!(run_successfully(&server, &["webhook", "resume", "--all"]), "");
    eventually("the event is not delivered", || state().as_deref() == Some("delivered"));
    let (code, _, stderr) = run(restante(&server).args(["webhook", "pause", "--target", "none"]));
    assert_eq!((code, stderr.as_str()), (1, "restante: There is no such target.\n"));
}

#[test]
fn server_without_webhooks_has_no_targets() {
    let server = Server::start(&[]);
    let (code, _, stderr) = run(restante(&server).args(["webhook", "targets"]));
    assert_eq!((code, stderr.as_str()), (1, "restante: The server has no webhook targets: set webhook.urls.\n"));
    assert_eq!(run(restante(&server).args(["webhook", "list"])).0, 1);
}
