//! Command lines of Inbucket's client.

use super::{restante, run, run_successfully};
use crate::support::Server;

#[test]
fn inbucket_command_lines_work_unchanged() {
    let server = Server::start(&[]);
    server.deliver("ann@x.org", b"From: Shop <shop@x.org>\r\nTo: ann@x.org\r\nSubject: Your code\r\n\r\nFrom here\r\n");
    server.deliver("ann@x.org", b"From: bob@y.org\r\nTo: carl@y.org\r\nSubject: Hello\r\n\r\nHi\r\n");
    let ids = server.ids("ann");
    let (host, port) = (server.http.ip().to_string(), server.http.port().to_string());
    let client = |args: &[&str]| {
        let args = [&["client", "-host", &host, "-port", &port], args].concat();
        // The flags set the host, so the variable must have no effect.
        run(restante(&server).env("RESTANTE_SERVER", "http://127.0.0.1:1").args(args))
    };
    let lines = |ids: &[String]| format!("{}\n", ids.join("\n"));

    assert_eq!(client(&["list", "ann"]), (0, lines(&ids), String::new()));
    assert_eq!(client(&["list", "nobody"]), (0, String::new(), String::new()));
    let table: &[(&[&str], &[String])] = &[
        (&["match", "-from", "@x.org$", "ann"], &ids[..1]),
        (&["match", "-from=@x.org$", "-maxage=1h", "ann"], &ids[..1]),
        (&["match", "-to", "^carl", "-subject", "^H", "-output", "id", "ann"], &ids[1..]),
        (&["match", "ann"], &ids),
    ];
    for (args, expected) in table {
        assert_eq!(client(args), (0, lines(expected), String::new()), "{args:?}");
    }
    assert_eq!(client(&["match", "-subject", "nothing", "ann"]), (1, String::new(), String::new()));
    assert_eq!(client(&["match", "-subject", "(", "ann"]).0, 2);
    assert_eq!(client(&["match"]).0, 2);

    let (_, json, _) = client(&["match", "-output", "json", "-subject", "code", "ann"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json[0]["id"], &json[0]["subject"]), (&ids[0].as_str().into(), &"Your code".into()));
    assert_eq!(json.as_array().map(Vec::len), Some(1));
}

#[test]
fn mbox_command_writes_and_empties_a_mailbox() {
    let server = Server::start(&[]);
    server.deliver("ann@x.org", b"From: Shop <shop@x.org>\r\nSubject: One\r\n\r\nFrom here\r\n");
    server.deliver("ann@x.org", b"From: bob@y.org\r\nSubject: Two\r\n\r\nHi");
    let mbox = run_successfully(&server, &["mbox", "ann"]);
    assert!(mbox.starts_with("From shop@x.org "), "{mbox}");
    assert!(mbox.contains("\n>From here\n\nFrom bob@y.org ") && mbox.ends_with("\nHi\n\n"), "{mbox}");
    assert!(!mbox.contains('\r'));
    assert_eq!(
        run_successfully(&server, &["match", "ann", "-subject", "Two", "-delete", "-output", "mbox"])
            .matches("\nSubject")
            .count(),
        1
    );
    assert_eq!(server.count("ann"), 1);
    assert!(run_successfully(&server, &["mbox", "-delete", "ann"]).contains("Subject: One"));
    assert_eq!(server.count("ann"), 0);
    assert_eq!(run(restante(&server).args(["mbox", "ann"])).0, 1);
}
