//! The commands `codes`, `links` and `html-check`.

use super::{restante, run, run_successfully};
use crate::support::Server;

#[test]
fn codes_and_links_are_printed_alone() {
    let server = Server::start(&[]);
    server.deliver("ann@x.org", b"Subject: Hello\r\n\r\nNothing in it.\r\n");
    let (code, out, stderr) = run(restante(&server).args(["codes", "ann"]));
    assert_eq!((code, out.as_str(), stderr.as_str()), (1, "", "restante: The newest message has no codes.\n"));
    let before = server.ids("ann").pop().unwrap();

    let mail = b"Subject: Sign up\r\n\r\nYour verification code is 482913.\r\nOr: https://x.org/confirm?t=1\r\nhttps://x.org/\r\n";
    server.deliver("ann@x.org", mail);
    assert_eq!(run_successfully(&server, &["codes", "ann"]), "482913\n");
    assert_eq!(run_successfully(&server, &["codes", "ann", "--after", &before]), "482913\n");
    assert_eq!(run_successfully(&server, &["links", "ann", "--match", "confirm"]), "https://x.org/confirm?t=1\n");
    assert_eq!(run_successfully(&server, &["links", "ann"]).lines().count(), 2);
    assert_eq!(run(restante(&server).args(["codes", "ann", &before])).0, 1);
    let newest = server.ids("ann").pop().unwrap();
    assert_eq!(run(restante(&server).args(["codes", "ann", "--after", &newest])).0, 1);

    // A message without a code arrives after it.
    server.deliver("ann@x.org", b"Subject: Hello again\r\n\r\nNothing in it.\r\n");
    assert_eq!(run_successfully(&server, &["codes", "ann", "--after", "0", "--wait", "2s"]), "482913\n");
    assert_eq!(run_successfully(&server, &["wait", "ann", "--match", "-subject:again", "--codes"]), "482913\n");

    let mail = b"Subject: Sign in\r\nOTP-Token: \"731946\"; origin=\"https://x.org\"\r\n\r\nYour code is 482913.\r\n";
    server.deliver("ann@x.org", mail);
    assert_eq!(run_successfully(&server, &["codes", "ann"]), "731946\n");
}

#[test]
fn html_check_fails_below_the_minimum_score() {
    let server = Server::start(&[]);
    server.deliver("ann@x.org", b"Subject: Text\r\n\r\nNo HTML.\r\n");
    let (code, out, stderr) = run(restante(&server).args(["html-check", "ann"]));
    assert_eq!((code, out.as_str(), stderr.as_str()), (1, "", "restante: The message has no HTML.\n"));

    let mail = b"Subject: News\r\nContent-Type: text/html\r\n\r\n<p>News</p>\r\n<p style='display:grid'>More</p>\r\n";
    server.deliver("ann@x.org", mail);
    let output = run_successfully(&server, &["html-check", "ann", "--min-score", "10"]);
    assert!(output.lines().any(|line| line.starts_with("css-display-grid\t") && line.ends_with("\t1\t2")), "{output}");
    let (code, out, stderr) = run(restante(&server).args(["html-check", "ann", "--min-score", "99"]));
    assert_eq!((code, out.as_str()), (1, output.as_str()));
    assert!(stderr.contains("and 99 % is required"), "{stderr}");
    assert_eq!(run(restante(&server).args(["html-check", "ann", "--min-score", "101"])).0, 2);
}
