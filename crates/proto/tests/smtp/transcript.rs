//! The transcript of a session: the stages of transactions, the client's name and the parameters. Passwords are never
//! part of it.

use proptest::prelude::*;
use restante_proto::TransactionStage::{self, Abandoned, Accepted, Refused, Started};
use restante_proto::TranscriptScope::Everything;
use restante_proto::smtp::{Protocol, Settings};

use super::driver::{Driver, Policy, default_settings};

fn recording_driver(settings: Settings) -> Driver {
    let policy = Policy {
        reject_domains: vec!["no.test".to_owned()],
        reject_origin_domains: vec!["spam.test".to_owned()],
        ..Policy::default()
    };
    let mut driver = Driver::new(settings, policy);
    driver.session.start_recording(Everything);
    driver
}

/// Returns the lines with a stage, each by its first word.
fn stages(driver: &mut Driver) -> Vec<(&str, TransactionStage)> {
    let transcript = driver.session.transcript().unwrap();
    let with_stage = transcript.lines().filter_map(|line| Some((line.text, line.stage?)));
    with_stage.map(|(text, stage)| (text.split(' ').next().unwrap(), stage)).collect()
}

#[test]
fn stages_mark_the_start_and_end_of_transactions() {
    let table: &[(&str, &[(&str, TransactionStage)])] = &[
        ("NOOP\r\nMAIL FROM:broken\r\nRCPT TO:<b@y.test>\r\nRSET\r\n", &[]),
        ("MAIL FROM:<a@x.test>\r\nRCPT TO:<b@y.test>\r\nDATA\r\nhi\r\n.\r\n", &[("MAIL", Started), ("250", Accepted)]),
        ("MAIL FROM:<a@spam.test>\r\nRCPT TO:<b@y.test>\r\n", &[("MAIL", Started), ("550", Refused)]),
        ("MAIL FROM:<a@x.test>\r\nRCPT TO:<b@no.test>\r\nRSET\r\n", &[("MAIL", Started), ("250", Abandoned)]),
        ("MAIL FROM:<a@x.test>\r\nEHLO again.test\r\n", &[("MAIL", Started), ("250", Abandoned)]),
        ("MAIL FROM:<a@x.test>\r\nSTARTTLS\r\n", &[("MAIL", Started), ("220", Abandoned)]),
        ("MAIL FROM:<a@x.test>\r\nQUIT\r\n", &[("MAIL", Started)]),
        (
            "MAIL FROM:<a@x.test>\r\nRCPT TO:<b@y.test>\r\nBDAT 2\r\nhiBDAT 2 LAST\r\nho",
            &[("MAIL", Started), ("250", Accepted)],
        ),
        (
            "MAIL FROM:<a@x.test>\r\nRCPT TO:<b@y.test>\r\nDATA\r\n12345678901\r\n.\r\n",
            &[("MAIL", Started), ("552", Refused)],
        ),
        (
            "MAIL FROM:<a@x.test>\r\nRCPT TO:<b@y.test>\r\nBDAT 11\r\n12345678901",
            &[("MAIL", Started), ("552", Refused)],
        ),
    ];
    for (input, expected) in table {
        let mut driver = recording_driver(Settings { starttls: true, max_message_bytes: 10, ..default_settings() });
        driver.feed(b"EHLO client.test\r\n");
        driver.feed(input.as_bytes());
        assert_eq!(stages(&mut driver), *expected, "{input:?}");
    }
}

#[test]
fn last_lmtp_reply_ends_the_transaction() {
    let mut driver = recording_driver(Settings { protocol: Protocol::Lmtp, ..default_settings() });
    driver.feed(b"LHLO client.test\r\nMAIL FROM:<a@x.test>\r\nRCPT TO:<b@y.test>\r\nRCPT TO:<c@y.test>\r\n");
    driver.feed(b"DATA\r\nhi\r\n.\r\n");
    let transcript = driver.session.transcript().unwrap();
    let stages_of_lines: Vec<Option<TransactionStage>> = transcript.lines().map(|line| line.stage).collect();
    assert_eq!(stages_of_lines[stages_of_lines.len() - 2..], [None, Some(Accepted)]);
}

#[test]
fn records_helo_name_and_parameters() {
    let mut driver = recording_driver(default_settings());
    assert_eq!((driver.session.take_helo(), driver.session.parameters()), (None, ""));
    driver.feed(b"EHLO (client)\r\nMAIL FROM:<a@x.test>  SIZE=10 RET=HDRS ENVID=QQ314159 \r\n");
    assert_eq!(driver.session.take_helo().as_deref(), Some("?client?"));
    assert_eq!(driver.session.take_helo(), None);
    assert_eq!(driver.session.parameters(), "SIZE=10 RET=HDRS ENVID=QQ314159");
    driver.feed(b"RCPT TO:<b@y.test> NOTIFY=NEVER ORCPT=rfc822;b@y.test\r\n");
    assert_eq!(driver.session.parameters(), "NOTIFY=NEVER ORCPT=rfc822;b@y.test");
    driver.feed(b"RCPT TO:<c@y.test>\r\n");
    assert_eq!(driver.session.parameters(), "");
}

#[test]
fn incomplete_message_is_recorded() {
    let mut driver = recording_driver(default_settings());
    driver.feed(b"EHLO client.test\r\nMAIL FROM:<a@x.test>\r\nRCPT TO:<b@y.test>\r\nDATA\r\nhalf a li");
    driver.take_transcript();
    driver.session.disconnected();
    let transcript = driver.take_transcript();
    assert_eq!(transcript.iter().map(|(_, line)| line.as_str()).collect::<Vec<_>>(), ["(9 octets of mail)"]);
}

#[test]
fn lines_after_a_too_long_line_are_masked() {
    let mut driver = recording_driver(default_settings());
    driver.feed(b"EHLO client.test\r\n");
    driver.take_transcript();
    driver.feed(format!("AUTH PLAIN {}\r\nUFdTRUNSRVQ=\r\nMY SECRET\r\n", "A".repeat(13_000)).as_bytes());
    let transcript = driver.take_transcript();
    let client_lines: Vec<&str> =
        transcript.iter().map(|(_, line)| line.as_str()).filter(|line| !line.starts_with('5')).collect();
    assert_eq!(client_lines, ["(line too long)", "*** (12 octets)", "*** (9 octets)"]);
}

#[test]
fn unknown_line_after_the_last_chunk_is_masked() {
    let mut driver = recording_driver(default_settings());
    driver.feed(b"EHLO client.test\r\nMAIL FROM:<a@x.test>\r\nRCPT TO:<b@y.test>\r\nBDAT 2 LAST\r\nhi");
    driver.take_transcript();
    driver.feed(b"AGFubgBzZWNyZXQ=\r\n");
    assert_eq!(driver.take_transcript()[0].1, "*** (16 octets)");
}

/// A secret in the forms in which it may occur in a line of AUTH.
const SECRETS: [&str; 4] =
    ["hunter2hunter2", "aHVudGVyMmh1bnRlcjI=", "AGphbWVzAGh1bnRlcjJodW50ZXIy", "aHVudGVyMmh1bnRlcjIK"];

/// Lines with which a client or a person may try to log in.
fn login_attempt() -> impl Strategy<Value = String> {
    let verb = prop::sample::select(vec![
        "AUTH",
        "auth",
        " AUTH",
        "AUTH\t",
        "AUTHPLAIN",
        "\0AUTH",
        "AUTH\0",
        "AUHT",
        "RSET",
        "PASS",
        "Cookie:",
    ]);
    let mechanism = prop::sample::select(vec![
        "PLAIN",
        "login",
        "LOGIN ",
        "CRAM-MD5",
        "XOAUTH2",
        "OAUTHBEARER",
        "",
        "hunter2hunter2",
        "PLAIN=",
    ]);
    let secret = prop::sample::select(SECRETS.to_vec());
    let end = prop::sample::select(vec!["\r\n", "\n", " \r\n", "  x\r\n"]);
    (verb, mechanism, secret, any::<bool>(), end).prop_map(|(verb, mechanism, secret, is_initial_response, end)| {
        let first = if is_initial_response {
            format!("{verb} {mechanism} {secret}{end}")
        } else {
            format!("{verb} {mechanism}{end}")
        };
        format!("{first}{secret}{end}")
    })
}

proptest! {
    #[test]
    fn transcript_contains_no_secrets(
        attempts in prop::collection::vec(login_attempt(), 1..6),
        others in prop::collection::vec(prop::sample::select(vec!["EHLO c.test\r\n", "*\r\n", "NOOP\r\n", "\r\n"]), 6),
        accepts_any_login in any::<bool>(),
    ) {
        let credentials = if accepts_any_login { Vec::new() } else { vec![("a".to_owned(), "b".to_owned())] };
        let mut driver = Driver::new(default_settings(), Policy { credentials, ..Policy::default() });
        driver.session.start_recording(Everything);
        for (login_attempt, other) in attempts.iter().zip(&others) {
            driver.feed(other.as_bytes());
            driver.feed(login_attempt.as_bytes());
        }
        for (_, line) in driver.take_transcript() {
            prop_assert!(SECRETS.iter().all(|secret| !line.contains(secret)), "{}", line);
        }
    }
}
